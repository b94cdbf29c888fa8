#include "backends/opencl/failure.h"
#include "backends/opencl/memory.h"
#include "host/status.h"

gg_status gg_opencl_copy(gg_device* owner, gg_memory* to, uint64_t to_offset, const gg_memory* from,
                         uint64_t from_offset, uint64_t bytes, gg_error* error) {
  if (bytes == 0) return GG_OK;
  gg_opencl_device* device = gg_opencl_of(owner);
  const gg_opencl_memory *target = gg_opencl_memory_of(to), *source = gg_opencl_memory_of(from);
  uint64_t target_at = target->origin + to_offset, source_at = source->origin + from_offset;
  bool svm = target->object.mem == NULL;
  if (svm != (source->object.mem == NULL))
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_opencl_copy",
                   "there is no copy between shared virtual memory and a memory object");
  const gg_opencl_api* api = &device->api;
  gg_cl_int code = svm ? api->clEnqueueSVMMemcpy(device->queue, 0, target->object.svm + target_at,
                                                 source->object.svm + source_at, bytes, 0, NULL, NULL)
                       : api->clEnqueueCopyBuffer(device->queue, source->object.mem, target->object.mem, source_at,
                                                  target_at, bytes, 0, NULL, NULL);
  if (code == GG_CL_SUCCESS) return GG_OK;
  return gg_opencl_fail(device, error, code, svm ? "clEnqueueSVMMemcpy" : "clEnqueueCopyBuffer",
                        "copying %llu bytes on the device", (unsigned long long)bytes);
}
