/* Translates OpenCL error codes to the library's errors. */
#ifndef GG_BACKENDS_OPENCL_FAILURE_H
#define GG_BACKENDS_OPENCL_FAILURE_H

#include "backends/opencl/device.h"

/* The name of an OpenCL code, such as "CL_OUT_OF_RESOURCES"; NULL if it is not known. */
const char* gg_opencl_code_name(gg_cl_int code);

/*
 * Fills `error` from the code that the driver's `function` returned, and returns the corresponding status. `device` may
 * be NULL; otherwise it is marked lost if the code means that its queue can no longer be used. The message is the
 * formatted text, which says what was being done and with what sizes, followed by the code.
 */
__attribute__((format(printf, 5, 6))) gg_status gg_opencl_fail(gg_opencl_device* device, gg_error* error,
                                                               gg_cl_int code, const char* function, const char* format,
                                                               ...);

/* The same for a call that waits: any code other than out of memory comes from a command that was queued earlier. After
 * that, nothing on the device can be trusted, so the device is marked lost. */
gg_status gg_opencl_fail_wait(gg_opencl_device* device, gg_error* error, gg_cl_int code, const char* function,
                              const char* waited_for);

#endif
