/* Reading option values, strictly: a number is the whole text, finite and in range, or it is an error. */
#ifndef GG_TOOL_ARGUMENTS_H
#define GG_TOOL_ARGUMENTS_H

#include "tools/gradguard/problem.h"

/* `option` is the name for messages, such as "--lr". */
bool gg_parse_number(const char* option, const char* text, double* value, gg_problem* problem);

typedef enum gg_form { GG_FORM_TEXT = 0, GG_FORM_JSON = 1 } gg_form;
bool gg_parse_form(const char* option, const char* text, gg_form* form, gg_problem* problem);

/* Refuses a required option that was not given. */
bool gg_require(const char* option, const char* value, gg_problem* problem);

/* Refuses words that belong to no option; `index` is optind after getopt_long. */
bool gg_refuse_rest(int argc, char** argv, int index, gg_problem* problem);

#endif
