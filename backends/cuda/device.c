#include "backends/cuda/device.h"

#include <stdlib.h>
#include <string.h>

#include "host/status.h"
#include "kernels/embedded.h"

gg_status gg_cuda_platform_open(gg_cuda_platform* platform, gg_error* error) {
  *platform = (gg_cuda_platform){.open_nvrtc = gg_nvrtc_open,
                                 .fatbin = gg_kernel_fatbin_bytes ? gg_kernel_fatbin : NULL,
                                 .ptx = gg_kernel_ptx[0] ? gg_kernel_ptx : NULL,
                                 .source = gg_kernel_source};
  return gg_cuda_driver_open(&platform->driver, error);
}

/* "cuda:N", as listed by probe, or only the backend's name, which probe returns if it can list no device: if there are
 * devices now, it means the first. */
static gg_status parse_id(const char* id, int devices, int* ordinal, gg_error* error) {
  if (strcmp(id, "cuda") == 0) id = "cuda:0";
  const char* digits = strncmp(id, "cuda:", 5) == 0 ? id + 5 : "";
  char* end = NULL;
  long value = *digits >= '0' && *digits <= '9' ? strtol(digits, &end, 10) : -1;
  if (value < 0 || *end != '\0')
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_cuda_open",
                   "\"%s\" is not the name of a CUDA device: expected \"cuda:N\"", id);
  if (value >= devices)
    return gg_fail(error, GG_ERROR_NO_DEVICE, "gg_cuda_open",
                   "there is no device %s: the CUDA driver lists %d, cuda:0 to cuda:%d (CUDA_VISIBLE_DEVICES can hide "
                   "some)",
                   id, devices, devices - 1);
  *ordinal = (int)value;
  return GG_OK;
}

/* The context that the adopted stream belongs to; the stream's owner keeps it alive. */
static gg_status adopt_stream(gg_cuda_device* cuda, void* stream, int devices, int* ordinal, gg_error* error) {
  gg_status status = GG_CUDA_TRY(cuda, error, cuStreamGetCtx, (stream, &cuda->context),
                                 "querying the CUDA context of the caller's stream");
  if (status) return status;
  cuda->stream = stream;
  status = gg_cuda_enter(cuda, error);
  if (status) return status;
  gg_cu_device number = -1;
  status = GG_CUDA_TRY(cuda, error, cuCtxGetDevice, (&number), "querying the device of the caller's stream");
  status = gg_cuda_leave(cuda, status, error);
  for (int i = 0; !status && i < devices; i++) {
    gg_cu_device candidate = -1;
    status = GG_CUDA_TRY(cuda, error, cuDeviceGet, (&candidate, i), "looking for the device of the caller's stream");
    if (status || candidate != number) continue;
    *ordinal = i;
    return GG_OK;
  }
  return status ? status
                : gg_fail(error, GG_ERROR_NO_DEVICE, "cuCtxGetDevice",
                          "the caller's stream belongs to a device that the driver does not list");
}

/* The primary context is the one that PyTorch and the CUDA runtime use, so pointers can be shared with them. */
static gg_status retain_context(gg_cuda_device* cuda, gg_error* error) {
  gg_status status = GG_CUDA_TRY(cuda, error, cuDevicePrimaryCtxRetain, (&cuda->context, cuda->number),
                                 "retaining the primary context of %s", cuda->device.info.id);
  cuda->retained = !status;
  return status;
}

static gg_status prepare(gg_cuda_device* cuda, const gg_cuda_platform* platform, const gg_open_request* request,
                         gg_error* error) {
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  if (!request->queue) {
    /* Not ordered with the legacy NULL stream, on which other libraries may work. */
    status = GG_CUDA_TRY(cuda, error, cuStreamCreate, (&cuda->stream, GG_CU_STREAM_NON_BLOCKING),
                         "creating a stream on %s", cuda->device.info.id);
    cuda->own_stream = !status;
  }
  if (!status)
    status = GG_CUDA_TRY(cuda, error, cuEventCreate, (&cuda->arrived, GG_CU_EVENT_DISABLE_TIMING),
                         "creating an event on %s", cuda->device.info.id);
  if (!status) status = gg_cuda_load_kernels(cuda, platform, request, error);
  return gg_cuda_leave(cuda, status, error);
}

gg_status gg_cuda_open_with(const gg_cuda_platform* platform, const gg_open_request* request, gg_device** device,
                            gg_error* error) {
  *device = NULL;
  gg_cuda_device* cuda = calloc(1, sizeof *cuda);
  if (!cuda) return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_cuda_open", "out of host memory while opening a device");
  cuda->device.backend = &gg_backend_cuda;
  cuda->driver = platform->driver;
  int devices = 0, ordinal = 0;
  gg_status status = gg_cuda_start(cuda, &devices, error);
  if (!status)
    status = request->queue ? adopt_stream(cuda, request->queue, devices, &ordinal, error)
                            : parse_id(request->id ? request->id : "cuda:0", devices, &ordinal, error);
  if (!status) status = gg_cuda_describe(cuda, platform, ordinal, error);
  if (!status && !request->queue) status = retain_context(cuda, error);
  if (!status) status = prepare(cuda, platform, request, error);
  if (status) {
    gg_cuda_close(&cuda->device);
    return status;
  }
  *device = &cuda->device;
  return GG_OK;
}

gg_status gg_cuda_open(const gg_open_request* request, gg_device** device, gg_error* error) {
  *device = NULL;
  gg_cuda_platform platform;
  gg_status status = gg_cuda_platform_open(&platform, error);
  return status ? status : gg_cuda_open_with(&platform, request, device, error);
}

/* Also closes a partially opened device. Failures are ignored: after a fault every call reports it again. */
void gg_cuda_close(gg_device* device) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  bool entered = gg_cuda_enter_release(cuda);
  if (cuda->stream && !cuda->device.lost) cuda->driver.cuStreamSynchronize(cuda->stream);
  if (cuda->module) cuda->driver.cuModuleUnload(cuda->module);
  if (cuda->arrived) cuda->driver.cuEventDestroy_v2(cuda->arrived);
  if (cuda->own_stream) cuda->driver.cuStreamDestroy_v2(cuda->stream);
  gg_cuda_leave_release(cuda, entered);
  if (cuda->retained) cuda->driver.cuDevicePrimaryCtxRelease_v2(cuda->number);
  free(cuda);
}

gg_status gg_cuda_sync(gg_device* device, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_status status = gg_cuda_enter(cuda, error);
  if (status) return status;
  status =
      GG_CUDA_TRY(cuda, error, cuStreamSynchronize, (cuda->stream), "waiting for all work on %s", cuda->device.info.id);
  return gg_cuda_leave(cuda, status, error);
}

void* gg_cuda_native_queue(gg_device* device) { return gg_cuda_of(device)->stream; }
