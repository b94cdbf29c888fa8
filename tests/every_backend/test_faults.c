/* Every call to a backend fails once: the status is passed on, nothing is lost, and nothing leaks. Also, seen from
 * the same place: which calls a step makes, and in which order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/context.h"
#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/faulty.h"
#include "tests/support/trial.h"

static gg_trial* make_trial(gg_update_mode mode) {
  static const gg_trial_spec specs[] = {
      {.elements = 600, .gradient = GG_F16, .model = GG_BF16, .shift = 1},
      {.elements = 0},
      {.elements = 2500, .gradient = GG_F32},
  };
  gg_random random = gg_random_stream(91);
  gg_trial* trial = gg_trial_create(specs, 3, mode, true);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  return trial;
}

static gg_guard_options clipping(void) {
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 0.25;
  return guard;
}

/* Whatever fails is reported as what the backend said, and lands in the context's error. */
static void check_fault(gg_context* context, gg_status status, gg_status want) {
  GG_CHECK(status == want);
  const gg_error* error = gg_context_error(context);
  GG_CHECK(error->status == want && error->native_code == 700);
  gg_test_mentions(error->message, "planned fault");
}

/* After a failed commit: it stays failed, and only discard is possible. */
static void drop_pending(gg_trial* trial, gg_pending* pending, bool lost) {
  GG_CHECK(pending != NULL);
  GG_CHECK(gg_pending_commit(&pending) != GG_OK);
  GG_CHECK(pending != NULL);
  gg_status status = gg_pending_discard(&pending);
  GG_CHECK(pending == NULL);
  if (!lost) GG_CHECK(status == GG_OK);
  if (trial->mode == GG_IN_PLACE) {
    GG_CHECK(gg_guarded_adamw_step(trial->group, NULL, NULL, &pending) != GG_OK);
    GG_CHECK(pending == NULL);
  }
}

typedef enum outcome { NO_FAULT, FAULT_AT_GROUP, FAULT_AT_STEP, FAULT_AT_COMMIT } outcome;

/* Makes the group and takes two steps, until something fails. */
static outcome run_until_fault(gg_trial* trial, gg_context* context, const gg_entry* entries, gg_status want) {
  gg_group_options options = GG_GROUP_OPTIONS_INIT;
  options.mode = trial->mode;
  options.amsgrad = true;
  gg_status status = gg_group_create(context, entries, trial->count, &options, &trial->group);
  if (status != GG_OK) {
    check_fault(context, status, want);
    GG_CHECK(trial->group == NULL);
    return FAULT_AT_GROUP;
  }
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = clipping();
  for (int step = 0; step < 2; step++) {
    gg_pending* pending = NULL;
    status = gg_guarded_adamw_step(trial->group, &adamw, &guard, &pending);
    if (status != GG_OK) {
      check_fault(context, status, want);
      GG_CHECK(pending == NULL);
      return FAULT_AT_STEP;
    }
    status = gg_pending_commit(&pending);
    if (status != GG_OK) {
      check_fault(context, status, want);
      drop_pending(trial, pending, want == GG_ERROR_DEVICE_LOST);
      return FAULT_AT_COMMIT;
    }
    GG_CHECK(pending == NULL);
    gg_trial_expect(trial, &adamw, &guard, NULL);
  }
  return NO_FAULT;
}

GG_TEST_BACKENDS(faults, any_call_may_fail_and_nothing_is_lost, 60) {
  gg_faulty_install(context->device);
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++)
    for (unsigned nth = 1;; nth++) {
      gg_test_case("mode %d, call %u fails", (int)mode, nth);
      gg_trial* trial = make_trial(mode);
      gg_entry* entries = gg_trial_open_entries(trial, context);
      long buffers = gg_faulty_outstanding();
      gg_faulty_reset();
      gg_faulty_plan(nth, GG_CALLS, false);
      outcome ended = run_until_fault(trial, context, entries, GG_ERROR_DRIVER);
      GG_CHECK(gg_faulty_struck() == (ended != NO_FAULT));
      gg_faulty_reset();
      if (ended == FAULT_AT_STEP || (ended == FAULT_AT_COMMIT && mode == GG_OUT_OF_PLACE)) {
        gg_trial_check(trial); /* the old values, whole */
        gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
        gg_guard_options guard = clipping();
        gg_trial_step(trial, &adamw, &guard); /* and the group goes on */
        gg_trial_check(trial);
      }
      gg_group_destroy(&trial->group);
      GG_CHECK(gg_faulty_outstanding() == buffers);
      gg_trial_destroy(&trial);
      GG_CHECK(gg_faulty_outstanding() == 0);
      free(entries);
      if (ended == NO_FAULT) break;
      GG_CHECK(nth < 100);
    }
}

