/*
 * The reference formula: a guarded step in FP64, one element at a time. Tests compare the library with it; it is never
 * a fallback. It shares no code with the rest of the library, so that both cannot have the same bug, and needs only a C
 * compiler: cc -c host/reference.c.
 *
 * Only two values are rounded to FP32, as the definition requires: the reciprocal of the loss scale and the unscaled
 * gradient, on which the non-finite check depends. The state stays in FP64 between steps.
 */
#ifndef GG_HOST_REFERENCE_H
#define GG_HOST_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum gg_reference_type { GG_REFERENCE_F32 = 1, GG_REFERENCE_F16 = 2, GG_REFERENCE_BF16 = 3 } gg_reference_type;

/* Statistics of a gradient, or of several that are added one after the other. Initialise with zeros. */
typedef struct gg_reference_statistics {
  double sum, sum_error; /* sum of squares of the finite values is sum + sum_error */
  double max_abs;        /* of the finite values */
  uint64_t nan_count, inf_count, overflow_count;
} gg_reference_statistics;

typedef struct gg_reference_options {
  double learning_rate, beta1, beta2, epsilon, weight_decay;
  double gradient_scale;
  double coefficient; /* of clipping */
  bool maximize;
} gg_reference_options;

/* The value of element `index`. */
double gg_reference_element(const void* gradient, gg_reference_type type, uint64_t index);

/* The same unscaled; infinite where that does not fit in FP32. */
double gg_reference_unscaled(const void* gradient, gg_reference_type type, uint64_t index, double gradient_scale);

/* Adds the unscaled elements of a gradient. */
void gg_reference_measure(gg_reference_statistics* statistics, const void* gradient, gg_reference_type type,
                          uint64_t elements, double gradient_scale);

/* L2 norm of all added elements; +Inf if any is not finite. */
double gg_reference_norm(const gg_reference_statistics* statistics);

/* min(1, max_norm / (norm + epsilon)); 0 if max_norm is 0; otherwise 1 if norm is 0. */
double gg_reference_coefficient(double norm, double max_norm, double epsilon);

/* 1 - beta^step. */
double gg_reference_bias_correction(double beta, uint64_t step);

/* AdamW (Loshchilov and Hutter 2019), or AMSGrad (Reddi et al. 2018) if max_exp_avg_sq is not NULL: step number
 * `step`, from 1, in place. */
void gg_reference_update(const gg_reference_options* options, const void* gradient, gg_reference_type type,
                         uint64_t elements, uint64_t step, double* parameter, double* exp_avg, double* exp_avg_sq,
                         double* max_exp_avg_sq);

#endif
