/* The second moment at the end of FP32: what is told of a gradient whose square is too large for it, what a policy
 * makes of that, and that no step gives NaN. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

/* The largest FP32 gradient whose (1 - beta2) g^2 is within FLT_MAX, and the next one, for three beta2. */
static const struct {
  double beta2;
  float within, beyond;
} bounds[] = {
    {0.999, 0x1.f9f6e2p+68f, 0x1.f9f6e4p+68f}, {0.5, 0x1.6a09e4p+64f, 0x1.6a09e6p+64f}, {0, 0x1.fffffep+63f, 0x1p+64f}};

static gg_guard_options policy(gg_moment_policy on_moment_overflow) {
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.on_moment_overflow = on_moment_overflow;
  return guard;
}

/* ---- The decision alone ---- */

static gg_decision decide(float max_abs, double beta2, const gg_guard_options* guard) {
  int exponent;
  float fraction = frexpf(max_abs, &exponent) * 2;
  gg_triple triples[] = {{1, 1, 0}, {max_abs, fraction * fraction, 0}};
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.beta2 = beta2;
  gg_decision decision = GG_DECISION_INIT;
  gg_error error = GG_ERROR_INIT;
  gg_test_case("max_abs %a, beta2 %g", (double)max_abs, beta2);
  if (gg_decide(triples, 2, &adamw, guard, &decision, &error) != GG_OK) gg_test_fail("gg_decide: %s", error.message);
  return decision;
}

Test(moment, it_is_told_from_the_first_gradient_whose_share_is_above_flt_max, .timeout = 10) {
  for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
    gg_decision within = decide(bounds[i].within, bounds[i].beta2, NULL);
    GG_CHECK(within.nonfinite == 0 && within.action == GG_APPLIED && within.reason == GG_REASON_NONE);
    gg_decision beyond = decide(bounds[i].beyond, bounds[i].beta2, NULL);
    GG_CHECK(beyond.nonfinite == GG_KIND_MOMENT && beyond.action == GG_APPLIED && beyond.reason == GG_REASON_NONE);
    GG_CHECK(isfinite(beyond.norm) && beyond.clip_coefficient == 1);
  }
}

Test(moment, the_policy_decides_what_becomes_of_it, .timeout = 10) {
  const struct {
    gg_moment_policy policy;
    gg_action action;
    gg_reason reason;
  } cases[] = {{GG_MOMENT_APPLY, GG_APPLIED, GG_REASON_NONE},
               {GG_MOMENT_SKIP, GG_SKIPPED, GG_REASON_MOMENT_OVERFLOW},
               {GG_MOMENT_ERROR, GG_REFUSED, GG_REASON_MOMENT_OVERFLOW}};
  for (int i = 0; i < 3; i++) {
    gg_guard_options guard = policy(cases[i].policy);
    gg_decision beyond = decide(bounds[0].beyond, bounds[0].beta2, &guard);
    GG_CHECK(beyond.nonfinite == GG_KIND_MOMENT && beyond.action == cases[i].action);
    GG_CHECK(beyond.reason == cases[i].reason && beyond.clip_coefficient == 1);
    gg_decision within = decide(bounds[0].within, bounds[0].beta2, &guard);
    GG_CHECK(within.nonfinite == 0 && within.action == GG_APPLIED && within.reason == GG_REASON_NONE);
  }
}

Test(moment, clipping_is_taken_into_account, .timeout = 10) {
  gg_guard_options guard = policy(GG_MOMENT_SKIP);
  guard.clip = true;
  guard.clip_epsilon = 0;
  guard.max_norm = 0.9 * (double)bounds[0].within;
  GG_CHECK(decide(1e30f, 0.999, &guard).nonfinite == 0);
  guard.max_norm = 1.1 * (double)bounds[0].within;
  GG_CHECK(decide(1e30f, 0.999, &guard).nonfinite == GG_KIND_MOMENT);
  guard.max_norm = 0;
  GG_CHECK(decide(FLT_MAX, 0, &guard).nonfinite == 0);
}

Test(moment, what_is_not_finite_decides_first_and_alone, .timeout = 10) {
  gg_triple triples[] = {{1e30f, 1, 0}, {0, 0, GG_KIND_NAN}};
  gg_guard_options guard = policy(GG_MOMENT_ERROR);
  gg_decision decision = GG_DECISION_INIT;
  GG_CHECK(gg_decide(triples, 2, NULL, &guard, &decision, NULL) == GG_OK);
  GG_CHECK(decision.action == GG_SKIPPED && decision.reason == GG_REASON_NONFINITE);
  GG_CHECK(decision.nonfinite == GG_KIND_NAN);
}

