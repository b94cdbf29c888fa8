/* The fused update of every tensor of a table, in one launch. */
#include <string.h>

#include "backends/cuda/table.h"
#include "host/status.h"

static gg_status wait_for_update(gg_cuda_device* cuda, gg_cuda_table* t, gg_error* error) {
  if (!t->update_queued) return GG_OK;
  gg_status status = GG_CUDA_TRY(cuda, error, cuEventSynchronize, (t->updated), "waiting for the update");
  if (!status) t->update_queued = false;
  return status;
}

/* Only when it changed: entries at different steps have different corrections, and these change with each step. */
static gg_status upload_bias(gg_cuda_device* cuda, gg_cuda_table* t, const gg_bias* bias, gg_error* error) {
  size_t bytes = t->table.rows * sizeof *bias;
  if (t->bias_uploaded && memcmp(t->host_bias, bias, bytes) == 0) return GG_OK;
  /* The copy for the previous update may still be reading the pinned memory. */
  gg_status status = wait_for_update(cuda, t, error);
  if (status) return status;
  t->bias_uploaded = false;
  memcpy(t->host_bias, bias, bytes);
  status = GG_CUDA_TRY(cuda, error, cuMemcpyHtoDAsync_v2, (t->bias, t->host_bias, bytes, cuda->stream),
                       "uploading bias corrections");
  t->bias_uploaded = !status;
  return status;
}

/* A launched update will be executed. If the caller saw an error and retried in place, the step would be applied twice,
 * so the device is marked lost; since it still works, its queued work is waited for. */
static gg_status half_done(gg_cuda_device* cuda, gg_error* error) {
  const gg_error cause = error ? *error : (gg_error)GG_ERROR_INIT;
  bool entered = gg_cuda_enter_release(cuda);
  cuda->driver.cuStreamSynchronize(cuda->stream);
  gg_cuda_leave_release(cuda, entered);
  cuda->device.lost = true;
  return gg_fail_native(error, GG_ERROR_DEVICE_LOST, cause.native_code, cause.native_name, cause.function,
                        "an update had been launched (%.300s): it may be half done; destroy the context and restore "
                        "parameters and state from the last checkpoint",
                        cause.message);
}

gg_status gg_cuda_update(gg_device* device, gg_table* table, const gg_update* update, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_cuda_table* t = gg_cuda_table_of(table);
  uint32_t row_begin = 0, row_end = table->rows, uniform = update->uniform;
  gg_update_constants constants = update->constants;
  void* parameters[] = {&t->rows, &t->first_update_block, &row_begin, &row_end, &constants, &t->bias, &uniform};
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  if (!update->uniform) status = upload_bias(cuda, t, update->bias, error);
  if (!status)
    status = gg_cuda_launch(cuda, cuda->stream, cuda->update, "gg_update", t->update_blocks, parameters, error);
  bool launched = !status;
  if (launched) {
    status = GG_CUDA_TRY(cuda, error, cuEventRecord, (t->updated, cuda->stream), "marking the end of the update");
    t->update_queued = !status;
  }
  status = gg_cuda_leave(cuda, status, error);
  return launched && status && !device->lost ? half_done(cuda, error) : status;
}

gg_status gg_cuda_wait_update(gg_device* device, gg_table* table, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  return gg_cuda_leave(cuda, wait_for_update(cuda, gg_cuda_table_of(table), error), error);
}
