/* What a guarded step decides and does, option by option, on every backend. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

static gg_trial* ordinary_trial(gg_context* context, gg_update_mode mode, bool amsgrad) {
  static const gg_trial_spec specs[] = {
      {.elements = 5, .gradient = GG_F32, .step = 3},
      {.elements = 300, .gradient = GG_F16, .model = GG_BF16, .shift = 1},
      {.elements = 2100, .gradient = GG_BF16, .model = GG_F16, .step = 1},
  };
  gg_random random = gg_random_stream(21);
  gg_trial* trial = gg_trial_create(specs, 3, mode, amsgrad);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_trial_open(trial, context);
  return trial;
}

static void set_gradient(gg_trial* trial, size_t entry, uint64_t index, float value) {
  gg_trial_entry* to = &trial->entries[entry];
  if (to->spec.gradient == GG_F32) {
    ((float*)to->gradient)[index] = value;
  } else {
    ((uint16_t*)to->gradient)[index] =
        to->spec.gradient == GG_F16 ? gg_model_to_half(value) : gg_model_to_bfloat(value);
  }
}

static gg_guard_options limit(double max_norm) {
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = max_norm;
  return guard;
}

static gg_report report_of(gg_trial* trial) {
  gg_report report = GG_REPORT_INIT;
  GG_OK_OR_FAIL(trial->context, gg_group_report(trial->group, &report));
  return report;
}

GG_TEST_BACKENDS(decision, one_norm_over_the_group, 30) {
  gg_trial_spec specs[] = {{.elements = 1}, {.elements = 1}};
  gg_trial* trial = gg_trial_create(specs, 2, GG_OUT_OF_PLACE, false);
  set_gradient(trial, 0, 0, 3);
  set_gradient(trial, 1, 0, 4);
  gg_trial_open(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = limit(1);
  gg_trial_step(trial, &adamw, &guard);
  gg_report report = report_of(trial);
  GG_CHECK(report.norm == 5);
  gg_test_near("coefficient", report.clip_coefficient, 0.2, 1e-6, 0);
  float moments[2];
  gg_trial_read(trial, 0, GG_EXP_AVG, &moments[0]);
  gg_trial_read(trial, 1, GG_EXP_AVG, &moments[1]);
  gg_test_near("0.1 * 3 * 0.2", (double)moments[0], 0.06, 1e-6, 0);
  gg_test_near("0.1 * 4 * 0.2", (double)moments[1], 0.08, 1e-6, 0);
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

static void skip_leaves_alone(gg_context* context, gg_update_mode mode, size_t entry, uint64_t index, float bad) {
  gg_trial* trial = ordinary_trial(context, mode, true);
  set_gradient(trial, entry, index, bad);
  gg_trial_upload_gradients(trial);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_test_case("mode %d, %g in tensor %zu at %d", (int)mode, (double)bad, entry, (int)index);
  for (int clip = 0; clip < 2; clip++) {
    guard.clip = clip;
    gg_trial_step(trial, &adamw, &guard); /* the model has it skipped */
    gg_report report = report_of(trial);
    GG_CHECK(report.action == GG_SKIPPED && report.reason == GG_REASON_NONFINITE);
    GG_CHECK(isinf(report.norm) && report.clip_coefficient == 1 && report.update_launches == 0);
    gg_trial_check(trial);
  }
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(decision, skip_leaves_every_bit_alone, 60) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    skip_leaves_alone(context, mode, 0, 4, NAN);
    skip_leaves_alone(context, mode, 1, 0, -INFINITY);
    skip_leaves_alone(context, mode, 2, 2099, NAN);
  }
}

