/* What a step did. */
#ifndef GG_HOST_REPORT_H
#define GG_HOST_REPORT_H

#include "host/group.h"

/* Begins the report of a step: nothing has been done or measured yet. */
void gg_report_begin(gg_group* group, double gradient_scale);

#endif
