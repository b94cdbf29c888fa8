/* The vtable of the cuda backend. */
#include "backends/backend.h"

#include "backends/cuda/device.h"
#include "backends/cuda/table.h"

const gg_backend gg_backend_cuda = {
    .name = "cuda",
    .native = GG_NATIVE_CUDA,
    .kernel_variable = "GRADGUARD_CUDA_KERNELS",
    .kernels = "cubin ptx nvrtc",
    .probe = gg_cuda_probe,
    .open = gg_cuda_open,
    .close = gg_cuda_close,
    .alloc = gg_cuda_alloc,
    .wrap = gg_cuda_wrap,
    .release = gg_cuda_release,
    .upload = gg_cuda_upload,
    .fill = gg_cuda_fill,
    .readback = gg_cuda_readback,
    .wait = gg_cuda_wait,
    .table = gg_cuda_table_make,
    .table_free = gg_cuda_table_free,
#if GG_WITH_GUARD
    .reduce = gg_cuda_reduce,
#endif
    .update = gg_cuda_update,
    .wait_update = gg_cuda_wait_update,
    .sync = gg_cuda_sync,
    .unfused_clip = gg_cuda_unfused_clip,
    .copy = gg_cuda_copy,
    .native_queue = gg_cuda_native_queue,
    .native_address = gg_cuda_native_address,
};
