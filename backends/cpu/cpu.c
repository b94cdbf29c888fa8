/* The vtable of the cpu backend. */
#include "backends/cpu/cpu.h"

const gg_backend gg_backend_cpu = {
    .name = "cpu",
    .kernel_variable = "GRADGUARD_CPU_KERNELS",
    .kernels = "avx512 avx2 portable",
    .probe = gg_cpu_probe,
    .open = gg_cpu_open,
    .close = gg_cpu_close,
    .alloc = gg_cpu_alloc,
    .wrap = gg_cpu_wrap,
    .release = gg_cpu_release,
    .upload = gg_cpu_upload,
    .fill = gg_cpu_fill,
    .readback = gg_cpu_readback,
    .wait = gg_cpu_done,
    .table = gg_cpu_table_make,
    .table_free = gg_cpu_table_free,
#if GG_WITH_GUARD
    .reduce = gg_cpu_reduce,
#endif
    .update = gg_cpu_update,
    .wait_update = gg_cpu_wait_update,
    .sync = gg_cpu_done,
    .unfused_clip = gg_cpu_unfused_clip,
    .copy = gg_cpu_copy,
};
