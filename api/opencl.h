/* OpenCL interoperability: the caller's command queues and memory. Needs no OpenCL header. */
#ifndef GRADGUARD_OPENCL_H
#define GRADGUARD_OPENCL_H

#include "gradguard.h"

#ifdef __cplusplus
extern "C" {
#endif

struct _cl_command_queue; /* cl_command_queue and cl_mem are pointers to these */
struct _cl_mem;

/* Opens the device and the OpenCL context of `queue`, which must be in-order, and submits all work to it. The queue is
 * retained. Otherwise as gg_context_create. */
GG_API gg_status gg_opencl_context_create(struct _cl_command_queue* queue, const gg_context_options* options,
                                          gg_context** context, gg_error* error);

/* Wraps a buffer object of the same OpenCL context; it is retained until the buffer and every group that uses it are
 * destroyed. OpenCL gives it no address, so each set of memory objects that tensors lie in takes a launch of its own.
 */
GG_API gg_status gg_opencl_buffer_wrap_mem(gg_context* context, struct _cl_mem* memory, uint64_t bytes,
                                           gg_buffer** buffer);

/* Wraps shared virtual memory of the same OpenCL context (clSVMAlloc, coarse-grained, unmapped). The caller keeps it
 * alive until the buffer and every group that uses it are destroyed. */
GG_API gg_status gg_opencl_buffer_wrap_svm(gg_context* context, void* memory, uint64_t bytes, gg_buffer** buffer);

/* The command queue that this context submits to; NULL for a context of another backend. */
GG_API struct _cl_command_queue* gg_opencl_queue(const gg_context* context);

#ifdef __cplusplus
}
#endif

#endif
