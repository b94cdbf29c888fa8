/* Device memory in slabs. One driver allocation contains many tensors, so that one kernel argument (arena) or one entry
 * in the kernel's list of pointers (SVM) is enough for all of them. */
#ifndef GG_BACKENDS_OPENCL_ARENA_H
#define GG_BACKENDS_OPENCL_ARENA_H

#include "backends/opencl/device.h"

#define GG_OPENCL_ALIGNMENT 256 /* of every block within its slab, and of an SVM slab's first byte */

/* One driver allocation: a memory object, or shared virtual memory. */
typedef struct gg_opencl_slab {
  struct gg_opencl_slab* next;
  gg_cl_mem mem;        /* NULL: SVM */
  void* allocation;     /* returned by clSVMAlloc */
  unsigned char* first; /* its first aligned byte */
  uint64_t bytes;
  uint64_t free_bytes;
  struct gg_opencl_block* blocks; /* in address order */
  struct gg_opencl_block* unused; /* the free ones */
} gg_opencl_slab;

typedef struct gg_opencl_block {
  gg_opencl_slab* slab;
  uint64_t offset;
  uint64_t bytes;
  bool used;
  struct gg_opencl_block *before, *after;         /* neighbours in the slab */
  struct gg_opencl_block *unused_before, *unused; /* neighbours among its free blocks */
} gg_opencl_block;

/* Allocates at least `bytes` in a slab, or in a new slab if none has room. */
gg_status gg_opencl_arena_take(gg_opencl_device* device, uint64_t bytes, gg_opencl_block** block, gg_error* error);

/* Frees a block. Queued commands may still use it: the next user's commands come later in the same queue. */
void gg_opencl_arena_give(gg_opencl_device* device, gg_opencl_block* block);

/* Frees all slabs, blocks in use included. The queue is idle or the device lost. */
void gg_opencl_arena_close(gg_opencl_device* device);

#endif
