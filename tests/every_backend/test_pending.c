/* A submitted step: its report, waiting, commit and discard, and which buffers are current. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

static gg_trial* make_trial(gg_context* context, gg_update_mode mode) {
  static const gg_trial_spec specs[] = {
      {.elements = 700, .gradient = GG_F32, .model = GG_BF16},
      {.elements = 0},
      {.elements = 3000, .gradient = GG_F16, .shift = 3, .step = 10},
  };
  gg_random random = gg_random_stream(31);
  gg_trial* trial = gg_trial_create(specs, 3, mode, true);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_trial_open(trial, context);
  return trial;
}

static gg_pending* start(gg_trial* trial) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 0.25;
  gg_pending* pending = NULL;
  GG_OK_OR_FAIL(trial->context, gg_guarded_adamw_step(trial->group, &adamw, &guard, &pending));
  GG_CHECK(pending != NULL);
  return pending;
}

static void expect_start(gg_trial* trial) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 0.25;
  gg_trial_expect(trial, &adamw, &guard, NULL);
}

GG_TEST_BACKENDS(pending, commit_makes_the_new_buffers_current, 30) {
  gg_trial* trial = make_trial(context, GG_OUT_OF_PLACE);
  for (int step = 0; step < 4; step++) {
    gg_tensor before, after;
    GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, 0, GG_PARAMETER, &before));
    gg_pending* pending = start(trial);
    GG_OK_OR_FAIL(context, gg_pending_wait(pending));
    GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, 0, GG_PARAMETER, &after));
    GG_CHECK(after.buffer == before.buffer && after.offset == before.offset);
    gg_test_case("old values before commit %d", step);
    gg_trial_check(trial);
    expect_start(trial);
    GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
    GG_CHECK(pending == NULL);
    GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, 0, GG_PARAMETER, &after));
    GG_CHECK(after.buffer != before.buffer || after.offset != before.offset);
    GG_CHECK(after.dtype == GG_F32 && after.rank == 1 && after.shape[0] == 700 && after.strides[0] == 1);
    gg_test_case("new values after commit %d", step);
    gg_trial_check(trial);
  }
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(pending, discard_keeps_the_old_values, 30) {
  gg_trial* trial = make_trial(context, GG_OUT_OF_PLACE);
  for (int round = 0; round < 2; round++) {
    gg_pending* pending = start(trial);
    if (round) GG_OK_OR_FAIL(context, gg_pending_wait(pending));
    GG_OK_OR_FAIL(context, gg_pending_discard(&pending));
    GG_CHECK(pending == NULL);
    gg_test_case("after discard %d", round);
    gg_trial_check(trial);
  }
  gg_pending* pending = start(trial); /* and the group goes on from the old values */
  expect_start(trial);
  GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(pending, a_second_step_while_one_is_pending_is_refused, 30) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_trial* trial = make_trial(context, mode);
    gg_pending *first = start(trial), *second = NULL;
    GG_EXPECT_STATUS(context, gg_guarded_adamw_step(trial->group, NULL, NULL, &second), GG_ERROR_STATE);
    GG_CHECK(second == NULL);
    GG_EXPECT_STATUS(context, gg_adamw_step(trial->group, NULL, &second), GG_ERROR_STATE);
    GG_CHECK(second == NULL);
    expect_start(trial);
    GG_OK_OR_FAIL(context, gg_pending_commit(&first));
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(pending, an_applied_step_in_place_cannot_be_discarded, 30) {
  gg_trial* trial = make_trial(context, GG_IN_PLACE);
  gg_pending* pending = start(trial);
  GG_EXPECT_STATUS(context, gg_pending_discard(&pending), GG_ERROR_STATE);
  GG_CHECK(pending != NULL);
  expect_start(trial);
  GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(pending, a_skipped_step_commits_or_discards_to_no_change, 30) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++)
    for (int discard = 0; discard < 2; discard++) {
      gg_trial* trial = make_trial(context, mode);
      ((float*)trial->entries[0].gradient)[699] = NAN;
      gg_trial_upload_gradients(trial);
      gg_tensor before, after;
      GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, 0, GG_PARAMETER, &before));
      gg_pending* pending = start(trial);
      GG_OK_OR_FAIL(context, gg_pending_wait(pending));
      GG_OK_OR_FAIL(context, discard ? gg_pending_discard(&pending) : gg_pending_commit(&pending));
      GG_CHECK(pending == NULL);
      GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, 0, GG_PARAMETER, &after));
      GG_CHECK(after.buffer == before.buffer && after.offset == before.offset);
      gg_trial_check(trial);
      gg_trial_destroy(&trial);
    }
}

