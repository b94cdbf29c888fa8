/* The unfused baseline: the same reduction, then a separate kernel that writes unscaled and clipped gradients into an
 * FP32 temporary, then the same update. The temporary is allocated once, before any timing, which favours the baseline.
 */
#ifndef GG_BENCH_UNFUSED_H
#define GG_BENCH_UNFUSED_H

#include "bench/path.h"

bool gg_path_fail(const gg_path* path, gg_status status, const char* doing, gg_problem* problem);

/* Creates what an unfused or stats path needs in addition to a group. */
bool gg_unfused_open(gg_path* path, gg_problem* problem);
void gg_unfused_close(gg_path* path);

/* Reduction, one read-back and the decision. */
gg_status gg_unfused_measure(gg_path* path, const gg_guard_options* guard, gg_decision* decision);

/* Queues the separate unscale and clip. */
gg_status gg_unfused_queue_clip(gg_path* path, const gg_decision* decision);

#endif
