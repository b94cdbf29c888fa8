/* The functions of the fake OpenCL about memory objects and shared virtual memory, and copies between them. */
#include <stdlib.h>

#include "tests/support/fake_opencl_state.h"

#define SKEW 64 /* bytes: what is made is no better aligned than OpenCL promises of SVM */

static void* handle_of(gg_fake_cl_object* object) { return object; }

static void give_bytes(gg_fake_cl_object* object, size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, 256, bytes + SKEW) != 0) abort();
  object->allocation = memory;
  object->bytes = object->allocation + SKEW;
  object->size = bytes;
}

/* ---- Memory objects ---- */

gg_cl_mem gg_fake_clCreateBuffer(gg_cl_context context, gg_cl_bits flags, size_t bytes, void* host, gg_cl_int* code) {
  GG_FAKE_CL_BEGIN_MAKING;
  gg_fake_cl_object* in = gg_fake_cl_use(GG_FAKE_CL_CONTEXT, context, "clCreateBuffer");
  if (!gg_fake_cl.caller && (flags != GG_CL_MEM_READ_WRITE || host))
    gg_fake_cl_violate("clCreateBuffer", "the library needs memory to read and write");
  if (bytes == 0) gg_fake_cl_violate("clCreateBuffer", "no bytes");
  *code = !in ? GG_CL_INVALID_CONTEXT : GG_CL_INVALID_BUFFER_SIZE;
  if (!in || bytes == 0 || bytes > gg_fake_cl_machine(in->device)->most_bytes) return NULL;
  gg_fake_cl_object* made = gg_fake_cl_make(GG_FAKE_CL_MEMORY, in);
  made->flags = flags;
  made->host = host;
  give_bytes(made, bytes);
  *code = GG_CL_SUCCESS;
  return handle_of(made);
}

gg_cl_mem gg_fake_opencl_sub_buffer(gg_cl_mem memory, gg_cl_bits flags, size_t origin, size_t bytes) {
  gg_fake_cl_object* parent = gg_fake_cl_use(GG_FAKE_CL_MEMORY, memory, "clCreateSubBuffer");
  gg_fake_cl_object* made = gg_fake_cl_make(GG_FAKE_CL_MEMORY, parent);
  made->callers = 1;
  made->flags = flags;
  made->bytes = parent->bytes + origin;
  made->size = bytes;
  made->origin = origin;
  return handle_of(made);
}

gg_cl_int gg_fake_clRetainMemObject(gg_cl_mem memory) {
  return gg_fake_cl_retain(GG_FAKE_CL_MEMORY, memory, "clRetainMemObject");
}

gg_cl_int gg_fake_clReleaseMemObject(gg_cl_mem memory) {
  return gg_fake_cl_release(GG_FAKE_CL_MEMORY, memory, "clReleaseMemObject");
}

gg_cl_int gg_fake_clGetMemObjectInfo(gg_cl_mem id, gg_cl_enum what, size_t bytes, void* value, size_t* told) {
  GG_FAKE_CL_BEGIN;
  gg_fake_cl_object* memory = gg_fake_cl_use(GG_FAKE_CL_MEMORY, id, "clGetMemObjectInfo");
  if (!memory) return GG_CL_INVALID_MEM_OBJECT;
  gg_fake_cl_object* parent = memory->owner->kind == GG_FAKE_CL_MEMORY ? memory->owner : NULL;
  const gg_cl_enum type = GG_CL_MEM_OBJECT_BUFFER;
  const gg_cl_context context = handle_of(parent ? parent->owner : memory->owner);
  const struct {
    gg_cl_enum property;
    const void* value;
    size_t bytes;
  } answers[] = {{GG_CL_MEM_TYPE, &type, sizeof type},
                 {GG_CL_MEM_FLAGS, &memory->flags, sizeof memory->flags},
                 {GG_CL_MEM_SIZE, &memory->size, sizeof memory->size},
                 {GG_CL_MEM_HOST_PTR, &memory->host, sizeof memory->host},
                 {GG_CL_MEM_CONTEXT, &context, sizeof(gg_cl_context)},
                 {GG_CL_MEM_ASSOCIATED_MEMOBJECT, &parent, sizeof(gg_cl_mem)},
                 {GG_CL_MEM_OFFSET, &memory->origin, sizeof memory->origin}};
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
    if (answers[i].property == what)
      return gg_fake_cl_answer(answers[i].value, answers[i].bytes, true, bytes, value, told);
  gg_fake_cl_violate("clGetMemObjectInfo", "a property that the fake does not know");
  return GG_CL_INVALID_VALUE;
}

