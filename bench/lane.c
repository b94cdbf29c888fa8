#include "bench/lane.h"

#include <stdio.h>
#include <stdlib.h>

#define GG_COPIES 3 /* in a turn */

static bool no_memory(gg_problem* problem) { return gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory"); }

bool gg_lane_open(gg_lane* lane, const gg_bench_options* options, const gg_bench_target* target, gg_problem* problem) {
  *lane = (gg_lane){.path_count = 0};
  if (!gg_rig_open(&lane->rig, options, target, problem)) return false;
  lane->rates = calloc(((size_t)options->batches + 1) * GG_COPIES, sizeof *lane->rates);
  return lane->rates != NULL || no_memory(problem);
}

void gg_lane_close(gg_lane* lane) {
  gg_lane_empty(lane);
  gg_rig_close(&lane->rig);
  free(lane->rates);
  lane->rates = NULL;
}

static bool begin_result(gg_bench_result* result, const gg_path* path, double first, gg_problem* problem) {
  const gg_bench_options* options = path->rig->options;
  *result = (gg_bench_result){.info = path->rig->info, .path = path->kind, .first = first};
  snprintf(result->kernel, sizeof result->kernel, "%s", gg_context_kernel(path->rig->context));
  result->bytes = gg_path_bytes(path);
  result->traffic = gg_path_traffic(path);
  result->samples = calloc((size_t)options->samples * options->batches, sizeof *result->samples);
  result->digests = calloc(options->batches, sizeof *result->digests);
  return (result->samples != NULL && result->digests != NULL) || no_memory(problem);
}

/* Makes the group and takes a first step, which together allocate all that later steps use; out of place the second
 * step makes one more table. */
static bool open_path(gg_path* path, gg_rig* rig, gg_bench_path_kind kind, double* first, gg_problem* problem) {
  double begin = gg_seconds();
  if (!gg_path_open(path, rig, kind, problem)) return false;
  if (gg_path_step(path, problem)) {
    *first = gg_seconds() - begin;
    return true;
  }
  gg_path_close(path);
  return false;
}

bool gg_lane_fill(gg_lane* lane, gg_bench_result* results, gg_problem* problem) {
  lane->results = results;
  bool good = gg_rig_fill(&lane->rig, problem);
  for (int kind = 0; kind < GG_BENCH_PATHS && good; kind++) {
    if (!lane->rig.options->paths[kind]) continue;
    gg_path* path = &lane->paths[lane->path_count];
    double first;
    good = open_path(path, &lane->rig, (gg_bench_path_kind)kind, &first, problem);
    if (good) good = begin_result(&results[lane->path_count++], path, first, problem);
  }
  return good;
}

void gg_lane_empty(gg_lane* lane) {
  while (lane->path_count > 0) gg_path_close(&lane->paths[--lane->path_count]);
  gg_rig_empty(&lane->rig);
}

bool gg_lane_copies(gg_lane* lane, gg_problem* problem) {
  double rate;
  if (lane->rate_count == 0 && !gg_rig_copy_rate(&lane->rig, &rate, problem)) return false; /* the first one warms up */
  for (int i = 0; i < GG_COPIES; i++)
    if (!gg_rig_copy_rate(&lane->rig, &lane->rates[lane->rate_count++], problem)) return false;
  return true;
}

bool gg_lane_batch(gg_lane* lane, size_t index, uint32_t batch, gg_problem* problem) {
  gg_path* path = &lane->paths[index];
  gg_bench_result* result = &lane->results[index];
  const gg_bench_options* options = lane->rig.options;
  if (!gg_path_reset(path, problem)) return false;
  for (uint32_t i = 0; i < options->warmup; i++)
    if (!gg_path_step(path, problem)) return false;
  for (uint32_t i = 0; i < options->samples; i++) {
    double begin = gg_seconds();
    if (!gg_path_step(path, problem)) return false;
    result->samples[result->sample_count++] = gg_seconds() - begin;
  }
  return gg_path_digest(path, &result->digests[batch], problem);
}

bool gg_lane_summarise(gg_lane* lane, gg_problem* problem) {
  double rate = gg_bench_median(lane->rates, lane->rate_count);
  for (size_t p = 0; p < lane->path_count; p++) {
    gg_bench_result* result = &lane->results[p];
    result->copy_rate = rate;
    gg_path_costs(&lane->paths[p], &result->reduction_launches, &result->update_launches, &result->scratch_bytes);
    if (!gg_bench_summarise(result)) return no_memory(problem);
  }
  return true;
}
