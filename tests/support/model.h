/*
 * The scalar model: docs/numerics.md written out once more, plainly, for tests to compare bits with. It shares nothing
 * with kernels/ or the backends: its own conversions, its own tree, fmaf and sqrtf of the C library.
 */
#ifndef GG_TESTS_SUPPORT_MODEL_H
#define GG_TESTS_SUPPORT_MODEL_H

#include "api/gradguard.h"

/* The value of element `index` of a gradient, and conversions one at a time. */
float gg_model_element(const void* values, gg_dtype dtype, uint64_t index);
float gg_model_from_half(uint16_t bits);
float gg_model_from_bfloat(uint16_t bits);
uint16_t gg_model_to_half(float value);
uint16_t gg_model_to_bfloat(float value);

/* Loss scale -> what the gradient is multiplied by. */
float gg_model_inverse(double gradient_scale);

/* Reduction blocks of a tensor. */
uint64_t gg_model_blocks(uint64_t elements);

/* The statistics of one tensor. */
gg_triple gg_model_reduce(const void* gradient, gg_dtype dtype, uint64_t elements, float inverse);

/* The triple as numbers: norm of the finite values, without overflow. */
double gg_model_norm(gg_triple triple);

/* What a step multiplies by, rounded once from FP64 or wider. */
typedef struct gg_model_constants {
  float inverse, factor1, factor2;
  float decay, beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon;
  float step_size, inverse_bias_correction2_sqrt;
  bool maximize;
} gg_model_constants;

/* `step`: the number of the step that is taken, from 1. */
gg_model_constants gg_model_constants_of(const gg_adamw_options* options, float factor1, float factor2, uint64_t step);

/* Updates parameter, exp_avg, exp_avg_sq and, unless it is NULL, the maximum, in place. */
void gg_model_update(const gg_model_constants* constants, const void* gradient, gg_dtype dtype, uint64_t elements,
                     float* parameter, float* exp_avg, float* exp_avg_sq, float* max_exp_avg_sq);

/* The 16-bit copy of a parameter. */
void gg_model_copy(const float* parameter, gg_dtype dtype, uint64_t elements, uint16_t* copy);

#endif
