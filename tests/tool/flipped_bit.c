/* A double of gradguard-bench that changes one bit of what a path has made before it is compared. FLIPPED_BIT says
 * where: "PATH:STATE:BATCH", the state's number in the rig and the batch from 0; the bit is the lowest of the last
 * element of the last tensor. Linked with --wrap=gg_path_digest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/path.h"

bool __real_gg_path_digest(const gg_path* path, uint64_t* digest, gg_problem* problem);
bool __wrap_gg_path_digest(const gg_path* path, uint64_t* digest, gg_problem* problem);

static bool flip(const gg_path* path, unsigned state) {
  static const gg_role roles[] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ, GG_MAX_EXP_AVG_SQ};
  size_t last = path->rig->options->shapes.count - 1;
  gg_tensor tensor;
  if (gg_group_tensor(path->group, last, roles[state], &tensor) != GG_OK) return false;
  uint64_t at = tensor.offset + (gg_bench_elements(&path->rig->options->shapes.shapes[last]) - 1) * sizeof(uint32_t);
  uint32_t bits;
  if (gg_buffer_download(tensor.buffer, at, &bits, sizeof bits) != GG_OK) return false;
  bits ^= 1;
  return gg_buffer_upload(tensor.buffer, at, &bits, sizeof bits) == GG_OK;
}

bool __wrap_gg_path_digest(const gg_path* path, uint64_t* digest, gg_problem* problem) {
  static unsigned calls[GG_BENCH_PATHS];
  const char* where = getenv("FLIPPED_BIT");
  char name[16];
  unsigned state, batch;
  bool asked = where != NULL && sscanf(where, "%15[a-z]:%u:%u", name, &state, &batch) == 3 &&
               strcmp(name, gg_bench_path_names[path->kind]) == 0 && batch == calls[path->kind];
  calls[path->kind]++;
  if (asked && !flip(path, state)) abort();
  return __real_gg_path_digest(path, digest, problem);
}
