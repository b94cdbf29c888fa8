/* A device with the data that its paths work on: gradients, parameters and state, and their original values. */
#ifndef GG_BENCH_RIG_H
#define GG_BENCH_RIG_H

#include "bench/options.h"
#include "host/buffer.h"
#include "kernels/types.h"
#include "tools/gradguard/problem.h"

typedef struct gg_rig {
  const gg_bench_options* options;
  gg_context* context;
  gg_device_info info;
  size_t states;     /* 3, or 4 with AMSGrad */
  uint64_t elements; /* of all tensors */
  uint64_t* places;  /* of each tensor, in elements from the start of a buffer */
  uint64_t room;     /* elements of a buffer */
  gg_buffer* gradient;
  gg_buffer* original[GG_STATES];
  gg_buffer* state[GG_STATES];
  gg_buffer *copy_from, *copy_to; /* for the rate of a plain copy */
} gg_rig;

/* Opens the device; it holds no tensors yet. On failure everything is closed. */
bool gg_rig_open(gg_rig* rig, const gg_bench_options* options, const gg_bench_target* target, gg_problem* problem);
void gg_rig_close(gg_rig* rig);

/* The approximate device memory, in bytes, for the tensors and all paths of the options. */
double gg_rig_need(const gg_rig* rig);

/* Fills the tensors with random data that depend only on the options, the same on every device. */
bool gg_rig_fill(gg_rig* rig, gg_problem* problem);
void gg_rig_empty(gg_rig* rig);

/* A tensor of the rig in one of its buffers. */
gg_tensor gg_rig_tensor(const gg_rig* rig, gg_buffer* buffer, gg_dtype dtype, size_t index);

/* Bytes read and written by a plain copy on the device, a second. */
bool gg_rig_copy_rate(gg_rig* rig, double* rate, gg_problem* problem);

/* Seconds on a monotonic clock. */
double gg_seconds(void);

#endif
