/*
 * The statistics of every gradient of a table, in one launch or two. From the second step with the same loss scale they
 * are one CUDA graph, captured once: submitting it takes the host a fifth of the time of two launches (1.5 us instead
 * of 7 us with an H200), and that time limits steps of small groups.
 */
#include "backends/cuda/table.h"

static gg_status launch(gg_cuda_device* cuda, gg_cu_stream stream, gg_cuda_table* t, float inverse_scale,
                        gg_error* error) {
  uint32_t row_begin = 0, row_end = t->table.rows;
  void* reduce[] = {&t->rows,       &t->first_block, &row_begin,           &row_end,
                    &inverse_scale, &t->partials,    &t->summaries.address};
  void* finalize[] = {&t->first_block, &row_begin, &t->partials, &t->summaries.address};
  gg_status status = gg_cuda_launch(cuda, stream, cuda->reduce, "gg_reduce", t->reduce_blocks, reduce, error);
  if (!status && t->finalize_rows > 0)
    status = gg_cuda_launch(cuda, stream, cuda->finalize, "gg_finalize", t->finalize_rows, finalize, error);
  return status;
}

/* The capture is always ended, even after an error, so that the stream can be destroyed. */
static gg_status record_on(gg_cuda_device* cuda, gg_cu_stream stream, gg_cuda_table* t, float inverse_scale,
                           gg_cu_graph* graph, gg_error* error) {
  gg_status status = GG_CUDA_TRY(cuda, error, cuStreamBeginCapture_v2, (stream, GG_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                                 "beginning to record a reduction");
  if (status) return status;
  status = launch(cuda, stream, t, inverse_scale, error);
  gg_cu_result code = cuda->driver.cuStreamEndCapture(stream, graph);
  return status ? status : gg_cuda_check(cuda, error, code, "cuStreamEndCapture", "recording a reduction");
}

/* Captured on a separate stream, because the context's stream may be the caller's and in use. */
static gg_status record(gg_cuda_device* cuda, gg_cuda_table* t, float inverse_scale, gg_error* error) {
  gg_cu_stream stream = NULL;
  gg_cu_graph graph = NULL;
  gg_status status = GG_CUDA_TRY(cuda, error, cuStreamCreate, (&stream, GG_CU_STREAM_NON_BLOCKING),
                                 "creating a stream to record a reduction");
  if (status) return status;
  status = record_on(cuda, stream, t, inverse_scale, &graph, error);
  if (!status)
    status = GG_CUDA_TRY(cuda, error, cuGraphInstantiateWithFlags, (&t->replay, graph, 0), "preparing a reduction");
  if (graph) cuda->driver.cuGraphDestroy(graph);
  cuda->driver.cuStreamDestroy_v2(stream);
  return status;
}

/* With another loss scale the captured graph is useless. The device may still be running it: the driver waits for that.
 */
static void forget(gg_cuda_device* cuda, gg_cuda_table* t) {
  if (t->replay) cuda->driver.cuGraphExecDestroy(t->replay);
  t->replay = NULL;
}

static gg_status queue(gg_cuda_device* cuda, gg_cuda_table* t, float inverse_scale, gg_error* error) {
  bool again = t->inverse_scale == inverse_scale;
  gg_status status = GG_OK;
  if (!again) forget(cuda, t);
  if (again && !t->replay) status = record(cuda, t, inverse_scale, error);
  t->inverse_scale = inverse_scale;
  if (status) return status;
  return t->replay ? GG_CUDA_TRY(cuda, error, cuGraphLaunch, (t->replay, cuda->stream), "launching a reduction")
                   : launch(cuda, cuda->stream, t, inverse_scale, error);
}

gg_status gg_cuda_reduce(gg_device* device, gg_table* table, float inverse_scale, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_status status = gg_cuda_enter(cuda, error);
  return status ? status : gg_cuda_leave(cuda, queue(cuda, gg_cuda_table_of(table), inverse_scale, error), error);
}
