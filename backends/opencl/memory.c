#include "backends/opencl/memory.h"

#include <stdlib.h>

#include "backends/opencl/arena.h"
#include "backends/opencl/failure.h"
#include "host/status.h"

static gg_opencl_memory* new_memory(uint64_t bytes, gg_error* error) {
  gg_opencl_memory* memory = calloc(1, sizeof *memory);
  if (memory == NULL) {
    gg_fail(error, GG_ERROR_NO_MEMORY, "gg_buffer_create", "out of host memory describing a buffer");
    return NULL;
  }
  memory->base.bytes = bytes;
  memory->readable = memory->writable = true;
  return memory;
}

/* Sets the location of the memory, which is used to find overlaps. Shared virtual memory and host memory have
 * addresses; anything else is a range of its object. */
static void place(gg_opencl_memory* memory, const void* address) {
  memory->base.space = address != NULL ? 0 : (uint64_t)(uintptr_t)memory->object.mem;
  memory->base.base = (uint64_t)(uintptr_t)address + memory->origin;
  memory->skew = (uint32_t)((uintptr_t)address % GG_OPENCL_ALIGNMENT);
}

gg_status gg_opencl_alloc(gg_device* owner, uint64_t bytes, gg_memory** allocated, gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  gg_opencl_memory* memory = new_memory(bytes, error);
  if (memory == NULL) return GG_ERROR_NO_MEMORY;
  gg_status status = gg_opencl_arena_take(device, bytes, &memory->block, error);
  if (status != GG_OK) {
    free(memory);
    return status;
  }
  const gg_opencl_slab* slab = memory->block->slab;
  memory->object = (gg_opencl_object){slab->mem, slab->first};
  memory->svm_allocation = slab->allocation;
  memory->origin = memory->block->offset;
  place(memory, slab->first);
  *allocated = &memory->base;
  return GG_OK;
}

gg_status gg_opencl_scratch(gg_opencl_device* device, uint64_t bytes, gg_opencl_memory** scratch, gg_error* error) {
  if (device->variant == GG_OPENCL_SVM) {
    gg_memory* memory = NULL;
    gg_status status = gg_opencl_alloc(&device->base, bytes, &memory, error);
    *scratch = (gg_opencl_memory*)memory;
    return status;
  }
  gg_opencl_memory* memory = new_memory(bytes, error);
  if (memory == NULL) return GG_ERROR_NO_MEMORY;
  gg_cl_int code = GG_CL_SUCCESS;
  memory->owned = device->api.clCreateBuffer(device->context, GG_CL_MEM_READ_WRITE, bytes > 0 ? bytes : 1, NULL, &code);
  if (memory->owned == NULL || code != GG_CL_SUCCESS) {
    free(memory);
    return gg_opencl_fail(device, error, code, "clCreateBuffer", "allocating %llu bytes for a group's table on %s",
                          (unsigned long long)bytes, device->base.info.id);
  }
  memory->object.mem = memory->owned;
  place(memory, NULL);
  *scratch = memory;
  return GG_OK;
}

/* What the driver reports about the caller's memory object. */
typedef struct gg_found_object {
  gg_cl_enum type;
  gg_cl_bits flags;
  size_t bytes;
  void* host;
  gg_cl_context context;
  gg_cl_mem parent;
  size_t origin;
} gg_found_object;

static gg_cl_int ask(const gg_opencl_api* api, gg_cl_mem mem, gg_found_object* found) {
  const struct {
    gg_cl_enum property;
    void* value;
    size_t bytes;
  } questions[] = {{GG_CL_MEM_TYPE, &found->type, sizeof found->type},
                   {GG_CL_MEM_FLAGS, &found->flags, sizeof found->flags},
                   {GG_CL_MEM_SIZE, &found->bytes, sizeof found->bytes},
                   {GG_CL_MEM_HOST_PTR, &found->host, sizeof found->host},
                   {GG_CL_MEM_CONTEXT, &found->context, sizeof(gg_cl_context)},
                   {GG_CL_MEM_ASSOCIATED_MEMOBJECT, &found->parent, sizeof(gg_cl_mem)},
                   {GG_CL_MEM_OFFSET, &found->origin, sizeof found->origin}};
  *found = (gg_found_object){0};
  for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
    gg_cl_int code = api->clGetMemObjectInfo(mem, questions[i].property, questions[i].bytes, questions[i].value, NULL);
    if (code != GG_CL_SUCCESS) return code;
  }
  return GG_CL_SUCCESS;
}

