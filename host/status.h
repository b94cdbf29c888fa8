/* How functions of the library fail. */
#ifndef GG_HOST_STATUS_H
#define GG_HOST_STATUS_H

#include "api/gradguard.h"

/* Fills `error` (which may be NULL) with a status, the function that failed and a formatted message; returns `status`.
 * A newer caller's larger gg_error is left alone beyond what this build knows. */
__attribute__((format(printf, 4, 5))) gg_status gg_fail(gg_error* error, gg_status status, const char* function,
                                                        const char* format, ...);

/* The same for a driver call, with the driver's own code and the name of that code (may be NULL). */
__attribute__((format(printf, 6, 7))) gg_status gg_fail_native(gg_error* error, gg_status status, int64_t code,
                                                               const char* code_name, const char* function,
                                                               const char* format, ...);

#endif