/* The bytes of a range of a memory object; NULL: there is no such range. */
static unsigned char* range_of(gg_cl_mem id, size_t offset, size_t bytes, const char* function,
                               gg_fake_cl_command* command) {
  gg_fake_cl_object* memory = gg_fake_cl_use(GG_FAKE_CL_MEMORY, id, function);
  if (!memory) return NULL;
  if (bytes == 0 || offset > memory->size || bytes > memory->size - offset) {
    gg_fake_cl_violate(function, "no bytes, or some beyond the end");
    return NULL;
  }
  gg_fake_cl_will_use(command, memory);
  return memory->bytes + offset;
}

gg_cl_int gg_fake_clEnqueueReadBuffer(gg_cl_queue queue, gg_cl_mem memory, gg_cl_bool blocking, size_t offset,
                                      size_t bytes, void* host, gg_cl_uint count, const gg_cl_event* after,
                                      gg_cl_event* done) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_command copy = {.to = host, .bytes = bytes};
  copy.from = range_of(memory, offset, bytes, "clEnqueueReadBuffer", &copy);
  if (!copy.from || !host) return GG_CL_INVALID_VALUE;
  return gg_fake_cl_queue("clEnqueueReadBuffer", queue, copy, blocking, count, after, done);
}

gg_cl_int gg_fake_clEnqueueWriteBuffer(gg_cl_queue queue, gg_cl_mem memory, gg_cl_bool blocking, size_t offset,
                                       size_t bytes, const void* host, gg_cl_uint count, const gg_cl_event* after,
                                       gg_cl_event* done) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_command copy = {.from = host, .bytes = bytes, .from_host = true};
  copy.to = range_of(memory, offset, bytes, "clEnqueueWriteBuffer", &copy);
  if (!copy.to || !host) return GG_CL_INVALID_VALUE;
  return gg_fake_cl_queue("clEnqueueWriteBuffer", queue, copy, blocking, count, after, done);
}

/* The pattern's size is a power of two and divides the range and where it starts. */
static void take_pattern(gg_fake_cl_command* fill, const void* pattern, size_t unit, size_t at, const char* function) {
  bool power = unit > 0 && unit <= sizeof fill->pattern && (unit & (unit - 1)) == 0;
  if (!power || at % unit || fill->bytes % unit) gg_fake_cl_violate(function, "a pattern that does not fit the range");
  fill->unit = power ? unit : 1;
  memcpy(fill->pattern, pattern, fill->unit);
}

gg_cl_int gg_fake_clEnqueueFillBuffer(gg_cl_queue queue, gg_cl_mem memory, const void* pattern, size_t unit,
                                      size_t offset, size_t bytes, gg_cl_uint count, const gg_cl_event* after,
                                      gg_cl_event* done) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_command fill = {.bytes = bytes};
  fill.to = range_of(memory, offset, bytes, "clEnqueueFillBuffer", &fill);
  if (!fill.to) return GG_CL_INVALID_VALUE;
  take_pattern(&fill, pattern, unit, offset, "clEnqueueFillBuffer");
  return gg_fake_cl_queue("clEnqueueFillBuffer", queue, fill, false, count, after, done);
}

gg_cl_int gg_fake_clEnqueueCopyBuffer(gg_cl_queue queue, gg_cl_mem from, gg_cl_mem to, size_t from_offset,
                                      size_t to_offset, size_t bytes, gg_cl_uint count, const gg_cl_event* after,
                                      gg_cl_event* done) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_command copy = {.bytes = bytes};
  copy.from = range_of(from, from_offset, bytes, "clEnqueueCopyBuffer", &copy);
  copy.to = range_of(to, to_offset, bytes, "clEnqueueCopyBuffer", &copy);
  if (!copy.from || !copy.to) return GG_CL_INVALID_VALUE;
  if (copy.from < copy.to + bytes && copy.to < copy.from + bytes) return GG_CL_MEM_COPY_OVERLAP;
  return gg_fake_cl_queue("clEnqueueCopyBuffer", queue, copy, false, count, after, done);
}

/* ---- Shared virtual memory ---- */

