/* One step's constants: computed in FP64 and rounded to FP32 once (docs/numerics.md). */
#ifndef GG_HOST_CONSTANTS_H
#define GG_HOST_CONSTANTS_H

#include "api/gradguard.h"
#include "kernels/types.h"

/* GG_ERROR_ARGUMENT, naming the field, if an option is out of range; NULL stands for the defaults. With options that
 * pass, every constant of every step is finite. */
gg_status gg_check_adamw_options(const gg_adamw_options* options, gg_error* error);

/* The loss scale alone, and what gradients are multiplied by. */
gg_status gg_check_gradient_scale(double gradient_scale, gg_error* error);
float gg_inverse_scale(double gradient_scale);

/* Everything but the bias corrections, which are set to 0: they belong to an entry's step. */
void gg_fill_constants(const gg_adamw_options* options, float factor1, float factor2, gg_update_constants* constants);

/* The bias corrections of step `step`, the one that is being taken: 1 to 2^63. */
gg_bias gg_bias_of_step(const gg_adamw_options* options, uint64_t step);

#endif
