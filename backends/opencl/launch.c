#include "backends/opencl/launch.h"

#include "backends/opencl/failure.h"
#include "backends/opencl/profile.h"

static void keep(gg_opencl_call* call, gg_cl_int code, const char* function) {
  if (code != GG_CL_SUCCESS && call->code == GG_CL_SUCCESS) {
    call->code = code;
    call->refused = call->next;
    call->function = function;
  }
  call->next++;
}

void gg_opencl_arg(gg_opencl_call* call, const void* value, size_t bytes) {
  keep(call, call->device->api.clSetKernelArg(call->kernel, call->next, bytes, value), "clSetKernelArg");
}

static void arg_address(gg_opencl_call* call, const void* address) {
  keep(call, call->device->api.clSetKernelArgSVMPointer(call->kernel, call->next, address), "clSetKernelArgSVMPointer");
}

void gg_opencl_arg_object(gg_opencl_call* call, const gg_opencl_object* object) {
  if (object->mem != NULL)
    gg_opencl_arg(call, &object->mem, sizeof(gg_cl_mem));
  else
    arg_address(call, object->svm);
}

void gg_opencl_arg_scratch(gg_opencl_call* call, const gg_opencl_memory* memory) {
  if (memory->object.mem != NULL)
    gg_opencl_arg(call, &memory->object.mem, sizeof(gg_cl_mem));
  else
    arg_address(call, memory->object.svm + memory->origin);
}

gg_status gg_opencl_launch(gg_opencl_call* call, uint32_t blocks, gg_cl_event* done, gg_error* error) {
  gg_opencl_device* device = call->device;
  if (call->code != GG_CL_SUCCESS)
    return gg_opencl_fail(device, error, call->code, call->function, "setting argument %u of kernel %s", call->refused,
                          call->name);
  const size_t local = GG_LANES, global = (size_t)blocks * GG_LANES;
  gg_cl_event event = NULL;
  bool wanted = done != NULL || device->profiling;
  gg_cl_int code = device->api.clEnqueueNDRangeKernel(device->queue, call->kernel, 1, NULL, &global, &local, 0, NULL,
                                                      wanted ? &event : NULL);
  if (code != GG_CL_SUCCESS)
    return gg_opencl_fail(device, error, code, "clEnqueueNDRangeKernel", "queueing %u work-groups of kernel %s", blocks,
                          call->name);
  if (!wanted) return GG_OK;
  gg_opencl_profile_add(device, call->name, blocks, event);
  if (done != NULL)
    *done = event;
  else
    device->api.clReleaseEvent(event);
  return GG_OK;
}
