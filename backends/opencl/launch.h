/* Sets the arguments of one kernel, in order, and queues it. The first error is kept, and the launch reports it. */
#ifndef GG_BACKENDS_OPENCL_LAUNCH_H
#define GG_BACKENDS_OPENCL_LAUNCH_H

#include "backends/opencl/memory.h"

typedef struct gg_opencl_call {
  gg_opencl_device* device;
  gg_cl_kernel kernel;
  const char* name;
  gg_cl_uint next; /* argument */
  gg_cl_int code;  /* error of `function` for the first rejected argument, number `refused` */
  gg_cl_uint refused;
  const char* function;
} gg_opencl_call;

static inline gg_opencl_call gg_opencl_call_begin(gg_opencl_device* device, gg_cl_kernel kernel, const char* name) {
  return (gg_opencl_call){device, kernel, name, 0, GG_CL_SUCCESS, 0, NULL};
}

void gg_opencl_arg(gg_opencl_call* call, const void* value, size_t bytes);
void gg_opencl_arg_object(gg_opencl_call* call, const gg_opencl_object* object);
void gg_opencl_arg_scratch(gg_opencl_call* call, const gg_opencl_memory* memory);

/* Queues `blocks` work-groups of 256. `done` may be NULL. */
gg_status gg_opencl_launch(gg_opencl_call* call, uint32_t blocks, gg_cl_event* done, gg_error* error);

#endif
