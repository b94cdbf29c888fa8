#include <inttypes.h>

#include "backends/cuda/device.h"

gg_status gg_cuda_upload(gg_device* device, gg_memory* memory, uint64_t offset, const void* source, uint64_t bytes,
                         gg_error* error) {
  if (bytes == 0) return GG_OK;
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  status = GG_CUDA_TRY(cuda, error, cuMemcpyHtoDAsync_v2,
                       (gg_cuda_memory_of(memory)->address + offset, source, (size_t)bytes, cuda->stream),
                       "uploading %" PRIu64 " bytes", bytes);
  if (!status)
    status =
        GG_CUDA_TRY(cuda, error, cuStreamSynchronize, (cuda->stream), "waiting for %" PRIu64 " uploaded bytes", bytes);
  status = gg_cuda_leave(cuda, status, error);
  return status ? gg_cuda_settle(cuda, status, error) : GG_OK;
}

gg_status gg_cuda_fill(gg_device* device, gg_memory* memory, uint64_t offset, uint64_t bytes, uint8_t value,
                       gg_error* error) {
  if (bytes == 0) return GG_OK;
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  status = GG_CUDA_TRY(cuda, error, cuMemsetD8Async,
                       (gg_cuda_memory_of(memory)->address + offset, value, (size_t)bytes, cuda->stream),
                       "filling %" PRIu64 " bytes", bytes);
  return gg_cuda_leave(cuda, status, error);
}

static gg_status queue_pieces(gg_cuda_device* cuda, const gg_readback* pieces, size_t count, gg_error* error) {
  for (size_t i = 0; i < count; i++) {
    const gg_readback* piece = &pieces[i];
    const gg_cuda_memory* memory = (const gg_cuda_memory*)piece->memory;
    /* The kernels have written a table's summaries to host memory: only the event is needed. */
    if (memory->host && (char*)memory->host + piece->offset == (char*)piece->destination) continue;
    if (piece->bytes == 0) continue;
    gg_status status =
        GG_CUDA_TRY(cuda, error, cuMemcpyDtoHAsync_v2,
                    (piece->destination, memory->address + piece->offset, (size_t)piece->bytes, cuda->stream),
                    "reading %" PRIu64 " bytes back", piece->bytes);
    if (status) return status;
  }
  return GG_CUDA_TRY(cuda, error, cuEventRecord, (cuda->arrived, cuda->stream), "marking the end of a read-back");
}

gg_status gg_cuda_readback(gg_device* device, const gg_readback* pieces, size_t count, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  status = gg_cuda_leave(cuda, queue_pieces(cuda, pieces, count, error), error);
  cuda->readback_queued = !status;
  return status ? gg_cuda_settle(cuda, status, error) : GG_OK;
}

gg_status gg_cuda_wait(gg_device* device, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  if (!cuda->readback_queued) return GG_OK;
  cuda->readback_queued = false;
  gg_status status = gg_cuda_enter(cuda, error);
  if (!status) {
    status = GG_CUDA_TRY(cuda, error, cuEventSynchronize, (cuda->arrived), "waiting for a read-back");
    status = gg_cuda_leave(cuda, status, error);
  }
  /* A wait that failed may not have waited, and the caller may free the destinations now. */
  return status ? gg_cuda_settle(cuda, status, error) : GG_OK;
}
