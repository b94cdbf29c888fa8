/* What the plain and the guarded step have in common. */
#ifndef GG_HOST_STEP_H
#define GG_HOST_STEP_H

#include "host/group.h"

/* Everything that can be checked before a step, and *pending = NULL. NULL options are replaced by the defaults. */
gg_status gg_step_check(gg_group* group, const gg_adamw_options** options, gg_pending** pending, const char* function);

/* True if there is nothing to do: a requested skip or an empty group. The report is then filled in and the step
 * pending. */
bool gg_step_is_idle(gg_group* group, const gg_adamw_options* options, gg_pending** pending);

/* Ends a step that changes nothing, for `reason`. */
void gg_step_skip(gg_group* group, gg_reason reason, gg_pending** pending);

/* Queues the update with the clip coefficient as two factors. The group is prepared. */
gg_status gg_step_submit(gg_group* group, const gg_adamw_options* options, float factor1, float factor2,
                         gg_pending** pending);

#endif
