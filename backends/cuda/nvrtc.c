#include "backends/cuda/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/status.h"

static bool load_nvrtc(gg_nvrtc* nvrtc, void* library) {
  void* address;
#define GG_NVRTC_LOAD(name, parameters)                                                                         \
  _Static_assert(sizeof nvrtc->name == sizeof address, "a function pointer is as large as what dlsym returns"); \
  address = dlsym(library, #name);                                                                              \
  if (!address) return false;                                                                                   \
  memcpy(&nvrtc->name, &address, sizeof address);
  GG_NVRTC_SYMBOLS(GG_NVRTC_LOAD)
  GG_NVRTC_LOAD(nvrtcGetErrorString, ())
#undef GG_NVRTC_LOAD
  return true;
}

gg_status gg_nvrtc_open(gg_nvrtc* nvrtc, int driver_version, gg_error* error) {
  static const char* const newest_first[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                             "/usr/local/cuda/lib64/libnvrtc.so", NULL};
  /* The driver may not load code from a compiler that is newer than itself. */
  static const char* const for_driver_12[] = {"libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so",
                                              "libnvrtc.so.13", NULL};
  for (const char* const* name = driver_version >= 13000 ? newest_first : for_driver_12; *name; name++) {
    void* library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    if (load_nvrtc(nvrtc, library)) return GG_OK;
    dlclose(library);
  }
  return gg_fail(
      error, GG_ERROR_BUILD, "dlopen",
      "NVRTC, the CUDA run-time compiler, was not found (libnvrtc.so.13, libnvrtc.so.12, libnvrtc.so and "
      "/usr/local/cuda/lib64 were tried). Install the CUDA toolkit or the package nvidia-cuda-nvrtc, put its "
      "folder on LD_LIBRARY_PATH, or use a build with embedded kernels (variant \"cubin\")");
}

static gg_status fail_nvrtc(const gg_nvrtc* nvrtc, gg_nvrtc_result code, const char* function, const char* log,
                            gg_error* error) {
  const char* name = nvrtc->nvrtcGetErrorString(code);
  return gg_fail_native(error, code == 1 ? GG_ERROR_NO_MEMORY : GG_ERROR_BUILD, code, name, function,
                        "compiling the kernels at run time: %s failed with %s%s%s", function, name ? name : "no name",
                        log && *log ? ": " : "", log ? log : "");
}

/* Finds the newest architecture up to `capability` that the compiler knows. */
static gg_status choose_architecture(const gg_nvrtc* nvrtc, int capability, int* architecture, gg_error* error) {
  int count = 0;
  gg_nvrtc_result code = nvrtc->nvrtcGetNumSupportedArchs(&count);
  if (code) return fail_nvrtc(nvrtc, code, "nvrtcGetNumSupportedArchs", NULL, error);
  int* known = calloc(count > 0 ? (size_t)count : 1, sizeof *known);
  if (!known) return gg_fail(error, GG_ERROR_NO_MEMORY, "calloc", "out of host memory while compiling kernels");
  code = nvrtc->nvrtcGetSupportedArchs(known);
  *architecture = 0;
  for (int i = 0; !code && i < count; i++)
    if (known[i] <= capability && known[i] > *architecture) *architecture = known[i];
  free(known);
  if (code) return fail_nvrtc(nvrtc, code, "nvrtcGetSupportedArchs", NULL, error);
  if (!*architecture) {
    int major = 0, minor = 0;
    nvrtc->nvrtcVersion(&major, &minor);
    return gg_fail(error, GG_ERROR_BUILD, "nvrtcGetSupportedArchs",
                   "NVRTC %d.%d no longer compiles for compute capability %d.%d: install an older CUDA toolkit's NVRTC",
                   major, minor, capability / 10, capability % 10);
  }
  return GG_OK;
}

static gg_status compile_program(const gg_nvrtc* nvrtc, gg_nvrtc_program program, const char* target, gg_error* error) {
  /* The same arithmetic as in the embedded images: every operation rounds once, subnormals are not flushed. */
  const char* const options[] = {target,
                                 "--fmad=false",
                                 "--prec-div=true",
                                 "--prec-sqrt=true",
                                 "--ftz=false",
                                 "--std=c++17",
                                 GG_WITH_GUARD ? "-DGG_WITH_GUARD=1" : "-DGG_WITH_GUARD=0"};
  gg_nvrtc_result code = nvrtc->nvrtcCompileProgram(program, (int)(sizeof options / sizeof *options), options);
  if (!code) return GG_OK;
  size_t bytes = 0;
  char* log = NULL;
  if (!nvrtc->nvrtcGetProgramLogSize(program, &bytes) && bytes > 0) log = calloc(bytes + 1, 1);
  if (log && nvrtc->nvrtcGetProgramLog(program, log)) *log = '\0';
  gg_status status = fail_nvrtc(nvrtc, code, "nvrtcCompileProgram", log, error);
  free(log);
  return status;
}

static gg_status take_image(const gg_nvrtc* nvrtc, gg_nvrtc_program program, gg_nvrtc_image* image, gg_error* error) {
  gg_nvrtc_result code =
      image->ptx ? nvrtc->nvrtcGetPTXSize(program, &image->bytes) : nvrtc->nvrtcGetCUBINSize(program, &image->bytes);
  if (code) return fail_nvrtc(nvrtc, code, image->ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", NULL, error);
  image->data = malloc(image->bytes ? image->bytes : 1);
  if (!image->data) return gg_fail(error, GG_ERROR_NO_MEMORY, "malloc", "out of host memory while compiling kernels");
  code = image->ptx ? nvrtc->nvrtcGetPTX(program, image->data) : nvrtc->nvrtcGetCUBIN(program, image->data);
  if (!code) return GG_OK;
  free(image->data);
  image->data = NULL;
  return fail_nvrtc(nvrtc, code, image->ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", NULL, error);
}

gg_status gg_nvrtc_compile(const gg_nvrtc* nvrtc, const char* source, int capability, gg_nvrtc_image* image,
                           gg_error* error) {
  *image = (gg_nvrtc_image){0};
  int architecture = 0;
  gg_status status = choose_architecture(nvrtc, capability, &architecture, error);
  if (status) return status;
  image->ptx = architecture != capability;
  char target[64];
  snprintf(target, sizeof target, "--gpu-architecture=%s_%d", image->ptx ? "compute" : "sm", architecture);

  gg_nvrtc_program program;
  gg_nvrtc_result code = nvrtc->nvrtcCreateProgram(&program, source, "gradguard.cu", 0, NULL, NULL);
  if (code) return fail_nvrtc(nvrtc, code, "nvrtcCreateProgram", NULL, error);
  status = compile_program(nvrtc, program, target, error);
  if (!status) status = take_image(nvrtc, program, image, error);
  nvrtc->nvrtcDestroyProgram(&program);
  return status;
}
