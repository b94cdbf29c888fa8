#include "tests/support/faulty.h"

#include <string.h>

#include "host/status.h"
#include "tests/support/compare.h"

/* a alloc, u upload, f fill, < readback, w wait, t table, R reduce, U update, W wait_update, s sync */
static const char initials[GG_CALLS + 1] = "auf<wtRUWs";

static const gg_backend* real;
static gg_backend front;
static unsigned counts[GG_CALLS], total, planned;
static gg_call planned_call;
static bool planned_loss, struck, lost;
static long outstanding;
static char record[4096];

void gg_faulty_reset(void) {
  memset(counts, 0, sizeof counts);
  memset(record, 0, sizeof record);
  total = planned = 0;
  planned_call = GG_CALLS;
  planned_loss = struck = false;
}

void gg_faulty_plan(unsigned nth, gg_call only, bool lose) {
  planned = nth;
  planned_call = only;
  planned_loss = lose;
  struck = false;
}

bool gg_faulty_struck(void) { return struck; }
unsigned gg_faulty_count(gg_call call) { return counts[call]; }
unsigned gg_faulty_total(void) { return total; }
const char* gg_faulty_record(void) { return record; }
long gg_faulty_outstanding(void) { return outstanding; }

/* Records the call; true if it is the one that fails. */
static bool fails(gg_device* device, gg_call call, gg_error* error) {
  if (lost) gg_test_fail("call '%c' on a lost device", initials[call]);
  counts[call]++;
  if (total < sizeof record - 1) record[total] = initials[call];
  total++;
  if (planned == 0 || (planned_call < GG_CALLS && planned_call != call)) return false;
  if (--planned > 0) return false;
  struck = true;
  if (planned_loss) device->lost = lost = true;
  gg_fail_native(error, planned_loss ? GG_ERROR_DEVICE_LOST : GG_ERROR_DRIVER, 700, "PLANNED_FAULT", "faulty",
                 "the planned fault");
  return true;
}

static gg_status failure(void) { return planned_loss ? GG_ERROR_DEVICE_LOST : GG_ERROR_DRIVER; }

static gg_status faulty_alloc(gg_device* device, uint64_t bytes, gg_memory** memory, gg_error* error) {
  if (fails(device, GG_CALL_ALLOC, error)) return failure();
  gg_status status = real->alloc(device, bytes, memory, error);
  if (status == GG_OK) outstanding++;
  return status;
}

static gg_status faulty_wrap(gg_device* device, gg_handle_kind kind, uint64_t handle, uint64_t bytes,
                             gg_memory** memory, gg_error* error) {
  gg_status status = real->wrap(device, kind, handle, bytes, memory, error);
  if (status == GG_OK) outstanding++;
  return status;
}

static void faulty_release(gg_device* device, gg_memory* memory) {
  if (memory) outstanding--;
  real->release(device, memory);
}

static gg_status faulty_upload(gg_device* device, gg_memory* memory, uint64_t offset, const void* source,
                               uint64_t bytes, gg_error* error) {
  if (fails(device, GG_CALL_UPLOAD, error)) return failure();
  return real->upload(device, memory, offset, source, bytes, error);
}

static gg_status faulty_fill(gg_device* device, gg_memory* memory, uint64_t offset, uint64_t bytes, uint8_t value,
                             gg_error* error) {
  if (fails(device, GG_CALL_FILL, error)) return failure();
  return real->fill(device, memory, offset, bytes, value, error);
}

static gg_status faulty_readback(gg_device* device, const gg_readback* pieces, size_t count, gg_error* error) {
  if (fails(device, GG_CALL_READBACK, error)) return failure();
  return real->readback(device, pieces, count, error);
}

static gg_status faulty_wait(gg_device* device, gg_error* error) {
  if (fails(device, GG_CALL_WAIT, error)) return failure();
  return real->wait(device, error);
}

static gg_status faulty_table(gg_device* device, const gg_row* rows, uint32_t count, bool amsgrad, bool updates,
                              gg_table** table, gg_error* error) {
  if (fails(device, GG_CALL_TABLE, error)) return failure();
  gg_status status = real->table(device, rows, count, amsgrad, updates, table, error);
  if (status == GG_OK) outstanding++;
  return status;
}

static void faulty_table_free(gg_device* device, gg_table* table) {
  if (table) outstanding--;
  real->table_free(device, table);
}

static gg_status faulty_reduce(gg_device* device, gg_table* table, float inverse_scale, gg_error* error) {
  if (fails(device, GG_CALL_REDUCE, error)) return failure();
  return real->reduce(device, table, inverse_scale, error);
}

static gg_status faulty_update(gg_device* device, gg_table* table, const gg_update* update, gg_error* error) {
  if (fails(device, GG_CALL_UPDATE, error)) return failure();
  return real->update(device, table, update, error);
}

static gg_status faulty_wait_update(gg_device* device, gg_table* table, gg_error* error) {
  if (fails(device, GG_CALL_WAIT_UPDATE, error)) return failure();
  return real->wait_update(device, table, error);
}

static gg_status faulty_sync(gg_device* device, gg_error* error) {
  if (fails(device, GG_CALL_SYNC, error)) return failure();
  return real->sync(device, error);
}

/* The real close gets its own backend back. */
static void faulty_close(gg_device* device) {
  device->backend = real;
  lost = false;
  real->close(device);
}

void gg_faulty_install(gg_device* device) {
  real = device->backend;
  front = *real;
  front.close = faulty_close;
  front.alloc = faulty_alloc;
  front.wrap = faulty_wrap;
  front.release = faulty_release;
  front.upload = faulty_upload;
  front.fill = faulty_fill;
  front.readback = faulty_readback;
  front.wait = faulty_wait;
  front.table = faulty_table;
  front.table_free = faulty_table_free;
  front.reduce = faulty_reduce;
  front.update = faulty_update;
  front.wait_update = faulty_wait_update;
  front.sync = faulty_sync;
  device->backend = &front;
  outstanding = 0;
  gg_faulty_reset();
}