GG_TEST_BACKENDS(decision, error_policy_returns_before_any_update, 30) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_trial* trial = ordinary_trial(context, mode, false);
    set_gradient(trial, 1, 7, INFINITY);
    gg_trial_upload_gradients(trial);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = limit(1);
    guard.on_nonfinite = GG_NONFINITE_ERROR;
    gg_pending* pending = (gg_pending*)trial; /* must be set to NULL */
    GG_EXPECT_STATUS(context, gg_guarded_adamw_step(trial->group, &adamw, &guard, &pending), GG_ERROR_NONFINITE);
    GG_CHECK(pending == NULL);
    gg_report report = report_of(trial);
    GG_CHECK(report.action == GG_REFUSED && report.reason == GG_REASON_NONFINITE && report.update_launches == 0);
    GG_CHECK(report.per_tensor[1].nonfinite == GG_KIND_INF && report.per_tensor[0].nonfinite == 0);
    GG_CHECK(gg_context_error(context)->status == GG_ERROR_NONFINITE);
    gg_trial_check(trial);
    set_gradient(trial, 1, 7, 0.5f);
    gg_trial_upload_gradients(trial);
    gg_trial_step(trial, &adamw, &guard); /* and the group goes on */
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(decision, without_max_norm_nothing_is_clipped_but_bad_values_are_seen, 30) {
  gg_trial* trial = ordinary_trial(context, GG_IN_PLACE, false);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  set_gradient(trial, 0, 0, 1e6f);
  gg_trial_upload_gradients(trial);
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, &guard);
  gg_report report = report_of(trial);
  GG_CHECK(report.action == GG_APPLIED && report.clip_coefficient == 1 && report.norm > 9.9e5);
  gg_trial_check(trial);
  set_gradient(trial, 0, 0, NAN);
  gg_trial_upload_gradients(trial);
  gg_trial_step(trial, &adamw, &guard);
  GG_CHECK(report_of(trial).reason == GG_REASON_NONFINITE);
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(decision, max_norm_zero_still_advances_moments_decay_and_step, 30) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_trial_spec spec = {.elements = 2, .step = 4};
    gg_trial* trial = gg_trial_create(&spec, 1, mode, false);
    for (int i = 0; i < 2; i++) {
      trial->entries[0].states[0][i] = 2;
      trial->entries[0].states[1][i] = 1;
      trial->entries[0].states[2][i] = 1;
      set_gradient(trial, 0, (uint64_t)i, 3);
    }
    gg_trial_open(trial, context);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = limit(0);
    gg_trial_step(trial, &adamw, &guard);
    gg_report report = report_of(trial);
    GG_CHECK(report.action == GG_APPLIED && report.clip_coefficient == 0 && report.norm > 0);
    float values[2];
    gg_trial_read(trial, 0, GG_EXP_AVG, values);
    GG_CHECK(values[0] == 0.9f);
    gg_trial_read(trial, 0, GG_EXP_AVG_SQ, values);
    GG_CHECK(values[0] == 0.999f);
    gg_trial_read(trial, 0, GG_PARAMETER, values);
    GG_CHECK(values[0] < 2);
    GG_CHECK(trial->entries[0].step == 5);
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(decision, epsilon_zero_and_a_norm_within_the_limit_change_no_bit_of_the_gradient, 30) {
  gg_trial* clipped = ordinary_trial(context, GG_IN_PLACE, false);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = limit(1e3);
  guard.clip_epsilon = 0;
  gg_pending* pending = NULL;
  GG_OK_OR_FAIL(context, gg_guarded_adamw_step(clipped->group, &adamw, &guard, &pending));
  GG_CHECK(report_of(clipped).clip_coefficient == 1);
  GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
  gg_trial_expect(clipped, &adamw, NULL, NULL); /* the plain step */
  gg_trial_check(clipped);
  gg_trial_destroy(&clipped);
}

GG_TEST_BACKENDS(decision, requested_skip_scans_nothing_and_advances_nothing, 30) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++)
    for (int guarded = 0; guarded < 2; guarded++) {
      gg_trial* trial = ordinary_trial(context, mode, false);
      set_gradient(trial, 0, 0, NAN); /* a scan would find it */
      gg_trial_upload_gradients(trial);
      gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
      adamw.skip_update = true;
      gg_guard_options guard = limit(1);
      guard.on_nonfinite = GG_NONFINITE_ERROR;
      gg_test_case("mode %d, guarded %d", (int)mode, guarded);
      gg_trial_step(trial, &adamw, guarded ? &guard : NULL);
      gg_report report = report_of(trial);
      GG_CHECK(report.action == GG_SKIPPED && report.reason == GG_REASON_REQUESTED && !report.measured);
      GG_CHECK(report.norm == 0 && report.max_abs == 0 && report.nonfinite == 0 && report.per_tensor == NULL);
      GG_CHECK(report.reduction_launches == 0 && report.update_launches == 0 && report.readback_bytes == 0);
      GG_CHECK(report.clip_coefficient == 1 && report.elements == 2405 && report.tensors == 3);
      gg_trial_check(trial);
      gg_trial_destroy(&trial);
    }
}

