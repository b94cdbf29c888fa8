/* Device memory: a range of a memory object or of shared virtual memory. */
#ifndef GG_BACKENDS_OPENCL_MEMORY_H
#define GG_BACKENDS_OPENCL_MEMORY_H

#include "backends/opencl/device.h"

/* A kernel argument: a memory object, or an SVM address. */
typedef struct gg_opencl_object {
  gg_cl_mem mem; /* NULL: SVM */
  unsigned char* svm;
} gg_opencl_object;

typedef struct gg_opencl_memory {
  gg_memory base;
  gg_opencl_object object; /* for a caller's sub-buffer, its parent, so that sub-buffers share launches */
  uint64_t origin;         /* of the first byte within the object */
  uint32_t skew;           /* the object's own address modulo 256, if it is known not to be aligned */
  void*
      svm_allocation; /* SVM: the pointer to pass to clSetKernelExecInfo for kernels that read addresses from a table */
  bool readable, writable;       /* by kernels */
  gg_cl_mem owned;               /* released with the memory: the caller's, retained, or created for this memory only */
  struct gg_opencl_block* block; /* its block of a slab; NULL if it has none */
  const uint32_t* order;         /* summaries: the row of each 12-byte item; NULL: in row order. Not owned */
} gg_opencl_memory;

static inline const gg_opencl_memory* gg_opencl_memory_of(const gg_memory* memory) {
  return (const gg_opencl_memory*)memory;
}

gg_status gg_opencl_alloc(gg_device* device, uint64_t bytes, gg_memory** memory, gg_error* error);
gg_status gg_opencl_wrap(gg_device* device, gg_handle_kind kind, uint64_t handle, uint64_t bytes, gg_memory** memory,
                         gg_error* error);
void gg_opencl_release(gg_device* device, gg_memory* memory);

/* Memory that can be a kernel argument by itself, unlike a range of an arena slab. */
gg_status gg_opencl_scratch(gg_opencl_device* device, uint64_t bytes, gg_opencl_memory** memory, gg_error* error);

gg_status gg_opencl_upload(gg_device* device, gg_memory* memory, uint64_t offset, const void* source, uint64_t bytes,
                           gg_error* error);
gg_status gg_opencl_fill(gg_device* device, gg_memory* memory, uint64_t offset, uint64_t bytes, uint8_t value,
                         gg_error* error);
gg_status gg_opencl_readback(gg_device* device, const gg_readback* pieces, size_t count, gg_error* error);
gg_status gg_opencl_wait(gg_device* device, gg_error* error);
gg_status gg_opencl_copy(gg_device* device, gg_memory* to, uint64_t to_offset, const gg_memory* from,
                         uint64_t from_offset, uint64_t bytes, gg_error* error);

/* Queues a copy to the device. If `done` is NULL it blocks; otherwise `source` must stay valid until that event. */
gg_status gg_opencl_write(gg_opencl_device* device, const gg_opencl_memory* memory, uint64_t offset, const void* source,
                          uint64_t bytes, gg_cl_event* done, gg_error* error);

#endif
