/* The functions of the fake OpenCL about platforms, devices, contexts, queues and events. */
#include "tests/support/fake_opencl_state.h"

static void* handle_of(gg_fake_cl_object* object) { return object; }

gg_cl_int gg_fake_cl_answer(const void* answer, size_t size, bool exact, size_t bytes, void* value, size_t* told) {
  if (value && (exact ? bytes != size : bytes < size)) {
    gg_fake_cl_violate("a question", "the answer has another size");
    return GG_CL_INVALID_VALUE;
  }
  if (told) *told = size;
  if (value) memcpy(value, answer, size);
  return GG_CL_SUCCESS;
}

#define ANSWER(type, answer)                                                      \
  do {                                                                            \
    const type told_is = answer;                                                  \
    return gg_fake_cl_answer(&told_is, sizeof told_is, true, bytes, value, told); \
  } while (0)
#define ANSWER_TEXT(text) return gg_fake_cl_answer(text, strlen(text) + 1, false, bytes, value, told)

/* ---- Platforms and devices ---- */

/* As a loader of the Khronos kind says it: no platform is an error. */
gg_cl_int gg_fake_clGetPlatformIDs(gg_cl_uint capacity, gg_cl_platform* platforms, gg_cl_uint* found) {
  GG_FAKE_CL_BEGIN;
  if ((capacity == 0) != (platforms == NULL)) gg_fake_cl_violate("clGetPlatformIDs", "no room, or room for none");
  if (found) *found = gg_fake_opencl.platforms;
  if (gg_fake_opencl.platforms == 0) return gg_fake_opencl.no_platform;
  for (gg_cl_uint p = 0; p < capacity && p < gg_fake_opencl.platforms; p++)
    platforms[p] = handle_of(&gg_fake_cl.platforms[p]);
  return GG_CL_SUCCESS;
}

gg_cl_int gg_fake_clGetPlatformInfo(gg_cl_platform platform, gg_cl_enum what, size_t bytes, void* value, size_t* told) {
  GG_FAKE_CL_BEGIN;
  if (!gg_fake_cl_use(GG_FAKE_CL_PLATFORM, platform, "clGetPlatformInfo")) return GG_CL_INVALID_PLATFORM;
  if (what != GG_CL_PLATFORM_NAME) gg_fake_cl_violate("clGetPlatformInfo", "a property that the fake does not know");
  ANSWER_TEXT("Fake platform");
}

gg_cl_int gg_fake_clGetDeviceIDs(gg_cl_platform platform, gg_cl_bits type, gg_cl_uint capacity, gg_cl_device* devices,
                                 gg_cl_uint* found) {
  GG_FAKE_CL_BEGIN;
  const gg_fake_cl_object* at = gg_fake_cl_use(GG_FAKE_CL_PLATFORM, platform, "clGetDeviceIDs");
  if (!at) return GG_CL_INVALID_PLATFORM;
  if (type != GG_CL_DEVICE_TYPE_ALL || (capacity == 0) != (devices == NULL))
    gg_fake_cl_violate("clGetDeviceIDs", "a type, no room, or room for none");
  if (found) *found = gg_fake_opencl.devices;
  if (gg_fake_opencl.devices == 0) return GG_CL_DEVICE_NOT_FOUND;
  for (gg_cl_uint d = 0; d < capacity && d < gg_fake_opencl.devices; d++)
    devices[d] = handle_of(&gg_fake_cl.devices[at - gg_fake_cl.platforms][d]);
  return GG_CL_SUCCESS;
}

