/* The backends of this build. */
#include "backends/backend.h"

const gg_backend* const gg_backends[] = {
#ifdef GG_BACKEND_CUDA
    &gg_backend_cuda,
#endif
#ifdef GG_BACKEND_OPENCL
    &gg_backend_opencl,
#endif
#ifdef GG_BACKEND_CPU
    &gg_backend_cpu,
#endif
    NULL,
};
