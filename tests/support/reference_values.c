#include "tests/support/reference_values.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "host/reference.h"

#define FP32_MAX 0x1.fffffep127

/* The first fault is kept. */
typedef struct findings {
  char* fault;
  size_t bytes;
  bool found;
} findings;

static void expect(findings* so_far, const char* what, double got, double want, double relative) {
  bool same = got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= relative * fabs(want);
  if (same || so_far->found) return;
  so_far->found = true;
  snprintf(so_far->fault, so_far->bytes, "%s: the reference formula gives %.17g, by hand it is %.17g", what, got, want);
}

static void elements(findings* so_far) {
  static const struct {
    gg_reference_type type;
    uint16_t bits;
    double value;
  } known[] = {
      {GG_REFERENCE_F16, 0x3c00, 1},
      {GG_REFERENCE_F16, 0xc200, -3},
      {GG_REFERENCE_F16, 0x0001, 0x1p-24},
      {GG_REFERENCE_F16, 0x03ff, 1023 * 0x1p-24},
      {GG_REFERENCE_F16, 0x7bff, 65504},
      {GG_REFERENCE_F16, 0xfc00, -(double)INFINITY},
      {GG_REFERENCE_F16, 0x7e01, (double)NAN},
      {GG_REFERENCE_BF16, 0x3f80, 1},
      {GG_REFERENCE_BF16, 0xc040, -3},
      {GG_REFERENCE_BF16, 0x0001, 0x1p-133},
      {GG_REFERENCE_BF16, 0x7f7f, 255 * 0x1p120},
      {GG_REFERENCE_BF16, 0x7f80, (double)INFINITY},
      {GG_REFERENCE_BF16, 0xff81, (double)NAN},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char what[48];
    snprintf(what, sizeof what, "%s bits 0x%04x", known[i].type == GG_REFERENCE_F16 ? "FP16" : "BF16", known[i].bits);
    expect(so_far, what, gg_reference_element(&known[i].bits, known[i].type, 0), known[i].value, 0);
  }
}

static double norm_of(const float* values, uint64_t count, double gradient_scale) {
  gg_reference_statistics statistics = {0};
  gg_reference_measure(&statistics, values, GG_REFERENCE_F32, count, gradient_scale);
  return gg_reference_norm(&statistics);
}

static void norms(findings* so_far) {
  gg_reference_statistics group = {0};
  gg_reference_measure(&group, (float[]){3}, GG_REFERENCE_F32, 1, 1);
  gg_reference_measure(&group, (float[]){-4}, GG_REFERENCE_F32, 1, 1);
  expect(so_far, "norm of [3] and [-4]", gg_reference_norm(&group), 5, 0);
  expect(so_far, "largest magnitude of [3] and [-4]", group.max_abs, 4, 0);
  expect(so_far, "norm of nothing", norm_of(NULL, 0, 1), 0, 0);
  const float largest = (float)FP32_MAX, smallest = 0x1p-149f;
  expect(so_far, "four largest", norm_of((float[]){largest, largest, largest, largest}, 4, 1), 2 * FP32_MAX, 0);
  expect(so_far, "four smallest", norm_of((float[]){smallest, smallest, smallest, smallest}, 4, 1), 0x1p-148, 0);
  expect(so_far, "loss scale 128", norm_of((float[]){384, 512}, 2, 128), 5, 0);
  gg_reference_statistics uneven = {0};
  gg_reference_measure(&uneven, (float[]){0x1p27f, 1, 1, 1}, GG_REFERENCE_F32, 4, 1);
  expect(so_far, "small squares next to a large one", (uneven.sum - 0x1p54) + uneven.sum_error, 3, 0);
}

static void kinds(findings* so_far) {
  gg_reference_statistics bad = {0};
  const float values[] = {NAN, INFINITY, -INFINITY, (float)FP32_MAX, 1};
  gg_reference_measure(&bad, values, GG_REFERENCE_F32, 5, 0.5);
  expect(so_far, "NaN", (double)bad.nan_count, 1, 0);
  expect(so_far, "infinities", (double)bad.inf_count, 2, 0);
  expect(so_far, "overflows", (double)bad.overflow_count, 1, 0);
  expect(so_far, "largest finite magnitude", bad.max_abs, 2, 0);
  expect(so_far, "norm with bad values", gg_reference_norm(&bad), (double)INFINITY, 0);
}

static void coefficients(findings* so_far) {
  static const double known[][4] = {{5, 1, 0, 0.2},  {3, 1, 1, 0.25}, {5, 5, 0, 1}, {5, 10, 1e-6, 1},
                                    {5, 0, 1e-6, 0}, {0, 0, 0, 0},    {0, 1, 1, 1}, {0, 1e-9, 1, 1}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char what[80];
    snprintf(what, sizeof what, "coefficient at norm %g, limit %g, epsilon %g", known[i][0], known[i][1], known[i][2]);
    expect(so_far, what, gg_reference_coefficient(known[i][0], known[i][1], known[i][2]), known[i][3], 0);
  }
}

