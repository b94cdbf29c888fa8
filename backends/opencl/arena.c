#include "backends/opencl/arena.h"

#include <stdlib.h>

#include "backends/opencl/failure.h"
#include "host/status.h"

#define GG_SLAB_LEAST ((uint64_t)64 << 20)
#define GG_SLAB_MOST  ((uint64_t)1 << 30) /* larger ones are made for single large tensors only */

static void unused_insert(gg_opencl_block* block) {
  gg_opencl_slab* slab = block->slab;
  block->used = false;
  block->unused_before = NULL;
  block->unused = slab->unused;
  if (slab->unused != NULL) slab->unused->unused_before = block;
  slab->unused = block;
}

static void unused_remove(gg_opencl_block* block) {
  if (block->unused != NULL) block->unused->unused_before = block->unused_before;
  if (block->unused_before != NULL)
    block->unused_before->unused = block->unused;
  else
    block->slab->unused = block->unused;
  block->unused = block->unused_before = NULL;
}

/* Merges the free `block` with the free block after it. */
static void join_after(gg_opencl_block* block) {
  gg_opencl_block* gone = block->after;
  unused_remove(gone);
  block->bytes += gone->bytes;
  block->after = gone->after;
  if (gone->after != NULL) gone->after->before = block;
  free(gone);
}

static void slab_free(gg_opencl_device* device, gg_opencl_slab* slab) {
  for (gg_opencl_block *block = slab->blocks, *after; block != NULL; block = after) {
    after = block->after;
    free(block);
  }
  if (slab->mem != NULL) device->api.clReleaseMemObject(slab->mem);
  if (slab->allocation != NULL) device->api.clSVMFree(device->context, slab->allocation);
  free(slab);
}

/* The call because of which a slab could not be allocated; no function: out of host memory. */
typedef struct gg_slab_refusal {
  gg_cl_int code;
  const char* function;
} gg_slab_refusal;

static bool slab_allocate(gg_opencl_device* device, gg_opencl_slab* slab, gg_slab_refusal* refusal) {
  const gg_opencl_api* api = &device->api;
  *refusal = (gg_slab_refusal){GG_CL_SUCCESS, NULL};
  if (device->variant == GG_OPENCL_ARENA) {
    refusal->function = "clCreateBuffer";
    slab->mem = api->clCreateBuffer(device->context, GG_CL_MEM_READ_WRITE, slab->bytes, NULL, &refusal->code);
    if (slab->mem == NULL && refusal->code == GG_CL_SUCCESS) refusal->code = GG_CL_OUT_OF_RESOURCES;
    return refusal->code == GG_CL_SUCCESS;
  }
  /* Drivers need not support an alignment of 256, so the address is aligned here. */
  refusal->function = "clSVMAlloc"; /* which returns no error code */
  refusal->code = GG_CL_MEM_OBJECT_ALLOCATION_FAILURE;
  slab->allocation = api->clSVMAlloc(device->context, GG_CL_MEM_READ_WRITE, slab->bytes + GG_OPENCL_ALIGNMENT, 0);
  if (slab->allocation == NULL) return false;
  uintptr_t skew = (uintptr_t)slab->allocation % GG_OPENCL_ALIGNMENT;
  slab->first = (unsigned char*)slab->allocation + (skew != 0 ? GG_OPENCL_ALIGNMENT - skew : 0);
  return true;
}

/* Some drivers allocate when memory is first used: it is used here, so that running out of memory is detected here. */
static bool touch(gg_opencl_device* device, const gg_opencl_slab* slab, gg_slab_refusal* refusal) {
  const gg_opencl_api* api = &device->api;
  const uint32_t zero = 0;
  bool svm = slab->mem == NULL;
  refusal->function = svm ? "clEnqueueSVMMemFill" : "clEnqueueFillBuffer";
  refusal->code =
      svm ? api->clEnqueueSVMMemFill(device->queue, slab->first, &zero, sizeof zero, sizeof zero, 0, NULL, NULL)
          : api->clEnqueueFillBuffer(device->queue, slab->mem, &zero, sizeof zero, 0, sizeof zero, 0, NULL, NULL);
  return refusal->code == GG_CL_SUCCESS;
}

/* A slab of exactly `bytes`, empty, at the head of the list; NULL: `refusal` says why. */
static gg_opencl_slab* slab_create(gg_opencl_device* device, uint64_t bytes, gg_slab_refusal* refusal) {
  *refusal = (gg_slab_refusal){GG_CL_SUCCESS, NULL};
  gg_opencl_slab* slab = calloc(1, sizeof *slab);
  gg_opencl_block* block = calloc(1, sizeof *block);
  if (slab == NULL || block == NULL) {
    free(slab);
    free(block);
    return NULL;
  }
  slab->bytes = slab->free_bytes = bytes;
  block->slab = slab;
  block->bytes = bytes;
  slab->blocks = block;
  unused_insert(block);
  if (!slab_allocate(device, slab, refusal) || !touch(device, slab, refusal)) {
    slab_free(device, slab);
    return NULL;
  }
  slab->next = device->slabs;
  device->slabs = slab;
  device->slab_bytes += bytes;
  return slab;
}

