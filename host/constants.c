#include "host/constants.h"

#include <math.h>
#include <stddef.h>

#include "host/prefix.h"
#include "host/status.h"

/* The fields of the first version; later fields follow them. */
#define ADAMW_OPTIONS_LEAST (offsetof(gg_adamw_options, skip_update) + sizeof(bool))

/* ---- Checks ---- */

float gg_inverse_scale(double gradient_scale) { return (float)(1.0 / gradient_scale); }

gg_status gg_check_gradient_scale(double gradient_scale, gg_error* error) {
  if (!isfinite(gradient_scale) || gradient_scale <= 0)
    return gg_fail(error, GG_ERROR_ARGUMENT, __func__, "gradient_scale is %g, it must be finite and above 0",
                   gradient_scale);
  float inverse = gg_inverse_scale(gradient_scale);
  if (!isfinite(inverse) || inverse == 0)
    return gg_fail(error, GG_ERROR_ARGUMENT, __func__,
                   "gradient_scale is %g, its reciprocal in FP32 must be finite and not 0: use 3e-39 to 1e45",
                   gradient_scale);
  return GG_OK;
}

static gg_status check_not_negative(const char* field, double value, gg_error* error) {
  if (isfinite(value) && value >= 0) return GG_OK;
  return gg_fail(error, GG_ERROR_ARGUMENT, "gg_check_adamw_options", "%s is %g, it must be finite and at least 0",
                 field, value);
}

static gg_status check_beta(const char* field, double value, gg_error* error) {
  if (value >= 0 && value < 1) return GG_OK; /* false for NaN */
  return gg_fail(error, GG_ERROR_ARGUMENT, "gg_check_adamw_options", "%s is %g, it must be at least 0 and below 1",
                 field, value);
}

static gg_status check_epsilon(double epsilon, gg_error* error) {
  float rounded = (float)epsilon;
  if (isfinite(rounded) && rounded > 0) return GG_OK;
  return gg_fail(error, GG_ERROR_ARGUMENT, "gg_check_adamw_options",
                 "epsilon is %g, it must be finite and above 0 after rounding to FP32", epsilon);
}

/* 1 - lr * wd, and the largest step size, which is that of the first step, as the kernels use them. */
static gg_status check_products(const gg_adamw_options* options, gg_error* error) {
  double lost = options->learning_rate * options->weight_decay;
  if (!isfinite((float)(1.0 - lost)))
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_check_adamw_options",
                   "learning_rate %g times weight_decay %g is %g, which must be finite in FP32: lower either",
                   options->learning_rate, options->weight_decay, lost);
  if (!isfinite(gg_bias_of_step(options, 1).step_size))
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_check_adamw_options",
                   "learning_rate %g divided by 1 - beta1 (beta1 is %.17g), the step size of a first step, must be "
                   "finite in FP32: lower the learning rate",
                   options->learning_rate, options->beta1);
  return GG_OK;
}

gg_status gg_check_adamw_options(const gg_adamw_options* options, gg_error* error) {
  if (options == NULL) return GG_OK;
  gg_status status = gg_check_size(options->size, ADAMW_OPTIONS_LEAST, "gg_adamw_options", __func__, error);
  if (status == GG_OK) status = check_not_negative("learning_rate", options->learning_rate, error);
  if (status == GG_OK) status = check_beta("beta1", options->beta1, error);
  if (status == GG_OK) status = check_beta("beta2", options->beta2, error);
  if (status == GG_OK) status = check_epsilon(options->epsilon, error);
  if (status == GG_OK) status = check_not_negative("weight_decay", options->weight_decay, error);
  if (status == GG_OK) status = gg_check_gradient_scale(options->gradient_scale, error);
  if (status == GG_OK) status = check_products(options, error);
  return status;
}

/* ---- Constants ---- */

void gg_fill_constants(const gg_adamw_options* options, float factor1, float factor2, gg_update_constants* constants) {
  *constants = (gg_update_constants){
      .inverse_scale = gg_inverse_scale(options->gradient_scale),
      .factor1 = factor1,
      .factor2 = factor2,
      .decay = (float)(1.0 - options->learning_rate * options->weight_decay),
      .beta1 = (float)options->beta1,
      .one_minus_beta1 = (float)(1.0 - options->beta1), /* of the FP64 beta: 1 - (float)beta is wrong by up to 6e-6 */
      .beta2 = (float)options->beta2,
      .one_minus_beta2 = (float)(1.0 - options->beta2),
      .epsilon = (float)options->epsilon,
      .maximize = options->maximize ? 1 : 0,
  };
}

/* 1 - beta^step by repeated squaring of the complement y(n) = 1 - beta^n: y(a + b) = y(a) + y(b) (1 - y(a)). There is
 * no cancellation, so it is accurate for beta close to 1; and it needs no function of the C library, whose results can
 * differ in the last bits. */
static double one_minus_power(double beta, uint64_t step) {
  double result = 0, squared = 1.0 - beta;
  for (; step > 0; step >>= 1) {
    if (step & 1) result = result + squared * (1.0 - result);
    squared = squared + squared * (1.0 - squared);
  }
  return result;
}

gg_bias gg_bias_of_step(const gg_adamw_options* options, uint64_t step) {
  gg_bias bias = {
      .step_size = (float)(options->learning_rate / one_minus_power(options->beta1, step)),
      .inverse_bias_correction2_sqrt = (float)(1.0 / sqrt(one_minus_power(options->beta2, step))),
  };
  return bias;
}
