/* The functions of OpenCL that this backend calls: X(result, name, (parameters)).
 * Required ones are OpenCL 1.2. Optional ones, the shared virtual memory of 2.0, may be absent from a loader. */
#ifndef GG_BACKENDS_OPENCL_SYMBOLS_H
#define GG_BACKENDS_OPENCL_SYMBOLS_H

#include "backends/opencl/cl_types.h"

#define GG_CL_REQUIRED_SYMBOLS(X)                                                                                      \
  X(gg_cl_int, clGetPlatformIDs, (gg_cl_uint, gg_cl_platform*, gg_cl_uint*))                                           \
  X(gg_cl_int, clGetPlatformInfo, (gg_cl_platform, gg_cl_enum, size_t, void*, size_t*))                                \
  X(gg_cl_int, clGetDeviceIDs, (gg_cl_platform, gg_cl_bits, gg_cl_uint, gg_cl_device*, gg_cl_uint*))                   \
  X(gg_cl_int, clGetDeviceInfo, (gg_cl_device, gg_cl_enum, size_t, void*, size_t*))                                    \
  X(gg_cl_context, clCreateContext,                                                                                    \
    (const gg_cl_property*, gg_cl_uint, const gg_cl_device*, void (*)(const char*, const void*, size_t, void*), void*, \
     gg_cl_int*))                                                                                                      \
  X(gg_cl_int, clRetainContext, (gg_cl_context))                                                                       \
  X(gg_cl_int, clReleaseContext, (gg_cl_context))                                                                      \
  X(gg_cl_queue, clCreateCommandQueue, (gg_cl_context, gg_cl_device, gg_cl_bits, gg_cl_int*))                          \
  X(gg_cl_int, clRetainCommandQueue, (gg_cl_queue))                                                                    \
  X(gg_cl_int, clReleaseCommandQueue, (gg_cl_queue))                                                                   \
  X(gg_cl_int, clGetCommandQueueInfo, (gg_cl_queue, gg_cl_enum, size_t, void*, size_t*))                               \
  X(gg_cl_int, clFlush, (gg_cl_queue))                                                                                 \
  X(gg_cl_int, clFinish, (gg_cl_queue))                                                                                \
  X(gg_cl_mem, clCreateBuffer, (gg_cl_context, gg_cl_bits, size_t, void*, gg_cl_int*))                                 \
  X(gg_cl_int, clRetainMemObject, (gg_cl_mem))                                                                         \
  X(gg_cl_int, clReleaseMemObject, (gg_cl_mem))                                                                        \
  X(gg_cl_int, clGetMemObjectInfo, (gg_cl_mem, gg_cl_enum, size_t, void*, size_t*))                                    \
  X(gg_cl_int, clEnqueueReadBuffer,                                                                                    \
    (gg_cl_queue, gg_cl_mem, gg_cl_bool, size_t, size_t, void*, gg_cl_uint, const gg_cl_event*, gg_cl_event*))         \
  X(gg_cl_int, clEnqueueWriteBuffer,                                                                                   \
    (gg_cl_queue, gg_cl_mem, gg_cl_bool, size_t, size_t, const void*, gg_cl_uint, const gg_cl_event*, gg_cl_event*))   \
  X(gg_cl_int, clEnqueueFillBuffer,                                                                                    \
    (gg_cl_queue, gg_cl_mem, const void*, size_t, size_t, size_t, gg_cl_uint, const gg_cl_event*, gg_cl_event*))       \
  X(gg_cl_int, clEnqueueCopyBuffer,                                                                                    \
    (gg_cl_queue, gg_cl_mem, gg_cl_mem, size_t, size_t, size_t, gg_cl_uint, const gg_cl_event*, gg_cl_event*))         \
  X(gg_cl_program, clCreateProgramWithSource, (gg_cl_context, gg_cl_uint, const char**, const size_t*, gg_cl_int*))    \
  X(gg_cl_int, clBuildProgram,                                                                                         \
    (gg_cl_program, gg_cl_uint, const gg_cl_device*, const char*, void (*)(gg_cl_program, void*), void*))              \
  X(gg_cl_int, clGetProgramBuildInfo, (gg_cl_program, gg_cl_device, gg_cl_enum, size_t, void*, size_t*))               \
  X(gg_cl_int, clReleaseProgram, (gg_cl_program))                                                                      \
  X(gg_cl_kernel, clCreateKernel, (gg_cl_program, const char*, gg_cl_int*))                                            \
  X(gg_cl_int, clGetKernelWorkGroupInfo, (gg_cl_kernel, gg_cl_device, gg_cl_enum, size_t, void*, size_t*))             \
  X(gg_cl_int, clSetKernelArg, (gg_cl_kernel, gg_cl_uint, size_t, const void*))                                        \
  X(gg_cl_int, clReleaseKernel, (gg_cl_kernel))                                                                        \
  X(gg_cl_int, clEnqueueNDRangeKernel,                                                                                 \
    (gg_cl_queue, gg_cl_kernel, gg_cl_uint, const size_t*, const size_t*, const size_t*, gg_cl_uint,                   \
     const gg_cl_event*, gg_cl_event*))                                                                                \
  X(gg_cl_int, clWaitForEvents, (gg_cl_uint, const gg_cl_event*))                                                      \
  X(gg_cl_int, clGetEventInfo, (gg_cl_event, gg_cl_enum, size_t, void*, size_t*))                                      \
  X(gg_cl_int, clGetEventProfilingInfo, (gg_cl_event, gg_cl_enum, size_t, void*, size_t*))                             \
  X(gg_cl_int, clRetainEvent, (gg_cl_event))                                                                           \
  X(gg_cl_int, clReleaseEvent, (gg_cl_event))

#define GG_CL_OPTIONAL_SYMBOLS(X)                                                                        \
  X(void*, clSVMAlloc, (gg_cl_context, gg_cl_bits, size_t, gg_cl_uint))                                  \
  X(void, clSVMFree, (gg_cl_context, void*))                                                             \
  X(gg_cl_int, clEnqueueSVMMemcpy,                                                                       \
    (gg_cl_queue, gg_cl_bool, void*, const void*, size_t, gg_cl_uint, const gg_cl_event*, gg_cl_event*)) \
  X(gg_cl_int, clEnqueueSVMMemFill,                                                                      \
    (gg_cl_queue, void*, const void*, size_t, size_t, gg_cl_uint, const gg_cl_event*, gg_cl_event*))     \
  X(gg_cl_int, clSetKernelArgSVMPointer, (gg_cl_kernel, gg_cl_uint, const void*))                        \
  X(gg_cl_int, clSetKernelExecInfo, (gg_cl_kernel, gg_cl_enum, size_t, const void*))

#endif
