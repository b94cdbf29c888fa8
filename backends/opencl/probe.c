#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/capability.h"
#include "backends/opencl/failure.h"
#include "host/status.h"

#define GG_PLATFORM_CURE                                                                             \
  "install an OpenCL driver (a GPU vendor's, or pocl-opencl-icd for the CPU) that puts a file into " \
  "/etc/OpenCL/vendors"

/* Appends the devices of one platform. */
static gg_status enumerate_platform(const gg_opencl_api* api, gg_cl_platform platform, uint32_t index,
                                    gg_opencl_entry** entries, size_t* count, gg_cl_int* refusal, gg_error* error) {
  gg_cl_uint found = 0;
  gg_cl_int code = api->clGetDeviceIDs(platform, GG_CL_DEVICE_TYPE_ALL, 0, NULL, &found);
  if (code != GG_CL_SUCCESS && code != GG_CL_DEVICE_NOT_FOUND) *refusal = code;
  if (code != GG_CL_SUCCESS || found == 0) return GG_OK;
  gg_cl_device* devices = calloc(found, sizeof(gg_cl_device));
  gg_opencl_entry* longer = realloc(*entries, (*count + found) * sizeof *longer);
  if (longer != NULL) *entries = longer;
  if (devices == NULL || longer == NULL) {
    free(devices);
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_opencl_enumerate", "out of host memory listing %u devices", found);
  }
  code = api->clGetDeviceIDs(platform, GG_CL_DEVICE_TYPE_ALL, found, devices, NULL);
  if (code != GG_CL_SUCCESS) *refusal = code;
  for (gg_cl_uint d = 0; code == GG_CL_SUCCESS && d < found; d++)
    longer[(*count)++] = (gg_opencl_entry){platform, devices[d], index, d};
  free(devices);
  return GG_OK;
}

static gg_status no_device(gg_cl_uint platforms, gg_cl_int refusal, gg_error* error) {
  if (refusal != GG_CL_SUCCESS)
    return gg_opencl_fail(NULL, error, refusal, "clGetDeviceIDs", "listing the devices of %u OpenCL platforms",
                          platforms);
  return gg_fail(error, GG_ERROR_NO_DEVICE, "clGetDeviceIDs",
                 "none of the %u OpenCL platforms has a device; check that this process may use the device files, "
                 "or " GG_PLATFORM_CURE,
                 platforms);
}

static gg_status enumerate(const gg_opencl_api* api, gg_opencl_entry** entries, size_t* count, gg_cl_int* refusal,
                           gg_error* error) {
  *entries = NULL;
  *count = 0;
  *refusal = GG_CL_SUCCESS;
  gg_cl_uint found = 0;
  gg_cl_int code = api->clGetPlatformIDs(0, NULL, &found);
  if (code == GG_CL_PLATFORM_NOT_FOUND_KHR || (code == GG_CL_SUCCESS && found == 0))
    return gg_fail_native(error, GG_ERROR_NO_DRIVER, code, gg_opencl_code_name(code), "clGetPlatformIDs",
                          "the OpenCL loader knows no platform; " GG_PLATFORM_CURE);
  if (code != GG_CL_SUCCESS) return gg_opencl_fail(NULL, error, code, "clGetPlatformIDs", "listing OpenCL platforms");

  gg_cl_platform* platforms = calloc(found, sizeof(gg_cl_platform));
  if (platforms == NULL)
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_opencl_enumerate", "out of host memory listing %u platforms", found);
  gg_status status = GG_OK;
  code = api->clGetPlatformIDs(found, platforms, NULL);
  if (code != GG_CL_SUCCESS) status = gg_opencl_fail(NULL, error, code, "clGetPlatformIDs", "listing OpenCL platforms");
  for (gg_cl_uint p = 0; status == GG_OK && p < found; p++)
    status = enumerate_platform(api, platforms[p], p, entries, count, refusal, error);
  free(platforms);
  if (status == GG_OK && *count == 0) status = no_device(found, *refusal, error);
  if (status != GG_OK) {
    free(*entries);
    *entries = NULL;
  }
  return status;
}

/* A platform initialises its devices when they are first listed, and PoCL 3.1 lets a second thread see them half
 * initialised. So only one thread of the process lists devices at a time. */
gg_status gg_opencl_enumerate(const gg_opencl_api* api, gg_opencl_entry** entries, size_t* count, gg_cl_int* refusal,
                              gg_error* error) {
  static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&asking);
  gg_status status = enumerate(api, entries, count, refusal, error);
  pthread_mutex_unlock(&asking);
  return status;
}

/* Usable before unusable, GPUs before others, exact before inexact. */
static int rank(const gg_device_info* info) {
  return (info->available ? 0 : 4) + (info->kind == GG_DEVICE_GPU ? 0 : 2) + (info->exact ? 0 : 1);
}

static size_t list_unavailable(gg_device_info* infos, size_t capacity, const char* reason) {
  if (capacity == 0) return 1;
  memset(&infos[0], 0, sizeof infos[0]);
  infos[0].size = (uint32_t)sizeof infos[0];
  snprintf(infos[0].backend, sizeof infos[0].backend, "opencl");
  snprintf(infos[0].id, sizeof infos[0].id, "opencl");
  snprintf(infos[0].reason, sizeof infos[0].reason, "%.*s", (int)sizeof infos[0].reason - 1, reason);
  return 1;
}

size_t gg_opencl_probe_with(const gg_opencl_api* api, gg_device_info* infos, size_t capacity) {
  gg_error error = GG_ERROR_INIT;
  gg_opencl_entry* entries = NULL;
  size_t count = 0;
  gg_cl_int refusal;
  if (gg_opencl_enumerate(api, &entries, &count, &refusal, &error) != GG_OK || count == 0) {
    free(entries);
    return list_unavailable(infos, capacity, error.message);
  }

  gg_device_info* all = calloc(count, sizeof *all);
  if (all == NULL) {
    free(entries);
    return list_unavailable(infos, capacity, "out of host memory listing OpenCL devices");
  }
  for (size_t i = 0; i < count; i++) {
    gg_device_info info;
    gg_opencl_capability can;
    gg_opencl_describe(api, &entries[i], &info, &can);
    size_t place = i; /* insertion keeps the loader's order among equals */
    for (; place > 0 && rank(&all[place - 1]) > rank(&info); place--) all[place] = all[place - 1];
    all[place] = info;
  }
  for (size_t i = 0; i < count && i < capacity; i++) infos[i] = all[i];
  free(all);
  free(entries);
  return count;
}

size_t gg_opencl_probe(gg_device_info* infos, size_t capacity) {
  gg_opencl_api api;
  gg_error error = GG_ERROR_INIT;
  if (gg_opencl_load(&api, &error) != GG_OK) return list_unavailable(infos, capacity, error.message);
  return gg_opencl_probe_with(&api, infos, capacity);
}
