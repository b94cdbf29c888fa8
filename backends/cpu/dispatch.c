/* Selects the kernels that this machine can run. */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "host/status.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if GG_WITH_GUARD
#define GG_DECLARE_REDUCTION(isa)                                                                                     \
  void gg_cpu_reduce_block_##isa(const void* gradient, gg_u32 gradient_type, uint64_t elements, gg_f32 inverse_scale, \
                                 gg_triple* triple);                                                                  \
  void gg_cpu_merge_blocks_##isa(const gg_triple* partials, gg_u32 count, gg_triple* summary);
#define GG_REDUCTION_OF(isa) .reduce_block = gg_cpu_reduce_block_##isa, .merge_blocks = gg_cpu_merge_blocks_##isa,
#else
#define GG_DECLARE_REDUCTION(isa)
#define GG_REDUCTION_OF(isa)
#endif

/* Declares and collects the functions that lanes.c and elements.c define for one instruction set. */
#define GG_KERNELS_OF(isa)                                                                   \
  GG_DECLARE_REDUCTION(isa)                                                                  \
  void gg_cpu_update_##isa(const gg_device_row* row, uint64_t begin, uint64_t end,           \
                           const gg_update_constants* constants, gg_bias bias, bool stream); \
  void gg_cpu_unfused_clip_##isa(const gg_device_row* row, uint64_t begin, uint64_t end,     \
                                 const gg_update_constants* constants, bool stream);         \
  static const gg_cpu_kernels isa##_kernels = {                                              \
      .variant = #isa, GG_REDUCTION_OF(isa).update = gg_cpu_update_##isa, .unfused_clip = gg_cpu_unfused_clip_##isa}

GG_KERNELS_OF(portable);

static bool always(void) { return true; }

#if defined(__x86_64__)

GG_KERNELS_OF(avx2);
GG_KERNELS_OF(avx512);

/* The builtin's results for AVX2 and AVX-512 include the system's support for the wider registers. F16C is checked by
 * hand, because clang's builtin does not know it. */
static bool has_avx2(void) {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("fma");
}

static bool has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#endif

/* Best first. */
static const struct {
  const gg_cpu_kernels* kernels;
  bool (*usable)(void);
} variants[] = {
#if defined(__x86_64__)
    {&avx512_kernels, has_avx512},
    {&avx2_kernels, has_avx2},
#endif
    {&portable_kernels, always},
};
enum { variant_count = sizeof variants / sizeof variants[0] };

void gg_cpu_variants(char* text, size_t capacity) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < variant_count; i++) {
    if (!variants[i].usable()) continue;
    int more = snprintf(text + used, capacity - used, "%s%s", used > 0 ? " " : "", variants[i].kernels->variant);
    if (more < 0 || (size_t)more >= capacity - used) return;
    used += (size_t)more;
  }
}

gg_status gg_cpu_select(const char* variant, const gg_cpu_kernels** kernels, gg_error* error) {
  char usable[64];
  gg_cpu_variants(usable, sizeof usable);
  for (size_t i = 0; i < variant_count; i++) {
    if (variant != NULL && strcmp(variant, variants[i].kernels->variant) != 0) continue;
    if (variants[i].usable()) {
      *kernels = variants[i].kernels;
      return GG_OK;
    }
    if (variant != NULL)
      return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_context_create",
                     "this processor cannot run the cpu kernels \"%s\"; it can run: %s", variant, usable);
  }
  return gg_fail(error, GG_ERROR_ARGUMENT, "gg_context_create", "there are no cpu kernels \"%s\"; there are: %s",
                 variant, usable);
}
