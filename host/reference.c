#include "host/reference.h"

#include <math.h>
#include <stddef.h>

/* ---- Elements ---- */

/* 1 sign bit, `exponent_bits`, `fraction_bits`, as IEEE 754 has them. */
static double decode(uint32_t bits, int exponent_bits, int fraction_bits) {
  uint32_t fraction = bits & ((1u << fraction_bits) - 1), largest = (1u << exponent_bits) - 1;
  uint32_t exponent = (bits >> fraction_bits) & largest;
  int bias = (int)(largest >> 1);
  double magnitude;
  if (exponent == largest) {
    magnitude = fraction != 0 ? (double)NAN : (double)INFINITY;
  } else if (exponent == 0) {
    magnitude = ldexp((double)fraction, 1 - bias - fraction_bits);
  } else {
    magnitude = ldexp((double)(fraction + (1u << fraction_bits)), (int)exponent - bias - fraction_bits);
  }
  return (bits >> (exponent_bits + fraction_bits)) & 1 ? -magnitude : magnitude;
}

double gg_reference_element(const void* gradient, gg_reference_type type, uint64_t index) {
  if (type == GG_REFERENCE_F32) return (double)((const float*)gradient)[index];
  uint32_t bits = ((const uint16_t*)gradient)[index];
  return type == GG_REFERENCE_F16 ? decode(bits, 5, 10) : decode(bits, 8, 7);
}

/* The product of two FP32 numbers is exact in FP64, so this is the one rounding that FP32 would do. */
double gg_reference_unscaled(const void* gradient, gg_reference_type type, uint64_t index, double gradient_scale) {
  double reciprocal = (double)(float)(1.0 / gradient_scale);
  return (double)(float)(gg_reference_element(gradient, type, index) * reciprocal);
}

/* ---- Statistics ---- */

/* Squares of FP32 numbers are exact and normal in FP64. The sum keeps what each addition loses (Neumaier 1974). */
static void add_square(gg_reference_statistics* statistics, double value) {
  double square = value * value, before = statistics->sum, after = before + square;
  statistics->sum_error += before >= square ? (before - after) + square : (square - after) + before;
  statistics->sum = after;
}

void gg_reference_measure(gg_reference_statistics* statistics, const void* gradient, gg_reference_type type,
                          uint64_t elements, double gradient_scale) {
  for (uint64_t i = 0; i < elements; i++) {
    double raw = gg_reference_element(gradient, type, i);
    double value = gg_reference_unscaled(gradient, type, i, gradient_scale);
    if (isnan(raw)) {
      statistics->nan_count++;
    } else if (isinf(raw)) {
      statistics->inf_count++;
    } else if (isinf(value)) {
      statistics->overflow_count++;
    } else {
      add_square(statistics, value);
      statistics->max_abs = fmax(statistics->max_abs, fabs(value));
    }
  }
}

double gg_reference_norm(const gg_reference_statistics* statistics) {
  if (statistics->nan_count + statistics->inf_count + statistics->overflow_count > 0) return (double)INFINITY;
  return sqrt(statistics->sum + statistics->sum_error);
}

double gg_reference_coefficient(double norm, double max_norm, double epsilon) {
  if (max_norm == 0) return 0;
  if (norm == 0) return 1;
  double coefficient = max_norm / (norm + epsilon);
  return coefficient < 1 ? coefficient : 1;
}

/* ---- Update ---- */

/* beta - 1 is exact for a beta from 1/2 on, and neither function loses digits next to its zero. */
double gg_reference_bias_correction(double beta, uint64_t step) {
  if (beta == 0) return 1;
  return -expm1((double)step * (beta < 0.5 ? log(beta) : log1p(beta - 1.0)));
}

/* A beta of zero does not look at the old moment, which may be infinite. */
static double kept(double beta, double moment) { return beta == 0 ? 0 : beta * moment; }

void gg_reference_update(const gg_reference_options* options, const void* gradient, gg_reference_type type,
                         uint64_t elements, uint64_t step, double* parameter, double* exp_avg, double* exp_avg_sq,
                         double* max_exp_avg_sq) {
  double correction1 = gg_reference_bias_correction(options->beta1, step);
  double correction2 = gg_reference_bias_correction(options->beta2, step);
  for (uint64_t i = 0; i < elements; i++) {
    double g = gg_reference_unscaled(gradient, type, i, options->gradient_scale) * options->coefficient;
    if (options->maximize) g = -g;
    double m = kept(options->beta1, exp_avg[i]) + (1.0 - options->beta1) * g;
    double v = kept(options->beta2, exp_avg_sq[i]) + (1.0 - options->beta2) * g * g;
    double second = v;
    if (max_exp_avg_sq != NULL) {
      if (max_exp_avg_sq[i] > v) second = max_exp_avg_sq[i];
      max_exp_avg_sq[i] = second;
    }
    double m_hat = m / correction1, second_hat = second / correction2;
    double decayed = parameter[i] - options->learning_rate * options->weight_decay * parameter[i];
    parameter[i] = decayed - options->learning_rate * m_hat / (sqrt(second_hat) + options->epsilon);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
  }
}
