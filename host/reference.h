/*
 * The reference formula: what a guarded step means, in FP64, one element after the other. It judges the library in
 * tests and is never a fallback. It shares nothing with the rest, so that a mistake there cannot be a mistake here, and
 * needs only a C compiler: cc -c host/reference.c.
 *
 * Rounded to FP32 are only the two things that the contract puts there: the reciprocal of the loss scale and the
 * unscaled gradient, on which the non-finite check depends. The state is FP64 from step to step.
 */
#ifndef GG_HOST_REFERENCE_H
#define GG_HOST_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum gg_reference_type { GG_REFERENCE_F32 = 1, GG_REFERENCE_F16 = 2, GG_REFERENCE_BF16 = 3 } gg_reference_type;

/* Of a gradient or, added one after the other, of a group of them. Starts as all zeros. */
typedef struct gg_reference_statistics {
  double sum, sum_error; /* of the finite values' squares: the sum is both together */
  double max_abs;        /* of the finite values */
  uint64_t nan_count, inf_count, overflow_count;
} gg_reference_statistics;

typedef struct gg_reference_options {
  double learning_rate, beta1, beta2, epsilon, weight_decay;
  double gradient_scale;
  double coefficient; /* of clipping */
  bool maximize;
} gg_reference_options;

/* Element `index` as a number. */
double gg_reference_element(const void* gradient, gg_reference_type type, uint64_t index);

/* The same unscaled; infinite where that does not fit in FP32. */
double gg_reference_unscaled(const void* gradient, gg_reference_type type, uint64_t index, double gradient_scale);

/* Adds the unscaled elements of a gradient. */
void gg_reference_measure(gg_reference_statistics* statistics, const void* gradient, gg_reference_type type,
                          uint64_t elements, double gradient_scale);

/* L2 norm of what was added; +Inf if any of it was not finite. */
double gg_reference_norm(const gg_reference_statistics* statistics);

/* min(1, max_norm / (norm + epsilon)); 0 if max_norm is 0, else 1 if the norm is. */
double gg_reference_coefficient(double norm, double max_norm, double epsilon);

/* 1 - beta^step. */
double gg_reference_bias_correction(double beta, uint64_t step);

/* AdamW (Loshchilov and Hutter 2019), or AMSGrad (Reddi et al. 2018) if max_exp_avg_sq is not NULL: step number
 * `step`, from 1, in place. */
void gg_reference_update(const gg_reference_options* options, const void* gradient, gg_reference_type type,
                         uint64_t elements, uint64_t step, double* parameter, double* exp_avg, double* exp_avg_sq,
                         double* max_exp_avg_sq);

#endif