gg_cl_int gg_fake_clGetDeviceInfo(gg_cl_device id, gg_cl_enum what, size_t bytes, void* value, size_t* told) {
  GG_FAKE_CL_BEGIN;
  gg_fake_cl_object* device = gg_fake_cl_use(GG_FAKE_CL_DEVICE, id, "clGetDeviceInfo");
  if (!device) return GG_CL_INVALID_DEVICE;
  const gg_fake_opencl_machine* is = gg_fake_cl_machine(device);
  switch (what) {
    case GG_CL_DEVICE_TYPE:
      ANSWER(gg_cl_bits, is->type);
    case GG_CL_DEVICE_MAX_COMPUTE_UNITS:
      ANSWER(gg_cl_uint, 16);
    case GG_CL_DEVICE_MAX_WORK_GROUP_SIZE:
      ANSWER(size_t, is->group);
    case GG_CL_DEVICE_MAX_WORK_ITEM_SIZES:
      return gg_fake_cl_answer(is->items, sizeof is->items, false, bytes, value, told);
    case GG_CL_DEVICE_ADDRESS_BITS:
      ANSWER(gg_cl_uint, is->address_bits);
    case GG_CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      ANSWER(uint64_t, is->most_bytes);
    case GG_CL_DEVICE_SINGLE_FP_CONFIG:
      ANSWER(gg_cl_bits, is->arithmetic);
    case GG_CL_DEVICE_GLOBAL_MEM_SIZE:
      ANSWER(uint64_t, (uint64_t)1 << 30);
    case GG_CL_DEVICE_LOCAL_MEM_SIZE:
      ANSWER(uint64_t, is->local_bytes);
    case GG_CL_DEVICE_ENDIAN_LITTLE:
      ANSWER(gg_cl_bool, is->little_endian);
    case GG_CL_DEVICE_AVAILABLE:
      ANSWER(gg_cl_bool, is->available);
    case GG_CL_DEVICE_COMPILER_AVAILABLE:
      ANSWER(gg_cl_bool, is->compiler);
    case GG_CL_DEVICE_NAME:
      ANSWER_TEXT("Fake device");
    case GG_CL_DRIVER_VERSION:
      ANSWER_TEXT("1.0");
    case GG_CL_DEVICE_PROFILE:
      ANSWER_TEXT(is->profile);
    case GG_CL_DEVICE_VERSION:
      ANSWER_TEXT(is->version);
    case GG_CL_DEVICE_PARENT_DEVICE:
      ANSWER(gg_cl_device, device == &gg_fake_cl.part ? handle_of(device->owner) : NULL);
    case GG_CL_DEVICE_SVM_CAPABILITIES:
      if (strncmp(is->version, "OpenCL 1.", 9) == 0) return GG_CL_INVALID_VALUE; /* it does not know the question */
      ANSWER(gg_cl_bits, is->svm);
    default:
      gg_fake_cl_violate("clGetDeviceInfo", "a property that the fake does not know");
      return GG_CL_INVALID_VALUE;
  }
}

/* ---- Contexts and queues ---- */

gg_cl_context gg_fake_clCreateContext(const gg_cl_property* properties, gg_cl_uint count, const gg_cl_device* devices,
                                      void (*tell)(const char*, const void*, size_t, void*), void* user,
                                      gg_cl_int* code) {
  GG_FAKE_CL_BEGIN_MAKING;
  gg_fake_cl_object* device = count == 1 ? gg_fake_cl_use(GG_FAKE_CL_DEVICE, *devices, "clCreateContext") : NULL;
  const gg_fake_cl_object* root = device == &gg_fake_cl.part ? device->owner : device;
  if (!device || tell || user || !properties || properties[0] != GG_CL_CONTEXT_PLATFORM ||
      properties[1] != (gg_cl_property)root->owner || properties[2] != 0)
    gg_fake_cl_violate("clCreateContext", "not one device of its platform");
  gg_fake_cl_object* made = gg_fake_cl_make(GG_FAKE_CL_CONTEXT, device);
  made->device = device;
  return handle_of(made);
}

gg_cl_int gg_fake_clRetainContext(gg_cl_context context) {
  return gg_fake_cl_retain(GG_FAKE_CL_CONTEXT, context, "clRetainContext");
}

gg_cl_int gg_fake_clReleaseContext(gg_cl_context context) {
  return gg_fake_cl_release(GG_FAKE_CL_CONTEXT, context, "clReleaseContext");
}

gg_cl_queue gg_fake_clCreateCommandQueue(gg_cl_context context, gg_cl_device id, gg_cl_bits properties,
                                         gg_cl_int* code) {
  GG_FAKE_CL_BEGIN_MAKING;
  gg_fake_cl_object* in = gg_fake_cl_use(GG_FAKE_CL_CONTEXT, context, "clCreateCommandQueue");
  gg_fake_cl_object* device = gg_fake_cl_use(GG_FAKE_CL_DEVICE, id, "clCreateCommandQueue");
  if (!in || device != in->device) gg_fake_cl_violate("clCreateCommandQueue", "a device of another context");
  if (!gg_fake_cl.caller && properties & ~(gg_cl_bits)GG_CL_QUEUE_PROFILING_ENABLE)
    gg_fake_cl_violate("clCreateCommandQueue", "the library needs a queue in order");
  gg_fake_cl_object* made = gg_fake_cl_make(GG_FAKE_CL_QUEUE, in);
  made->device = device;
  made->flags = properties;
  return handle_of(made);
}

gg_cl_int gg_fake_clRetainCommandQueue(gg_cl_queue queue) {
  return gg_fake_cl_retain(GG_FAKE_CL_QUEUE, queue, "clRetainCommandQueue");
}

