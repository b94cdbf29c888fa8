#include "tests/support/watched_opencl.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"

enum { CONTEXTS, QUEUES, MEMORY, SVM, PROGRAMS, KERNELS, EVENTS, KINDS };
static const char* const kind_names[KINDS] = {"context", "queue", "memory", "svm", "program", "kernel", "event"};

static gg_opencl_api real;
static long held[KINDS];
static unsigned planned;
static gg_cl_int planned_code;
static const char* struck;
static bool claims_gpu;

void gg_watched_opencl_fail(unsigned nth, gg_cl_int code) {
  planned = nth;
  planned_code = code;
  struck = NULL;
}

const char* gg_watched_opencl_struck(void) { return struck; }

const gg_opencl_api* gg_unwatched_opencl(void) { return &real; }

const char* gg_watched_opencl_left(void) {
  static char left[200];
  left[0] = '\0';
  for (int k = 0; k < KINDS; k++) {
    size_t used = strlen(left);
    if (held[k] != 0) snprintf(left + used, sizeof left - used, "%s%ld %s", used ? ", " : "", held[k], kind_names[k]);
  }
  return left;
}

void gg_watched_opencl_claim_gpu(void) { claims_gpu = true; }

/* ---- Functions ---- */

/* The code that this call has to fail with; 0: none. */
static gg_cl_int begin(const char* function) {
  if (planned == 0 || --planned > 0) return GG_CL_SUCCESS;
  struck = function;
  return planned_code;
}

/* A call that makes nothing. */
#define PLAIN(name, parameters, arguments)          \
  static gg_cl_int watched_##name parameters {      \
    gg_cl_int refused = begin(#name);               \
    return refused ? refused : real.name arguments; \
  }

/* A call that makes an object, or NULL, and then `*code` says why. */
#define MAKE(kind, type, name, parameters, arguments) \
  static type watched_##name parameters {             \
    gg_cl_int refused = begin(#name);                 \
    if (refused) {                                    \
      if (code != NULL) *code = refused;              \
      return NULL;                                    \
    }                                                 \
    type made = real.name arguments;                  \
    held[kind] += made != NULL;                       \
    return made;                                      \
  }

#define RETAIN(kind, type, name)                 \
  static gg_cl_int watched_##name(type object) { \
    gg_cl_int refused = begin(#name);            \
    if (!refused) refused = real.name(object);   \
    held[kind] += refused == GG_CL_SUCCESS;      \
    return refused;                              \
  }

/* Done also when it has to fail: whoever releases does not do it again. */
#define RELEASE(kind, type, name)                \
  static gg_cl_int watched_##name(type object) { \
    gg_cl_int refused = begin(#name);            \
    held[kind]--;                                \
    gg_cl_int code = real.name(object);          \
    return refused ? refused : code;             \
  }

/* A call that queues a command and gives its event, if `done` is not NULL. */
#define QUEUE(name, parameters, arguments)                    \
  static gg_cl_int watched_##name parameters {                \
    gg_cl_int refused = begin(#name);                         \
    if (!refused) refused = real.name arguments;              \
    held[EVENTS] += refused == GG_CL_SUCCESS && done != NULL; \
    return refused;                                           \
  }

/* Waits also when it has to fail, as after a fault of the device, so that memory may be given back. */
#define WAIT(name, parameters, arguments)      \
  static gg_cl_int watched_##name parameters { \
    gg_cl_int refused = begin(#name);          \
    gg_cl_int code = real.name arguments;      \
    return refused ? refused : code;           \
  }

PLAIN(clGetPlatformIDs, (gg_cl_uint capacity, gg_cl_platform* platforms, gg_cl_uint* found),
      (capacity, platforms, found))
PLAIN(clGetDeviceIDs,
      (gg_cl_platform platform, gg_cl_bits type, gg_cl_uint capacity, gg_cl_device* devices, gg_cl_uint* found),
      (platform, type, capacity, devices, found))
PLAIN(clGetPlatformInfo, (gg_cl_platform platform, gg_cl_enum what, size_t bytes, void* value, size_t* told),
      (platform, what, bytes, value, told))