/* The long ones are powers of the FP64 number beta with 60 decimal digits. */
static void bias_corrections(findings* so_far) {
  static const struct {
    double beta;
    uint64_t step;
    double value;
  } known[] = {
      {0.5, 1, 0.5},
      {0.5, 2, 0.75},
      {0.5, 10, 1023.0 / 1024},
      {0, 1, 1},
      {0, 7, 1},
      {0.9, 7, 0.52170309999999991740},
      {0.999, 1000, 0.63230457522903628228},
      {0.9999999, 1000000, 0.095162586440601156163},
      {1 - 0x1p-40, 1, 0x1p-40},
      {1 - 0x1p-40, (uint64_t)1 << 40, 0.63212055882872497061},
      {0.999, (uint64_t)INT64_MAX, 1},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char what[64];
    snprintf(what, sizeof what, "1 - %.17g^%llu", known[i].beta, (unsigned long long)known[i].step);
    expect(so_far, what, gg_reference_bias_correction(known[i].beta, known[i].step), known[i].value, 1e-14);
  }
}

typedef struct state {
  double p, m, v, maximum;
} state;

static void expect_step(findings* so_far, const char* what, const gg_reference_options* options, float gradient,
                        uint64_t step, state before, bool amsgrad, state after) {
  char text[96];
  gg_reference_update(options, &gradient, GG_REFERENCE_F32, 1, step, &before.p, &before.m, &before.v,
                      amsgrad ? &before.maximum : NULL);
  snprintf(text, sizeof text, "%s: parameter", what);
  expect(so_far, text, before.p, after.p, 1e-15);
  snprintf(text, sizeof text, "%s: exp_avg", what);
  expect(so_far, text, before.m, after.m, 1e-15);
  snprintf(text, sizeof text, "%s: exp_avg_sq", what);
  expect(so_far, text, before.v, after.v, 1e-15);
  if (!amsgrad) return;
  snprintf(text, sizeof text, "%s: max_exp_avg_sq", what);
  expect(so_far, text, before.maximum, after.maximum, 1e-15);
}

/* Step 2 corrects by 1 - 1/4 = 3/4 and 1 - 9/16 = 7/16: exp_avg_sq 7/4 becomes 4, its root 2, and with epsilon 2 the
 * divisor is 4 again. */
static void updates(findings* so_far) {
  gg_reference_options options = {
      .learning_rate = 0.5, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 2, .gradient_scale = 1, .coefficient = 1};
  const state start = {1, 0, 0, 0}, next = {0.75, 1, 1, 1}, held = {0.75, 1, 1, 1.75};
  expect_step(so_far, "first step", &options, 2, 1, start, false, next);
  expect_step(so_far, "second step", &options, -2, 2, next, false, (state){0.75 + 1.0 / 12, -0.5, 1.75, 0});
  expect_step(so_far, "a new maximum", &options, -2, 2, next, true, (state){0.75 + 1.0 / 12, -0.5, 1.75, 1.75});
  expect_step(so_far, "an old maximum", &options, 0, 2, held, true, (state){2.0 / 3, 0.5, 0.75, 1.75});
  options.maximize = true;
  expect_step(so_far, "maximize", &options, 2, 1, start, false, (state){1.25, -1, 1, 0});
  options.maximize = false;
  options.coefficient = 0.5;
  options.gradient_scale = 2;
  expect_step(so_far, "loss scale and clipping", &options, 8, 1, start, false, next);
  options.coefficient = 0;
  expect_step(so_far, "clipped to zero", &options, 8, 2, next, false,
              (state){0.75 - 0.5 * (2.0 / 3) / (2 + sqrt(0.75 / 0.4375)), 0.5, 0.75, 0});
  gg_reference_options decaying = {.learning_rate = 0.1,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .epsilon = 1e-8,
                                   .weight_decay = 0.1,
                                   .gradient_scale = 1,
                                   .coefficient = 1};
  expect_step(so_far, "decay of the old parameter", &decaying, 1, 1, start, false,
              (state){0.99 - 0.1 / (1 + 1e-8), 1 - 0.9, 1 - 0.999, 0});
}

bool gg_reference_holds(char* fault, size_t bytes) {
  findings so_far = {fault, bytes, false};
  elements(&so_far);
  norms(&so_far);
  kinds(&so_far);
  coefficients(&so_far);
  bias_corrections(&so_far);
  updates(&so_far);
  return !so_far.found;
}
