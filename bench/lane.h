/* One device and route with all its paths: what takes its turn. */
#ifndef GG_BENCH_LANE_H
#define GG_BENCH_LANE_H

#include "bench/result.h"

typedef struct gg_lane {
  gg_rig rig;
  gg_path paths[GG_BENCH_PATHS];
  size_t path_count;
  gg_bench_result* results; /* of the paths, in the run's list */
  double* rates;            /* of copies, over the whole run */
  size_t rate_count;
} gg_lane;

/* Opens the device alone, without tensors. */
bool gg_lane_open(gg_lane* lane, const gg_bench_options* options, const gg_bench_target* target, gg_problem* problem);
void gg_lane_close(gg_lane* lane);

/* Makes the tensors and the paths. `results` has room for one of each path. */
bool gg_lane_fill(gg_lane* lane, gg_bench_result* results, gg_problem* problem);
void gg_lane_empty(gg_lane* lane);

/* Copies, timed. Before and after each batch, since the rate of some devices depends on how warm they are. */
bool gg_lane_copies(gg_lane* lane, gg_problem* problem);

/* One batch of one path: originals put back, warm-up, timed steps, a digest of what they made. */
bool gg_lane_batch(gg_lane* lane, size_t path, uint32_t batch, gg_problem* problem);

/* What follows from all batches and copies. */
bool gg_lane_summarise(gg_lane* lane, gg_problem* problem);

#endif
