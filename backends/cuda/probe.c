#include <stdio.h>
#include <string.h>

#include "backends/cuda/device.h"
#include "host/status.h"

gg_status gg_cuda_start(gg_cuda_device* cuda, int* devices, gg_error* error) {
  gg_status status = GG_CUDA_TRY(cuda, error, cuInit, (0), "starting CUDA");
  if (!status)
    status = GG_CUDA_TRY(cuda, error, cuDriverGetVersion, (&cuda->driver_version), "reading the driver's version");
  if (!status) status = GG_CUDA_TRY(cuda, error, cuDeviceGetCount, (devices), "counting CUDA devices");
  if (!status && *devices < 1)
    status = gg_fail(error, GG_ERROR_NO_DEVICE, "cuDeviceGetCount",
                     "the CUDA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES");
  if (status != GG_ERROR_DEVICE_LOST && status != GG_ERROR_DRIVER) return status;
  /* No device is open that could be lost: the driver itself does not work. */
  cuda->device.lost = false;
  if (error) error->status = GG_ERROR_NO_DRIVER;
  return GG_ERROR_NO_DRIVER;
}

/* The kernel variants that can be tried here, best first. */
static void list_variants(const gg_cuda_platform* platform, int driver_version, char* text, size_t bytes) {
  gg_nvrtc nvrtc;
  bool compiler = platform->open_nvrtc(&nvrtc, driver_version, NULL) == GG_OK;
  snprintf(text, bytes, "%s%s%s", platform->fatbin ? "cubin " : "", platform->ptx ? "ptx " : "",
           compiler ? "nvrtc " : "");
  size_t length = strlen(text);
  if (length) text[length - 1] = '\0';
}

static gg_status read_attributes(gg_cuda_device* cuda, int* multiprocessors, int* mode, gg_error* error) {
  int major = 0, minor = 0, maps = 0;
  const struct {
    gg_cu_enum attribute;
    int* value;
  } wanted[] = {{GG_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiprocessors},
                {GG_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                {GG_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
                {GG_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, &maps},
                {GG_CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, mode}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    gg_status status =
        GG_CUDA_TRY(cuda, error, cuDeviceGetAttribute, (wanted[i].value, wanted[i].attribute, cuda->number),
                    "reading attribute %u of %s", wanted[i].attribute, cuda->device.info.id);
    if (status) return status;
  }
  cuda->capability = 10 * major + minor;
  cuda->maps_host = maps != 0;
  return GG_OK;
}

gg_status gg_cuda_describe(gg_cuda_device* cuda, const gg_cuda_platform* platform, int ordinal, gg_error* error) {
  gg_device_info* info = &cuda->device.info;
  *info = (gg_device_info){.size = sizeof *info, .kind = GG_DEVICE_GPU, .backend = "cuda"};
  snprintf(info->id, sizeof info->id, "cuda:%d", ordinal);
  int multiprocessors = 0, mode = 0;
  size_t memory = 0;
  gg_status status = GG_CUDA_TRY(cuda, error, cuDeviceGet, (&cuda->number, ordinal), "opening %s", info->id);
  if (!status)
    status = GG_CUDA_TRY(cuda, error, cuDeviceGetName, (info->name, (int)sizeof info->name, cuda->number),
                         "reading the name of %s", info->id);
  if (!status)
    status = GG_CUDA_TRY(cuda, error, cuDeviceTotalMem_v2, (&memory, cuda->number), "reading the memory size of %s",
                         info->id);
  if (!status) status = read_attributes(cuda, &multiprocessors, &mode, error);
  if (status) return status;

  info->name[sizeof info->name - 1] = '\0';
  info->memory_bytes = memory;
  info->compute_units = (uint32_t)multiprocessors;
  info->exact = true; /* IEEE operations, subnormals and fma on every GPU that the images are for */
  snprintf(info->driver, sizeof info->driver, "CUDA %d.%d driver, compute capability %d.%d",
           cuda->driver_version / 1000, cuda->driver_version % 1000 / 10, cuda->capability / 10, cuda->capability % 10);
  list_variants(platform, cuda->driver_version, info->kernels, sizeof info->kernels);
  info->available = mode != GG_CU_COMPUTEMODE_PROHIBITED && info->kernels[0];
  if (mode == GG_CU_COMPUTEMODE_PROHIBITED)
    snprintf(info->reason, sizeof info->reason,
             "compute is prohibited on this GPU: an administrator can allow it with nvidia-smi -c DEFAULT");
  else if (!info->kernels[0])
    snprintf(info->reason, sizeof info->reason,
             "this build has no embedded kernels and NVRTC was not found: build with nvcc, or install the CUDA "
             "toolkit's NVRTC");
  return GG_OK;
}

static void describe_unavailable(gg_device_info* info, const char* reason) {
  *info = (gg_device_info){.size = sizeof *info, .backend = "cuda", .id = "cuda"};
  snprintf(info->reason, sizeof info->reason, "%.*s", (int)sizeof info->reason - 1, reason);
}

size_t gg_cuda_probe_with(const gg_cuda_platform* platform, gg_device_info* infos, size_t capacity) {
  gg_error error = GG_ERROR_INIT;
  gg_cuda_device cuda = {.driver = platform->driver};
  int devices = 0;
  if (gg_cuda_start(&cuda, &devices, &error)) {
    if (capacity > 0) describe_unavailable(&infos[0], error.message);
    return 1;
  }
  for (int i = 0; i < devices && (size_t)i < capacity; i++) {
    if (gg_cuda_describe(&cuda, platform, i, &error)) {
      describe_unavailable(&infos[i], error.message);
      snprintf(infos[i].id, sizeof infos[i].id, "cuda:%d", i);
    } else {
      infos[i] = cuda.device.info;
    }
  }
  return (size_t)devices;
}

size_t gg_cuda_probe(gg_device_info* infos, size_t capacity) {
  gg_error error = GG_ERROR_INIT;
  gg_cuda_platform platform;
  if (!gg_cuda_platform_open(&platform, &error)) return gg_cuda_probe_with(&platform, infos, capacity);
  if (capacity > 0) describe_unavailable(&infos[0], error.message);
  return 1;
}
