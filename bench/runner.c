#include "bench/runner.h"

#include <stdio.h>
#include <stdlib.h>

#define GG_COPIES 3 /* in a turn */

static bool no_memory(gg_problem* problem) { return gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory"); }

bool gg_runner_open(gg_runner* runner, const gg_bench_options* options, const gg_bench_target* target,
                    gg_problem* problem) {
  *runner = (gg_runner){.path_count = 0};
  if (!gg_rig_open(&runner->rig, options, target, problem)) return false;
  runner->rates = calloc(((size_t)options->batches + 1) * GG_COPIES, sizeof *runner->rates);
  return runner->rates != NULL || no_memory(problem);
}

void gg_runner_close(gg_runner* runner) {
  gg_runner_empty(runner);
  gg_rig_close(&runner->rig);
  free(runner->rates);
  runner->rates = NULL;
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

bool gg_runner_fill(gg_runner* runner, gg_bench_result* results, gg_problem* problem) {
  runner->results = results;
  bool good = gg_rig_fill(&runner->rig, problem);
  for (int kind = 0; kind < GG_BENCH_PATHS && good; kind++) {
    if (!runner->rig.options->paths[kind]) continue;
    gg_path* path = &runner->paths[runner->path_count];
    double first;
    good = open_path(path, &runner->rig, (gg_bench_path_kind)kind, &first, problem);
    if (good) good = begin_result(&results[runner->path_count++], path, first, problem);
  }
  return good;
}

void gg_runner_empty(gg_runner* runner) {
  while (runner->path_count > 0) gg_path_close(&runner->paths[--runner->path_count]);
  gg_rig_empty(&runner->rig);
}

bool gg_runner_copies(gg_runner* runner, gg_problem* problem) {
  double rate;
  if (runner->rate_count == 0 && !gg_rig_copy_rate(&runner->rig, &rate, problem))
    return false; /* the first one warms up */
  for (int i = 0; i < GG_COPIES; i++)
    if (!gg_rig_copy_rate(&runner->rig, &runner->rates[runner->rate_count++], problem)) return false;
  return true;
}

bool gg_runner_batch(gg_runner* runner, size_t index, uint32_t batch, gg_problem* problem) {
  gg_path* path = &runner->paths[index];
  gg_bench_result* result = &runner->results[index];
  const gg_bench_options* options = runner->rig.options;
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

bool gg_runner_summarise(gg_runner* runner, gg_problem* problem) {
  double rate = gg_bench_median(runner->rates, runner->rate_count);
  for (size_t p = 0; p < runner->path_count; p++) {
    gg_bench_result* result = &runner->results[p];
    result->copy_rate = rate;
    gg_path_costs(&runner->paths[p], &result->reduction_launches, &result->update_launches, &result->scratch_bytes);
    if (!gg_bench_summarise(result)) return no_memory(problem);
  }
  return true;
}
