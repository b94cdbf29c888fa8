/*
 * What a user does with one context, from the first buffer to the last release, as a list of calls any of which may be
 * refused: a test makes one fail and sees what that does to the rest. Nothing is random but the values.
 */
#ifndef GG_TESTS_SUPPORT_LIFE_H
#define GG_TESTS_SUPPORT_LIFE_H

#include "api/gradguard.h"

#define GG_LIFE_ENTRIES 4
#define GG_LIFE_LONGEST 70001 /* elements: more than one reduction block */
#define GG_LIFE_BYTES   ((uint64_t)1 << 21)

typedef struct gg_life gg_life;
struct gg_life {
  gg_context* context;
  gg_update_mode mode;

  /* Around every call of the library. */
  void (*enter)(void);
  void (*leave)(void);

  /* A call has given `status`; `made` is what it should have made. True: it is made again, and must succeed then;
   * false: the life ends here. */
  bool (*refused)(gg_life* life, const char* call, gg_status status, const void* made);

  gg_buffer* buffer;
  gg_group* group;
  gg_pending* pending;
  gg_entry entries[GG_LIFE_ENTRIES];
  uint8_t values[GG_LIFE_BYTES]; /* what the buffer holds at first: gg_life_fill */

  /* What a life that was not ended has come to: parameters and second moments of the group, and the buffer after one
   * more step without a group. */
  uint8_t results[GG_LIFE_ENTRIES][2][GG_LIFE_LONGEST * sizeof(float)];
  uint8_t once[GG_LIFE_BYTES];
};

void gg_life_fill(gg_life* life);

/* False if `refused` has ended it. Everything that it made has been released, but for the context. */
bool gg_life_run(gg_life* life);

/* Fails the test unless both have come to the same bits. */
void gg_life_compare(const gg_life* life, const gg_life* usual);

#endif