/* The slab size grows with the total, so that there are few slabs; if that fails, only the needed size is allocated. */
static gg_opencl_slab* slab_for(gg_opencl_device* device, uint64_t needed, gg_slab_refusal* refusal) {
  uint64_t wanted = device->slab_bytes;
  if (wanted < GG_SLAB_LEAST) wanted = GG_SLAB_LEAST;
  if (wanted > GG_SLAB_MOST) wanted = GG_SLAB_MOST;
  uint64_t most = device->can.max_allocation - device->can.max_allocation % GG_OPENCL_ALIGNMENT;
  most = most > GG_OPENCL_ALIGNMENT ? most - GG_OPENCL_ALIGNMENT : 0;
  if (wanted > most) wanted = most;
  if (wanted < needed) wanted = needed;
  gg_opencl_slab* slab = slab_create(device, wanted, refusal);
  if (slab == NULL && wanted > needed) slab = slab_create(device, needed, refusal);
  return slab;
}

/* The first free block that is large enough, starting with the most recently freed. */
static gg_opencl_block* find_room(gg_opencl_slab* slab, uint64_t bytes) {
  for (; slab != NULL; slab = slab->next) {
    if (slab->free_bytes < bytes) continue;
    for (gg_opencl_block* block = slab->unused; block != NULL; block = block->unused)
      if (block->bytes >= bytes) return block;
  }
  return NULL;
}

static gg_status out_of_host_memory(gg_error* error) {
  return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_opencl_arena_take", "out of host memory keeping track of a buffer");
}

gg_status gg_opencl_arena_take(gg_opencl_device* device, uint64_t bytes, gg_opencl_block** taken, gg_error* error) {
  const uint64_t unit = GG_OPENCL_ALIGNMENT;
  uint64_t most = UINT64_MAX / 4; /* prevents overflow in the sums here; the driver rejects this size anyway */
  uint64_t needed = bytes > most ? most : bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
  gg_opencl_block* block = find_room(device->slabs, needed);
  if (block == NULL) {
    gg_slab_refusal refusal;
    gg_opencl_slab* slab = slab_for(device, needed, &refusal);
    if (slab == NULL && refusal.function == NULL) return out_of_host_memory(error);
    if (slab == NULL)
      return gg_opencl_fail(device, error, refusal.code, refusal.function,
                            "allocating %llu bytes on %s (one allocation of this device has at most %llu)",
                            (unsigned long long)bytes, device->base.info.id,
                            (unsigned long long)device->can.max_allocation);
    block = slab->unused;
  }
  if (block->bytes > needed) {
    gg_opencl_block* rest = calloc(1, sizeof *rest);
    if (rest == NULL) return out_of_host_memory(error);
    rest->slab = block->slab;
    rest->offset = block->offset + needed;
    rest->bytes = block->bytes - needed;
    rest->before = block;
    rest->after = block->after;
    if (rest->after != NULL) rest->after->before = rest;
    block->after = rest;
    block->bytes = needed;
    unused_insert(rest);
  }
  unused_remove(block);
  block->used = true;
  block->slab->free_bytes -= block->bytes;
  *taken = block;
  return GG_OK;
}

static void slab_remove(gg_opencl_device* device, gg_opencl_slab* slab) {
  gg_opencl_slab** link = &device->slabs;
  while (*link != slab) link = &(*link)->next;
  *link = slab->next;
  device->slab_bytes -= slab->bytes;
  /* clSVMFree does not wait for commands that still use the memory. */
  if (slab->allocation != NULL) device->api.clFinish(device->queue);
  slab_free(device, slab);
}

/* An empty slab is freed, except the last one of the usual size, which the next step would need. */
void gg_opencl_arena_give(gg_opencl_device* device, gg_opencl_block* block) {
  gg_opencl_slab* slab = block->slab;
  slab->free_bytes += block->bytes;
  unused_insert(block);
  if (block->after != NULL && !block->after->used) join_after(block);
  if (block->before != NULL && !block->before->used) join_after(block->before);
  bool only = device->slabs == slab && slab->next == NULL && slab->bytes <= GG_SLAB_LEAST;
  if (slab->free_bytes == slab->bytes && !only) slab_remove(device, slab);
}

void gg_opencl_arena_close(gg_opencl_device* device) {
  while (device->slabs != NULL) {
    gg_opencl_slab* slab = device->slabs;
    device->slabs = slab->next;
    slab_free(device, slab);
  }
  device->slab_bytes = 0;
}