PLAIN(clGetCommandQueueInfo, (gg_cl_queue queue, gg_cl_enum what, size_t bytes, void* value, size_t* told),
      (queue, what, bytes, value, told))
PLAIN(clGetMemObjectInfo, (gg_cl_mem memory, gg_cl_enum what, size_t bytes, void* value, size_t* told),
      (memory, what, bytes, value, told))
PLAIN(clGetProgramBuildInfo,
      (gg_cl_program program, gg_cl_device device, gg_cl_enum what, size_t bytes, void* value, size_t* told),
      (program, device, what, bytes, value, told))
PLAIN(clGetKernelWorkGroupInfo,
      (gg_cl_kernel kernel, gg_cl_device device, gg_cl_enum what, size_t bytes, void* value, size_t* told),
      (kernel, device, what, bytes, value, told))
PLAIN(clGetEventInfo, (gg_cl_event event, gg_cl_enum what, size_t bytes, void* value, size_t* told),
      (event, what, bytes, value, told))
PLAIN(clGetEventProfilingInfo, (gg_cl_event event, gg_cl_enum what, size_t bytes, void* value, size_t* told),
      (event, what, bytes, value, told))

static gg_cl_int watched_clGetDeviceInfo(gg_cl_device device, gg_cl_enum what, size_t bytes, void* value,
                                         size_t* told) {
  gg_cl_int refused = begin("clGetDeviceInfo");
  if (refused) return refused;
  refused = real.clGetDeviceInfo(device, what, bytes, value, told);
  if (!refused && claims_gpu && what == GG_CL_DEVICE_TYPE && value != NULL) *(gg_cl_bits*)value = GG_CL_DEVICE_TYPE_GPU;
  return refused;
}

MAKE(CONTEXTS, gg_cl_context, clCreateContext,
     (const gg_cl_property* properties, gg_cl_uint count, const gg_cl_device* devices,
      void (*tell)(const char*, const void*, size_t, void*), void* user, gg_cl_int* code),
     (properties, count, devices, tell, user, code))
MAKE(QUEUES, gg_cl_queue, clCreateCommandQueue,
     (gg_cl_context context, gg_cl_device device, gg_cl_bits properties, gg_cl_int* code),
     (context, device, properties, code))
MAKE(MEMORY, gg_cl_mem, clCreateBuffer,
     (gg_cl_context context, gg_cl_bits flags, size_t bytes, void* host, gg_cl_int* code),
     (context, flags, bytes, host, code))
MAKE(PROGRAMS, gg_cl_program, clCreateProgramWithSource,
     (gg_cl_context context, gg_cl_uint count, const char** text, const size_t* lengths, gg_cl_int* code),
     (context, count, text, lengths, code))
MAKE(KERNELS, gg_cl_kernel, clCreateKernel, (gg_cl_program program, const char* name, gg_cl_int* code),
     (program, name, code))
RETAIN(CONTEXTS, gg_cl_context, clRetainContext)
RETAIN(QUEUES, gg_cl_queue, clRetainCommandQueue)
RETAIN(MEMORY, gg_cl_mem, clRetainMemObject)
RETAIN(EVENTS, gg_cl_event, clRetainEvent)
RELEASE(CONTEXTS, gg_cl_context, clReleaseContext)
RELEASE(QUEUES, gg_cl_queue, clReleaseCommandQueue)
RELEASE(MEMORY, gg_cl_mem, clReleaseMemObject)
RELEASE(PROGRAMS, gg_cl_program, clReleaseProgram)
RELEASE(KERNELS, gg_cl_kernel, clReleaseKernel)
RELEASE(EVENTS, gg_cl_event, clReleaseEvent)
PLAIN(clFlush, (gg_cl_queue queue), (queue))
WAIT(clFinish, (gg_cl_queue queue), (queue))
WAIT(clWaitForEvents, (gg_cl_uint count, const gg_cl_event* events), (count, events))
PLAIN(clBuildProgram,
      (gg_cl_program program, gg_cl_uint count, const gg_cl_device* devices, const char* options,
       void (*tell)(gg_cl_program, void*), void* user),
      (program, count, devices, options, tell, user))