/* Everything that a lost context is asked for says so. */
static void everything_says_lost(gg_context* context, gg_trial* trial) {
  gg_buffer* buffer = NULL;
  gg_pending* pending = NULL;
  uint8_t byte = 0;
  GG_EXPECT_STATUS(context, gg_buffer_create(context, 64, &buffer), GG_ERROR_DEVICE_LOST);
  GG_CHECK(buffer == NULL);
  buffer = trial->entries[0].buffers[GG_GRADIENT];
  GG_EXPECT_STATUS(context, gg_buffer_upload(buffer, 0, &byte, 1), GG_ERROR_DEVICE_LOST);
  GG_EXPECT_STATUS(context, gg_buffer_download(buffer, 0, &byte, 1), GG_ERROR_DEVICE_LOST);
  GG_EXPECT_STATUS(context, gg_buffer_fill(buffer, 0, 1, 0), GG_ERROR_DEVICE_LOST);
  GG_EXPECT_STATUS(context, gg_context_synchronize(context), GG_ERROR_DEVICE_LOST);
  int64_t shape[1] = {600};
  gg_tensor tensor = gg_tensor_contiguous(buffer, 256, GG_F16, 1, shape);
  gg_report report = GG_REPORT_INIT;
  GG_EXPECT_STATUS(context, gg_gradient_stats(context, &tensor, 1, 1, &report, NULL), GG_ERROR_DEVICE_LOST);
  if (trial->group) {
    GG_EXPECT_STATUS(context, gg_guarded_adamw_step(trial->group, NULL, NULL, &pending), GG_ERROR_DEVICE_LOST);
    GG_EXPECT_STATUS(context, gg_adamw_step(trial->group, NULL, &pending), GG_ERROR_DEVICE_LOST);
    GG_CHECK(pending == NULL);
  }
}

GG_TEST_BACKENDS(faults, a_lost_device_says_so_in_every_later_call_and_is_safe_to_destroy, 60) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++)
    for (unsigned nth = 1;; nth++) {
      gg_test_case("mode %d, the device is lost in call %u", (int)mode, nth);
      gg_context* doomed = gg_test_another_context(context);
      gg_faulty_install(doomed->device);
      gg_trial* trial = make_trial(mode);
      gg_entry* entries = gg_trial_open_entries(trial, doomed);
      gg_faulty_reset();
      gg_faulty_plan(nth, GG_CALLS, true);
      outcome ended = run_until_fault(trial, doomed, entries, GG_ERROR_DEVICE_LOST);
      if (ended != NO_FAULT) everything_says_lost(doomed, trial);
      gg_trial_destroy(&trial);
      free(entries);
      GG_CHECK(gg_faulty_outstanding() == 0);
      gg_context_destroy(&doomed);
      if (ended == NO_FAULT) break;
      GG_CHECK(nth < 100);
    }
}

/* On return from a failed step the caller may free the gradients: nothing reads them any more. */
GG_TEST_BACKENDS(faults, a_step_that_failed_waits_for_what_it_had_queued, 30) {
  static const gg_call failing[] = {GG_CALL_REDUCE, GG_CALL_READBACK, GG_CALL_WAIT, GG_CALL_UPDATE};
  gg_faulty_install(context->device);
  gg_trial* trial = make_trial(GG_OUT_OF_PLACE);
  gg_trial_open(trial, context);
  gg_guard_options guard = clipping();
  for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
    gg_pending* pending = NULL;
    gg_faulty_reset();
    gg_faulty_plan(1, failing[i], false);
    check_fault(context, gg_guarded_adamw_step(trial->group, NULL, &guard, &pending), GG_ERROR_DRIVER);
    const char* record = gg_faulty_record();
    gg_test_case("\"%s\"", record);
    GG_CHECK(gg_faulty_struck() && gg_faulty_count(GG_CALL_SYNC) == 1 && record[strlen(record) - 1] == 's');
  }
  gg_trial_destroy(&trial);
}

/* In place and without a group there is nothing left to refuse a second try, so the context does. */
GG_TEST_BACKENDS(faults, a_step_without_a_group_that_cannot_be_waited_for_is_not_tried_again, 30) {
  gg_faulty_install(context->device);
  gg_trial* trial = make_trial(GG_IN_PLACE);
  gg_entry* entries = gg_trial_open_entries(trial, context);
  gg_guard_options guard = clipping();
  gg_faulty_reset();
  gg_faulty_plan(1, GG_CALL_WAIT_UPDATE, false);
  gg_status status = gg_adamw_once(context, entries, trial->count, true, NULL, &guard, NULL, NULL);
  GG_CHECK(gg_faulty_struck() && status == GG_ERROR_DEVICE_LOST);
  gg_test_mentions(gg_context_error(context)->message, "half done");
  gg_test_mentions(gg_context_error(context)->message, "planned fault");
  GG_CHECK(gg_context_error(context)->native_code == 700 && entries[0].step == trial->entries[0].spec.step);
  GG_EXPECT_STATUS(context, gg_adamw_once(context, entries, trial->count, true, NULL, &guard, NULL, NULL),
                   GG_ERROR_DEVICE_LOST);
  gg_trial_destroy(&trial);
  free(entries);
}

