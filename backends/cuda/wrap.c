/* Wraps the caller's device memory, after checking it with the driver. */
#include <inttypes.h>
#include <stdlib.h>

#include "backends/cuda/device.h"
#include "host/status.h"

typedef struct gg_cuda_pointer_facts {
  gg_cu_context context; /* NULL for memory that belongs to no context: pools, mapped ranges */
  unsigned int type;     /* 0: the driver does not know the pointer */
  unsigned int managed;
  int ordinal;
  gg_cu_pointer address; /* on the device */
  gg_cu_pointer start;   /* of the allocation; size 0 if unknown */
  size_t size;
} gg_cuda_pointer_facts;

static gg_status ask(gg_cuda_device* cuda, gg_cu_pointer pointer, gg_cuda_pointer_facts* facts, gg_error* error) {
  *facts = (gg_cuda_pointer_facts){.ordinal = -1};
  gg_cu_enum attributes[] = {GG_CU_POINTER_ATTRIBUTE_CONTEXT,        GG_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                             GG_CU_POINTER_ATTRIBUTE_IS_MANAGED,     GG_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                             GG_CU_POINTER_ATTRIBUTE_DEVICE_POINTER, GG_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                             GG_CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&facts->context, &facts->type,  &facts->managed, &facts->ordinal,
                    &facts->address, &facts->start, &facts->size};
  return GG_CUDA_TRY(cuda, error, cuPointerGetAttributes,
                     ((unsigned int)(sizeof attributes / sizeof *attributes), attributes, values, pointer),
                     "querying the pointer 0x%llx", pointer);
}

/* The number of bytes from `pointer` that are mapped on the device without a gap, at most `bytes`. An allocation from
 * the virtual memory functions (PyTorch's expandable segments) may consist of many adjacent ranges, all without a
 * context. */
static gg_status measure(gg_cuda_device* cuda, gg_cu_pointer pointer, const gg_cuda_pointer_facts* first,
                         uint64_t bytes, uint64_t* reachable, gg_error* error) {
  gg_cuda_pointer_facts facts = *first;
  gg_cu_pointer at = pointer;
  *reachable = 0;
  for (;;) {
    if (facts.size == 0 || at < facts.start || at - facts.start >= facts.size) break;
    uint64_t rest = facts.size - (at - facts.start);
    if (rest >= bytes - *reachable) {
      *reachable = bytes;
      break;
    }
    *reachable += rest;
    at += rest;
    if (facts.context) break;
    gg_status status = ask(cuda, at, &facts, error);
    if (status) return status;
    if (facts.context || facts.type != GG_CU_MEMORYTYPE_DEVICE || facts.ordinal != first->ordinal) break;
  }
  return GG_OK;
}

static gg_status refuse(gg_error* error, const char* message, gg_cu_pointer pointer) {
  return gg_fail(error, GG_ERROR_ARGUMENT, "gg_cuda_buffer_wrap", "the pointer 0x%llx %s", pointer, message);
}

static gg_status check_place(gg_cuda_device* cuda, gg_cu_pointer pointer, const gg_cuda_pointer_facts* facts,
                             gg_error* error) {
  bool device_memory = facts->type == GG_CU_MEMORYTYPE_DEVICE && !facts->managed;
  if (facts->type != GG_CU_MEMORYTYPE_HOST && facts->type != GG_CU_MEMORYTYPE_DEVICE)
    return refuse(error,
                  "is not memory that CUDA allocated: it is host memory, or was freed. Allocate it with cudaMalloc or "
                  "cuMemAlloc, or use gg_buffer_create",
                  pointer);
  if (device_memory && facts->ordinal != cuda->number)
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_cuda_buffer_wrap",
                   "the pointer 0x%llx is memory of CUDA device %d, this context is on %s: a group's tensors are all "
                   "on the device of its context",
                   pointer, facts->ordinal, cuda->device.info.id);
  if (device_memory && facts->context && facts->context != cuda->context)
    return refuse(error,
                  "belongs to another CUDA context of the same device. gradguard uses the primary context, as "
                  "the CUDA runtime does; for another one create the gradguard context from one of its streams "
                  "(gg_cuda_context_create)",
                  pointer);
  if (!facts->address)
    return refuse(error,
                  "is host memory that is not mapped for the device: allocate it with "
                  "CU_MEMHOSTALLOC_DEVICEMAP, or use device memory",
                  pointer);
  return GG_OK;
}

static gg_status inspect(gg_cuda_device* cuda, gg_cu_pointer pointer, uint64_t bytes, gg_cu_pointer* address,
                         gg_error* error) {
  gg_cuda_pointer_facts facts;
  gg_status status = ask(cuda, pointer, &facts, error);
  if (!status) status = check_place(cuda, pointer, &facts, error);
  if (status) return status;
  *address = facts.address;
  if (facts.size == 0) return GG_OK;
  uint64_t reachable;
  status = measure(cuda, pointer, &facts, bytes, &reachable, error);
  if (!status && reachable < bytes)
    status = gg_fail(error, GG_ERROR_ARGUMENT, "gg_cuda_buffer_wrap",
                     "the allocation that holds the pointer 0x%llx ends %" PRIu64 " bytes after it, %" PRIu64
                     " bytes were to be wrapped",
                     pointer, reachable, bytes);
  return status;
}

gg_status gg_cuda_wrap(gg_device* device, gg_handle_kind kind, uint64_t handle, uint64_t bytes, gg_memory** memory,
                       gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  *memory = NULL;
  if (kind != GG_HANDLE_CUDA)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_cuda_wrap",
                   "the cuda backend wraps device memory only (gg_cuda_buffer_wrap): copy host data with "
                   "gg_buffer_upload");
  gg_cu_pointer address = handle;
  gg_status status = GG_OK;
  if (bytes > 0) { /* memory of 0 bytes is never accessed */
    status = gg_cuda_enter(cuda, error);
    if (status) return status;
    status = gg_cuda_leave(cuda, inspect(cuda, handle, bytes, &address, error), error);
    if (status) return status;
  }
  gg_cuda_memory* made = calloc(1, sizeof *made);
  if (!made) return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_cuda_wrap", "out of host memory while wrapping a buffer");
  made->address = address;
  made->memory = (gg_memory){.bytes = bytes, .base = address, .wrapped = true};
  *memory = &made->memory;
  return GG_OK;
}
