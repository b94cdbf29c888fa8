/* Kernel times from the command queue, told to the context's log as information when the library next waits. */
#ifndef GG_BACKENDS_OPENCL_PROFILE_H
#define GG_BACKENDS_OPENCL_PROFILE_H

#include "backends/opencl/device.h"

/* Remembers a launch; beyond GG_OPENCL_TIMED between two waits it forgets. Does nothing unless device->profiling. */
void gg_opencl_profile_add(gg_opencl_device* device, const char* kernel, uint32_t blocks, gg_cl_event event);

/* Tells the times of all finished launches. */
void gg_opencl_profile_tell(gg_opencl_device* device);

void gg_opencl_profile_drop(gg_opencl_device* device);

#endif
