/* The options of `gradguard step`. */
#ifndef GG_TOOL_STEP_ARGUMENTS_H
#define GG_TOOL_STEP_ARGUMENTS_H

#include "tools/gradguard/arguments.h"

typedef struct gg_step_arguments {
  const char* parameters;
  const char* gradients;
  const char* state;
  const char* out_parameters;
  const char* out_state;
  const char* device;
  const char* kernel;
  gg_adamw_options adamw;
  gg_guard_options guard;
  bool amsgrad;
  bool in_place;
  bool help;
  gg_form form;
} gg_step_arguments;

/* False with a text in `problem`, or with an empty one where getopt has said it already. */
bool gg_step_arguments_read(int argc, char** argv, gg_step_arguments* arguments, gg_problem* problem);

extern const char gg_step_help[];

#endif
