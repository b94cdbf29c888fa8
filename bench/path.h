/* One way to take a step, with a group of its own over the rig's tensors. */
#ifndef GG_BENCH_PATH_H
#define GG_BENCH_PATH_H

#include "bench/rig.h"

typedef struct gg_path {
  gg_rig* rig;
  gg_bench_path_kind kind;
  gg_group* group;    /* staged: its gradients are the temporary; stats: none */
  gg_table* table;    /* staged: reduces the gradients and stages them; stats: reduces them */
  gg_triple* triples; /* of those, in the tensors' order */
  size_t* tensor_of_row;
  gg_buffer* temporary; /* staged: the unscaled and clipped gradients, FP32 */
} gg_path;

bool gg_path_open(gg_path* path, gg_rig* rig, gg_bench_path_kind kind, gg_problem* problem);
void gg_path_close(gg_path* path);

/* Puts the originals back into whatever places are current. Step counters go on. */
bool gg_path_reset(gg_path* path, gg_problem* problem);

/* One whole step: measured, decided, updated, and waited for. */
bool gg_path_step(gg_path* path, gg_problem* problem);

/* A number that depends on every bit of parameters and state. 0 for a path without any. */
bool gg_path_digest(const gg_path* path, uint64_t* digest, gg_problem* problem);

/* Bytes that a step of this kind must move at least, each input read once and each output written once; for staged
 * those of the fused step, whose work it does. */
uint64_t gg_path_bytes(const gg_path* path);

/* Bytes that it does move. */
uint64_t gg_path_traffic(const gg_path* path);

/* Launches of a step, and device memory beyond parameters, gradients and state. */
void gg_path_costs(const gg_path* path, uint32_t* reductions, uint32_t* updates, uint64_t* scratch);

#endif
