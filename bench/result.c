#include "bench/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double gg_bench_floor(const gg_bench_result* result) { return (double)result->bytes / result->copy_rate; }

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

double gg_bench_median(double* numbers, size_t count) {
  if (count == 0) return 0;
  qsort(numbers, count, sizeof *numbers, ascending);
  return count % 2 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

bool gg_bench_summarise(gg_bench_result* result) {
  double* sorted = malloc(result->sample_count * sizeof *sorted);
  if (sorted == NULL) return false;
  memcpy(sorted, result->samples, result->sample_count * sizeof *sorted);
  result->median = gg_bench_median(sorted, result->sample_count);
  result->least = sorted[0];
  result->most = sorted[result->sample_count - 1];
  free(sorted);
  return true;
}

/* Which results must have the same bits: stats has none. */
static int group_of(gg_bench_path_kind path) {
  if (path == GG_BENCH_STATS) return -1;
  return path == GG_BENCH_PLAIN ? 1 : 0;
}

bool gg_bench_compare(const gg_bench_run* run) {
  bool same = true;
  for (int group = 0; group < 2; group++) {
    const gg_bench_result* first = NULL;
    for (size_t i = 0; i < run->count; i++) {
      const gg_bench_result* result = &run->results[i];
      if (group_of(result->path) != group) continue;
      if (first == NULL) first = result;
      for (uint32_t batch = 0; batch < run->options->batches; batch++) {
        if (result->digests[batch] == first->digests[batch]) continue;
        fprintf(stderr,
                "gradguard-bench: after batch %u the bits of %s on %s (%s) differ from those of %s on %s (%s)\n",
                batch + 1, gg_bench_path_names[result->path], result->info.id, result->kernel,
                gg_bench_path_names[first->path], first->info.id, first->kernel);
        same = false;
        break;
      }
    }
  }
  return same;
}

static void print_header(const gg_bench_run* run) {
  const gg_bench_options* options = run->options;
  printf("%s: %zu tensors, %llu elements, %s gradients%s, %s, seed %llu, %u x %u samples\n", options->shapes.name,
         options->shapes.count, (unsigned long long)run->elements, gg_dtype_name(options->dtype),
         options->amsgrad ? ", AMSGrad" : "", options->mode == GG_IN_PLACE ? "in place" : "out of place",
         (unsigned long long)options->seed, options->batches, options->samples);
  if (options->target_count > 1)
    printf("devices %s\n", run->alternating ? "in alternation" : "one after another: together they need more memory");
  printf("\n%-13s %-9s %-7s %10s %10s %10s %10s %10s %7s %9s %9s %8s %11s\n", "device", "kernels", "path", "median ms",
         "min ms", "max ms", "first ms", "floor ms", "ratio", "GB/s", "copy GB/s", "launches", "scratch");
}

void gg_bench_print(const gg_bench_run* run) {
  print_header(run);
  for (size_t i = 0; i < run->count; i++) {
    const gg_bench_result* r = &run->results[i];
    double floor_time = gg_bench_floor(r);
    printf("%-13s %-9s %-7s %10.4f %10.4f %10.4f %10.4f %10.4f %7.3f %9.1f %9.1f %6u+%u %11llu\n", r->info.id,
           r->kernel, gg_bench_path_names[r->path], r->median * 1e3, r->least * 1e3, r->most * 1e3, r->first * 1e3,
           floor_time * 1e3, r->median / floor_time, (double)r->traffic / r->median / 1e9, r->copy_rate / 1e9,
           r->reduction_launches, r->update_launches, (unsigned long long)r->scratch_bytes);
  }
  printf(
      "\nfirst: the group made and its first step, with all that they allocate; floor: the bytes that the job must "
      "move at the rate of a copy on the same device in this run; ratio: median "
      "to floor\nresults: %s\n",
      run->same ? "the same bits on every path and device" : "DIFFERENT BITS, see above");
}
