/* The options of gradguard-bench. */
#ifndef GG_BENCH_OPTIONS_H
#define GG_BENCH_OPTIONS_H

#include "api/gradguard.h"
#include "bench/shapes.h"

typedef enum gg_bench_path_kind {
  GG_BENCH_FUSED = 0,
  GG_BENCH_UNFUSED = 1,
  GG_BENCH_PLAIN = 2,
  GG_BENCH_STATS = 3
} gg_bench_path_kind;
#define GG_BENCH_PATHS 4
extern const char* const gg_bench_path_names[GG_BENCH_PATHS];

/* A device with one of its kernel variants. */
#define GG_BENCH_TARGETS 32
typedef struct gg_bench_target {
  char device[80];
  char kernel[16]; /* empty: the best */
} gg_bench_target;

typedef struct gg_bench_options {
  gg_bench_target targets[GG_BENCH_TARGETS];
  size_t target_count;
  gg_bench_shapes shapes;
  gg_dtype dtype;
  bool amsgrad;
  gg_update_mode mode;
  bool paths[GG_BENCH_PATHS];
  uint32_t samples; /* steps that are timed in a batch of one path */
  uint32_t batches; /* of each path */
  uint32_t warmup;  /* steps before them in each batch */
  double gradient_scale, max_norm;
  uint64_t seed;
  const char* json; /* file; NULL: none */
} gg_bench_options;

/* Gradients lie between this and its negative, before the loss scale. */
#define GG_BENCH_GRADIENT 0.02

/* Reads the command line. Returns -1 to go on, or the exit status of the program. */
int gg_bench_parse(int argc, char** argv, gg_bench_options* options);

#endif