/* Expects the options refused in both kinds of step, with and without a requested skip, and nothing changed. */
static void refuse_options(gg_trial* trial, gg_adamw_options adamw, const gg_guard_options* guard, const char* what) {
  gg_guard_options defaults = GG_GUARD_OPTIONS_INIT;
  for (int skip = 0; skip < 2; skip++) {
    adamw.skip_update = skip;
    gg_pending* pending = NULL;
    gg_test_case("%s, skip %d", what, skip);
    GG_EXPECT_STATUS(trial->context, gg_guarded_adamw_step(trial->group, &adamw, guard ? guard : &defaults, &pending),
                     GG_ERROR_ARGUMENT);
    GG_CHECK(pending == NULL);
    gg_test_mentions(gg_context_error(trial->context)->message, what);
    if (guard) continue;
    GG_EXPECT_STATUS(trial->context, gg_adamw_step(trial->group, &adamw, &pending), GG_ERROR_ARGUMENT);
    GG_CHECK(pending == NULL);
    gg_test_mentions(gg_context_error(trial->context)->message, what);
  }
}

static void refuse_adamw(gg_trial* trial, const char* what, size_t field, double value) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  memcpy((char*)&adamw + field, &value, sizeof value);
  refuse_options(trial, adamw, NULL, what);
}

