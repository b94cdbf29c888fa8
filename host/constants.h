/* The constants of a step: computed in FP64 and rounded once to FP32 (docs/numerics.md). */
#ifndef GG_HOST_CONSTANTS_H
#define GG_HOST_CONSTANTS_H

#include "api/gradguard.h"
#include "kernels/types.h"

/* GG_ERROR_ARGUMENT, naming the field, if an option is out of range; NULL means the defaults. With valid options every
 * constant of every step is finite. */
gg_status gg_check_adamw_options(const gg_adamw_options* options, gg_error* error);

/* Checks the loss scale only; and the factor that gradients are multiplied by. */
gg_status gg_check_gradient_scale(double gradient_scale, gg_error* error);
float gg_inverse_scale(double gradient_scale);

/* Everything except the bias corrections, which depend on an entry's step and are set to 0. */
void gg_fill_constants(const gg_adamw_options* options, float factor1, float factor2, gg_update_constants* constants);

/* The bias corrections for step number `step`, the current one: 1 to 2^63. */
gg_bias gg_bias_of_step(const gg_adamw_options* options, uint64_t step);

#endif