PLAIN(clSetKernelArg, (gg_cl_kernel kernel, gg_cl_uint index, size_t bytes, const void* value),
      (kernel, index, bytes, value))
PLAIN(clSetKernelArgSVMPointer, (gg_cl_kernel kernel, gg_cl_uint index, const void* value), (kernel, index, value))
PLAIN(clSetKernelExecInfo, (gg_cl_kernel kernel, gg_cl_enum what, size_t bytes, const void* value),
      (kernel, what, bytes, value))

QUEUE(clEnqueueReadBuffer,
      (gg_cl_queue queue, gg_cl_mem memory, gg_cl_bool blocking, size_t offset, size_t bytes, void* host,
       gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done),
      (queue, memory, blocking, offset, bytes, host, count, after, done))
QUEUE(clEnqueueWriteBuffer,
      (gg_cl_queue queue, gg_cl_mem memory, gg_cl_bool blocking, size_t offset, size_t bytes, const void* host,
       gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done),
      (queue, memory, blocking, offset, bytes, host, count, after, done))
QUEUE(clEnqueueFillBuffer,
      (gg_cl_queue queue, gg_cl_mem memory, const void* pattern, size_t unit, size_t offset, size_t bytes,
       gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done),
      (queue, memory, pattern, unit, offset, bytes, count, after, done))
QUEUE(clEnqueueCopyBuffer,
      (gg_cl_queue queue, gg_cl_mem from, gg_cl_mem to, size_t from_offset, size_t to_offset, size_t bytes,
       gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done),
      (queue, from, to, from_offset, to_offset, bytes, count, after, done))
QUEUE(clEnqueueNDRangeKernel,
      (gg_cl_queue queue, gg_cl_kernel kernel, gg_cl_uint dimensions, const size_t* offset, const size_t* global,
       const size_t* local, gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done),
      (queue, kernel, dimensions, offset, global, local, count, after, done))
QUEUE(clEnqueueSVMMemcpy,
      (gg_cl_queue queue, gg_cl_bool blocking, void* to, const void* from, size_t bytes, gg_cl_uint count,
       const gg_cl_event* after, gg_cl_event* done),
      (queue, blocking, to, from, bytes, count, after, done))
QUEUE(clEnqueueSVMMemFill,
      (gg_cl_queue queue, void* memory, const void* pattern, size_t unit, size_t bytes, gg_cl_uint count,
       const gg_cl_event* after, gg_cl_event* done),
      (queue, memory, pattern, unit, bytes, count, after, done))

static void* watched_clSVMAlloc(gg_cl_context context, gg_cl_bits flags, size_t bytes, gg_cl_uint alignment) {
  void* memory = begin("clSVMAlloc") ? NULL : real.clSVMAlloc(context, flags, bytes, alignment);
  held[SVM] += memory != NULL;
  return memory;
}

static void watched_clSVMFree(gg_cl_context context, void* memory) {
  held[SVM] -= memory != NULL;
  real.clSVMFree(context, memory);
}

static void skip_unless_required(const char* why) {
  const char* required = getenv("GG_TEST_REQUIRE");
  if (required != NULL && strstr(required, "opencl") != NULL) gg_test_fail("%s", why);
  cr_skip("%s", why);
}

gg_opencl_api gg_watched_opencl(gg_device_info* best) {
  gg_error error = GG_ERROR_INIT;
  if (gg_opencl_load(&real, &error) != GG_OK) skip_unless_required(error.message);
  gg_opencl_api watched = real;
#define WATCH(result, name, parameters) \
  if (real.name != NULL) watched.name = watched_##name;
  GG_CL_REQUIRED_SYMBOLS(WATCH)
  GG_CL_OPTIONAL_SYMBOLS(WATCH)
#undef WATCH
  gg_opencl_probe_with(&watched, best, 1);
  if (!best->available) skip_unless_required(best->reason);
  return watched;
}
