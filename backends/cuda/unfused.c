/* The separate unscale-and-clip pass of the unfused baseline that bench/ compares with. */
#include "backends/cuda/table.h"

gg_status gg_cuda_unfused_clip(gg_device* device, gg_table* table, const gg_update_constants* constants,
                               gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_cuda_table* t = gg_cuda_table_of(table);
  uint32_t row_begin = 0, row_end = table->rows;
  gg_update_constants copy = *constants;
  void* parameters[] = {&t->rows, &t->first_update_block, &row_begin, &row_end, &copy};
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  status =
      gg_cuda_launch(cuda, cuda->stream, cuda->unfused_clip, "gg_unfused_clip", t->update_blocks, parameters, error);
  return gg_cuda_leave(cuda, status, error);
}
