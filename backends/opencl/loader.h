/* OpenCL, opened at run time: no program that uses the library needs it to be there. */
#ifndef GG_BACKENDS_OPENCL_LOADER_H
#define GG_BACKENDS_OPENCL_LOADER_H

#include <stdbool.h>

#include "api/gradguard.h"
#include "backends/opencl/symbols.h"

typedef struct gg_opencl_api {
#define GG_CL_MEMBER(result, name, parameters) result(*name) parameters;
  GG_CL_REQUIRED_SYMBOLS(GG_CL_MEMBER)
  GG_CL_OPTIONAL_SYMBOLS(GG_CL_MEMBER)
#undef GG_CL_MEMBER
  bool svm; /* every optional function is there */
} gg_opencl_api;

/* Finds a symbol of a library, NULL if it has none of that name: dlsym, or a test's own. */
typedef void* (*gg_opencl_find)(void* library, const char* name);

/* Opens the loader library and finds its functions. The library stays open for the life of the process: drivers keep
 * threads and exit handlers, so closing it is not safe. Opening it again costs nothing. GG_ERROR_NO_DRIVER on failure.
 */
gg_status gg_opencl_load(gg_opencl_api* api, gg_error* error);
/* The same in a library that is open. */
gg_status gg_opencl_load_with(gg_opencl_api* api, gg_opencl_find find, void* library, gg_error* error);

#endif
