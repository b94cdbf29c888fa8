/* The policy: from the statistics of a group to a decision. Pure functions that use no device. gg_decide is declared in
 * api/gradguard.h. */
#ifndef GG_HOST_POLICY_H
#define GG_HOST_POLICY_H

#include "api/gradguard.h"

/* GG_ERROR_ARGUMENT, naming the field, if an option is out of range. NULL means the defaults. */
gg_status gg_check_guard_options(const gg_guard_options* guard, gg_error* error);

/* The norm, the largest magnitude and the kinds of all tensors, from statistics that a device has computed; makes no
 * decision. GG_ERROR_DRIVER if they are invalid. */
gg_status gg_merge_measured(const gg_triple* triples, size_t count, gg_decision* merged, gg_error* error);

/* gg_decide for statistics that a device has computed and options that have been checked; no argument may be NULL.
 * GG_ERROR_DRIVER if the statistics are invalid. */
gg_status gg_decide_measured(const gg_triple* triples, size_t count, const gg_adamw_options* options,
                             const gg_guard_options* guard, gg_decision* decision, gg_error* error);

/* The factor for finite gradients of this norm. */
double gg_clip_coefficient(const gg_guard_options* guard, double norm);

/* Whether a gradient with this largest magnitude makes a second moment infinite: GG_KIND_MOMENT. The old moment is not
 * known here, so an overflow that builds up over several steps is not detected. */
bool gg_overflows_moment(double max_abs, double coefficient, double beta2);

/* The report of one tensor. */
void gg_report_tensor(const gg_triple* triple, uint64_t elements, gg_tensor_report* report);

#endif
