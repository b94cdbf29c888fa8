/* Runs all paths on one device with one kernel variant. Runners take turns. */
#ifndef GG_BENCH_RUNNER_H
#define GG_BENCH_RUNNER_H

#include "bench/result.h"

typedef struct gg_runner {
  gg_rig rig;
  gg_path paths[GG_BENCH_PATHS];
  size_t path_count;
  gg_bench_result* results; /* of the paths, in the run's list */
  double* rates;            /* of copies, over the whole run */
  size_t rate_count;
} gg_runner;

/* Opens only the device, without tensors. */
bool gg_runner_open(gg_runner* runner, const gg_bench_options* options, const gg_bench_target* target,
                    gg_problem* problem);
void gg_runner_close(gg_runner* runner);

/* Creates the tensors and the paths. `results` has room for one result per path. */
bool gg_runner_fill(gg_runner* runner, gg_bench_result* results, gg_problem* problem);
void gg_runner_empty(gg_runner* runner);

/* Timed copies, before and after each batch, because the rate of some devices depends on their temperature. */
bool gg_runner_copies(gg_runner* runner, gg_problem* problem);

/* One batch of one path: restores the originals, warms up, times steps, and computes a digest of the results. */
bool gg_runner_batch(gg_runner* runner, size_t path, uint32_t batch, gg_problem* problem);

/* Computes the summary of all batches and copies. */
bool gg_runner_summarise(gg_runner* runner, gg_problem* problem);

#endif
