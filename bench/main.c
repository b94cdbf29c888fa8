/* gradguard-bench: compares backends and paths, each with a copy on its own device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/runner.h"
#include "tools/gradguard/streams.h"

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

/* Measures runners together, alternating: A B A B over all their paths. */
static bool take_turns(gg_runner* runners, size_t count, gg_bench_progress* progress, gg_problem* problem) {
  const gg_bench_options* options = runners[0].rig.options;
  for (uint32_t batch = 0; batch < options->batches; batch++)
    for (size_t i = 0; i < count; i++) {
      if (!gg_runner_copies(&runners[i], problem)) return false;
      for (size_t path = 0; path < runners[i].path_count; path++) {
        if (!gg_runner_batch(&runners[i], path, batch, problem)) return false;
        show(progress, runners[i].rig.info.id);
      }
    }
  for (size_t i = 0; i < count; i++)
    if (!gg_runner_copies(&runners[i], problem) || !gg_runner_summarise(&runners[i], problem)) return false;
  return true;
}

/* Whether the tensors of all runners fit in memory at the same time. Which devices share a memory is not known: so all
 * of them together have to fit into the smallest, with something to spare. */
static bool fit_together(const gg_runner* runners, size_t count) {
  double need = 0, memory = 0;
  for (size_t i = 0; i < count; i++) {
    double here = (double)runners[i].rig.info.memory_bytes;
    if (i == 0 || here < memory) memory = here;
    need += gg_rig_need(&runners[i].rig);
  }
  return need <= 0.75 * memory;
}

static bool measure(gg_bench_run* run, gg_runner* runners, size_t count, gg_problem* problem) {
  size_t paths = run->count / count;
  gg_bench_progress progress = {.total = run->count * run->options->batches, .shown = isatty(STDERR_FILENO) == 1};
  run->elements = runners[0].rig.elements;
  run->alternating = count > 1 && fit_together(runners, count);
  size_t together = run->alternating ? count : 1;
  bool good = true;
  for (size_t first = 0; first < count && good; first += together) {
    for (size_t i = first; i < first + together && good; i++)
      good = gg_runner_fill(&runners[i], &run->results[i * paths], problem);
    good = good && take_turns(&runners[first], together, &progress, problem);
    for (size_t i = first; i < first + together; i++) gg_runner_empty(&runners[i]);
  }
  return good;
}

/* Whether everything printed has reached standard output. */
static bool printed(void) {
  if (fflush(stdout) == 0 && ferror(stdout) == 0) return true;
  fprintf(stderr, "gradguard-bench: standard output could not be written: %s\n", strerror(errno));
  return false;
}

static bool run_all(gg_bench_run* run, gg_problem* problem) {
  const gg_bench_options* options = run->options;
  size_t paths = 0, open = 0;
  for (int kind = 0; kind < GG_BENCH_PATHS; kind++) paths += options->paths[kind];
  run->results = calloc(options->target_count * paths, sizeof *run->results);
  gg_runner* runners = calloc(options->target_count, sizeof *runners);
  bool good = (run->results != NULL && runners != NULL) || gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  if (run->results != NULL) run->count = options->target_count * paths;
  while (good && open < options->target_count) {
    good = gg_runner_open(&runners[open], options, &options->targets[open], problem);
    open++;
  }
  good = good && measure(run, runners, open, problem);
  while (open > 0) gg_runner_close(&runners[--open]);
  free(runners);
  if (!good) return false;
  run->same = gg_bench_compare(run);
  gg_bench_print(run);
  return options->json == NULL || gg_bench_write_json(run, options->json, problem);
}

int main(int argc, char** argv) {
  gg_streams_occupy();
  gg_bench_options options;
  int status = gg_bench_parse(argc, argv, &options);
  if (status < 0) {
    gg_bench_run run = {.options = &options};
    gg_problem problem;
    bool good = run_all(&run, &problem);
    if (!good) fprintf(stderr, "gradguard-bench: %s\n", problem.text);
    for (size_t i = 0; i < run.count; i++) {
      free(run.results[i].samples);
      free(run.results[i].digests);
    }
    free(run.results);
    status = !good ? (int)problem.exit_code : run.same ? GG_EXIT_OK : GG_EXIT_FAILURE;
  }
  gg_bench_free_shapes(&options.shapes);
  return status != GG_EXIT_OK || printed() ? status : GG_EXIT_FAILURE;
}
