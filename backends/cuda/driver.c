#include "backends/cuda/driver.h"

#include <dlfcn.h>
#include <string.h>

#include "backends/static_program.h"
#include "host/status.h"

gg_status gg_cuda_driver_load(gg_cuda_driver* driver, gg_cuda_find find, void* library, gg_error* error) {
  void* address;
/* ISO C has no conversion from an object pointer to a function pointer; POSIX gives both the same representation. */
#define GG_CUDA_LOAD(plain, name, parameters)                                                                       \
  _Static_assert(sizeof driver->name == sizeof address, "a function pointer is as large as what dlsym returns");    \
  address = find(library, #name);                                                                                   \
  if (!address)                                                                                                     \
    return gg_fail(error, GG_ERROR_NO_DRIVER, "dlsym",                                                              \
                   "the CUDA driver has no function " #name ": it is too old; install NVIDIA driver 470 or newer"); \
  memcpy(&driver->name, &address, sizeof address);
  GG_CUDA_SYMBOLS(GG_CUDA_LOAD)
#undef GG_CUDA_LOAD
  return GG_OK;
}

gg_status gg_cuda_driver_open(gg_cuda_driver* driver, gg_error* error) {
  gg_status status = gg_refuse_static_program("the CUDA driver libcuda.so.1", error);
  if (status != GG_OK) return status;
  /* Not libcuda.so: that name belongs to the toolkit, whose stub answers every call with an error. The library is
   * never closed: it starts threads and registers exit handlers. */
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    return gg_fail(error, GG_ERROR_NO_DRIVER, "dlopen",
                   "the CUDA driver library cannot be opened: %s. Install the NVIDIA driver; in a container, start it "
                   "with access to the GPU (docker run --gpus all)",
                   reason ? reason : "libcuda.so.1: unknown reason");
  }
  return gg_cuda_driver_load(driver, dlsym, library, error);
}
