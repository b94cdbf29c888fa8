/* What a failed OpenCL call means to the caller of the library. */
#ifndef GG_BACKENDS_OPENCL_FAILURE_H
#define GG_BACKENDS_OPENCL_FAILURE_H

#include "backends/opencl/device.h"

/* The name of an OpenCL code, such as "CL_OUT_OF_RESOURCES"; NULL if it is not known. */
const char* gg_opencl_code_name(gg_cl_int code);

/*
 * Fills `error` from the code that the driver's `function` returned, and returns the status it means. `device` may be
 * NULL; otherwise it is marked lost when the code says that its queue can no longer be used. The message is the
 * sentence that `format` makes, what was being done and with what sizes, followed by the code.
 */
__attribute__((format(printf, 5, 6))) gg_status gg_opencl_fail(gg_opencl_device* device, gg_error* error,
                                                               gg_cl_int code, const char* function, const char* format,
                                                               ...);

/* The same for a call that waits: there a code other than a lack of memory is the fault of a command that had been
 * queued before, after which nothing on the device can be trusted, so the device is lost. */
gg_status gg_opencl_fail_wait(gg_opencl_device* device, gg_error* error, gg_cl_int code, const char* function,
                              const char* waited_for);

#endif
