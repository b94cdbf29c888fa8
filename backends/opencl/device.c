#include "backends/opencl/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/arena.h"
#include "backends/opencl/failure.h"
#include "backends/opencl/profile.h"
#include "backends/opencl/program.h"
#include "host/status.h"

/* Finds the entry with this id, such as "opencl:0.1". The backend's name alone is what probe returns if it can list no
 * device; if there are devices now, it means the first. */
static gg_status find_id(const char* id, const gg_opencl_entry* entries, size_t count, gg_opencl_entry* found,
                         gg_error* error) {
  for (size_t i = 0; i < count; i++) {
    char name[32];
    snprintf(name, sizeof name, "opencl:%u.%u", entries[i].platform_index, entries[i].device_index);
    if (strcmp(name, id) != 0 && strcmp(id, "opencl") != 0) continue;
    *found = entries[i];
    return GG_OK;
  }
  return gg_fail(error, GG_ERROR_NO_DEVICE, "gg_context_create",
                 "there is no OpenCL device %s among the %zu that the loader lists; `gradguard devices` lists them", id,
                 count);
}

/* Finds the entry of a queue's device; of a sub-device, the device that it is a part of. */
static gg_status find_device(const gg_opencl_api* api, gg_cl_device device, const gg_opencl_entry* entries,
                             size_t count, gg_opencl_entry* found, gg_error* error) {
  gg_cl_device root = device, parent = NULL;
  gg_cl_int code;
  do {
    root = parent != NULL ? parent : root;
    code = api->clGetDeviceInfo(root, GG_CL_DEVICE_PARENT_DEVICE, sizeof(gg_cl_device), &parent, NULL);
  } while (code == GG_CL_SUCCESS && parent != NULL);
  for (size_t i = 0; i < count; i++) {
    if (entries[i].device != root) continue;
    *found = entries[i];
    found->device = device;
    return GG_OK;
  }
  if (code != GG_CL_SUCCESS)
    return gg_opencl_fail(NULL, error, code, "clGetDeviceInfo", "querying the parent of the command queue's device");
  return gg_fail(error, GG_ERROR_NO_DEVICE, "gg_opencl_context_create",
                 "the device of the command queue is not among those that the OpenCL loader lists: the queue must come "
                 "from the same loader library");
}

/* Retains the caller's queue and its context. */
static gg_status adopt_queue(gg_opencl_device* device, gg_cl_queue queue, gg_error* error) {
  const gg_opencl_api* api = &device->api;
  gg_cl_bits properties = 0;
  gg_cl_context context = NULL;
  gg_cl_int code = api->clGetCommandQueueInfo(queue, GG_CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
  if (code == GG_CL_SUCCESS)
    code = api->clGetCommandQueueInfo(queue, GG_CL_QUEUE_CONTEXT, sizeof(gg_cl_context), &context, NULL);
  if (code == GG_CL_SUCCESS)
    code = api->clGetCommandQueueInfo(queue, GG_CL_QUEUE_DEVICE, sizeof(gg_cl_device), &device->id, NULL);
  if (code != GG_CL_SUCCESS)
    return gg_opencl_fail(NULL, error, code, "clGetCommandQueueInfo", "querying the given command queue");
  if (properties & (GG_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | GG_CL_QUEUE_ON_DEVICE))
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_opencl_context_create",
                   "the command queue is %s; create an in-order queue on the host",
                   properties & GG_CL_QUEUE_ON_DEVICE ? "a device-side queue" : "out of order");
  device->profiling = device->log != NULL && (properties & GG_CL_QUEUE_PROFILING_ENABLE) != 0;
  code = api->clRetainContext(context);
  if (code != GG_CL_SUCCESS)
    return gg_opencl_fail(NULL, error, code, "clRetainContext", "retaining the context of the given command queue");
  device->context = context;
  code = api->clRetainCommandQueue(queue);
  if (code != GG_CL_SUCCESS)
    return gg_opencl_fail(NULL, error, code, "clRetainCommandQueue", "retaining the given command queue");
  device->queue = queue;
  return GG_OK;
}

/* Times are recorded only if there is a log function: they need an event for each launch. */
static gg_status create_queue(gg_opencl_device* device, gg_cl_platform platform, gg_error* error) {
  const gg_cl_property properties[] = {GG_CL_CONTEXT_PLATFORM, (gg_cl_property)platform, 0};
  gg_cl_int code = GG_CL_SUCCESS;
  device->context = device->api.clCreateContext(properties, 1, &device->id, NULL, NULL, &code);
  if (device->context == NULL || code != GG_CL_SUCCESS)
    return gg_opencl_fail(NULL, error, code, "clCreateContext", "creating a context on %s (%s)", device->base.info.id,
                          device->base.info.name);
  device->profiling = device->log != NULL;
  device->queue = device->api.clCreateCommandQueue(device->context, device->id,
                                                   device->profiling ? GG_CL_QUEUE_PROFILING_ENABLE : 0, &code);
  if (device->queue == NULL || code != GG_CL_SUCCESS)
    return gg_opencl_fail(NULL, error, code, "clCreateCommandQueue", "creating a command queue on %s (%s)",
                          device->base.info.id, device->base.info.name);
  return GG_OK;
}

