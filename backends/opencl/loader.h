/* OpenCL, opened at run time: programs that use the library also run without it. */
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
  bool svm; /* every optional function exists */
} gg_opencl_api;

/* Finds a symbol of a library, NULL if it does not exist: dlsym, or a replacement in tests. */
typedef void* (*gg_opencl_find)(void* library, const char* name);

/* Opens the loader library and finds its functions. The library stays open until the process ends: drivers have threads
 * and exit handlers, so closing it is not safe. Loading it again is cheap. GG_ERROR_NO_DRIVER on failure. */
gg_status gg_opencl_load(gg_opencl_api* api, gg_error* error);
/* The same with a library that is already open. */
gg_status gg_opencl_load_with(gg_opencl_api* api, gg_opencl_find find, void* library, gg_error* error);

#endif
