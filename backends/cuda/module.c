/* Loads the kernels in one of three variants, which all give the same bits. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/device.h"
#include "host/status.h"

#define GG_JIT_LOG_BYTES 4096

/* Loads machine code or PTX; `what` says which. For PTX the driver's compiler may give a log. */
static gg_status load_image(gg_cuda_device* cuda, const void* image, const char* what, gg_error* error) {
  char* log = calloc(1, GG_JIT_LOG_BYTES);
  if (!log) return gg_fail(error, GG_ERROR_NO_MEMORY, "calloc", "out of host memory while loading kernels");
  gg_cu_enum options[] = {GG_CU_JIT_ERROR_LOG_BUFFER, GG_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, (void*)(uintptr_t)GG_JIT_LOG_BYTES};
  gg_cu_result code = cuda->driver.cuModuleLoadDataEx(&cuda->module, image, 2, options, values);
  log[GG_JIT_LOG_BYTES - 1] = '\0';
  gg_status status = gg_cuda_check(cuda, error, code, "cuModuleLoadDataEx",
                                   "loading %s for compute capability %d.%d on driver CUDA %d.%d%s%.300s", what,
                                   cuda->capability / 10, cuda->capability % 10, cuda->driver_version / 1000,
                                   cuda->driver_version % 1000 / 10, *log ? ": " : "", log);
  if (status) cuda->module = NULL;
  free(log);
  return status;
}

static gg_status load_cubin(gg_cuda_device* cuda, const gg_cuda_platform* platform, gg_error* error) {
  if (platform->fatbin) return load_image(cuda, platform->fatbin, "the embedded machine code", error);
  return gg_fail(
      error, GG_ERROR_UNSUPPORTED, "gg_cuda_open",
      "kernel variant \"cubin\": this build has no embedded machine code, because nvcc was missing when it was "
      "made; build it with the CUDA toolkit or use variant \"nvrtc\"");
}

static gg_status load_ptx(gg_cuda_device* cuda, const gg_cuda_platform* platform, gg_error* error) {
  if (platform->ptx) return load_image(cuda, platform->ptx, "the embedded PTX", error);
  return gg_fail(
      error, GG_ERROR_UNSUPPORTED, "gg_cuda_open",
      "kernel variant \"ptx\": this build has no embedded PTX, because nvcc was missing when it was made; build it "
      "with the CUDA toolkit or use variant \"nvrtc\"");
}

static gg_status load_nvrtc(gg_cuda_device* cuda, const gg_cuda_platform* platform, gg_error* error) {
  gg_nvrtc nvrtc;
  gg_nvrtc_image image;
  gg_status status = platform->open_nvrtc(&nvrtc, cuda->driver_version, error);
  if (!status) status = gg_nvrtc_compile(&nvrtc, platform->source, cuda->capability, &image, error);
  if (status) return status;
  status = load_image(cuda, image.data, image.ptx ? "PTX made by NVRTC" : "machine code made by NVRTC", error);
  free(image.data);
  return status;
}

/* Best first: no compilation, then compilation by the driver. */
static const struct {
  const char* name;
  gg_status (*load)(gg_cuda_device* cuda, const gg_cuda_platform* platform, gg_error* error);
} variants[] = {{"cubin", load_cubin}, {"ptx", load_ptx}, {"nvrtc", load_nvrtc}};
#define GG_CUDA_VARIANTS (sizeof variants / sizeof *variants)

static gg_status load_named(gg_cuda_device* cuda, const gg_cuda_platform* platform, const char* name, gg_error* error) {
  for (size_t i = 0; i < GG_CUDA_VARIANTS; i++) {
    if (strcmp(variants[i].name, name) != 0) continue;
    cuda->device.kernel = variants[i].name;
    return variants[i].load(cuda, platform, error);
  }
  return gg_fail(error, GG_ERROR_ARGUMENT, "gg_cuda_open",
                 "\"%s\" is no kernel variant of cuda: expected \"cubin\", \"ptx\" or \"nvrtc\"", name);
}

/* If a variant cannot be built here, the next is tried; not after out of memory or a fault. */
static gg_status load_best(gg_cuda_device* cuda, const gg_cuda_platform* platform, const gg_open_request* request,
                           gg_error* error) {
  char reasons[1024] = "";
  for (size_t i = 0; i < GG_CUDA_VARIANTS; i++) {
    gg_error refusal = GG_ERROR_INIT;
    cuda->device.kernel = variants[i].name;
    gg_status status = variants[i].load(cuda, platform, &refusal);
    if (!status) return GG_OK;
    if (status != GG_ERROR_BUILD && status != GG_ERROR_UNSUPPORTED)
      return gg_fail_native(error, status, refusal.native_code, refusal.native_name, refusal.function, "%s",
                            refusal.message);
    if (request->log) {
      char line[1200];
      snprintf(line, sizeof line, "cuda: kernel variant %s is not usable: %s", variants[i].name, refusal.message);
      request->log(request->log_user, status == GG_ERROR_UNSUPPORTED ? 0 : 1, line);
    }
    size_t used = strlen(reasons);
    snprintf(reasons + used, sizeof reasons - used, "%s%s: %.280s", used ? "; " : "", variants[i].name,
             refusal.message);
  }
  return gg_fail(error, GG_ERROR_BUILD, "gg_cuda_open", "no kernel variant works on %s. %s", cuda->device.info.id,
                 reasons);
}

gg_status gg_cuda_load_kernels(gg_cuda_device* cuda, const gg_cuda_platform* platform, const gg_open_request* request,
                               gg_error* error) {
  gg_status status =
      request->kernel ? load_named(cuda, platform, request->kernel, error) : load_best(cuda, platform, request, error);
  const struct {
    const char* name;
    gg_cu_function* function;
  } kernels[] = {
#if GG_WITH_GUARD
    {"gg_reduce", &cuda->reduce},
    {"gg_finalize", &cuda->finalize},
#endif
    {"gg_update", &cuda->update},
    {"gg_unfused_clip", &cuda->unfused_clip}
  };
  for (size_t i = 0; !status && i < sizeof kernels / sizeof *kernels; i++)
    status = GG_CUDA_TRY(cuda, error, cuModuleGetFunction, (kernels[i].function, cuda->module, kernels[i].name),
                         "looking for kernel %s in the image of variant %s", kernels[i].name, cuda->device.kernel);
  return status;
}
