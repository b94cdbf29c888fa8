#include "backends/opencl/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/failure.h"
#include "host/status.h"
#include "kernels/embedded.h"

/* The build log, to be freed; NULL if it is empty or not available. */
static char* build_log(const gg_opencl_device* device, gg_cl_program program) {
  size_t bytes = 0;
  if (device->api.clGetProgramBuildInfo(program, device->id, GG_CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) !=
          GG_CL_SUCCESS ||
      bytes <= 1)
    return NULL;
  char* text = calloc(bytes + 1, 1);
  if (text == NULL) return NULL;
  if (device->api.clGetProgramBuildInfo(program, device->id, GG_CL_PROGRAM_BUILD_LOG, bytes, text, NULL) !=
      GG_CL_SUCCESS)
    text[0] = '\0';
  if (text[strspn(text, " \r\n\t")] != '\0') return text;
  free(text);
  return NULL;
}

/* The log takes one line at a time. */
static void tell_lines(const gg_opencl_device* device, int level, const char* text) {
  if (device->log == NULL) return;
  while (*text != '\0') {
    size_t length = strcspn(text, "\r\n");
    char* line = malloc(length + 1);
    if (line == NULL) return;
    memcpy(line, text, length);
    line[length] = '\0';
    if (length > 0) device->log(device->log_user, level, line);
    free(line);
    text += length;
    text += strspn(text, "\r\n");
  }
}

static gg_status refuse_build(gg_opencl_device* device, gg_cl_int code, const char* options, char* text,
                              gg_error* error) {
  const char* cure = device->log == NULL ? " (a log function in the context's options gets all of it)" : "";
  for (char* c = text; c != NULL && *c != '\0'; c++)
    if (*c == '\n' || *c == '\r') *c = ' ';
  return gg_opencl_fail(device, error, code, "clBuildProgram",
                        "building the kernels for %s (%s) with %s; the build log%s begins: %.360s",
                        device->base.info.id, device->base.info.name, options, cure, text != NULL ? text : "(empty)");
}

gg_status gg_opencl_program(gg_opencl_device* device, gg_opencl_variant variant, gg_error* error) {
  if (device->programs[variant] != NULL) return GG_OK;
  const gg_opencl_api* api = &device->api;
  const char* source = gg_kernel_source;
  gg_cl_int code = GG_CL_SUCCESS;
  gg_cl_program program = api->clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
  if (program == NULL || code != GG_CL_SUCCESS)
    return gg_opencl_fail(device, error, code, "clCreateProgramWithSource", "loading the kernel source");

  char options[160];
  snprintf(options, sizeof options, "-cl-std=CL1.2%s -DGG_WITH_GUARD=%d%s%s",
           device->can.rounded_divide ? " -cl-fp32-correctly-rounded-divide-sqrt" : "", GG_WITH_GUARD,
           variant == GG_OPENCL_ARENA ? " -DGG_ARENA=1" : "",
           device->base.info.kind == GG_DEVICE_CPU ? " -DGG_PROCESSOR=1" : "");
  code = api->clBuildProgram(program, 1, &device->id, options, NULL, NULL);
  char* text = build_log(device, program);
  if (text != NULL) tell_lines(device, code == GG_CL_SUCCESS ? 0 : 1, text);
  gg_status status = GG_OK;
  if (code != GG_CL_SUCCESS) {
    status = refuse_build(device, code, options, text, error);
    api->clReleaseProgram(program);
  } else {
    device->programs[variant] = program;
  }
  free(text);
  return status;
}
