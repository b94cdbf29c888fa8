/* What the tool says when it cannot go on: an exit code and one message for stderr. */
#ifndef GG_TOOL_PROBLEM_H
#define GG_TOOL_PROBLEM_H

#include <stdbool.h>

#include "api/gradguard.h"

/* The exit codes of the tool; docs/gradguard.1 promises them. */
typedef enum gg_exit {
  GG_EXIT_OK = 0,
  GG_EXIT_FAILURE = 1, /* anything without a code of its own */
  GG_EXIT_INPUT = 2,   /* bad arguments or a bad input file */
  GG_EXIT_SKIPPED = 3,
  GG_EXIT_NONFINITE = 4,
  GG_EXIT_NO_DEVICE = 5
} gg_exit;

typedef struct gg_problem {
  gg_exit exit_code;
  char text[16384]; /* room for three paths: what is wrong comes after them */
} gg_problem;

/* Fills `problem`. Always false, so that a check can end in `return gg_refuse(...)`. */
__attribute__((format(printf, 3, 4))) bool gg_refuse(gg_problem* problem, gg_exit exit_code, const char* format, ...);

/* The same from an error of the library; `doing` says what the tool was about. */
bool gg_refuse_error(gg_problem* problem, gg_status status, const gg_error* error, const char* doing);

/* A name from a file, in quotes and safe for a terminal: control characters are escaped, long names are shortened. */
typedef struct gg_quoted {
  char text[200];
} gg_quoted;
const char* gg_quote(gg_quoted* quoted, const char* name);

#endif
