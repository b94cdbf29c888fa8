/* What is reported: per tensor and for the group, launches, read-back and scratch memory; and the diagnostics. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

static gg_trial* many_tensors(gg_context* context, size_t count, uint64_t elements, gg_update_mode mode) {
  gg_trial_spec* specs = calloc(count, sizeof *specs);
  GG_CHECK(specs != NULL);
  for (size_t i = 0; i < count; i++) {
    specs[i].elements = 1 + (elements + i * 37) % (elements + 100);
    specs[i].gradient = (gg_dtype)(GG_F32 + i % 3);
    specs[i].shift = (uint32_t)(i % 4);
  }
  gg_trial* trial = gg_trial_create(specs, count, mode, false);
  free(specs);
  gg_random random = gg_random_stream(51);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_trial_open(trial, context);
  return trial;
}

static gg_report guarded_report(gg_trial* trial) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  gg_report report = GG_REPORT_INIT;
  gg_trial_step(trial, &adamw, &guard);
  GG_OK_OR_FAIL(trial->context, gg_group_report(trial->group, &report));
  return report;
}

GG_TEST_BACKENDS(statistics, launches_are_the_same_for_any_number_of_tensors, 60) {
  gg_trial *few = many_tensors(context, 3, 5000, GG_IN_PLACE), *many = many_tensors(context, 150, 3000, GG_IN_PLACE);
  gg_report a = guarded_report(few), b = guarded_report(many);
  GG_CHECK(a.reduction_launches >= 1 && a.reduction_launches <= 2);
  GG_CHECK(a.update_launches == 1);
  GG_CHECK(b.reduction_launches == a.reduction_launches && b.update_launches == a.update_launches);
  gg_trial_check(many);
  gg_trial_destroy(&few);
  gg_trial_destroy(&many);
}

GG_TEST_BACKENDS(statistics, readback_is_twelve_bytes_for_each_tensor_with_elements, 30) {
  gg_trial_spec specs[] = {{.elements = 7}, {.elements = 0}, {.elements = 70000, .gradient = GG_BF16}, {.elements = 0}};
  gg_trial* trial = gg_trial_create(specs, 4, GG_OUT_OF_PLACE, false);
  gg_trial_open(trial, context);
  gg_report report = guarded_report(trial);
  GG_CHECK(report.readback_bytes == 24 && report.tensors == 4 && report.elements == 70007);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(statistics, scratch_in_place_is_at_most_16_kib_a_tensor_and_1_mib, 60) {
  static const size_t counts[] = {1, 20};
  for (int i = 0; i < 2; i++) {
    gg_trial* trial = many_tensors(context, counts[i], i ? 100000 : 2500000, GG_IN_PLACE);
    gg_report report = guarded_report(trial);
    GG_CHECK(report.scratch_bytes > 0 && report.scratch_bytes <= counts[i] * 16384 + 1048576);
    gg_report again = guarded_report(trial);
    GG_CHECK(again.scratch_bytes == report.scratch_bytes);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(statistics, the_report_tells_which_tensors_were_bad_and_how, 30) {
  gg_trial_spec specs[] = {{.elements = 900},
                           {.elements = 4000, .gradient = GG_F16},
                           {.elements = 0},
                           {.elements = 3000, .gradient = GG_BF16},
                           {.elements = 5}};
  gg_trial* trial = gg_trial_create(specs, 5, GG_IN_PLACE, false);
  gg_random random = gg_random_stream(52);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  ((float*)trial->entries[0].gradient)[899] = 3e38f; /* 3e38 / 2^-3 overflows */
  ((uint16_t*)trial->entries[1].gradient)[2048] = 0xfc00;
  ((uint16_t*)trial->entries[1].gradient)[17] = 0x7c01;
  ((uint16_t*)trial->entries[3].gradient)[2999] = 0xffff;
  gg_trial_open(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.gradient_scale = 0.125;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, &guard);
  gg_report report = GG_REPORT_INIT;
  GG_OK_OR_FAIL(context, gg_group_report(trial->group, &report));
  GG_CHECK(report.nonfinite == (GG_KIND_NAN | GG_KIND_INF | GG_KIND_OVERFLOW));
  GG_CHECK(report.gradient_scale == 0.125);
  GG_CHECK(report.per_tensor[0].nonfinite == GG_KIND_OVERFLOW);
  GG_CHECK(report.per_tensor[1].nonfinite == (GG_KIND_NAN | GG_KIND_INF));
  GG_CHECK(report.per_tensor[2].nonfinite == 0 && report.per_tensor[2].norm == 0);
  GG_CHECK(report.per_tensor[3].nonfinite == GG_KIND_NAN);
  GG_CHECK(report.per_tensor[4].nonfinite == 0 && isfinite(report.per_tensor[4].norm));
  GG_CHECK(isinf(report.per_tensor[0].norm) && isfinite(report.per_tensor[0].max_abs));
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(statistics, gradients_can_be_measured_without_parameters, 30) {
  gg_trial* trial = many_tensors(context, 9, 3000, GG_IN_PLACE);
  gg_tensor tensors[9];
  gg_tensor_report per_tensor[9];
  for (size_t i = 0; i < 9; i++) GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, i, GG_GRADIENT, &tensors[i]));
  gg_report stats = GG_REPORT_INIT, none = GG_REPORT_INIT;
  GG_OK_OR_FAIL(context, gg_gradient_stats(context, tensors, 9, 1, &stats, per_tensor));
  GG_CHECK(stats.action == GG_ACTION_NONE && stats.measured && stats.per_tensor == per_tensor && stats.tensors == 9);
  gg_report step = guarded_report(trial);
  GG_CHECK(stats.norm == step.norm && stats.max_abs == step.max_abs && stats.elements == step.elements);
  for (size_t i = 0; i < 9; i++) GG_CHECK(per_tensor[i].norm == step.per_tensor[i].norm);
  GG_OK_OR_FAIL(context, gg_gradient_stats(context, tensors, 9, 1, &none, NULL));
  GG_CHECK(none.norm == stats.norm && none.per_tensor == NULL);
  GG_OK_OR_FAIL(context, gg_gradient_stats(context, NULL, 0, 1, &none, NULL));
  GG_CHECK(none.norm == 0 && none.elements == 0);
  GG_EXPECT_STATUS(context, gg_gradient_stats(context, tensors, 9, 0, &none, NULL), GG_ERROR_ARGUMENT);
  tensors[4].strides[0] = 2;
  GG_EXPECT_STATUS(context, gg_gradient_stats(context, tensors, 9, 1, &none, NULL), GG_ERROR_ARGUMENT);
  gg_test_mentions(gg_context_error(context)->message, "4");
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(statistics, the_census_counts_bad_values_and_finds_the_first, 60) {
  static const gg_dtype dtypes[] = {GG_F32, GG_F16, GG_BF16};
  gg_random random = gg_random_stream(53);
  for (int d = 0; d < 3; d++) {
    gg_trial_spec spec = {.elements = 300001, .gradient = dtypes[d], .shift = (uint32_t)d};
    gg_trial* trial = gg_trial_create(&spec, 1, GG_IN_PLACE, false);
    gg_random_fill(&random, d == 1 ? GG_NONFINITE : GG_ORDINARY, dtypes[d], trial->entries[0].gradient, spec.elements);
    gg_random_fill(&random, GG_NONFINITE, dtypes[d], trial->entries[0].gradient, d ? 5000 : 0);
    gg_trial_open(trial, context);
    gg_nonfinite_census want = GG_NONFINITE_CENSUS_INIT, got = GG_NONFINITE_CENSUS_INIT;
    double scale = d ? 0x1p-120 : 1;
    for (uint64_t i = 0; i < spec.elements; i++) {
      float raw = gg_model_element(trial->entries[0].gradient, dtypes[d], i);
      float x = raw * gg_model_inverse(scale);
      bool nan = isnan(raw), inf = isinf(raw), overflow = !nan && !inf && isinf(x);
      if (nan && want.nan_count++ == 0) want.first_nan = i;
      if (inf && want.inf_count++ == 0) want.first_inf = i;
      if (overflow && want.overflow_count++ == 0) want.first_overflow = i;
    }
    gg_tensor tensor;
    GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, 0, GG_GRADIENT, &tensor));
    GG_OK_OR_FAIL(context, gg_gradient_census(context, &tensor, scale, &got));
    gg_test_case("dtype %d", d);
    GG_CHECK(got.nan_count == want.nan_count && got.first_nan == want.first_nan);
    GG_CHECK(got.inf_count == want.inf_count && got.first_inf == want.first_inf);
    GG_CHECK(got.overflow_count == want.overflow_count && got.first_overflow == want.first_overflow);
    gg_trial_destroy(&trial);
  }
}

/* Nothing about the order of work shows in the bits. */
GG_TEST_BACKENDS(statistics, repeated_runs_give_the_same_bits, 60) {
  gg_trial* trial = many_tensors(context, 40, 9000, GG_IN_PLACE);
  gg_tensor tensors[40];
  gg_tensor_report first[40], again[40];
  for (size_t i = 0; i < 40; i++) GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, i, GG_GRADIENT, &tensors[i]));
  gg_report report = GG_REPORT_INIT, second = GG_REPORT_INIT;
  GG_OK_OR_FAIL(context, gg_gradient_stats(context, tensors, 40, 3, &report, first));
  for (int round = 0; round < 20; round++) {
    GG_OK_OR_FAIL(context, gg_gradient_stats(context, tensors, 40, 3, &second, again));
    GG_CHECK(second.norm == report.norm && second.max_abs == report.max_abs);
    gg_test_same_bytes("reports", again, first, sizeof first);
  }
  gg_trial_destroy(&trial);
}
