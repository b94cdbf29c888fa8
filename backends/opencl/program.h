/* Builds the kernels from the source embedded in the library. */
#ifndef GG_BACKENDS_OPENCL_PROGRAM_H
#define GG_BACKENDS_OPENCL_PROGRAM_H

#include "backends/opencl/device.h"

/* Builds device->programs[variant] unless it has already been built. With GG_ERROR_BUILD the message has the beginning
 * of the build log; the log function receives all of it, line by line. */
gg_status gg_opencl_program(gg_opencl_device* device, gg_opencl_variant variant, gg_error* error);

#endif
