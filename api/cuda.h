/* CUDA interoperability: the caller's streams and device memory. Needs no header of the CUDA toolkit. */
#ifndef GRADGUARD_CUDA_H
#define GRADGUARD_CUDA_H

#include "gradguard.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* CUstream and cudaStream_t are pointers to it */

/*
 * Opens the device of `stream` (not the NULL stream) with the CUDA context that the stream belongs to, and submits all
 * work to that stream. The caller still owns the stream, which must outlive the context. Otherwise as
 * gg_context_create.
 */
GG_API gg_status gg_cuda_context_create(struct CUstream_st* stream, const gg_context_options* options,
                                        gg_context** context, gg_error* error);

/*
 * Wraps device memory (a CUdeviceptr, or a pointer from cudaMalloc). The driver is asked whether the memory is
 * accessible from the context's device and, where it knows the allocation, whether at least `bytes` follow the pointer.
 * The caller keeps it alive until the buffer and every group that uses it are destroyed.
 */
GG_API gg_status gg_cuda_buffer_wrap(gg_context* context, uint64_t device_pointer, uint64_t bytes, gg_buffer** buffer);

/* The CUstream that this context submits to; NULL for a context of another backend. */
GG_API struct CUstream_st* gg_cuda_stream(const gg_context* context);

/* The device address of a buffer's first byte; 0 for a buffer of another backend. */
GG_API uint64_t gg_cuda_device_pointer(const gg_buffer* buffer);

#ifdef __cplusplus
}
#endif

#endif
