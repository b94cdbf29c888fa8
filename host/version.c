#include "api/gradguard.h"

#define GG_TEXT_OF(x)   #x
#define GG_TEXT(x)      GG_TEXT_OF(x)
#define GG_VERSION_TEXT GG_TEXT(GG_VERSION_MAJOR) "." GG_TEXT(GG_VERSION_MINOR) "." GG_TEXT(GG_VERSION_PATCH)

#ifdef GG_BACKEND_CUDA
#define GG_TEXT_CUDA " cuda"
#else
#define GG_TEXT_CUDA ""
#endif
#ifdef GG_BACKEND_OPENCL
#define GG_TEXT_OPENCL " opencl"
#else
#define GG_TEXT_OPENCL ""
#endif
#ifdef GG_BACKEND_CPU
#define GG_TEXT_CPU " cpu"
#else
#define GG_TEXT_CPU ""
#endif
#if defined(GG_BACKEND_CUDA) || defined(GG_BACKEND_OPENCL) || defined(GG_BACKEND_CPU)
#define GG_TEXT_BACKENDS GG_TEXT_CUDA GG_TEXT_OPENCL GG_TEXT_CPU
#else
#define GG_TEXT_BACKENDS " none"
#endif
#if GG_WITH_GUARD
#define GG_TEXT_GUARD "with the guard"
#else
#define GG_TEXT_GUARD "without the guard"
#endif

uint32_t gg_version(void) { return GG_VERSION_MAJOR * 10000 + GG_VERSION_MINOR * 100 + GG_VERSION_PATCH; }

const char* gg_version_string(void) { return GG_VERSION_TEXT; }

const char* gg_build_description(void) {
  return "gradguard " GG_VERSION_TEXT ", " GG_TEXT_GUARD ", backends:" GG_TEXT_BACKENDS
#ifdef __clang__
         ", built with clang " __clang_version__;
#else
         ", built with gcc " __VERSION__;
#endif
}
