#include "tools/gradguard/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool gg_refuse(gg_problem* problem, gg_exit exit_code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  problem->exit_code = exit_code;
  vsnprintf(problem->text, sizeof problem->text, format, arguments);
  va_end(arguments);
  return false;
}

static gg_exit exit_for(gg_status status) {
  switch (status) {
    case GG_OK:
      return GG_EXIT_OK;
    case GG_ERROR_ARGUMENT:
      return GG_EXIT_INPUT;
    case GG_ERROR_NO_DEVICE:
    case GG_ERROR_NO_DRIVER:
      return GG_EXIT_NO_DEVICE;
    case GG_ERROR_NONFINITE:
      return GG_EXIT_NONFINITE;
    default:
      return GG_EXIT_FAILURE;
  }
}

bool gg_refuse_error(gg_problem* problem, gg_status status, const gg_error* error, const char* doing) {
  const char* message = error != NULL && error->message[0] != '\0' ? error->message : gg_status_name(status);
  if (error != NULL && error->native_name[0] != '\0') {
    return gg_refuse(problem, exit_for(status), "%s: %s (%s)", doing, message, error->native_name);
  }
  return gg_refuse(problem, exit_for(status), "%s: %s", doing, message);
}

/* Bytes that would move the cursor, change colours or hide text: C0, DEL, and C1 in its UTF-8 form. */
static size_t control_length(const unsigned char* at) {
  if (at[0] < 0x20 || at[0] == 0x7f) return 1;
  return at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0 ? 2 : 0;
}

static size_t sequence_length(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

const char* gg_quote(gg_quoted* quoted, const char* name) {
  const size_t room = sizeof quoted->text - 5; /* the closing "...\"" and its NUL */
  size_t used = 0;
  quoted->text[used++] = '"';
  const unsigned char* at = (const unsigned char*)name;
  while (*at != '\0') {
    char piece[16];
    size_t taken = control_length(at);
    size_t made = 0;
    if (taken != 0) {
      made = (size_t)snprintf(piece, sizeof piece, "\\x%02x", at[taken - 1]);
    } else {
      taken = strnlen((const char*)at, sequence_length(*at));
      memcpy(piece, at, taken);
      made = taken;
    }
    if (used + made > room) {
      memcpy(quoted->text + used, "...", 3);
      used += 3;
      break;
    }
    memcpy(quoted->text + used, piece, made);
    used += made;
    at += taken;
  }
  quoted->text[used++] = '"';
  quoted->text[used] = '\0';
  return quoted->text;
}
