/* A compiler that accepts everything and gives an image of a few bytes. */
#include <stdio.h>
#include <string.h>

#include "host/status.h"
#include "tests/support/fake_cuda_state.h"

static const char compiled[] = "from the compiler";

#define DECLARE(name, parameters) static gg_nvrtc_result fake_##name parameters;
GG_NVRTC_SYMBOLS(DECLARE)
#undef DECLARE

static gg_nvrtc_result fake_nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

static int architectures(void) {
  int count = 0;
  while (count < 4 && gg_fake_cuda.nvrtc_architectures[count]) count++;
  return count;
}

static gg_nvrtc_result fake_nvrtcGetNumSupportedArchs(int* count) {
  GG_FAKE_BEGIN;
  *count = architectures();
  return 0;
}

static gg_nvrtc_result fake_nvrtcGetSupportedArchs(int* list) {
  GG_FAKE_BEGIN;
  memcpy(list, gg_fake_cuda.nvrtc_architectures, (size_t)architectures() * sizeof *list);
  return 0;
}

static gg_nvrtc_result fake_nvrtcCreateProgram(gg_nvrtc_program* program, const char* source, const char* name,
                                               int headers, const char* const* header_sources,
                                               const char* const* header_names) {
  GG_FAKE_BEGIN;
  if (!source || !name || headers || header_sources || header_names)
    gg_fake_violate("nvrtcCreateProgram", "wrong arguments");
  *program = gg_fake_make(GG_FAKE_PROGRAM, 0);
  return 0;
}

static gg_nvrtc_result fake_nvrtcDestroyProgram(gg_nvrtc_program* program) {
  unsigned code = gg_fake_begin("nvrtcDestroyProgram");
  gg_fake_unmake(GG_FAKE_PROGRAM, *program, "nvrtcDestroyProgram");
  *program = NULL;
  return code;
}

static gg_nvrtc_result fake_nvrtcCompileProgram(gg_nvrtc_program program, int options, const char* const* texts) {
  GG_FAKE_BEGIN;
  if (!gg_fake_find(GG_FAKE_PROGRAM, program)) gg_fake_violate("nvrtcCompileProgram", "no such program");
  gg_fake.options[0] = '\0';
  for (int i = 0; i < options; i++) {
    size_t used = strlen(gg_fake.options);
    snprintf(gg_fake.options + used, sizeof gg_fake.options - used, "%s%s", used ? " " : "", texts[i]);
  }
  return 0;
}

static const char compiler_log[] = "gradguard.cu(1): error: as the compiler puts it";

static gg_nvrtc_result fake_nvrtcGetProgramLogSize(gg_nvrtc_program program, size_t* bytes) {
  (void)program;
  GG_FAKE_BEGIN;
  *bytes = sizeof compiler_log;
  return 0;
}

static gg_nvrtc_result fake_nvrtcGetProgramLog(gg_nvrtc_program program, char* log) {
  (void)program;
  GG_FAKE_BEGIN;
  memcpy(log, compiler_log, sizeof compiler_log);
  return 0;
}

static gg_nvrtc_result fake_nvrtcGetPTXSize(gg_nvrtc_program program, size_t* bytes) {
  (void)program;
  GG_FAKE_BEGIN;
  *bytes = sizeof compiled;
  return 0;
}

static gg_nvrtc_result fake_nvrtcGetPTX(gg_nvrtc_program program, char* image) {
  (void)program;
  GG_FAKE_BEGIN;
  memcpy(image, compiled, sizeof compiled);
  return 0;
}

static gg_nvrtc_result fake_nvrtcGetCUBINSize(gg_nvrtc_program program, size_t* bytes) {
  (void)program;
  GG_FAKE_BEGIN;
  *bytes = sizeof compiled;
  return 0;
}

static gg_nvrtc_result fake_nvrtcGetCUBIN(gg_nvrtc_program program, char* image) {
  (void)program;
  GG_FAKE_BEGIN;
  memcpy(image, compiled, sizeof compiled);
  return 0;
}

static const char* fake_nvrtcGetErrorString(gg_nvrtc_result code) {
  return code == 1 ? "NVRTC_ERROR_OUT_OF_MEMORY" : "NVRTC_ERROR_COMPILATION";
}

gg_status gg_fake_open_nvrtc(gg_nvrtc* nvrtc, int driver_version, gg_error* error) {
  (void)driver_version;
  if (gg_fake_cuda.nvrtc_absent) return gg_fail(error, GG_ERROR_BUILD, "dlopen", "the fake machine has no NVRTC");
#define FILL(name, parameters) .name = fake_##name,
  *nvrtc = (gg_nvrtc){GG_NVRTC_SYMBOLS(FILL).nvrtcGetErrorString = fake_nvrtcGetErrorString};
#undef FILL
  return GG_OK;
}
