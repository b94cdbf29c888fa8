/* What a step did. */
#ifndef GG_HOST_REPORT_H
#define GG_HOST_REPORT_H

#include "host/group.h"

/* Initialises the report of a step: nothing has been done or measured yet. */
void gg_report_begin(gg_group* group, double gradient_scale);

/* Fills in the report of each tensor. Only on request: with many tensors the square roots take as long as a step. */
void gg_report_per_tensor(gg_group* group);

#if GG_WITH_GUARD
/* Marks the tensors of a measured step whose second moment would become infinite with this clip coefficient. */
void gg_report_moments(gg_group* group, double coefficient, double beta2);
#endif

#endif
