#include "tests/support/foreign.h"

#include <stdlib.h>

#include "tests/support/compare.h"

#define TENSORS 3
#define STEPS   3

static gg_trial* make_trial(gg_context* context, gg_update_mode mode, gg_trial_allocate allocate, void* user) {
  static const gg_trial_spec specs[TENSORS] = {
      {.elements = 3000, .gradient = GG_F16, .shift = 1},
      {.elements = 70001, .gradient = GG_BF16, .step = 2},
      {.elements = 9, .gradient = GG_F32, .shift = 2},
  };
  gg_random random = gg_random_stream(101);
  gg_trial* trial = gg_trial_create(specs, TENSORS, mode, true);
  trial->allocate = allocate;
  trial->allocate_user = user;
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_trial_open(trial, context);
  return trial;
}

static void take_steps(gg_trial* trial) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 0.25;
  for (int step = 0; step < STEPS; step++) {
    gg_test_case("step %d on wrapped memory, mode %d", step, (int)trial->mode);
    gg_trial_step(trial, &adamw, &guard);
    gg_trial_check(trial);
  }
}

gg_report gg_foreign_in_place(gg_context* context, gg_trial_allocate allocate, void* user) {
  gg_trial* trial = make_trial(context, GG_IN_PLACE, allocate, user);
  GG_CHECK(gg_buffer_is_wrapped(trial->entries[0].buffers[GG_PARAMETER]));
  take_steps(trial);
  gg_report report = GG_REPORT_INIT;
  GG_OK_OR_FAIL(context, gg_group_report(trial->group, &report));
  GG_CHECK(report.readback_bytes == 12 * TENSORS);
  report.per_tensor = NULL; /* goes with the group */
  gg_trial_destroy(&trial);
  return report;
}

void gg_foreign_out_of_place(gg_context* context, gg_trial_allocate allocate, void* user) {
  gg_trial* trial = make_trial(context, GG_OUT_OF_PLACE, allocate, user);
  uint8_t *before[TENSORS][GG_ROLES] = {{NULL}}, *after;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < TENSORS; i++)
      for (int role = 0; role < GG_MODEL_COPY; role++) {
        gg_buffer* buffer = trial->entries[i].buffers[role];
        uint64_t bytes = gg_buffer_bytes(buffer);
        after = malloc(bytes);
        GG_CHECK(after != NULL);
        GG_OK_OR_FAIL(context, gg_buffer_download(buffer, 0, after, bytes));
        if (pass == 0) {
          before[i][role] = after;
          continue;
        }
        gg_test_same_bytes("wrapped memory", after, before[i][role], bytes);
        free(after);
        free(before[i][role]);
      }
    if (pass == 0) take_steps(trial);
  }
  gg_trial_destroy(&trial);
}
