/* What was measured, for the table, the JSON file and the comparison of results. */
#ifndef GG_BENCH_RESULT_H
#define GG_BENCH_RESULT_H

#include "bench/path.h"

/* One path on one device. Times are in seconds, rates in bytes a second. */
typedef struct gg_bench_result {
  gg_device_info info;
  char kernel[64];
  gg_bench_path_kind path;
  uint64_t bytes, traffic; /* minimum and actual bytes moved */
  double copy_rate;
  double* samples; /* in the order of measuring */
  size_t sample_count;
  uint64_t* digests; /* one for each batch */
  uint32_t reduction_launches, update_launches;
  uint64_t scratch_bytes;
  double median, least, most;
  double first; /* creating the group and taking one step, with their allocations; before the samples */
} gg_bench_result;

typedef struct gg_bench_run {
  const gg_bench_options* options;
  uint64_t elements;
  gg_bench_result* results;
  size_t count;
  bool alternating; /* devices too, not only the paths of each */
  bool same;        /* all results that should be bit-identical are */
} gg_bench_run;

/* Time of a step that runs at the rate of a copy. */
double gg_bench_floor(const gg_bench_result* result);

/* The median of the numbers; sorts them. */
double gg_bench_median(double* numbers, size_t count);

/* Fills median, least and most from the samples, whose order is kept. */
bool gg_bench_summarise(gg_bench_result* result);

/* Compares digests: fused and unfused take the same step, and so does the same path on another device. Differences are
 * printed to stderr. */
bool gg_bench_compare(const gg_bench_run* run);

void gg_bench_print(const gg_bench_run* run);
bool gg_bench_write_json(const gg_bench_run* run, const char* file, gg_problem* problem);

#endif
