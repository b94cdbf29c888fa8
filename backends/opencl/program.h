/* The kernels, built from the source in the library. */
#ifndef GG_BACKENDS_OPENCL_PROGRAM_H
#define GG_BACKENDS_OPENCL_PROGRAM_H

#include "backends/opencl/device.h"

/* Builds device->programs[route] unless it is there already. GG_ERROR_BUILD carries the beginning of the build log in
 * the message; all of it goes to the log, line by line. */
gg_status gg_opencl_program(gg_opencl_device* device, gg_opencl_route route, gg_error* error);

#endif
