/* Describes an OpenCL device and says whether it can run the kernels. */
#ifndef GG_BACKENDS_OPENCL_CAPABILITY_H
#define GG_BACKENDS_OPENCL_CAPABILITY_H

#include "backends/opencl/loader.h"

typedef struct gg_opencl_capability {
  bool svm;            /* coarse-grained shared virtual memory, and a loader that has its functions */
  bool rounded_divide; /* supports -cl-fp32-correctly-rounded-divide-sqrt */
  uint64_t max_allocation;
} gg_opencl_capability;

/* A device and its position in the loader's list. */
typedef struct gg_opencl_entry {
  gg_cl_platform platform;
  gg_cl_device device;
  uint32_t platform_index, device_index;
} gg_opencl_entry;

/* Every device of every platform, in the loader's order. At least one on success, in `*entries`, to be freed.
 * GG_ERROR_NO_DRIVER if there is no platform, GG_ERROR_NO_DEVICE if no platform has a device. A platform whose devices
 * cannot be listed is omitted, and `*refusal` is its error code; otherwise GG_CL_SUCCESS. */
gg_status gg_opencl_enumerate(const gg_opencl_api* api, gg_opencl_entry** entries, size_t* count, gg_cl_int* refusal,
                              gg_error* error);

/* Describes a device. Never fails: a device that cannot be queried is unavailable, with the reason in `info`. */
void gg_opencl_describe(const gg_opencl_api* api, const gg_opencl_entry* entry, gg_device_info* info,
                        gg_opencl_capability* can);

/* The `probe` function of the vtable. */
size_t gg_opencl_probe(gg_device_info* infos, size_t capacity);
/* The same with functions that are already loaded. */
size_t gg_opencl_probe_with(const gg_opencl_api* api, gg_device_info* infos, size_t capacity);

#endif
