/* The files that a step writes. */
#ifndef GG_TOOL_STEP_OUTPUT_H
#define GG_TOOL_STEP_OUTPUT_H

#include "tools/gradguard/checkpoint.h"
#include "tools/gradguard/output.h"

/* Writes parameters (outputs->files[0]) and state (outputs->files[1]) aside, with the group's current values. */
bool gg_step_write(gg_outputs* outputs, gg_context* context, const gg_group* group, const gg_checkpoint* checkpoint,
                   bool amsgrad, gg_problem* problem);

#endif
