#include "backends/cpu/parallel.h"

#include <omp.h>
#include <stdatomic.h>

#include "host/environment.h"

typedef struct gg_queue {
  atomic_uint_fast64_t next;
  uint64_t items;
  uint64_t batch;
  gg_cpu_work work;
  void* context;
} gg_queue;

static void gg_work_off(gg_queue* queue) {
  gg_environment saved = gg_environment_enter();
  for (;;) {
    uint64_t begin = atomic_fetch_add_explicit(&queue->next, queue->batch, memory_order_relaxed);
    if (begin >= queue->items) break;
    uint64_t left = queue->items - begin;
    queue->work(queue->context, begin, begin + (left < queue->batch ? left : queue->batch));
  }
  gg_environment_leave(saved);
}

void gg_cpu_parallel(uint32_t threads, uint64_t items, uint64_t batch, gg_cpu_work work, void* context) {
  gg_queue queue = {.items = items, .batch = batch, .work = work, .context = context};
  atomic_init(&queue.next, 0);
  uint64_t batches = items / batch + (items % batch != 0);
  if (batches > 1 && threads == 0) threads = (uint32_t)omp_get_max_threads();
  if (threads > GG_CPU_MOST_THREADS) threads = GG_CPU_MOST_THREADS;
  if (batches < threads) threads = (uint32_t)batches;
  if (threads > 1) {
#pragma omp parallel num_threads((int)threads)
    gg_work_off(&queue);
  } else {
    gg_work_off(&queue); /* a parallel region would cost more than a small group's work */
  }
}
