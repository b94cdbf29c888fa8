/* What the CUDA backend takes from NVIDIA without its headers: the driver's and NVRTC's functions and constants,
 * compared with <cuda.h> and <nvrtc.h> where the toolkit is there; and the kernel images that the build has put into
 * the library. No GPU is needed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"

#ifndef GG_BACKEND_CUDA

Test(cuda_symbols, this_build_has_no_cuda_backend, .timeout = 10) { cr_skip("built without backends=cuda"); }

#else

#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>)
#include <cuda.h>
#include <nvrtc.h>
#endif

#include "backends/cuda/driver.h"
#include "backends/cuda/nvrtc.h"
#include "kernels/embedded.h"

/* ---- Names ---- */

/* Older headers lack some of the errors. */
#if defined CUDA_VERSION && CUDA_VERSION >= 13000

#define TEXT(x)     #x
#define EXPANDED(x) TEXT(x)

#define SAME_FUNCTION(plain, name, parameters)                                                       \
  {                                                                                                  \
    typedef gg_cu_result(*ours) parameters;                                                          \
    if (strcmp(EXPANDED(plain), #name) != 0)                                                         \
      gg_test_fail("<cuda.h> means %s by %s, the backend calls %s", EXPANDED(plain), #plain, #name); \
    if (!__builtin_types_compatible_p(ours, __typeof__(&name)))                                      \
      gg_test_fail("%s is declared otherwise in <cuda.h>", #name);                                   \
  }

Test(cuda_symbols, functions_are_those_of_the_vendor_header, .timeout = 10){GG_CUDA_SYMBOLS(SAME_FUNCTION)}

#define SAME_VALUE(name, value) \
  if ((long long)name != (long long)(value)) gg_test_fail("%s is %lld", #name, (long long)name);

Test(cuda_symbols, constants_are_those_of_the_vendor_header, .timeout = 10) {
  GG_CUDA_CONSTANTS(SAME_VALUE)
  GG_CHECK(sizeof(gg_cu_result) == sizeof(CUresult) && sizeof(gg_cu_enum) == sizeof(CUpointer_attribute));
  GG_CHECK(sizeof(gg_cu_pointer) == sizeof(CUdeviceptr) && sizeof(gg_cu_device) == sizeof(CUdevice));
}

#define SAME_NVRTC_FUNCTION(name, parameters)                       \
  {                                                                 \
    typedef gg_nvrtc_result(*ours) parameters;                      \
    if (!__builtin_types_compatible_p(ours, __typeof__(&name)))     \
      gg_test_fail("%s is declared otherwise in <nvrtc.h>", #name); \
  }

Test(cuda_symbols, compiler_functions_are_those_of_the_vendor_header, .timeout = 10) {
  GG_NVRTC_SYMBOLS(SAME_NVRTC_FUNCTION)
  const char* (*text)(gg_nvrtc_result) = NULL;
  GG_CHECK(__builtin_types_compatible_p(__typeof__(text), __typeof__(&nvrtcGetErrorString)));
  GG_CHECK(NVRTC_ERROR_OUT_OF_MEMORY == 1);
}

#else

Test(cuda_symbols, functions_are_those_of_the_vendor_header, .timeout = 10) {
  cr_skip("no <cuda.h> of CUDA 13 or newer here");
}

#endif

static const char* absent_symbol;

static void* find_all_but_one(void* library, const char* name) {
  return strcmp(name, absent_symbol) == 0 ? NULL : library;
}

/* The driver is asked for the versioned names only. */
Test(cuda_symbols, a_driver_without_one_function_is_too_old, .timeout = 10) {
  gg_cuda_driver driver;
  int object = 0;
#define WITHOUT(plain, name, parameters)                                                             \
  {                                                                                                  \
    gg_error error = GG_ERROR_INIT;                                                                  \
    absent_symbol = #name;                                                                           \
    GG_CHECK(gg_cuda_driver_load(&driver, find_all_but_one, &object, &error) == GG_ERROR_NO_DRIVER); \
    gg_test_mentions(error.message, #name);                                                          \
    gg_test_mentions(error.message, "install NVIDIA driver");                                        \
    if (strcmp(#plain, #name) != 0) {                                                                \
      absent_symbol = #plain;                                                                        \
      GG_CHECK(gg_cuda_driver_load(&driver, find_all_but_one, &object, &error) == GG_OK);            \
    }                                                                                                \
  }
  GG_CUDA_SYMBOLS(WITHOUT)
#undef WITHOUT
}

/* ---- Images ---- */

static const char* const kernels[] = {"gg_reduce", "gg_finalize", "gg_update", "gg_unfused_clip"};
#define KERNELS      (sizeof kernels / sizeof *kernels)

/* What the build was told to compile for; the default is that of site_scons/kernel_images.py. GG_TEST_GENCODE says
 * otherwise, as gencode= did. */
static size_t expected_architectures(unsigned numbers[16]) {
  const char* text = getenv("GG_TEST_GENCODE");
  if (!text || !*text) text = "75,80,86,89,90,100,120";
  size_t count = 0;
  while (*text && count < 16) {
    char* end = NULL;
    numbers[count++] = (unsigned)strtoul(text, &end, 10);
    text = *end == ',' ? end + 1 : end + strlen(end);
  }
  return count;
}

/* A fatbin as nvcc writes it, little-endian. It begins with 16 bytes: magic, version, bytes of this header, and the
 * bytes of all entries (64 bits). Every entry has a header of its own and a payload behind it. */
#define FATBIN_MAGIC 0xba55ed50u
enum { PTX_ENTRY = 1, MACHINE_CODE_ENTRY = 2 };
typedef struct fatbin_entry {
  uint16_t kind;
  uint16_t version;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint32_t compressed_bytes; /* 0: as it is */
  uint32_t options_offset;
  uint16_t minor, major;
  uint32_t architecture; /* 90 is sm_90 or compute_90 */
} fatbin_entry;

static bool contains(const unsigned char* bytes, uint64_t count, const char* text) {
  return memmem(bytes, count, text, strlen(text)) != NULL;
}

static void check_machine_code(const fatbin_entry* entry, const unsigned char* payload) {
  if (entry->compressed_bytes) return;
  gg_test_case("machine code for sm_%u", entry->architecture);
  GG_CHECK(entry->payload_bytes > 4 && memcmp(payload, "\177ELF", 4) == 0);
  for (size_t k = 0; k < KERNELS; k++) GG_CHECK(contains(payload, entry->payload_bytes, kernels[k]));
}

Test(cuda_symbols, machine_code_is_there_for_every_architecture, .timeout = 10) {
  if (gg_kernel_fatbin_bytes == 0) cr_skip("built without nvcc: there is no machine code");
  uint32_t magic;
  uint16_t header_bytes;
  uint64_t bytes;
  GG_CHECK((uintptr_t)gg_kernel_fatbin % 8 == 0 && gg_kernel_fatbin_bytes > 16);
  memcpy(&magic, gg_kernel_fatbin, sizeof magic);
  memcpy(&header_bytes, gg_kernel_fatbin + 6, sizeof header_bytes);
  memcpy(&bytes, gg_kernel_fatbin + 8, sizeof bytes);
  GG_CHECK(magic == FATBIN_MAGIC && header_bytes == 16 && bytes == gg_kernel_fatbin_bytes - 16);

  unsigned expected[16], found[32], ptx = 0;
  size_t wanted = expected_architectures(expected), count = 0;
  for (uint64_t at = header_bytes; at < gg_kernel_fatbin_bytes;) {
    fatbin_entry entry;
    GG_CHECK(gg_kernel_fatbin_bytes - at >= sizeof entry);
    memcpy(&entry, gg_kernel_fatbin + at, sizeof entry);
    GG_CHECK(entry.header_bytes >= sizeof entry && entry.header_bytes <= gg_kernel_fatbin_bytes - at);
    GG_CHECK(entry.payload_bytes <= gg_kernel_fatbin_bytes - at - entry.header_bytes);
    GG_CHECK((entry.kind == PTX_ENTRY || entry.kind == MACHINE_CODE_ENTRY) && count < 32);
    if (entry.kind == MACHINE_CODE_ENTRY) {
      check_machine_code(&entry, gg_kernel_fatbin + at + entry.header_bytes);
      found[count++] = entry.architecture;
    } else {
      GG_CHECK(ptx == 0);
      ptx = entry.architecture;
    }
    at += entry.header_bytes + entry.payload_bytes;
  }
  for (size_t i = 0; i < wanted; i++)
    if (i >= count || found[i] != expected[i])
      gg_test_fail("machine code %zu of %zu is for sm_%u, not sm_%u (a build with gencode= needs GG_TEST_GENCODE)", i,
                   count, i < count ? found[i] : 0, expected[i]);
  GG_CHECK(count == wanted);
  GG_CHECK(ptx == expected[wanted - 1]); /* for what comes after */
}

Test(cuda_symbols, ptx_is_for_the_oldest_architecture, .timeout = 10) {
  if (!gg_kernel_ptx[0]) cr_skip("built without nvcc: there is no PTX");
  unsigned expected[16];
  GG_CHECK(expected_architectures(expected) > 0);
  const char* target = strstr(gg_kernel_ptx, ".target sm_");
  GG_CHECK(target != NULL && strtoul(target + strlen(".target sm_"), NULL, 10) == expected[0]);
  for (size_t k = 0; k < KERNELS; k++) {
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", kernels[k]);
    if (!strstr(gg_kernel_ptx, entry)) gg_test_fail("the PTX has no \"%s\"", entry);
  }
  /* Only the fused operations that docs/numerics.md names are left after -fmad=false, and no approximation. */
  GG_CHECK(strstr(gg_kernel_ptx, ".approx") == NULL && strstr(gg_kernel_ptx, ".ftz") == NULL);
}

/* Headers of the C library, <...>, are for compilers of C alone; the test below this one proves it for NVRTC. */
Test(cuda_symbols, source_has_every_kernel_and_needs_no_other_file, .timeout = 10) {
  for (size_t k = 0; k < KERNELS; k++) GG_CHECK(strstr(gg_kernel_source, kernels[k]) != NULL);
  for (const char* line = gg_kernel_source; line; line = strchr(line, '\n')) {
    line += strspn(line, "\n \t");
    if (*line != '#') continue;
    const char* word = line + 1 + strspn(line + 1, " \t");
    if (strncmp(word, "include", 7) == 0 && word[7 + strspn(word + 7, " \t")] != '<')
      gg_test_fail("the source includes a file: %.60s", line);
  }
}

/* With the library's own options, for machine code and for PTX. */
Test(cuda_symbols, the_run_time_compiler_accepts_the_source, .timeout = 120) {
  gg_nvrtc nvrtc;
  gg_error error = GG_ERROR_INIT;
  if (gg_nvrtc_open(&nvrtc, 13000, &error) != GG_OK) cr_skip("no NVRTC here: %s", error.message);
  static const int capabilities[] = {75, 90, 999}; /* the last is newer than any that it knows */
  for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
    gg_nvrtc_image image;
    gg_test_case("NVRTC, compute capability %d", capabilities[i]);
    if (gg_nvrtc_compile(&nvrtc, gg_kernel_source, capabilities[i], &image, &error) != GG_OK)
      gg_test_fail("%s", error.message);
    GG_CHECK(image.ptx == (capabilities[i] == 999) && image.bytes > 0);
    for (size_t k = 0; k < KERNELS; k++) GG_CHECK(contains((const unsigned char*)image.data, image.bytes, kernels[k]));
    free(image.data);
  }
}

#endif
