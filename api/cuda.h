/* CUDA interoperation: streams and device memory of the caller. Needs no header of the CUDA toolkit. */
#ifndef GRADGUARD_CUDA_H
#define GRADGUARD_CUDA_H

#include "gradguard.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* CUstream and cudaStream_t are pointers to it */

/*
 * Opens the device of `stream` (not the NULL stream) with the CUDA context that the stream belongs to, and orders all
 * work on it. The stream is adopted, not owned: it must outlive the context. Otherwise as gg_context_create.
 */
GG_API gg_status gg_cuda_context_create(struct CUstream_st* stream, const gg_context_options* options,
                                        gg_context** context, gg_error* error);

/*
 * Wraps device memory (a CUdeviceptr, or the pointer cudaMalloc gave). Checked with the driver: it must be accessible
 * from the context's device and, where the driver knows the allocation, hold `bytes` from here on. The caller keeps it
 * alive until the buffer and every group that uses it are destroyed.
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