/* Where the first of a call stands in the record, or a failure. */
static size_t place(const char* record, char call) {
  const char* at = strchr(record, call);
  if (!at) gg_test_fail("no '%c' in the calls of the step: \"%s\"", call, record);
  return (size_t)(at - record);
}

GG_TEST_BACKENDS(faults, all_reductions_are_queued_then_one_readback_then_the_update, 30) {
  gg_faulty_install(context->device);
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_trial* trial = make_trial(mode);
    gg_trial_open(trial, context);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = clipping();
    for (int step = 0; step < 3; step++) {
      gg_faulty_reset();
      gg_trial_step(trial, &adamw, &guard);
      const char* record = gg_faulty_record();
      gg_test_case("mode %d, step %d: \"%s\"", (int)mode, step, record);
      GG_CHECK(gg_faulty_count(GG_CALL_REDUCE) == 1 && gg_faulty_count(GG_CALL_READBACK) == 1);
      GG_CHECK(gg_faulty_count(GG_CALL_WAIT) == 1 && gg_faulty_count(GG_CALL_UPDATE) == 1);
      GG_CHECK(place(record, 'R') < place(record, '<') && place(record, '<') < place(record, 'w'));
      GG_CHECK(place(record, 'w') < place(record, 'U') && place(record, 'U') < place(record, 'W'));
      GG_CHECK(gg_faulty_count(GG_CALL_UPLOAD) == 0 && gg_faulty_count(GG_CALL_FILL) == 0);
      GG_CHECK(gg_faulty_count(GG_CALL_SYNC) == 0);
      if (mode == GG_IN_PLACE || step > 1)
        GG_CHECK(gg_faulty_count(GG_CALL_ALLOC) == 0 && gg_faulty_count(GG_CALL_TABLE) == 0);
    }
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(faults, requested_skip_allocates_and_scans_nothing, 30) {
  gg_faulty_install(context->device);
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++)
    for (int guarded = 0; guarded < 2; guarded++) {
      gg_trial* trial = make_trial(mode);
      gg_trial_open(trial, context);
      gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
      adamw.skip_update = true;
      gg_guard_options guard = clipping();
      gg_faulty_reset();
      gg_trial_step(trial, &adamw, guarded ? &guard : NULL);
      if (gg_faulty_total()) gg_test_fail("a requested skip called the device: \"%s\"", gg_faulty_record());
      gg_trial_check(trial);
      gg_trial_destroy(&trial);
    }
}

