/* The device table of a group. */
#ifndef GG_BACKENDS_CUDA_TABLE_H
#define GG_BACKENDS_CUDA_TABLE_H

#include "backends/cuda/device.h"

/* Whether kernels write a table's summaries directly to pinned host memory. That saves the copy, which takes as long as
 * a launch. 0: they are written to device memory and copied. */
#ifndef GG_CUDA_MAPPED_SUMMARIES
#define GG_CUDA_MAPPED_SUMMARIES 1
#endif

typedef struct gg_cuda_table {
  gg_table table;
  gg_cuda_memory summaries; /* table.summaries */

  gg_cu_pointer allocation; /* holds all of these */
  gg_cu_pointer rows;
  gg_cu_pointer first_block;        /* uint32_t prefix sums of reduction blocks, one more than rows */
  gg_cu_pointer first_update_block; /* of update blocks; 0 without updates */
  gg_cu_pointer bias;               /* a gg_bias for each row; 0 without updates */
  gg_cu_pointer partials;

  uint32_t reduce_blocks;
  uint32_t finalize_rows; /* rows with more than one reduction block; they come first */
  uint32_t update_blocks;

  gg_cu_graph_exec replay; /* a reduction with the last inverse scale; NULL until it has been used twice */
  float inverse_scale;     /* of the last reduction; 0 before the first */

  void* pinned; /* host memory: the bias corrections, then the summaries */
  gg_bias* host_bias;
  bool bias_uploaded; /* `bias` equals host_bias */
  gg_cu_event updated;
  bool update_queued;
} gg_cuda_table;

static inline gg_cuda_table* gg_cuda_table_of(gg_table* table) { return (gg_cuda_table*)table; }

/* Queues one kernel over `blocks` blocks of 256 threads. */
gg_status gg_cuda_launch(gg_cuda_device* cuda, gg_cu_stream stream, gg_cu_function function, const char* name,
                         uint32_t blocks, void** parameters, gg_error* error);

gg_status gg_cuda_table_make(gg_device* device, const gg_row* rows, uint32_t count, bool amsgrad, bool updates,
                             gg_table** table, gg_error* error);
void gg_cuda_table_free(gg_device* device, gg_table* table);
gg_status gg_cuda_reduce(gg_device* device, gg_table* table, float inverse_scale, gg_error* error);
gg_status gg_cuda_update(gg_device* device, gg_table* table, const gg_update* update, gg_error* error);
gg_status gg_cuda_wait_update(gg_device* device, gg_table* table, gg_error* error);
gg_status gg_cuda_unfused_clip(gg_device* device, gg_table* table, const gg_update_constants* constants,
                               gg_error* error);

#endif