Test(moment, a_policy_that_there_is_not_and_a_flag_that_no_tensor_has_are_argument_errors, .timeout = 10) {
  gg_triple triple = {1, 1, 0};
  gg_guard_options guard = policy((gg_moment_policy)3);
  gg_decision decision = GG_DECISION_INIT;
  gg_error error = GG_ERROR_INIT;
  GG_CHECK(gg_decide(&triple, 1, NULL, &guard, &decision, &error) == GG_ERROR_ARGUMENT);
  gg_test_mentions(error.message, "on_moment_overflow is 3");
  triple.flags = GG_KIND_MOMENT;
  GG_CHECK(gg_decide(&triple, 1, NULL, NULL, &decision, &error) == GG_ERROR_ARGUMENT);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.beta2 = 1;
  triple.flags = 0;
  GG_CHECK(gg_decide(&triple, 1, &adamw, NULL, &decision, &error) == GG_ERROR_ARGUMENT);
  gg_test_mentions(error.message, "beta2");
}

/* ---- Steps ---- */

/* Three tensors of which the last two are beyond, unless clipped. */
static gg_trial* large_trial(gg_context* context, gg_update_mode mode, bool amsgrad, float last) {
  static const gg_trial_spec specs[] = {{.elements = 70}, {.elements = 3000, .model = GG_BF16}, {.elements = 1}};
  gg_random random = gg_random_stream(81);
  gg_trial* trial = gg_trial_create(specs, 3, mode, amsgrad);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  ((float*)trial->entries[1].gradient)[1717] = -1.01f * bounds[0].beyond;
  ((float*)trial->entries[2].gradient)[0] = last;
  gg_trial_open(trial, context);
  return trial;
}

static gg_report report_of(const gg_trial* trial) {
  gg_report report = GG_REPORT_INIT;
  GG_OK_OR_FAIL(trial->context, gg_group_report(trial->group, &report));
  return report;
}

GG_TEST_VARIANTS(moment, every_tensor_that_overflows_is_told_and_the_step_applied, 60) {
  gg_trial* trial = large_trial(context, GG_IN_PLACE, true, bounds[0].within);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, &guard);
  gg_report report = report_of(trial);
  GG_CHECK(report.action == GG_APPLIED && report.nonfinite == GG_KIND_MOMENT && isfinite(report.norm));
  GG_CHECK(report.per_tensor[0].nonfinite == 0 && report.per_tensor[2].nonfinite == 0);
  GG_CHECK(report.per_tensor[1].nonfinite == GG_KIND_MOMENT && isfinite(report.per_tensor[1].norm));
  float moments[3000];
  gg_trial_read(trial, 1, GG_EXP_AVG_SQ, moments);
  GG_CHECK(isinf(moments[1717]) && isfinite(moments[1716]));
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

static void expect_nothing_done(gg_trial* trial, const gg_guard_options* guard, gg_action action) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, guard);
  gg_report report = report_of(trial);
  GG_CHECK(report.action == action && report.reason == GG_REASON_MOMENT_OVERFLOW && report.update_launches == 0);
  GG_CHECK(report.nonfinite == GG_KIND_MOMENT && report.clip_coefficient == 1);
  GG_CHECK(report.per_tensor[0].nonfinite == 0 && report.per_tensor[1].nonfinite == GG_KIND_MOMENT &&
           report.per_tensor[2].nonfinite == GG_KIND_MOMENT);
  gg_trial_check(trial);
}