GG_TEST_BACKENDS(faults, a_group_without_elements_calls_nothing, 30) {
  gg_faulty_install(context->device);
  gg_trial_spec specs[] = {{.elements = 0}, {.elements = 0}};
  gg_trial* trial = gg_trial_create(specs, 2, GG_OUT_OF_PLACE, false);
  gg_trial_open(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = clipping();
  gg_faulty_reset();
  gg_trial_step(trial, &adamw, &guard);
  gg_trial_step(trial, &adamw, NULL);
  if (gg_faulty_total()) gg_test_fail("an empty group called the device: \"%s\"", gg_faulty_record());
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(faults, plain_step_only_updates, 30) {
  gg_faulty_install(context->device);
  gg_trial* trial = make_trial(GG_IN_PLACE);
  gg_trial_open(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_faulty_reset();
  gg_trial_step(trial, &adamw, NULL);
  if (strcmp(gg_faulty_record(), "UW") != 0) gg_test_fail("a plain step called \"%s\"", gg_faulty_record());
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(faults, a_skip_or_an_error_submits_no_update, 30) {
  gg_faulty_install(context->device);
  for (int policy = 0; policy < 2; policy++) {
    gg_trial* trial = make_trial(GG_IN_PLACE);
    ((float*)trial->entries[2].gradient)[2499] = NAN;
    gg_trial_open(trial, context);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = clipping();
    guard.on_nonfinite = (gg_nonfinite_policy)policy;
    gg_faulty_reset();
    gg_trial_step(trial, &adamw, &guard);
    GG_CHECK(gg_faulty_count(GG_CALL_REDUCE) == 1 && gg_faulty_count(GG_CALL_UPDATE) == 0);
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(faults, refused_options_and_groups_reach_no_device, 30) {
  gg_faulty_install(context->device);
  gg_trial* trial = make_trial(GG_IN_PLACE);
  gg_entry* entries = gg_trial_open_entries(trial, context);
  gg_group_options group_options = GG_GROUP_OPTIONS_INIT;
  group_options.amsgrad = true;
  gg_faulty_reset();
  entries[2].tensors[GG_EXP_AVG_SQ].offset += 2;
  GG_EXPECT_STATUS(context, gg_group_create(context, entries, 3, &group_options, &trial->group), GG_ERROR_ARGUMENT);
  GG_CHECK(gg_faulty_total() == 0);
  entries[2].tensors[GG_EXP_AVG_SQ].offset -= 2;
  GG_OK_OR_FAIL(context, gg_group_create(context, entries, 3, &group_options, &trial->group));
  gg_faulty_reset();
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = clipping();
  guard.max_norm = -1;
  gg_pending* pending = NULL;
  GG_EXPECT_STATUS(context, gg_guarded_adamw_step(trial->group, &adamw, &guard, &pending), GG_ERROR_ARGUMENT);
  adamw.gradient_scale = 0;
  GG_EXPECT_STATUS(context, gg_adamw_step(trial->group, &adamw, &pending), GG_ERROR_ARGUMENT);
  GG_CHECK(gg_faulty_total() == 0);
  free(entries);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(faults, failed_copies_and_allocations_are_reported, 30) {
  gg_faulty_install(context->device);
  gg_buffer *buffer = NULL, *none = NULL;
  uint8_t bytes[64] = {0};
  GG_OK_OR_FAIL(context, gg_buffer_create(context, 64, &buffer));
  gg_faulty_plan(1, GG_CALL_ALLOC, false);
  check_fault(context, gg_buffer_create(context, 64, &none), GG_ERROR_DRIVER);
  GG_CHECK(none == NULL);
  gg_faulty_plan(1, GG_CALL_UPLOAD, false);
  check_fault(context, gg_buffer_upload(buffer, 0, bytes, 64), GG_ERROR_DRIVER);
  gg_faulty_plan(1, GG_CALL_FILL, false);
  check_fault(context, gg_buffer_fill(buffer, 0, 64, 7), GG_ERROR_DRIVER);
  gg_faulty_plan(1, GG_CALL_READBACK, false);
  check_fault(context, gg_buffer_download(buffer, 0, bytes, 64), GG_ERROR_DRIVER);
  gg_faulty_plan(1, GG_CALL_WAIT, false);
  check_fault(context, gg_buffer_download(buffer, 0, bytes, 64), GG_ERROR_DRIVER);
  gg_faulty_plan(1, GG_CALL_SYNC, false);
  check_fault(context, gg_context_synchronize(context), GG_ERROR_DRIVER);
  GG_OK_OR_FAIL(context, gg_buffer_upload(buffer, 0, bytes, 64));
  gg_buffer_destroy(&buffer);
  GG_CHECK(gg_faulty_outstanding() == 0);
}

static const gg_backend* honest;

/* Reads back, and makes a number that is none of the sum of squares that came first. */
static gg_status spoil_readback(gg_device* device, const gg_readback* pieces, size_t count, gg_error* error) {
  gg_status status = honest->readback(device, pieces, count, error);
  if (status == GG_OK) status = honest->wait(device, error);
  if (status == GG_OK) ((gg_triple*)pieces[0].destination)->ssq = NAN;
  return status;
}

/* What the caller passed was right: the device is at fault, and nothing is updated. */
GG_TEST_BACKENDS(faults, statistics_that_cannot_be_are_the_drivers_fault, 30) {
  gg_trial* trial = make_trial(GG_IN_PLACE);
  gg_trial_open(trial, context);
  gg_tensor gradient;
  GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, 2, GG_GRADIENT, &gradient));
  honest = context->device->backend;
  gg_backend spoilt = *honest;
  spoilt.readback = spoil_readback;
  context->device->backend = &spoilt;
  gg_pending* pending = NULL;
  gg_report report = GG_REPORT_INIT;
  GG_EXPECT_STATUS(context, gg_guarded_adamw_step(trial->group, NULL, NULL, &pending), GG_ERROR_DRIVER);
  GG_CHECK(pending == NULL);
  GG_EXPECT_STATUS(context, gg_gradient_stats(context, &gradient, 1, 1, &report, NULL), GG_ERROR_DRIVER);
  gg_test_mentions(gg_context_error(context)->message, "statistics that cannot be");
  context->device->backend = honest;
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}
