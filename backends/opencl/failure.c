#include "backends/opencl/failure.h"

#include <stdarg.h>
#include <stdio.h>

#include "host/status.h"

const char* gg_opencl_code_name(gg_cl_int code) {
  switch (code) {
#define GG_CL_CASE(name, value) \
  case value:                   \
    return "CL_" #name;
    GG_CL_ERRORS(GG_CL_CASE)
#undef GG_CL_CASE
    case GG_CL_PLATFORM_NOT_FOUND_KHR:
      return "CL_PLATFORM_NOT_FOUND_KHR";
    case GG_CL_ILLEGAL_ACCESS_NVIDIA:
      return "illegal read or write by a kernel (NVIDIA)";
    default:
      return NULL;
  }
}

static gg_status meaning(gg_cl_int code) {
  switch (code) {
    case GG_CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case GG_CL_OUT_OF_RESOURCES:
    case GG_CL_OUT_OF_HOST_MEMORY:
    case GG_CL_INVALID_BUFFER_SIZE:
      return GG_ERROR_NO_MEMORY;
    case GG_CL_COMPILER_NOT_AVAILABLE:
    case GG_CL_BUILD_PROGRAM_FAILURE:
    case GG_CL_INVALID_BUILD_OPTIONS:
    case GG_CL_INVALID_PROGRAM_EXECUTABLE:
    case GG_CL_INVALID_KERNEL_NAME:
      return GG_ERROR_BUILD;
    /* The library's own queue and context are valid until a fault; after that the driver rejects them. */
    case GG_CL_DEVICE_NOT_AVAILABLE:
    case GG_CL_INVALID_CONTEXT:
    case GG_CL_INVALID_COMMAND_QUEUE:
    case GG_CL_ILLEGAL_ACCESS_NVIDIA:
      return GG_ERROR_DEVICE_LOST;
    default:
      return GG_ERROR_DRIVER;
  }
}

static const char* cure(gg_status status) {
  switch (status) {
    case GG_ERROR_NO_MEMORY:
      return "; the device or the host is out of memory: free some, or use a smaller group";
    case GG_ERROR_DEVICE_LOST:
      return "; the device cannot be used any more: destroy the context and make a new one";
    default:
      return "";
  }
}

gg_status gg_opencl_fail(gg_opencl_device* device, gg_error* error, gg_cl_int code, const char* function,
                         const char* format, ...) {
  char sentence[640];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  gg_status status = meaning(code);
  if (status == GG_ERROR_DEVICE_LOST && device != NULL) device->base.lost = true;
  const char* name = gg_opencl_code_name(code);
  return gg_fail_native(error, status, code, name, function, "%s: %s (%d)%s", sentence,
                        name != NULL ? name : "unknown code", (int)code, cure(status));
}

gg_status gg_opencl_fail_wait(gg_opencl_device* device, gg_error* error, gg_cl_int code, const char* function,
                              const char* waited_for) {
  bool memory = code == GG_CL_MEM_OBJECT_ALLOCATION_FAILURE || code == GG_CL_OUT_OF_HOST_MEMORY;
  gg_status status = memory ? GG_ERROR_NO_MEMORY : GG_ERROR_DEVICE_LOST;
  if (!memory) device->base.lost = true;
  const char* name = gg_opencl_code_name(code);
  return gg_fail_native(error, status, code, name, function, "waiting for %s, a queued command failed: %s (%d)%s",
                        waited_for, name != NULL ? name : "unknown code", (int)code, cure(status));
}
