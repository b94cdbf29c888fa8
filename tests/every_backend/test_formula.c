/* The library against the reference formula (host/reference.h), which is FP64 throughout and shares no code with it, on
 * every backend: that the definition of docs/numerics.md is the right one, whereas test_bits.c checks that the
 * definition is kept. */
#include <math.h>
#include <stdlib.h>

#include "host/reference.h"
#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/reference_values.h"
#include "tests/support/trial.h"

/* What FP32 may cost. Where terms of either sign cancel in a state, its error is relative to their size, for which the
 * largest value of that state in the group stands. */
#define NORM_TOLERANCE  2e-7
#define STATE_TOLERANCE 2e-6
#define CANCELLATION    2e-7

static const uint64_t sizes[] = {1, 7, 8, 9, 255, 257, 2047, 2049, 5000, 65537, 70001};
static const gg_dtype dtypes[] = {GG_F32, GG_F16, GG_BF16};
static const gg_role roles[4] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ, GG_MAX_EXP_AVG_SQ};
#define SIZES   (sizeof sizes / sizeof *sizes)
#define TENSORS (SIZES * 3)

Test(formula, the_reference_gives_the_values_worked_out_by_hand, .timeout = 10) {
  char fault[256];
  if (!gg_reference_holds(fault, sizeof fault)) gg_test_fail("%s", fault);
}

static gg_reference_type type_of(gg_dtype dtype) {
  return dtype == GG_F32 ? GG_REFERENCE_F32 : dtype == GG_F16 ? GG_REFERENCE_F16 : GG_REFERENCE_BF16;
}

/* Every size in every dtype; entries are at different steps, from the first to ones that no training reaches. */
static gg_trial* every_size(gg_update_mode mode, bool amsgrad) {
  static const uint64_t steps[] = {0, 1, 9, 1000, 1000000, (uint64_t)1 << 24, (uint64_t)1 << 40};
  gg_trial_spec specs[TENSORS];
  for (size_t i = 0; i < TENSORS; i++) {
    specs[i] = (gg_trial_spec){.elements = sizes[i / 3], .gradient = dtypes[i % 3]};
    specs[i].step = steps[i % (sizeof steps / sizeof *steps)];
  }
  return gg_trial_create(specs, TENSORS, mode, amsgrad);
}

/* ---- Steps ---- */

/* A trial's state in FP64, which goes its own way from the same start. */
typedef struct shadow {
  double* states[TENSORS][4];
  gg_reference_options options;
} shadow;

static double* widened(const float* from, uint64_t count) {
  double* to = malloc(count * sizeof *to);
  GG_CHECK(to != NULL);
  for (uint64_t i = 0; i < count; i++) to[i] = (double)from[i];
  return to;
}

static void shadow_open(shadow* of, const gg_trial* trial, const gg_adamw_options* adamw) {
  *of = (shadow){.options = {adamw->learning_rate, adamw->beta1, adamw->beta2, adamw->epsilon, adamw->weight_decay,
                             adamw->gradient_scale, 1, adamw->maximize}};
  for (size_t i = 0; i < trial->count; i++)
    for (int s = 0; s < (trial->amsgrad ? 4 : 3); s++)
      of->states[i][s] = widened(trial->entries[i].states[s], trial->entries[i].spec.elements);
}

static void shadow_close(shadow* of) {
  for (size_t i = 0; i < TENSORS; i++)
    for (int s = 0; s < 4; s++) free(of->states[i][s]);
}

static double reference_norm(const gg_trial* trial, double gradient_scale) {
  gg_reference_statistics group = {0};
  for (size_t i = 0; i < trial->count; i++) {
    const gg_trial_entry* entry = &trial->entries[i];
    gg_reference_measure(&group, entry->gradient, type_of(entry->spec.gradient), entry->spec.elements, gradient_scale);
  }
  return gg_reference_norm(&group);
}

static void shadow_step(shadow* of, const gg_trial* trial, uint64_t taken) {
  for (size_t i = 0; i < trial->count; i++) {
    const gg_trial_entry* entry = &trial->entries[i];
    double** states = of->states[i];
    gg_reference_update(&of->options, entry->gradient, type_of(entry->spec.gradient), entry->spec.elements,
                        entry->spec.step + taken, states[0], states[1], states[2], states[3]);
  }
}

