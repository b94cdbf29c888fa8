/* Drivers are opened at run time, which a statically linked program cannot do. */
#ifndef GG_BACKENDS_STATIC_PROGRAM_H
#define GG_BACKENDS_STATIC_PROGRAM_H

#include "api/gradguard.h"

/* GG_ERROR_NO_DRIVER in a program that was linked with -static or -static-pie, GG_OK in any other. `library` is what
 * the caller is about to open. */
gg_status gg_refuse_static_program(const char* library, gg_error* error);

#endif
