#include <inttypes.h>

#include "backends/cuda/device.h"

gg_status gg_cuda_copy(gg_device* device, gg_memory* to, uint64_t to_offset, const gg_memory* from,
                       uint64_t from_offset, uint64_t bytes, gg_error* error) {
  if (bytes == 0) return GG_OK;
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_cu_pointer target = ((gg_cuda_memory*)to)->address + to_offset;
  gg_cu_pointer source = ((const gg_cuda_memory*)from)->address + from_offset;
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  status = GG_CUDA_TRY(cuda, error, cuMemcpyDtoDAsync_v2, (target, source, (size_t)bytes, cuda->stream),
                       "copying %" PRIu64 " bytes on the device", bytes);
  return gg_cuda_leave(cuda, status, error);
}
