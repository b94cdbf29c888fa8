#include "backends/opencl/loader.h"

#include <dlfcn.h>
#include <string.h>

#include "backends/static_program.h"
#include "host/status.h"

#define GG_OPENCL_LIBRARY "libOpenCL.so.1"

/* ISO C has no conversion from an object pointer to a function pointer; POSIX promises that the bytes are the same. */
static bool get(gg_opencl_find find, void* library, const char* name, void* function) {
  void* symbol = find(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

gg_status gg_opencl_load_with(gg_opencl_api* api, gg_opencl_find find, void* library, gg_error* error) {
  memset(api, 0, sizeof *api);
#define GG_CL_REQUIRE(result, name, parameters)                                     \
  if (!get(find, library, #name, &api->name))                                       \
    return gg_fail(error, GG_ERROR_NO_DRIVER, "dlsym",                              \
                   "the OpenCL loader " GG_OPENCL_LIBRARY                           \
                   " lacks %s: it is older than OpenCL 1.2; "                       \
                   "install a current one (Debian and Ubuntu: ocl-icd-libopencl1)", \
                   #name);
  GG_CL_REQUIRED_SYMBOLS(GG_CL_REQUIRE)
#undef GG_CL_REQUIRE
  api->svm = true;
#define GG_CL_TRY(result, name, parameters) api->svm &= get(find, library, #name, &api->name);
  GG_CL_OPTIONAL_SYMBOLS(GG_CL_TRY)
#undef GG_CL_TRY
  return GG_OK;
}

gg_status gg_opencl_load(gg_opencl_api* api, gg_error* error) {
  gg_status status = gg_refuse_static_program("the OpenCL loader " GG_OPENCL_LIBRARY, error);
  if (status != GG_OK) return status;
  void* library = dlopen(GG_OPENCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char* why = dlerror();
    return gg_fail(error, GG_ERROR_NO_DRIVER, "dlopen",
                   "the OpenCL loader " GG_OPENCL_LIBRARY
                   " could not be opened (%s); install an ICD loader (Debian and Ubuntu: ocl-icd-libopencl1) and a "
                   "driver (a GPU vendor's, or pocl-opencl-icd for the CPU)",
                   why != NULL ? why : "no reason given");
  }
  return gg_opencl_load_with(api, dlsym, library, error);
}
