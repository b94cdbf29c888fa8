/* The policy: from the statistics of a group to what is done with it. Pure functions, no device in sight. gg_decide is
 * in api/gradguard.h. */
#ifndef GG_HOST_POLICY_H
#define GG_HOST_POLICY_H

#include "api/gradguard.h"

/* GG_ERROR_ARGUMENT, naming the field, if an option is out of range. NULL stands for the defaults. */
gg_status gg_check_guard_options(const gg_guard_options* guard, gg_error* error);

/* The norm, the largest magnitude and the kinds of all tensors, from statistics that a device has given; decides
 * nothing. GG_ERROR_DRIVER if they give no norm. */
gg_status gg_merge_measured(const gg_triple* triples, size_t count, gg_decision* merged, gg_error* error);

/* gg_decide for statistics that a device has given and options that have been checked; none may be NULL.
 * GG_ERROR_DRIVER if they give no norm. */
gg_status gg_decide_measured(const gg_triple* triples, size_t count, const gg_adamw_options* options,
                             const gg_guard_options* guard, gg_decision* decision, gg_error* error);

/* What finite gradients of this norm are multiplied by. */
double gg_clip_coefficient(const gg_guard_options* guard, double norm);

/* Whether a gradient with this largest magnitude makes a second moment infinite: GG_KIND_MOMENT. What is kept of the
 * old moment is not known here, so that one that overflows only by adding up over steps is not seen. */
bool gg_overflows_moment(double max_abs, double coefficient, double beta2);

/* What is reported about one tensor. */
void gg_report_tensor(const gg_triple* triple, uint64_t elements, gg_tensor_report* report);

#endif
