/*
 * A backend that fails on demand: put in front of the real one of an open device, it counts and records the calls and
 * makes one of them fail. One device at a time.
 */
#ifndef GG_TESTS_SUPPORT_FAULTY_H
#define GG_TESTS_SUPPORT_FAULTY_H

#include "backends/backend.h"

typedef enum gg_call {
  GG_CALL_ALLOC = 0,
  GG_CALL_UPLOAD,
  GG_CALL_FILL,
  GG_CALL_READBACK,
  GG_CALL_WAIT,
  GG_CALL_TABLE,
  GG_CALL_REDUCE,
  GG_CALL_UPDATE,
  GG_CALL_WAIT_UPDATE,
  GG_CALL_SYNC,
  GG_CALLS
} gg_call;

/* Puts the faulty backend in front of the device's own. */
void gg_faulty_install(gg_device* device);

/* Forgets the calls and the plan. */
void gg_faulty_reset(void);

/* The `nth` call from now on (from 1) fails with GG_ERROR_DRIVER; `only` < GG_CALLS counts just that function's. If
 * `lose`, the device is lost then, and any later call but a release fails the test. */
void gg_faulty_plan(unsigned nth, gg_call only, bool lose);

/* True once the planned call has failed. */
bool gg_faulty_struck(void);

/* Calls since the last reset: of one function; of all; and their initials in order, such as "R<W U". */
unsigned gg_faulty_count(gg_call call);
unsigned gg_faulty_total(void);
const char* gg_faulty_record(void);

/* Memories and tables that have been made and not been released, since installation. */
long gg_faulty_outstanding(void);

#endif