void* gg_fake_clSVMAlloc(gg_cl_context context, gg_cl_bits flags, size_t bytes, gg_cl_uint alignment) {
  if (gg_fake_cl_begin_work("clSVMAlloc")) return NULL;
  gg_fake_cl_object* in = gg_fake_cl_use(GG_FAKE_CL_CONTEXT, context, "clSVMAlloc");
  if (!in) return NULL;
  const gg_fake_opencl_machine* is = gg_fake_cl_machine(in->device);
  if (!(is->svm & GG_CL_DEVICE_SVM_COARSE_GRAIN_BUFFER)) gg_fake_cl_violate("clSVMAlloc", "the device has none");
  if (flags != GG_CL_MEM_READ_WRITE || alignment != 0) gg_fake_cl_violate("clSVMAlloc", "flags or an alignment");
  if (bytes == 0 || bytes > is->most_bytes) return NULL;
  gg_fake_cl_object* made = gg_fake_cl_make(GG_FAKE_CL_SVM, in);
  give_bytes(made, bytes);
  return made->bytes;
}

gg_fake_cl_object* gg_fake_cl_svm_at(const void* memory, size_t bytes) {
  const unsigned char* at = memory;
  for (gg_fake_cl_object* object = gg_fake_cl.made; object; object = object->next)
    if (object->kind == GG_FAKE_CL_SVM && object->references > 0 && at >= object->bytes &&
        at + bytes <= object->bytes + object->size)
      return object;
  return NULL;
}

/* It waits for nothing: whatever uses the memory has to be done. */
void gg_fake_clSVMFree(gg_cl_context context, void* memory) {
  gg_fake_cl_use(GG_FAKE_CL_CONTEXT, context, "clSVMFree");
  gg_fake_cl_object* object = gg_fake_cl_svm_at(memory, 1);
  if (!object || object->bytes != memory) {
    gg_fake_cl_violate("clSVMFree", "there is no such memory");
    return;
  }
  if (object->held > 0 && !gg_fake_cl.fault) gg_fake_cl_violate("clSVMFree", "a command that is queued uses it");
  gg_fake_cl_run(NULL);
  object->references--;
  object->callers -= gg_fake_cl.caller;
  gg_fake_cl_hold(object);
  gg_fake_cl_let_go(object);
}

/* The bytes may be of the host: then they have no object. */
gg_cl_int gg_fake_clEnqueueSVMMemcpy(gg_cl_queue queue, gg_cl_bool blocking, void* to, const void* from, size_t bytes,
                                     gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_object *target = gg_fake_cl_svm_at(to, bytes), *source = gg_fake_cl_svm_at(from, bytes);
  bool beyond = (!target && gg_fake_cl_svm_at(to, 1)) || (!source && gg_fake_cl_svm_at(from, 1));
  if (!to || !from || bytes == 0 || beyond || (!target && !source)) {
    gg_fake_cl_violate("clEnqueueSVMMemcpy", "no bytes, some beyond the end, or no shared virtual memory");
    return GG_CL_INVALID_VALUE;
  }
  gg_fake_cl_command copy = {.to = to, .from = from, .bytes = bytes, .from_host = !source};
  if (copy.from < copy.to + bytes && copy.to < copy.from + bytes) return GG_CL_MEM_COPY_OVERLAP;
  gg_fake_cl_will_use(&copy, target);
  gg_fake_cl_will_use(&copy, source);
  return gg_fake_cl_queue("clEnqueueSVMMemcpy", queue, copy, blocking, count, after, done);
}

gg_cl_int gg_fake_clEnqueueSVMMemFill(gg_cl_queue queue, void* memory, const void* pattern, size_t unit, size_t bytes,
                                      gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_command fill = {.to = memory, .bytes = bytes};
  gg_fake_cl_object* object = gg_fake_cl_svm_at(memory, bytes);
  if (!object || bytes == 0) {
    gg_fake_cl_violate("clEnqueueSVMMemFill", "no bytes, or some beyond the end");
    return GG_CL_INVALID_VALUE;
  }
  gg_fake_cl_will_use(&fill, object);
  take_pattern(&fill, pattern, unit, (size_t)(uintptr_t)memory, "clEnqueueSVMMemFill");
  return gg_fake_cl_queue("clEnqueueSVMMemFill", queue, fill, false, count, after, done);
}
