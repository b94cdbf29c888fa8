#include <inttypes.h>
#include <stdlib.h>

#include "backends/cuda/device.h"
#include "host/status.h"

gg_status gg_cuda_alloc(gg_device* device, uint64_t bytes, gg_memory** memory, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  *memory = NULL;
  gg_cuda_memory* made = calloc(1, sizeof *made);
  if (!made) return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_cuda_alloc", "out of host memory while allocating a buffer");
  gg_status status = gg_cuda_enter(cuda, error);
  if (!status) {
    if (bytes > 0) /* the driver refuses 0 */
      status = GG_CUDA_TRY(cuda, error, cuMemAlloc_v2, (&made->address, (size_t)bytes),
                           "allocating %" PRIu64 " bytes on %s", bytes, device->info.id);
    status = gg_cuda_leave(cuda, status, error);
  }
  made->memory = (gg_memory){.bytes = bytes, .base = made->address};
  if (status) {
    gg_cuda_release(device, &made->memory);
    return status;
  }
  *memory = &made->memory;
  return GG_OK;
}

void gg_cuda_release(gg_device* device, gg_memory* memory) {
  if (!memory) return;
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_cuda_memory* released = gg_cuda_memory_of(memory);
  if (!memory->wrapped && released->address) {
    bool entered = gg_cuda_enter_release(cuda);
    cuda->driver.cuMemFree_v2(released->address);
    gg_cuda_leave_release(cuda, entered);
  }
  free(released);
}

uint64_t gg_cuda_native_address(const gg_memory* memory) { return ((const gg_cuda_memory*)memory)->address; }
