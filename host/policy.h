/* The policy: from the statistics of a group to what is done with it. Pure functions, no device in sight. gg_decide is
 * in api/gradguard.h. */
#ifndef GG_HOST_POLICY_H
#define GG_HOST_POLICY_H

#include "api/gradguard.h"

/* GG_ERROR_ARGUMENT, naming the field, if an option is out of range. NULL stands for the defaults. */
gg_status gg_check_guard_options(const gg_guard_options* guard, gg_error* error);

/* gg_decide for statistics that a device has given and options that have been checked; none may be NULL.
 * GG_ERROR_DRIVER if they give no norm. */
gg_status gg_decide_measured(const gg_triple* triples, size_t count, const gg_guard_options* guard,
                             gg_decision* decision, gg_error* error);

/* What is reported about one tensor. */
void gg_report_tensor(const gg_triple* triple, uint64_t elements, gg_tensor_report* report);

#endif