#define REFUSE(trial, field, ...)                                                       \
  do {                                                                                  \
    const double bad[] = {__VA_ARGS__};                                                 \
    for (size_t bad_index = 0; bad_index < sizeof bad / sizeof *bad; bad_index++)       \
      refuse_adamw((trial), #field, offsetof(gg_adamw_options, field), bad[bad_index]); \
  } while (0)

GG_TEST_BACKENDS(decision, options_are_validated_also_on_a_requested_skip, 30) {
  gg_trial* trial = ordinary_trial(context, GG_IN_PLACE, false);
  const double nan = (double)NAN, inf = (double)INFINITY;
  REFUSE(trial, learning_rate, -1e-9, nan, inf, -inf);
  REFUSE(trial, beta1, -1e-9, 1.0, 1.5, nan, inf);
  REFUSE(trial, beta2, -1e-9, 1.0, 1.5, nan, inf);
  REFUSE(trial, epsilon, 0, -1e-8, 1e-60, nan, inf);
  REFUSE(trial, weight_decay, -1e-9, nan, inf);
  REFUSE(trial, gradient_scale, 0, -1, nan, inf, -inf, 1e-50, 1e60, 5e-324);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.learning_rate = 1e200;
  adamw.weight_decay = 1e200;
  refuse_options(trial, adamw, NULL, "weight_decay");
  adamw = (gg_adamw_options)GG_ADAMW_OPTIONS_INIT;
  const double limits[] = {-1, -1e-300, nan, inf};
  for (int i = 0; i < 4; i++) {
    gg_guard_options guard = limit(limits[i]);
    refuse_options(trial, adamw, &guard, "max_norm");
    guard = limit(1);
    guard.clip_epsilon = limits[i];
    refuse_options(trial, adamw, &guard, "epsilon");
  }
  gg_guard_options guard = limit(1);
  guard.on_nonfinite = (gg_nonfinite_policy)5;
  refuse_options(trial, adamw, &guard, "nonfinite");
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(decision, options_at_their_bounds_are_accepted, 30) {
  gg_trial* trial = ordinary_trial(context, GG_IN_PLACE, false);
  gg_guard_options guard = limit(0.5);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.learning_rate = 0;
  adamw.weight_decay = 0;
  adamw.beta1 = 0;
  adamw.beta2 = 0;
  gg_test_case("zeros");
  gg_trial_step(trial, &adamw, &guard);
  gg_trial_check(trial);
  adamw = (gg_adamw_options)GG_ADAMW_OPTIONS_INIT;
  adamw.beta1 = 1 - 0x1p-40;
  adamw.beta2 = 1 - 0x1p-40;
  adamw.epsilon = 1e-45;
  adamw.gradient_scale = 0x1p20;
  gg_test_case("next to the bounds");
  gg_trial_step(trial, &adamw, &guard);
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(decision, empty_entry_is_no_work_and_does_not_advance, 30) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_trial_spec specs[] = {{.elements = 0, .step = 9},
                             {.elements = 4},
                             {.elements = 0},
                             {.elements = 3, .gradient = GG_F16},
                             {.elements = 0, .gradient = GG_BF16}};
    gg_trial* trial = gg_trial_create(specs, 5, mode, false);
    gg_random random = gg_random_stream(22);
    gg_trial_fill(trial, &random, GG_ORDINARY);
    gg_trial_open(trial, context);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = limit(0.01);
    for (int step = 0; step < 3; step++) {
      gg_trial_step(trial, &adamw, step == 2 ? NULL : &guard);
      gg_trial_check(trial);
    }
    GG_CHECK(trial->entries[0].step == 9 && trial->entries[1].step == 3);
    gg_trial_step(trial, &adamw, &guard);
    gg_report report = report_of(trial);
    GG_CHECK(report.elements == 7 && report.tensors == 5 && report.readback_bytes == 24);
    GG_CHECK(report.per_tensor[0].elements == 0 && report.per_tensor[0].norm == 0);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(decision, a_group_without_elements_succeeds_as_empty, 30) {
  gg_trial_spec specs[] = {{.elements = 0}, {.elements = 0, .gradient = GG_BF16}};
  for (size_t count = 0; count <= 2; count += 2)
    for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++)
      for (int guarded = 0; guarded < 2; guarded++) {
        gg_trial* trial = gg_trial_create(specs, count, mode, false);
        gg_trial_open(trial, context);
        gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
        gg_guard_options guard = limit(1);
        gg_test_case("%zu entries, guarded %d", count, guarded);
        gg_trial_step(trial, &adamw, guarded ? &guard : NULL);
        gg_report report = report_of(trial);
        GG_CHECK(report.action == GG_SKIPPED && report.reason == GG_REASON_EMPTY);
        GG_CHECK(report.norm == 0 && report.elements == 0 && report.readback_bytes == 0);
        gg_trial_check(trial);
        gg_trial_destroy(&trial);
      }
}

GG_TEST_BACKENDS(decision, plain_step_gives_the_same_bits_as_a_guarded_step_without_clipping, 30) {
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_trial* plain = ordinary_trial(context, mode, true);
    gg_trial* guarded = ordinary_trial(context, mode, true);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    adamw.gradient_scale = 7;
    gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
    gg_pending* pending = NULL;
    for (int step = 0; step < 3; step++) {
      GG_OK_OR_FAIL(context, gg_adamw_step(plain->group, &adamw, &pending));
      GG_CHECK(report_of(plain).action == GG_APPLIED && !report_of(plain).measured);
      GG_CHECK(report_of(plain).reduction_launches == 0 && report_of(plain).readback_bytes == 0);
      GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
      GG_OK_OR_FAIL(context, gg_guarded_adamw_step(guarded->group, &adamw, &guard, &pending));
      GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
    }
    for (size_t i = 0; i < 3; i++)
      for (gg_role role = 0; role <= GG_MAX_EXP_AVG_SQ; role++) {
        if (role == GG_GRADIENT) continue;
        float a[2100], b[2100];
        gg_trial_read(plain, i, role, a);
        gg_trial_read(guarded, i, role, b);
        gg_test_same_bytes(gg_role_name(role), a, b, plain->entries[i].spec.elements * sizeof(float));
      }
    gg_trial_destroy(&plain);
    gg_trial_destroy(&guarded);
  }
}

GG_TEST_BACKENDS(decision, plain_step_does_not_scan, 30) {
  gg_trial* trial = ordinary_trial(context, GG_OUT_OF_PLACE, false);
  set_gradient(trial, 0, 2, NAN);
  gg_trial_upload_gradients(trial);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, NULL);
  gg_trial_check(trial);
  float p[5];
  gg_trial_read(trial, 0, GG_PARAMETER, p);
  GG_CHECK(isnan(p[2]) && !isnan(p[1]) && !isnan(p[3]));
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(decision, in_place_and_out_of_place_give_the_same_bits, 30) {
  gg_trial* in_place = ordinary_trial(context, GG_IN_PLACE, true);
  gg_trial* out_of_place = ordinary_trial(context, GG_OUT_OF_PLACE, true);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = limit(0.01);
  for (int step = 0; step < 4; step++) { /* the model steps both from the same start */
    gg_trial_step(in_place, &adamw, &guard);
    gg_trial_step(out_of_place, &adamw, &guard);
    gg_trial_check(in_place);
    gg_trial_check(out_of_place);
  }
  gg_trial_destroy(&in_place);
  gg_trial_destroy(&out_of_place);
}

GG_TEST_BACKENDS(decision, a_huge_unclipped_gradient_overflows_the_second_moment_but_gives_no_nan, 30) {
  gg_trial_spec spec = {.elements = 9};
  gg_trial* trial = gg_trial_create(&spec, 1, GG_IN_PLACE, false);
  for (uint64_t i = 0; i < 9; i++) set_gradient(trial, 0, i, i % 2 ? 1e30f : 1e20f);
  gg_trial_open(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, &guard);
  GG_CHECK(report_of(trial).action == GG_APPLIED && isfinite(report_of(trial).norm));
  gg_test_near("norm", report_of(trial).norm, 2e30, 1e-6, 0);
  float values[9];
  gg_trial_read(trial, 0, GG_PARAMETER, values);
  for (int i = 0; i < 9; i++) GG_CHECK(isfinite(values[i]));
  gg_trial_read(trial, 0, GG_EXP_AVG_SQ, values);
  GG_CHECK(isfinite(values[0]) && isinf(values[1]));
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(decision, half_gradients_are_not_rounded_back_after_unscaling, 30) {
  gg_trial_spec specs[] = {{.elements = 8, .gradient = GG_F16}, {.elements = 8, .gradient = GG_BF16}};
  gg_trial* trial = gg_trial_create(specs, 2, GG_IN_PLACE, false);
  for (size_t t = 0; t < 2; t++)
    for (uint64_t i = 0; i < 8; i++) set_gradient(trial, t, i, 0x1p-14f * (float)(i + 1));
  gg_trial_open(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.gradient_scale = 3 * 65536.0; /* far below FP16, and not representable in either after division by 3 */
  gg_trial_step(trial, &adamw, NULL);
  float moments[8];
  gg_trial_read(trial, 0, GG_EXP_AVG, moments);
  for (int i = 0; i < 8; i++)
    gg_test_near("first moment", (double)moments[i], 0.1 * 0x1p-14 * (i + 1) / (3 * 65536.0), 3e-7, 0);
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(decision, maximize_turns_the_gradient_not_the_decay, 30) {
  gg_trial_spec spec = {.elements = 2};
  gg_trial* trial = gg_trial_create(&spec, 1, GG_OUT_OF_PLACE, false);
  set_gradient(trial, 0, 1, 1); /* the other is 0: decay alone */
  gg_trial_open(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.maximize = true;
  adamw.learning_rate = 0.1;
  adamw.weight_decay = 0.1;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, &guard);
  float p[2];
  gg_trial_read(trial, 0, GG_PARAMETER, p);
  gg_test_near("decay alone", (double)p[0], 0.99, 1e-6, 0);
  gg_test_near("decay and ascent", (double)p[1], 1.09, 1e-6, 0);
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(decision, step_counters_are_64_bit_and_separate, 30) {
  gg_trial_spec specs[] = {{.elements = 3, .step = 0},
                           {.elements = 3, .step = (1u << 24) + 1},
                           {.elements = 3, .step = (uint64_t)1 << 33},
                           {.elements = 3, .step = (uint64_t)GG_STEP_MAX - 2}};
  gg_trial* trial = gg_trial_create(specs, 4, GG_IN_PLACE, false);
  gg_random random = gg_random_stream(23);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_trial_open(trial, context);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = limit(0.1);
  for (int step = 0; step < 2; step++) {
    gg_trial_step(trial, &adamw, &guard);
    gg_trial_check(trial);
  }
  GG_CHECK(trial->entries[3].step == (uint64_t)GG_STEP_MAX);
  gg_pending* pending = NULL;
  GG_CHECK(gg_guarded_adamw_step(trial->group, &adamw, &guard, &pending) != GG_OK);
  GG_CHECK(pending == NULL);
  gg_test_mentions(gg_context_error(context)->message, "step");
  GG_CHECK(gg_adamw_step(trial->group, &adamw, &pending) != GG_OK);
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}
