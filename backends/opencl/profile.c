#include "backends/opencl/profile.h"

#include <stdio.h>

void gg_opencl_profile_add(gg_opencl_device* device, const char* kernel, uint32_t blocks, gg_cl_event event) {
  if (!device->profiling || device->timed_count == GG_OPENCL_TIMED) return;
  if (device->api.clRetainEvent(event) != GG_CL_SUCCESS) return;
  device->timed[device->timed_count++] = (gg_opencl_timed){kernel, blocks, event};
}

/* A time that the driver does not report is omitted: it is only information. */
static void tell(gg_opencl_device* device, const gg_opencl_timed* timed) {
  uint64_t start = 0, end = 0;
  const gg_opencl_api* api = &device->api;
  if (api->clGetEventProfilingInfo(timed->event, GG_CL_PROFILING_COMMAND_START, sizeof start, &start, NULL) !=
          GG_CL_SUCCESS ||
      api->clGetEventProfilingInfo(timed->event, GG_CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) != GG_CL_SUCCESS)
    return;
  char line[128];
  snprintf(line, sizeof line, "opencl: %s, %u work-groups: %.3f us", timed->kernel, timed->blocks,
           (double)(end - start) * 1e-3);
  device->log(device->log_user, 0, line);
}

/* The queue is in-order, so the finished launches are the first ones. */
void gg_opencl_profile_tell(gg_opencl_device* device) {
  uint32_t finished = 0;
  for (; finished < device->timed_count; finished++) {
    gg_cl_int state = 1;
    gg_cl_event event = device->timed[finished].event;
    if (device->api.clGetEventInfo(event, GG_CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) !=
            GG_CL_SUCCESS ||
        state > 0)
      break;
    if (state == 0) tell(device, &device->timed[finished]);
    device->api.clReleaseEvent(event);
  }
  device->timed_count -= finished;
  for (uint32_t i = 0; i < device->timed_count; i++) device->timed[i] = device->timed[i + finished];
}

void gg_opencl_profile_drop(gg_opencl_device* device) {
  for (uint32_t i = 0; i < device->timed_count; i++) device->api.clReleaseEvent(device->timed[i].event);
  device->timed_count = 0;
}