gg_cl_int gg_fake_clReleaseCommandQueue(gg_cl_queue queue) {
  return gg_fake_cl_release(GG_FAKE_CL_QUEUE, queue, "clReleaseCommandQueue");
}

gg_cl_int gg_fake_clGetCommandQueueInfo(gg_cl_queue id, gg_cl_enum what, size_t bytes, void* value, size_t* told) {
  GG_FAKE_CL_BEGIN;
  gg_fake_cl_object* queue = gg_fake_cl_use(GG_FAKE_CL_QUEUE, id, "clGetCommandQueueInfo");
  if (!queue) return GG_CL_INVALID_COMMAND_QUEUE;
  switch (what) {
    case GG_CL_QUEUE_CONTEXT:
      ANSWER(gg_cl_context, handle_of(queue->owner));
    case GG_CL_QUEUE_DEVICE:
      ANSWER(gg_cl_device, handle_of(queue->device));
    case GG_CL_QUEUE_PROPERTIES:
      ANSWER(gg_cl_bits, queue->flags);
    default:
      gg_fake_cl_violate("clGetCommandQueueInfo", "a property that the fake does not know");
      return GG_CL_INVALID_VALUE;
  }
}

gg_cl_int gg_fake_clFlush(gg_cl_queue queue) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_use(GG_FAKE_CL_QUEUE, queue, "clFlush");
  return GG_CL_SUCCESS;
}

/* It waits also when it is to fail: there is no other way left to wait. */
gg_cl_int gg_fake_clFinish(gg_cl_queue queue) {
  gg_cl_int code = gg_fake_cl_begin_work("clFinish");
  gg_fake_cl_use(GG_FAKE_CL_QUEUE, queue, "clFinish");
  gg_cl_int failed = gg_fake_cl_run(NULL);
  return code ? code : failed;
}

/* ---- Events ---- */

/* A wait that fails has not waited, unless it tells of a command's failure. */
gg_cl_int gg_fake_clWaitForEvents(gg_cl_uint count, const gg_cl_event* events) {
  GG_FAKE_CL_BEGIN_WORK;
  if (count == 0 || !events) gg_fake_cl_violate("clWaitForEvents", "there is nothing to wait for");
  gg_cl_int failed = GG_CL_SUCCESS;
  for (gg_cl_uint i = 0; i < count; i++) {
    const gg_fake_cl_object* event = gg_fake_cl_use(GG_FAKE_CL_EVENT, events[i], "clWaitForEvents");
    if (event && event->status > 0) gg_fake_cl_run(event);
    if (event && event->status < 0 && !gg_fake_cl.quiet) failed = GG_CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  return failed;
}

gg_cl_int gg_fake_clGetEventInfo(gg_cl_event id, gg_cl_enum what, size_t bytes, void* value, size_t* told) {
  GG_FAKE_CL_BEGIN;
  const gg_fake_cl_object* event = gg_fake_cl_use(GG_FAKE_CL_EVENT, id, "clGetEventInfo");
  if (!event) return GG_CL_INVALID_EVENT;
  if (what != GG_CL_EVENT_COMMAND_EXECUTION_STATUS)
    gg_fake_cl_violate("clGetEventInfo", "a property that the fake does not know");
  ANSWER(gg_cl_int, event->status);
}

gg_cl_int gg_fake_clGetEventProfilingInfo(gg_cl_event id, gg_cl_enum what, size_t bytes, void* value, size_t* told) {
  GG_FAKE_CL_BEGIN;
  const gg_fake_cl_object* event = gg_fake_cl_use(GG_FAKE_CL_EVENT, id, "clGetEventProfilingInfo");
  if (!event) return GG_CL_INVALID_EVENT;
  if (event->status != 0 || !(event->owner->flags & GG_CL_QUEUE_PROFILING_ENABLE)) {
    gg_fake_cl_violate("clGetEventProfilingInfo", "it is not done, or its queue keeps no times");
    return GG_CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  if (what != GG_CL_PROFILING_COMMAND_START && what != GG_CL_PROFILING_COMMAND_END)
    gg_fake_cl_violate("clGetEventProfilingInfo", "a property that the fake does not know");
  ANSWER(uint64_t, what == GG_CL_PROFILING_COMMAND_END ? 9000 : 2000);
}

gg_cl_int gg_fake_clRetainEvent(gg_cl_event event) {
  return gg_fake_cl_retain(GG_FAKE_CL_EVENT, event, "clRetainEvent");
}

gg_cl_int gg_fake_clReleaseEvent(gg_cl_event event) {
  return gg_fake_cl_release(GG_FAKE_CL_EVENT, event, "clReleaseEvent");
}