GG_TEST_BACKENDS(moment, under_skip_one_tensor_leaves_every_bit_of_the_group_alone, 60) {
  gg_guard_options guard = policy(GG_MOMENT_SKIP);
  for (int mode = 0; mode < 2; mode++) {
    gg_trial* trial = large_trial(context, mode ? GG_IN_PLACE : GG_OUT_OF_PLACE, true, 1e30f);
    expect_nothing_done(trial, &guard, GG_SKIPPED);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(moment, under_error_the_first_tensor_is_named_and_nothing_updated, 60) {
  gg_guard_options guard = policy(GG_MOMENT_ERROR);
  gg_trial* trial = large_trial(context, GG_IN_PLACE, false, 1e30f);
  expect_nothing_done(trial, &guard, GG_REFUSED);
  const char* message = gg_context_error(context)->message;
  gg_test_mentions(message, "2 of 3 tensors");
  gg_test_mentions(message, "entry 1");
  gg_test_mentions(message, "max_norm");
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(moment, a_clipped_gradient_is_fine_and_a_clipped_group_is_judged_by_tensor, 60) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = policy(GG_MOMENT_ERROR);
  guard.clip = true;
  gg_trial* fine = large_trial(context, GG_IN_PLACE, false, 1e38f);
  gg_trial_step(fine, &adamw, &guard);
  GG_CHECK(report_of(fine).nonfinite == 0 && report_of(fine).action == GG_APPLIED);
  gg_trial_check(fine);
  gg_trial_destroy(&fine);
  guard = policy(GG_MOMENT_APPLY);
  guard.clip = true;
  guard.max_norm = 1e30; /* of 1e38: the second tensor comes down to 6e12 */
  gg_trial* clipped = large_trial(context, GG_IN_PLACE, false, 1e38f);
  gg_trial_step(clipped, &adamw, &guard);
  gg_report report = report_of(clipped);
  GG_CHECK(report.nonfinite == GG_KIND_MOMENT && report.per_tensor[1].nonfinite == 0 &&
           report.per_tensor[2].nonfinite == GG_KIND_MOMENT);
  gg_trial_check(clipped);
  gg_trial_destroy(&clipped);
}

GG_TEST_BACKENDS(moment, statistics_alone_know_no_second_moment, 30) {
  const float value = 1e30f;
  const int64_t shape[] = {1};
  gg_buffer* buffer = NULL;
  GG_OK_OR_FAIL(context, gg_buffer_create(context, sizeof value, &buffer));
  GG_OK_OR_FAIL(context, gg_buffer_upload(buffer, 0, &value, sizeof value));
  gg_tensor gradient = gg_tensor_contiguous(buffer, 0, GG_F32, 1, shape);
  gg_report report = GG_REPORT_INIT;
  gg_tensor_report tensor;
  GG_OK_OR_FAIL(context, gg_gradient_stats(context, &gradient, 1, 1, &report, &tensor));
  GG_CHECK(report.nonfinite == 0 && tensor.nonfinite == 0 && isfinite(report.norm));
  gg_buffer_destroy(&buffer);
}

/* ---- A beta of zero ---- */

static void check_no_nan(const gg_trial* trial, gg_role role) {
  float values[64];
  gg_trial_read(trial, 0, role, values);
  for (int i = 0; i < 64; i++)
    if (isnan(values[i])) gg_test_fail("%s: NaN at %d", gg_role_name(role), i);
}

/* beta2 = 0 forgets: what overflowed in one step is gone in the next. */
GG_TEST_VARIANTS(moment, a_beta_of_zero_forgets_a_moment_that_overflowed, 60) {
  gg_trial_spec spec = {.elements = 64, .model = GG_F16};
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  adamw.beta1 = adamw.beta2 = 0;
  for (int amsgrad = 0; amsgrad < 2; amsgrad++) {
    gg_trial* trial = gg_trial_create(&spec, 1, GG_IN_PLACE, amsgrad);
    float* gradient = trial->entries[0].gradient;
    for (int i = 0; i < 64; i++) gradient[i] = i % 3 ? 1e30f : 0.5f;
    gg_trial_open(trial, context);
    for (int step = 0; step < 4; step++) {
      gg_trial_step(trial, &adamw, step % 2 ? &guard : NULL);
      for (gg_role role = GG_PARAMETER; role <= (amsgrad ? GG_MAX_EXP_AVG_SQ : GG_EXP_AVG_SQ); role++)
        if (role != GG_GRADIENT) check_no_nan(trial, role);
      if (step == 1)
        for (int i = 0; i < 64; i++) gradient[i] = 0.25f;
      if (step == 1) gg_trial_upload_gradients(trial);
    }
    float moments[64];
    gg_trial_read(trial, 0, GG_EXP_AVG_SQ, moments);
    for (int i = 0; i < 64; i++) GG_CHECK(moments[i] == 0.0625f);
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_VARIANTS(moment, a_beta_of_zero_does_not_look_at_an_infinite_moment_that_was_loaded, 60) {
  gg_trial_spec spec = {.elements = 64};
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.beta1 = adamw.beta2 = 0;
  gg_random random = gg_random_stream(82);
  gg_trial* trial = gg_trial_create(&spec, 1, GG_OUT_OF_PLACE, false);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  for (int i = 0; i < 64; i += 5) {
    trial->entries[0].states[1][i] = i % 2 ? INFINITY : -INFINITY;
    trial->entries[0].states[2][i] = INFINITY;
  }
  gg_trial_open(trial, context);
  gg_trial_step(trial, &adamw, NULL);
  for (gg_role role = GG_PARAMETER; role <= GG_EXP_AVG_SQ; role++)
    if (role != GG_GRADIENT) check_no_nan(trial, role);
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}
