/* Work spread over threads: the items of a range, in batches that threads take as they become free. Results may not
 * depend on who takes what. */
#ifndef GG_BACKENDS_CPU_PARALLEL_H
#define GG_BACKENDS_CPU_PARALLEL_H

#include <stdint.h>

/* OpenMP ends the process when it cannot make as many threads as it was told to. */
#define GG_CPU_MOST_THREADS 1024u

/* Does items [begin, end). */
typedef void (*gg_cpu_work)(void* context, uint64_t begin, uint64_t end);

/* Calls `work` for all items, `batch` at a time, on `threads` threads (0: OpenMP's own choice), but not on more than
 * GG_CPU_MOST_THREADS, each in the default floating-point environment. Returns when all is done. */
void gg_cpu_parallel(uint32_t threads, uint64_t items, uint64_t batch, gg_cpu_work work, void* context);

#endif
