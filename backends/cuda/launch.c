#include <inttypes.h>

#include "backends/cuda/table.h"
#include "kernels/types.h"

gg_status gg_cuda_launch(gg_cuda_device* cuda, gg_cu_stream stream, gg_cu_function function, const char* name,
                         uint32_t blocks, void** parameters, gg_error* error) {
  return GG_CUDA_TRY(cuda, error, cuLaunchKernel, (function, blocks, 1, 1, GG_LANES, 1, 1, 0, stream, parameters, NULL),
                     "launching %s with %" PRIu32 " blocks", name, blocks);
}
