/* NVIDIA's run-time compiler, opened if it is installed: compiles the embedded source for the device in use. */
#ifndef GG_BACKENDS_CUDA_NVRTC_H
#define GG_BACKENDS_CUDA_NVRTC_H

#include <stddef.h>

#include "api/gradguard.h"

typedef unsigned int gg_nvrtc_result;
typedef struct _nvrtcProgram* gg_nvrtc_program;

/* X(name, parameters) for every function that returns an nvrtcResult; compared with <nvrtc.h> in a test. */
#define GG_NVRTC_SYMBOLS(X)                                                                             \
  X(nvrtcVersion, (int* major, int* minor))                                                             \
  X(nvrtcGetNumSupportedArchs, (int* count))                                                            \
  X(nvrtcGetSupportedArchs, (int* architectures))                                                       \
  X(nvrtcCreateProgram, (gg_nvrtc_program * program, const char* source, const char* name, int headers, \
                         const char* const* header_sources, const char* const* header_names))           \
  X(nvrtcDestroyProgram, (gg_nvrtc_program * program))                                                  \
  X(nvrtcCompileProgram, (gg_nvrtc_program program, int options, const char* const* option_texts))      \
  X(nvrtcGetProgramLogSize, (gg_nvrtc_program program, size_t * bytes))                                 \
  X(nvrtcGetProgramLog, (gg_nvrtc_program program, char* log))                                          \
  X(nvrtcGetPTXSize, (gg_nvrtc_program program, size_t * bytes))                                        \
  X(nvrtcGetPTX, (gg_nvrtc_program program, char* ptx))                                                 \
  X(nvrtcGetCUBINSize, (gg_nvrtc_program program, size_t * bytes))                                      \
  X(nvrtcGetCUBIN, (gg_nvrtc_program program, char* cubin))

#define GG_NVRTC_MEMBER(name, parameters) gg_nvrtc_result(*name) parameters;
typedef struct gg_nvrtc {
  GG_NVRTC_SYMBOLS(GG_NVRTC_MEMBER)
  const char* (*nvrtcGetErrorString)(gg_nvrtc_result code);
} gg_nvrtc;
#undef GG_NVRTC_MEMBER

/* Opens the library that best matches a driver of `driver_version` (as cuDriverGetVersion returns it); it is never
 * closed. GG_ERROR_BUILD, with the way to fix it, if there is none. */
gg_status gg_nvrtc_open(gg_nvrtc* nvrtc, int driver_version, gg_error* error);

/* The compiler's output: machine code, or PTX if it does not know the architecture yet. Freed with free(). */
typedef struct gg_nvrtc_image {
  char* data;
  size_t bytes;
  bool ptx;
} gg_nvrtc_image;

/* Compiles `source` for compute capability `capability` (90 for 9.0). A failure's message has the compiler's log. */
gg_status gg_nvrtc_compile(const gg_nvrtc* nvrtc, const char* source, int capability, gg_nvrtc_image* image,
                           gg_error* error);

#endif
