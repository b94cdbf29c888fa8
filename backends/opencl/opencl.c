/* The vtable of the opencl backend. */
#include "backends/opencl/capability.h"
#include "backends/opencl/device.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/table.h"

const gg_backend gg_backend_opencl = {
    .name = "opencl",
    .native = GG_NATIVE_OPENCL,
    .kernel_variable = "GRADGUARD_OPENCL_KERNELS",
    .kernels = "svm arena",
    .probe = gg_opencl_probe,
    .open = gg_opencl_open,
    .close = gg_opencl_close,
    .alloc = gg_opencl_alloc,
    .wrap = gg_opencl_wrap,
    .release = gg_opencl_release,
    .upload = gg_opencl_upload,
    .fill = gg_opencl_fill,
    .readback = gg_opencl_readback,
    .wait = gg_opencl_wait,
    .table = gg_opencl_table_create,
    .table_free = gg_opencl_table_free,
#if GG_WITH_GUARD
    .reduce = gg_opencl_reduce,
#endif
    .update = gg_opencl_update,
    .wait_update = gg_opencl_wait_update,
    .sync = gg_opencl_sync,
    .unfused_clip = gg_opencl_unfused_clip,
    .copy = gg_opencl_copy,
    .native_queue = gg_opencl_native_queue,
};
