/* Parallel loop: the items of a range, in batches that threads take as they become free. Results must not depend on
 * which thread takes which batch. */
#ifndef GG_BACKENDS_CPU_PARALLEL_H
#define GG_BACKENDS_CPU_PARALLEL_H

#include <stdint.h>

/* OpenMP ends the process if it cannot create as many threads as requested. */
#define GG_CPU_MOST_THREADS 1024u

/* Processes items [begin, end). */
typedef void (*gg_cpu_work)(void* context, uint64_t begin, uint64_t end);

/* Calls `work` for all items, `batch` at a time, on `threads` threads (0: OpenMP's default), at most
 * GG_CPU_MOST_THREADS, each in the default floating-point environment. Returns when all work is done. */
void gg_cpu_parallel(uint32_t threads, uint64_t items, uint64_t batch, gg_cpu_work work, void* context);

#endif