static double largest_state(const shadow* of, const gg_trial* trial, int state) {
  double largest = 0;
  for (size_t i = 0; i < trial->count; i++)
    for (uint64_t k = 0; k < trial->entries[i].spec.elements; k++)
      largest = fmax(largest, fabs(of->states[i][state][k]));
  return largest;
}

static void shadow_check(const shadow* of, const gg_trial* trial) {
  float* got = malloc(sizes[SIZES - 1] * sizeof *got);
  GG_CHECK(got != NULL);
  for (int s = 0; s < (trial->amsgrad ? 4 : 3); s++) {
    double cancelled = CANCELLATION * largest_state(of, trial, s);
    for (size_t i = 0; i < trial->count; i++) {
      gg_trial_read(trial, i, roles[s], got);
      gg_test_floats_near(gg_role_name(roles[s]), got, of->states[i][s], trial->entries[i].spec.elements,
                          STATE_TOLERANCE, cancelled);
    }
  }
  free(got);
}

/* Guarded steps with fresh gradients, library and reference side by side; every third is within its limit. */
static void step_and_compare(gg_trial* trial, gg_random* random, const gg_adamw_options* adamw, bool clip, int steps) {
  shadow reference;
  shadow_open(&reference, trial, adamw);
  for (int step = 1; step <= steps; step++) {
    if (step > 1) gg_trial_fill_gradients(trial, random, GG_ORDINARY);
    double norm = reference_norm(trial, adamw->gradient_scale);
    gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
    guard.clip = clip;
    guard.max_norm = norm * (step % 3 == 0 ? 2 : 0.37);
    reference.options.coefficient = clip ? gg_reference_coefficient(norm, guard.max_norm, guard.clip_epsilon) : 1;
    gg_pending* pending = NULL;
    GG_OK_OR_FAIL(trial->context, gg_guarded_adamw_step(trial->group, adamw, &guard, &pending));
    gg_report report = GG_REPORT_INIT;
    GG_OK_OR_FAIL(trial->context, gg_pending_report(pending, &report));
    gg_test_near("group norm", report.norm, norm, NORM_TOLERANCE, 0);
    gg_test_near("coefficient", report.clip_coefficient, reference.options.coefficient, NORM_TOLERANCE, 0);
    GG_OK_OR_FAIL(trial->context, gg_pending_commit(&pending));
    shadow_step(&reference, trial, (uint64_t)step);
    shadow_check(&reference, trial);
  }
  shadow_close(&reference);
}

GG_TEST_BACKENDS(formula, five_steps_agree_with_the_reference_within_2e_6, 120) {
  static const double betas[][2] = {{0.9, 0.999}, {0, 0.9999999}, {0.95, 0.98}, {0.999999, 0.9999}};
  gg_random random = gg_random_stream(71);
  for (int variant = 0; variant < 8; variant++) {
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    bool amsgrad = variant & 1, clip = variant & 4;
    adamw.maximize = variant & 2;
    adamw.beta1 = betas[variant % 4][0];
    adamw.beta2 = betas[variant % 4][1];
    adamw.gradient_scale = clip ? 1000 : 1;
    gg_test_case("AMSGrad %d, maximize %d, clip %d, betas %g and %g", amsgrad, adamw.maximize, clip, adamw.beta1,
                 adamw.beta2);
    gg_trial* trial = every_size(variant % 3 ? GG_IN_PLACE : GG_OUT_OF_PLACE, amsgrad);
    gg_trial_fill(trial, &random, GG_ORDINARY);
    gg_trial_open(trial, context);
    step_and_compare(trial, &random, &adamw, clip, 5);
    gg_trial_destroy(&trial);
  }
}

/* Values next to the largest of FP32 may have been rounded to infinity. */
static void make_finite(gg_trial* trial) {
  for (size_t i = 0; i < trial->count; i++) {
    gg_trial_entry* entry = &trial->entries[i];
    if (entry->spec.gradient == GG_F32) continue;
    uint16_t* halves = entry->gradient;
    for (uint64_t k = 0; k < entry->spec.elements; k++)
      if (!isfinite(gg_reference_element(halves, type_of(entry->spec.gradient), k))) halves[k] = 0;
  }
}