static gg_status check_object(const gg_opencl_device* device, const gg_found_object* found, uint64_t bytes,
                              gg_error* error) {
  const char* function = "gg_opencl_buffer_wrap_mem";
  if (found->type != GG_CL_MEM_OBJECT_BUFFER)
    return gg_fail(error, GG_ERROR_ARGUMENT, function, "the memory object is not a buffer");
  if (found->context != device->context)
    return gg_fail(error, GG_ERROR_ARGUMENT, function,
                   "the memory object belongs to another OpenCL context; create it in the context of "
                   "gg_opencl_queue()");
  if (found->bytes < bytes)
    return gg_fail(error, GG_ERROR_ARGUMENT, function, "the memory object has %zu bytes, %llu were given", found->bytes,
                   (unsigned long long)bytes);
  return GG_OK;
}

static gg_status wrap_object(gg_opencl_device* device, gg_cl_mem mem, gg_opencl_memory* memory, gg_error* error) {
  gg_found_object found, parent;
  gg_cl_int code = ask(&device->api, mem, &found);
  if (code != GG_CL_SUCCESS)
    return gg_opencl_fail(device, error, code, "clGetMemObjectInfo", "querying the given memory object");
  gg_status status = check_object(device, &found, memory->base.bytes, error);
  if (status != GG_OK) return status;
  memory->object.mem = mem;
  if (found.parent != NULL) {
    code = ask(&device->api, found.parent, &parent);
    if (code != GG_CL_SUCCESS)
      return gg_opencl_fail(device, error, code, "clGetMemObjectInfo", "querying the parent of the given sub-buffer");
    memory->object.mem = found.parent;
    memory->origin = found.origin;
    found.flags |= parent.flags;
    found.host = parent.host;
  }
  memory->readable = (found.flags & GG_CL_MEM_WRITE_ONLY) == 0;
  memory->writable = (found.flags & GG_CL_MEM_READ_ONLY) == 0;
  place(memory, found.flags & GG_CL_MEM_USE_HOST_PTR ? found.host : NULL);
  code = device->api.clRetainMemObject(mem); /* keeps a parent alive, too */
  if (code != GG_CL_SUCCESS)
    return gg_opencl_fail(device, error, code, "clRetainMemObject", "retaining the given memory object");
  memory->owned = mem;
  return GG_OK;
}

gg_status gg_opencl_wrap(gg_device* owner, gg_handle_kind kind, uint64_t handle, uint64_t bytes, gg_memory** wrapped,
                         gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  bool svm = kind == GG_HANDLE_OPENCL_SVM;
  if (!svm && kind != GG_HANDLE_OPENCL_MEM)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_buffer_wrap",
                   "%s can wrap OpenCL memory objects and shared virtual memory, not %s memory; create a buffer and "
                   "upload",
                   device->base.info.id, kind == GG_HANDLE_HOST ? "host" : "CUDA");
  if (handle == 0) return gg_fail(error, GG_ERROR_ARGUMENT, "gg_buffer_wrap", "the memory to wrap is NULL");
  if (svm && !device->can.svm)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_opencl_buffer_wrap_svm",
                   "%s (%s) has no shared virtual memory; wrap a memory object instead", device->base.info.id,
                   device->base.info.name);
  if (svm && bytes > UINTPTR_MAX - handle)
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_opencl_buffer_wrap_svm",
                   "%llu bytes from this address reach past the end of the address space", (unsigned long long)bytes);
  gg_opencl_memory* memory = new_memory(bytes, error);
  if (memory == NULL) return GG_ERROR_NO_MEMORY;
  memory->base.wrapped = true;
  gg_status status = GG_OK;
  if (svm) {
    memory->svm_allocation = (void*)(uintptr_t)handle;
    memory->object.svm = memory->svm_allocation;
    place(memory, memory->object.svm);
  } else {
    status = wrap_object(device, (gg_cl_mem)(uintptr_t)handle, memory, error);
  }
  if (status != GG_OK) {
    free(memory);
    return status;
  }
  *wrapped = &memory->base;
  return GG_OK;
}

void gg_opencl_release(gg_device* owner, gg_memory* released) {
  if (released == NULL) return;
  gg_opencl_device* device = gg_opencl_of(owner);
  gg_opencl_memory* memory = (gg_opencl_memory*)released;
  if (memory->owned != NULL) device->api.clReleaseMemObject(memory->owned);
  if (memory->block != NULL) gg_opencl_arena_give(device, memory->block);
  free(memory);
}