GG_TEST_BACKENDS(pending, the_report_is_there_at_once_and_is_the_groups, 30) {
  gg_trial* trial = make_trial(context, GG_OUT_OF_PLACE);
  gg_pending* pending = start(trial);
  gg_report now = GG_REPORT_INIT, of_group = GG_REPORT_INIT;
  GG_OK_OR_FAIL(context, gg_pending_report(pending, &now));
  GG_CHECK(now.action == GG_APPLIED && now.measured && now.norm > 0 && now.per_tensor);
  GG_OK_OR_FAIL(context, gg_group_report(trial->group, &of_group));
  GG_CHECK(now.norm == of_group.norm && now.per_tensor == of_group.per_tensor);
  GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
  GG_OK_OR_FAIL(context, gg_group_report(trial->group, &of_group));
  GG_CHECK(now.norm == of_group.norm && now.clip_coefficient == of_group.clip_coefficient);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(pending, the_step_counter_advances_at_commit, 30) {
  gg_trial* trial = make_trial(context, GG_OUT_OF_PLACE);
  gg_pending* pending = start(trial);
  uint64_t step = 0;
  GG_OK_OR_FAIL(context, gg_pending_wait(pending));
  GG_OK_OR_FAIL(context, gg_pending_wait(pending)); /* once more does no harm */
  GG_OK_OR_FAIL(context, gg_group_step(trial->group, 2, &step));
  GG_CHECK(step == 10);
  GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
  GG_OK_OR_FAIL(context, gg_group_step(trial->group, 2, &step));
  GG_CHECK(step == 11);
  GG_OK_OR_FAIL(context, gg_group_step(trial->group, 1, &step));
  GG_CHECK(step == 0); /* empty */
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(pending, a_group_is_destroyed_with_a_step_under_way, 30) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_trial* trial = make_trial(context, mode);
    start(trial);
    gg_group_destroy(&trial->group);
    GG_CHECK(trial->group == NULL);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(pending, missing_handles_are_refused, 30) {
  GG_CHECK(gg_pending_commit(NULL) == GG_ERROR_ARGUMENT);
  GG_CHECK(gg_pending_discard(NULL) == GG_ERROR_ARGUMENT);
  gg_pending* none = NULL;
  GG_CHECK(gg_pending_commit(&none) == GG_ERROR_ARGUMENT);
  GG_CHECK(gg_pending_discard(&none) == GG_ERROR_ARGUMENT);
  GG_CHECK(gg_pending_wait(NULL) == GG_ERROR_ARGUMENT);
  gg_report report = GG_REPORT_INIT;
  GG_CHECK(gg_pending_report(NULL, &report) == GG_ERROR_ARGUMENT);
  GG_OK_OR_FAIL(context, gg_context_synchronize(context));
}

#define WRAPPED 40

/* Wrapped states and gradients on the CPU; elsewhere the same promise is kept by memory of the vendor's interface. */
GG_TEST_BACKENDS(pending, wrapped_memory_is_never_written_out_of_place, 30) {
  float memory[GG_ROLES][WRAPPED], before[GG_ROLES][WRAPPED];
  gg_buffer* buffers[GG_ROLES] = {NULL};
  gg_random random = gg_random_stream(32);
  gg_random_fill(&random, GG_ORDINARY, GG_F32, memory, GG_ROLES * WRAPPED);
  for (int i = 0; i < WRAPPED; i++) memory[GG_EXP_AVG_SQ][i] = fabsf(memory[GG_EXP_AVG_SQ][i]);
  memcpy(before, memory, sizeof before);
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  if (strcmp(info.backend, "cpu") != 0) {
    GG_EXPECT_STATUS(context, gg_buffer_wrap_host(context, memory[0], sizeof memory[0], &buffers[0]),
                     GG_ERROR_UNSUPPORTED);
    GG_CHECK(buffers[0] == NULL);
    return;
  }
  gg_entry entry = GG_ENTRY_INIT;
  int64_t shape[1] = {WRAPPED};
  for (gg_role role = 0; role <= GG_EXP_AVG_SQ; role++) {
    GG_OK_OR_FAIL(context, gg_buffer_wrap_host(context, memory[role], sizeof memory[role], &buffers[role]));
    GG_CHECK(gg_buffer_is_wrapped(buffers[role]) && gg_buffer_bytes(buffers[role]) == sizeof memory[role]);
    entry.tensors[role] = gg_tensor_contiguous(buffers[role], 0, GG_F32, 1, shape);
  }
  gg_group* group = NULL;
  GG_OK_OR_FAIL(context, gg_group_create(context, &entry, 1, NULL, &group));
  for (int step = 1; step <= 5; step++) {
    gg_pending* pending = NULL;
    GG_OK_OR_FAIL(context, gg_guarded_adamw_step(group, NULL, NULL, &pending));
    GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
    gg_test_case("after step %d", step);
    gg_test_same_bytes("wrapped memory", memory, before, sizeof before);
    gg_model_constants constants =
        gg_model_constants_of(&(gg_adamw_options)GG_ADAMW_OPTIONS_INIT, 1, 1, (uint64_t)step);
    static float expected[3][WRAPPED];
    if (step == 1) {
      memcpy(expected[0], before[GG_PARAMETER], sizeof expected[0]);
      memcpy(expected[1], before[GG_EXP_AVG], sizeof expected[1]);
      memcpy(expected[2], before[GG_EXP_AVG_SQ], sizeof expected[2]);
    }
    gg_model_update(&constants, memory[GG_GRADIENT], GG_F32, WRAPPED, expected[0], expected[1], expected[2], NULL);
    gg_tensor tensor;
    float got[WRAPPED];
    GG_OK_OR_FAIL(context, gg_group_tensor(group, 0, GG_PARAMETER, &tensor));
    GG_CHECK(tensor.buffer != buffers[GG_PARAMETER]);
    GG_OK_OR_FAIL(context, gg_buffer_download(tensor.buffer, tensor.offset, got, sizeof got));
    gg_test_same_floats("parameter", got, expected[0], WRAPPED, false);
  }
  gg_group_destroy(&group);
  for (int role = 0; role < GG_ROLES; role++) gg_buffer_destroy(&buffers[role]);
}

/* In place the caller's own memory is what is updated. */
Test(pending, wrapped_memory_is_updated_in_place_cpu, .timeout = 30) {
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  if (gg_context_create("cpu", NULL, &context, &error) != GG_OK) gg_test_fail("%s", error.message);
  float memory[GG_ROLES][WRAPPED] = {{0}};
  gg_buffer* buffers[GG_ROLES] = {NULL};
  gg_entry entry = GG_ENTRY_INIT;
  int64_t shape[1] = {WRAPPED};
  for (gg_role role = 0; role <= GG_EXP_AVG_SQ; role++) {
    GG_OK_OR_FAIL(context, gg_buffer_wrap_host(context, memory[role], sizeof memory[role], &buffers[role]));
    entry.tensors[role] = gg_tensor_contiguous(buffers[role], 0, GG_F32, 1, shape);
  }
  for (int i = 0; i < WRAPPED; i++) memory[GG_GRADIENT][i] = 1;
  gg_report report = GG_REPORT_INIT;
  gg_tensor_report per_tensor;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  GG_OK_OR_FAIL(context, gg_adamw_once(context, &entry, 1, false, NULL, &guard, &report, &per_tensor));
  GG_CHECK(entry.step == 1 && report.action == GG_APPLIED && per_tensor.elements == WRAPPED);
  gg_test_near("norm", report.norm, sqrt(WRAPPED), 1e-7, 0);
  GG_CHECK(report.per_tensor == &per_tensor && per_tensor.norm == report.norm);
  for (int i = 0; i < WRAPPED; i++) GG_CHECK(fabsf(memory[GG_PARAMETER][i] + 1e-3f) <= 1e-8f);
  for (int role = 0; role < GG_ROLES; role++) gg_buffer_destroy(&buffers[role]);
  gg_context_destroy(&context);
}

GG_TEST_BACKENDS(pending, a_step_on_entries_without_a_group_gives_the_same_bits, 30) {
  gg_trial_spec specs[] = {{.elements = 999, .gradient = GG_BF16, .step = 2},
                           {.elements = 0, .step = 5},
                           {.elements = 2500, .gradient = GG_F16, .shift = 1}};
  gg_trial* trial = gg_trial_create(specs, 3, GG_IN_PLACE, true);
  gg_random random = gg_random_stream(33);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_entry* entries = gg_trial_open_entries(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 0.1;
  for (int step = 0; step < 2; step++) {
    gg_report report = GG_REPORT_INIT;
    gg_tensor_report per_tensor[3];
    gg_trial_expect(trial, &adamw, step ? NULL : &guard, NULL);
    GG_OK_OR_FAIL(context, gg_adamw_once(context, entries, 3, true, &adamw, step ? NULL : &guard, &report, per_tensor));
    GG_CHECK(report.action == GG_APPLIED && report.measured == !step);
    for (size_t i = 0; i < 3; i++) GG_CHECK(entries[i].step == trial->entries[i].step);
  }
  gg_group_options options = GG_GROUP_OPTIONS_INIT;
  options.amsgrad = true;
  GG_OK_OR_FAIL(context, gg_group_create(context, entries, 3, &options, &trial->group)); /* to read them with */
  gg_trial_check(trial);
  entries[0].tensors[GG_GRADIENT].dtype = GG_F32;
  GG_EXPECT_STATUS(context, gg_adamw_once(context, entries, 3, true, &adamw, &guard, NULL, NULL), GG_ERROR_ARGUMENT);
  GG_CHECK(entries[0].step == 4);
  free(entries);
  gg_trial_destroy(&trial);
}