static gg_status choose_variant(gg_opencl_device* device, const char* wanted, gg_error* error) {
  if (wanted == NULL) {
    device->variant = device->can.svm ? GG_OPENCL_SVM : GG_OPENCL_ARENA;
  } else if (strcmp(wanted, "arena") == 0) {
    device->variant = GG_OPENCL_ARENA;
  } else if (strcmp(wanted, "svm") == 0) {
    device->variant = GG_OPENCL_SVM;
    if (!device->can.svm)
      return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_context_create",
                     "kernel variant svm: %s (%s) has no coarse-grained shared virtual memory%s; use arena",
                     device->base.info.id, device->base.info.name,
                     device->api.svm ? "" : " that the OpenCL loader gives access to");
  } else {
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_context_create",
                   "there is no kernel variant %s for OpenCL; %s has: %s", wanted, device->base.info.id,
                   device->base.info.kernels);
  }
  device->base.kernel = device->variant == GG_OPENCL_SVM ? "svm" : "arena";
  return GG_OK;
}

/* Finds the device, fails if it cannot run the kernels, and gets a queue on it. */
static gg_status attach(gg_opencl_device* device, const gg_open_request* request, gg_error* error) {
  if (request->queue != NULL) {
    gg_status adopted = adopt_queue(device, request->queue, error);
    if (adopted != GG_OK) return adopted;
  }
  gg_opencl_entry *entries = NULL, entry;
  size_t count = 0;
  gg_cl_int refusal;
  gg_status status = gg_opencl_enumerate(&device->api, &entries, &count, &refusal, error);
  if (status != GG_OK) return status;
  status = request->queue != NULL ? find_device(&device->api, device->id, entries, count, &entry, error)
                                  : find_id(request->id, entries, count, &entry, error);
  free(entries);
  if (status == GG_ERROR_NO_DEVICE && refusal != GG_CL_SUCCESS)
    return gg_opencl_fail(NULL, error, refusal, "clGetDeviceIDs", "an OpenCL platform does not list its devices");
  if (status != GG_OK) return status;

  gg_device_info* info = &device->base.info;
  gg_opencl_describe(&device->api, &entry, info, &device->can);
  if (!info->available)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_context_create", "%s (%s) cannot be used: %s", info->id, info->name,
                   info->reason);
  device->id = entry.device;
  return request->queue != NULL ? GG_OK : create_queue(device, entry.platform, error);
}

gg_status gg_opencl_open_with(const gg_opencl_api* api, const gg_open_request* request, gg_device** opened,
                              gg_error* error) {
  *opened = NULL;
  if (request->queue == NULL && request->id == NULL)
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_context_create", "neither a device nor a command queue was given");
  gg_opencl_device* device = calloc(1, sizeof *device);
  if (device == NULL)
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_context_create", "out of host memory opening a device");
  device->base.backend = &gg_backend_opencl;
  device->api = *api;
  device->log = request->log;
  device->log_user = request->log_user;
  gg_status status = attach(device, request, error);
  if (status == GG_OK) status = choose_variant(device, request->kernel, error);
  if (status == GG_OK) status = gg_opencl_program(device, device->variant, error);
  if (status != GG_OK) {
    gg_opencl_close(&device->base);
    return status;
  }
  *opened = &device->base;
  return GG_OK;
}

gg_status gg_opencl_open(const gg_open_request* request, gg_device** opened, gg_error* error) {
  gg_opencl_api api;
  *opened = NULL;
  gg_status status = gg_opencl_load(&api, error);
  return status == GG_OK ? gg_opencl_open_with(&api, request, opened, error) : status;
}

/* Also closes a partially opened device. Results are ignored: there is nobody to report them to. */
void gg_opencl_close(gg_device* closed) {
  gg_opencl_device* device = gg_opencl_of(closed);
  const gg_opencl_api* api = &device->api;
  if (device->queue != NULL) api->clFinish(device->queue);
  gg_opencl_profile_drop(device);
  if (device->readback != NULL) api->clReleaseEvent(device->readback);
  for (size_t i = 0; i < device->reorder_count; i++) free(device->reorders[i].arrived);
  free(device->reorders);
  for (int variant = 0; variant < GG_OPENCL_VARIANTS; variant++)
    if (device->programs[variant] != NULL) api->clReleaseProgram(device->programs[variant]);
  gg_opencl_arena_close(device);
  if (device->queue != NULL) api->clReleaseCommandQueue(device->queue);
  if (device->context != NULL) api->clReleaseContext(device->context);
  free(device);
}

gg_status gg_opencl_sync(gg_device* synced, gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(synced);
  gg_cl_int code = device->api.clFinish(device->queue);
  if (code != GG_CL_SUCCESS) return gg_opencl_fail_wait(device, error, code, "clFinish", "the command queue");
  gg_opencl_profile_tell(device);
  return GG_OK;
}

/* Some drivers report a failed command only in its status, so the status is queried as well. */
gg_status gg_opencl_wait_event(gg_opencl_device* device, gg_cl_event event, const char* waited_for, gg_error* error) {
  const gg_opencl_api* api = &device->api;
  gg_cl_int waited = api->clWaitForEvents(1, &event), state = 0;
  gg_cl_int asked = api->clGetEventInfo(event, GG_CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
  if (asked == GG_CL_SUCCESS && state < 0)
    return gg_opencl_fail_wait(device, error, state, "clWaitForEvents", waited_for);
  if (waited != GG_CL_SUCCESS) return gg_opencl_fail_wait(device, error, waited, "clWaitForEvents", waited_for);
  if (asked != GG_CL_SUCCESS) return gg_opencl_fail_wait(device, error, asked, "clGetEventInfo", waited_for);
  return GG_OK;
}

void* gg_opencl_native_queue(gg_device* device) { return gg_opencl_of(device)->queue; }
