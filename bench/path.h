/* One way to take a step, with a group of its own over the rig's tensors. */
#ifndef GG_BENCH_PATH_H
#define GG_BENCH_PATH_H

#include "bench/rig.h"

typedef struct gg_path {
  gg_rig* rig;
  gg_bench_path_kind kind;
  gg_group* group;    /* unfused: its gradients are the temporary; stats: none */
  gg_table* table;    /* unfused: reduces the gradients and clips them; stats: reduces them */
  gg_triple* triples; /* of those, in the tensors' order */
  size_t* tensor_of_row;
  gg_buffer* temporary; /* unfused: the unscaled and clipped gradients, FP32 */
} gg_path;

bool gg_path_open(gg_path* path, gg_rig* rig, gg_bench_path_kind kind, gg_problem* problem);
void gg_path_close(gg_path* path);

/* Copies the original values back to the current places. Step counters are not reset. */
bool gg_path_reset(gg_path* path, gg_problem* problem);

/* One whole step: measured, decided, updated, and waited for. */
bool gg_path_step(gg_path* path, gg_problem* problem);

/* A hash of parameters and state. 0 for a path without them. */
bool gg_path_digest(const gg_path* path, uint64_t* digest, gg_problem* problem);

/* The minimum number of bytes that a step of this kind must move, with each input read once and each output written
 * once; for unfused, that of the fused step. */
uint64_t gg_path_bytes(const gg_path* path);

/* The number of bytes that it actually moves. */
uint64_t gg_path_traffic(const gg_path* path);

/* Launches of a step, and device memory beyond parameters, gradients and state. */
void gg_path_costs(const gg_path* path, uint32_t* reductions, uint32_t* updates, uint64_t* scratch);

#endif
