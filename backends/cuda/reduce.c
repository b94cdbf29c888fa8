/* The statistics of every gradient of a table, in one launch or two. */
#include "backends/cuda/table.h"

gg_status gg_cuda_reduce(gg_device* device, gg_table* table, float inverse_scale, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_cuda_table* t = gg_cuda_table_of(table);
  uint32_t row_begin = 0, row_end = table->rows;
  void* reduce[] = {&t->rows,       &t->first_block, &row_begin,           &row_end,
                    &inverse_scale, &t->partials,    &t->summaries.address};
  void* finalize[] = {&t->first_block, &row_begin, &t->partials, &t->summaries.address};
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  status = gg_cuda_launch(cuda, cuda->reduce, "gg_reduce", t->reduce_blocks, reduce, error);
  if (!status && t->finalize_rows > 0)
    status = gg_cuda_launch(cuda, cuda->finalize, "gg_finalize", t->finalize_rows, finalize, error);
  return gg_cuda_leave(cuda, status, error);
}
