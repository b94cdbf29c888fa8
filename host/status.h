/* Fills in errors. */
#ifndef GG_HOST_STATUS_H
#define GG_HOST_STATUS_H

#include "api/gradguard.h"

/* Fills `error` (which may be NULL) with a status, the function that failed and a formatted message; returns `status`.
 * Fields of a newer caller's larger gg_error that this build does not know are not changed. */
__attribute__((format(printf, 4, 5))) gg_status gg_fail(gg_error* error, gg_status status, const char* function,
                                                        const char* format, ...);

/* The same for a driver call, with the driver's own code and the name of that code (may be NULL). */
__attribute__((format(printf, 6, 7))) gg_status gg_fail_native(gg_error* error, gg_status status, int64_t code,
                                                               const char* code_name, const char* function,
                                                               const char* format, ...);

#endif
