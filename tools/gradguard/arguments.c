#include "tools/gradguard/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool gg_parse_number(const char* option, const char* text, double* value, gg_problem* problem) {
  gg_quoted quoted;
  char* end = NULL;
  errno = 0;
  const double number = strtod(text, &end);
  if (text[0] == '\0' || isspace((unsigned char)text[0]) || end == text || *end != '\0') {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s is not a number", option, gg_quote(&quoted, text));
  }
  /* ERANGE with a value other than 0 is a subnormal, which is a number like others. */
  if (!isfinite(number) || (errno == ERANGE && number == 0.0)) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s is out of the range of a finite number", option,
                     gg_quote(&quoted, text));
  }
  *value = number;
  return true;
}

bool gg_parse_form(const char* option, const char* text, gg_form* form, gg_problem* problem) {
  gg_quoted quoted;
  if (strcmp(text, "text") == 0) {
    *form = GG_FORM_TEXT;
  } else if (strcmp(text, "json") == 0) {
    *form = GG_FORM_JSON;
  } else {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s is neither text nor json", option, gg_quote(&quoted, text));
  }
  return true;
}

bool gg_require(const char* option, const char* value, gg_problem* problem) {
  if (value != NULL) return true;
  return gg_refuse(problem, GG_EXIT_INPUT, "the option %s is required", option);
}

bool gg_refuse_rest(int argc, char** argv, int index, gg_problem* problem) {
  if (index >= argc) return true;
  gg_quoted quoted;
  return gg_refuse(problem, GG_EXIT_INPUT, "unexpected argument %s", gg_quote(&quoted, argv[index]));
}
