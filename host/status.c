#include "host/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void copy_text(char* to, size_t capacity, const char* from) {
  snprintf(to, capacity, "%s", from != NULL ? from : "");
}

__attribute__((format(printf, 6, 0))) static gg_status fill(gg_error* error, gg_status status, int64_t code,
                                                            const char* code_name, const char* function,
                                                            const char* format, va_list arguments) {
  if (error == NULL || error->size < sizeof *error) return status;
  error->status = status;
  error->native_code = code;
  copy_text(error->native_name, sizeof error->native_name, code_name);
  copy_text(error->function, sizeof error->function, function);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  return status;
}

gg_status gg_fail(gg_error* error, gg_status status, const char* function, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill(error, status, 0, NULL, function, format, arguments);
  va_end(arguments);
  return status;
}

gg_status gg_fail_native(gg_error* error, gg_status status, int64_t code, const char* code_name, const char* function,
                         const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill(error, status, code, code_name, function, format, arguments);
  va_end(arguments);
  return status;
}

const char* gg_status_name(gg_status status) {
  switch (status) {
    case GG_OK:
      return "GG_OK";
    case GG_ERROR_ARGUMENT:
      return "GG_ERROR_ARGUMENT";
    case GG_ERROR_NO_MEMORY:
      return "GG_ERROR_NO_MEMORY";
    case GG_ERROR_UNSUPPORTED:
      return "GG_ERROR_UNSUPPORTED";
    case GG_ERROR_NO_DEVICE:
      return "GG_ERROR_NO_DEVICE";
    case GG_ERROR_NO_DRIVER:
      return "GG_ERROR_NO_DRIVER";
    case GG_ERROR_DRIVER:
      return "GG_ERROR_DRIVER";
    case GG_ERROR_BUILD:
      return "GG_ERROR_BUILD";
    case GG_ERROR_DEVICE_LOST:
      return "GG_ERROR_DEVICE_LOST";
    case GG_ERROR_STATE:
      return "GG_ERROR_STATE";
    case GG_ERROR_NONFINITE:
      return "GG_ERROR_NONFINITE";
  }
  return "unknown status";
}
