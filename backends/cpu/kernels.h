/* The compute kernels of the cpu backend: the same functions, with the same bits, for each instruction set (`lanes.c`
 * and `elements.c` are compiled with GG_ISA=portable, avx2, avx512), and the selection of one. They need the default
 * floating-point environment (environment.h); pointers need only be aligned to the element size. */
#ifndef GG_BACKENDS_CPU_KERNELS_H
#define GG_BACKENDS_CPU_KERNELS_H

#include "api/gradguard.h"
#include "kernels/types.h"

/* Prefetch distance of the reduction in bytes. With hardware prefetching alone it is 10 to 20 % slower. */
#define GG_CPU_PREFETCH 2048

typedef struct gg_cpu_kernels {
  const char* variant;
#if GG_WITH_GUARD
  /* One reduction block: the triple of `elements` > 0 consecutive values, on 256 lanes. */
  void (*reduce_block)(const void* gradient, gg_u32 gradient_type, uint64_t elements, gg_f32 inverse_scale,
                       gg_triple* triple);
  /* Merges the triples of a tensor's blocks. */
  void (*merge_blocks)(const gg_triple* partials, gg_u32 count, gg_triple* summary);
#endif
  /* Elements [begin, end) of a row. `stream`: use non-temporal stores if the outputs are not the inputs. */
  void (*update)(const gg_device_row* row, uint64_t begin, uint64_t end, const gg_update_constants* constants,
                 gg_bias bias, bool stream);
  /* (x * factor1) * factor2 of elements [begin, end) to out[GG_STATE_PARAMETER]. */
  void (*unfused_clip)(const gg_device_row* row, uint64_t begin, uint64_t end, const gg_update_constants* constants,
                       bool stream);
} gg_cpu_kernels;

/* The variants that this machine can run, best first, separated by spaces: "avx2 portable". */
void gg_cpu_variants(char* text, size_t capacity);

/* The kernels of `variant` (NULL: the best). */
gg_status gg_cpu_select(const char* variant, const gg_cpu_kernels** kernels, gg_error* error);

#endif
