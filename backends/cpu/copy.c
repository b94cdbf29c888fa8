/* A plain copy with all threads, each of them on one piece. */
#include <omp.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/parallel.h"

#define GG_COPY_ALIGN 4096

typedef struct gg_copying {
  unsigned char* to;
  const unsigned char* from;
} gg_copying;

static void copy_range(void* context, uint64_t begin, uint64_t end) {
  const gg_copying* copying = context;
  memcpy(copying->to + begin, copying->from + begin, end - begin);
}

gg_status gg_cpu_copy(gg_device* device, gg_memory* to, uint64_t to_offset, const gg_memory* from, uint64_t from_offset,
                      uint64_t bytes, gg_error* error) {
  (void)error;
  const gg_cpu_device* cpu = (const gg_cpu_device*)device;
  gg_copying copying = {((gg_cpu_memory*)to)->bytes + to_offset, ((const gg_cpu_memory*)from)->bytes + from_offset};
  uint64_t threads = cpu->threads > 0 ? cpu->threads : (uint64_t)omp_get_max_threads();
  uint64_t piece = (bytes / threads + GG_COPY_ALIGN) / GG_COPY_ALIGN * GG_COPY_ALIGN;
  gg_cpu_parallel(cpu->threads, bytes, piece, copy_range, &copying);
  return GG_OK;
}
