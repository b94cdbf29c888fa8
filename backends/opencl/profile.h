/* Kernel times from the command queue, reported to the context's log function when the library next waits. */
#ifndef GG_BACKENDS_OPENCL_PROFILE_H
#define GG_BACKENDS_OPENCL_PROFILE_H

#include "backends/opencl/device.h"

/* Records a launch; after GG_OPENCL_TIMED launches between two waits, further ones are ignored. Does nothing unless
 * device->profiling. */
void gg_opencl_profile_add(gg_opencl_device* device, const char* kernel, uint32_t blocks, gg_cl_event event);

/* Reports the times of all recorded launches. */
void gg_opencl_profile_tell(gg_opencl_device* device);

void gg_opencl_profile_drop(gg_opencl_device* device);

#endif