GG_TEST_BACKENDS(formula, gradients_of_any_finite_size_clipped_agree_with_the_reference, 60) {
  static const gg_magnitudes kinds[] = {GG_WHOLE_RANGE, GG_HUGE, GG_SPARSE, GG_ALTERNATING};
  gg_random random = gg_random_stream(72);
  for (int k = 0; k < 4; k++) {
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_trial* trial = every_size(GG_IN_PLACE, k % 2);
    gg_trial_fill(trial, &random, kinds[k]);
    make_finite(trial);
    gg_trial_open(trial, context);
    shadow reference;
    shadow_open(&reference, trial, &adamw);
    double norm = reference_norm(trial, 1);
    gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
    guard.clip = true;
    reference.options.coefficient = gg_reference_coefficient(norm, guard.max_norm, guard.clip_epsilon);
    GG_CHECK(isfinite(norm));
    gg_test_case("magnitudes of kind %d: norm %g, coefficient %g", (int)kinds[k], norm, reference.options.coefficient);
    gg_pending* pending = NULL;
    GG_OK_OR_FAIL(context, gg_guarded_adamw_step(trial->group, &adamw, &guard, &pending));
    GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
    shadow_step(&reference, trial, 1);
    shadow_check(&reference, trial);
    shadow_close(&reference);
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(formula, the_plain_step_agrees_with_the_reference, 30) {
  gg_random random = gg_random_stream(73);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.gradient_scale = 3;
  gg_trial* trial = every_size(GG_OUT_OF_PLACE, true);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_trial_open(trial, context);
  shadow reference;
  shadow_open(&reference, trial, &adamw);
  for (uint64_t step = 1; step <= 3; step++) {
    gg_pending* pending = NULL;
    GG_OK_OR_FAIL(context, gg_adamw_step(trial->group, &adamw, &pending));
    GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
    shadow_step(&reference, trial, step);
    shadow_check(&reference, trial);
  }
  shadow_close(&reference);
  gg_trial_destroy(&trial);
}

/* ---- Statistics ---- */

static uint32_t kinds_of(const gg_reference_statistics* statistics) {
  return (statistics->nan_count ? GG_KIND_NAN : 0) | (statistics->inf_count ? GG_KIND_INF : 0) |
         (statistics->overflow_count ? GG_KIND_OVERFLOW : 0);
}

static void check_statistics(const gg_trial* trial, const gg_entry* entries, double gradient_scale) {
  gg_tensor tensors[TENSORS];
  gg_tensor_report got[TENSORS];
  for (size_t i = 0; i < TENSORS; i++) tensors[i] = entries[i].tensors[GG_GRADIENT];
  gg_report report = GG_REPORT_INIT;
  GG_OK_OR_FAIL(trial->context, gg_gradient_stats(trial->context, tensors, TENSORS, gradient_scale, &report, got));
  gg_test_near("group norm", report.norm, reference_norm(trial, gradient_scale), NORM_TOLERANCE, 0);
  for (size_t i = 0; i < TENSORS; i++) {
    const gg_trial_spec* spec = &trial->entries[i].spec;
    gg_reference_statistics want = {0};
    gg_reference_measure(&want, trial->entries[i].gradient, type_of(spec->gradient), spec->elements, gradient_scale);
    gg_test_near("norm of a tensor", got[i].norm, gg_reference_norm(&want), NORM_TOLERANCE, 0);
    gg_test_near("largest magnitude", got[i].max_abs, want.max_abs, 0, 0);
    GG_CHECK(got[i].nonfinite == kinds_of(&want));
    gg_nonfinite_census census = GG_NONFINITE_CENSUS_INIT;
    GG_OK_OR_FAIL(trial->context, gg_gradient_census(trial->context, &tensors[i], gradient_scale, &census));
    GG_CHECK(census.nan_count == want.nan_count && census.inf_count == want.inf_count &&
             census.overflow_count == want.overflow_count);
  }
}

GG_TEST_BACKENDS(formula, statistics_of_any_magnitudes_agree_with_the_reference_within_2e_7, 60) {
  static const double scales[GG_NONFINITE + 1] = {3.0, 1.0, 65536.0, 1.0, 3.0, 1e-3, 1.0, 1e-3};
  gg_test_needs_exact(context); /* another device may lose subnormals */
  gg_random random = gg_random_stream(74);
  for (int kind = 0; kind <= GG_NONFINITE; kind++) {
    gg_test_case("magnitudes of kind %d, loss scale %g", kind, scales[kind]);
    gg_trial* trial = every_size(GG_IN_PLACE, false);
    gg_trial_fill(trial, &random, (gg_magnitudes)kind);
    gg_entry* entries = gg_trial_open_entries(trial, context);
    check_statistics(trial, entries, scales[kind]);
    free(entries);
    gg_trial_destroy(&trial);
  }
}
