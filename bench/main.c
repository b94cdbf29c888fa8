/* gradguard-bench: every backend and path side by side, each against a copy on its own device. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/result.h"

/* Copies that are timed before and after each batch: the rate of some devices depends on how warm they are. */
#define GG_COPIES 3

/* How far the run is, as a bar on a terminal. */
typedef struct gg_bench_progress {
  size_t done, total;
  bool shown;
} gg_bench_progress;

static void show(gg_bench_progress* progress, const char* device) {
  enum { WIDTH = 30 };
  progress->done++;
  if (!progress->shown) return;
  size_t filled = progress->total > 0 ? progress->done * WIDTH / progress->total : WIDTH;
  fprintf(stderr, "\r[%.*s%*s] %zu of %zu batches, %-14s", (int)filled, "##############################",
          (int)(WIDTH - filled), "", progress->done, progress->total, device);
  if (progress->done == progress->total) fprintf(stderr, "\r%79s\r", "");
}

/* The copies of a rig over a whole run. */
typedef struct gg_copies {
  double* rates;
  size_t count;
} gg_copies;

static bool measure_copies(gg_rig* rig, gg_copies* copies, gg_problem* problem) {
  double rate;
  if (copies->count == 0 && !gg_rig_copy_rate(rig, &rate, problem)) return false; /* the first one warms up */
  for (int i = 0; i < GG_COPIES; i++)
    if (!gg_rig_copy_rate(rig, &copies->rates[copies->count++], problem)) return false;
  return true;
}

static bool run_batch(gg_path* path, gg_bench_result* result, uint32_t batch, gg_problem* problem) {
  const gg_bench_options* options = path->rig->options;
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

static bool begin_result(gg_bench_result* result, const gg_path* path) {
  const gg_bench_options* options = path->rig->options;
  *result = (gg_bench_result){.info = path->rig->info, .path = path->kind};
  snprintf(result->kernel, sizeof result->kernel, "%s", gg_context_kernel(path->rig->context));
  result->bytes = gg_path_bytes(path);
  result->traffic = gg_path_traffic(path);
  result->samples = calloc((size_t)options->samples * options->batches, sizeof *result->samples);
  result->digests = calloc(options->batches, sizeof *result->digests);
  return result->samples != NULL && result->digests != NULL;
}

/* All paths of one device, in alternation. */
static bool run_paths(gg_rig* rig, gg_path* paths, size_t count, gg_bench_result* results, gg_bench_progress* progress,
                      gg_problem* problem) {
  const gg_bench_options* options = rig->options;
  gg_copies copies = {.rates = calloc(((size_t)options->batches + 1) * GG_COPIES, sizeof(double))};
  bool good = copies.rates != NULL || gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  for (uint32_t batch = 0; batch < options->batches && good; batch++) {
    good = measure_copies(rig, &copies, problem);
    for (size_t p = 0; p < count && good; p++) {
      good = run_batch(&paths[p], &results[p], batch, problem);
      show(progress, rig->info.id);
    }
  }
  good = good && measure_copies(rig, &copies, problem);
  double rate = good ? gg_bench_median(copies.rates, copies.count) : 0;
  for (size_t p = 0; p < count && good; p++) {
    results[p].copy_rate = rate;
    gg_path_costs(&paths[p], &results[p].reduction_launches, &results[p].update_launches, &results[p].scratch_bytes);
    good = gg_bench_summarise(&results[p]) || gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  }
  free(copies.rates);
  return good;
}

static bool run_target(gg_bench_run* run, const gg_bench_target* target, gg_bench_progress* progress,
                       gg_problem* problem) {
  gg_rig rig;
  gg_path paths[GG_BENCH_PATHS];
  size_t count = 0;
  if (!gg_rig_open(&rig, run->options, target, problem)) return false;
  run->elements = rig.elements;
  gg_bench_result* results = &run->results[run->count];
  bool good = true;
  for (int kind = 0; kind < GG_BENCH_PATHS && good; kind++) {
    if (!run->options->paths[kind]) continue;
    good = gg_path_open(&paths[count], &rig, (gg_bench_path_kind)kind, problem);
    if (!good) break;
    run->count++;
    good = begin_result(&results[count], &paths[count]) || gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
    count++;
  }
  good = good && run_paths(&rig, paths, count, results, progress, problem);
  while (count > 0) gg_path_close(&paths[--count]);
  gg_rig_close(&rig);
  return good;
}

static bool run_all(gg_bench_run* run, gg_problem* problem) {
  const gg_bench_options* options = run->options;
  size_t paths = 0;
  for (int kind = 0; kind < GG_BENCH_PATHS; kind++) paths += options->paths[kind];
  gg_bench_progress progress = {.total = options->target_count * paths * options->batches,
                                .shown = isatty(STDERR_FILENO) == 1};
  run->results = calloc(options->target_count * paths, sizeof *run->results);
  if (run->results == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  for (size_t i = 0; i < options->target_count; i++)
    if (!run_target(run, &options->targets[i], &progress, problem)) return false;
  run->same = gg_bench_compare(run);
  gg_bench_print(run);
  return options->json == NULL || gg_bench_write_json(run, options->json, problem);
}

int main(int argc, char** argv) {
  gg_bench_options options;
  int status = gg_bench_parse(argc, argv, &options);
  if (status >= 0) return status;
  gg_bench_run run = {.options = &options};
  gg_problem problem;
  bool good = run_all(&run, &problem);
  if (!good) fprintf(stderr, "gradguard-bench: %s\n", problem.text);
  for (size_t i = 0; i < run.count; i++) {
    free(run.results[i].samples);
    free(run.results[i].digests);
  }
  free(run.results);
  gg_bench_free_shapes(&options.shapes);
  if (!good) return (int)problem.exit_code;
  return run.same ? GG_EXIT_OK : GG_EXIT_FAILURE;
}
