#include <stdarg.h>
#include <stdio.h>

#include "backends/cuda/device.h"
#include "host/status.h"

typedef struct gg_cuda_failure {
  gg_cu_result code;
  gg_status status;
  const char* cure; /* a sentence; may be NULL */
} gg_cuda_failure;

#define GG_FAULT_CURE                                                                                            \
  "The GPU context can do no more work: destroy every gradguard context on this device; most faults need a new " \
  "process"

/* Those with GG_ERROR_DEVICE_LOST are sticky: every later call in that context fails too. Others are GG_ERROR_DRIVER
 * without a cure. */
static const gg_cuda_failure failures[] = {
    {GG_CUDA_ERROR_OUT_OF_MEMORY, GG_ERROR_NO_MEMORY, "Free GPU memory (nvidia-smi shows who holds it)"},
    {GG_CUDA_ERROR_NOT_INITIALIZED, GG_ERROR_NO_DRIVER, NULL},
    {GG_CUDA_ERROR_DEINITIALIZED, GG_ERROR_DEVICE_LOST, "The process is exiting and the driver has shut down"},
    {GG_CUDA_ERROR_STUB_LIBRARY, GG_ERROR_NO_DRIVER,
     "The CUDA toolkit's stub was loaded in place of the driver: take the toolkit's stubs folder off LD_LIBRARY_PATH "
     "and install the NVIDIA driver"},
    {GG_CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, GG_ERROR_NO_DRIVER, "Update the NVIDIA driver"},
    {GG_CUDA_ERROR_DEVICE_UNAVAILABLE, GG_ERROR_NO_DEVICE,
     "Another process holds the GPU in exclusive mode (nvidia-smi -q -d COMPUTE), or compute is prohibited on it"},
    {GG_CUDA_ERROR_NO_DEVICE, GG_ERROR_NO_DEVICE,
     "The driver sees no GPU: check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, that it was started with "
     "access to the GPU"},
    {GG_CUDA_ERROR_INVALID_DEVICE, GG_ERROR_NO_DEVICE, NULL},
    {GG_CUDA_ERROR_DEVICE_NOT_LICENSED, GG_ERROR_NO_DEVICE, "The virtual GPU has no licence"},
    {GG_CUDA_ERROR_INVALID_IMAGE, GG_ERROR_BUILD, "Choose another kernel variant (GRADGUARD_CUDA_KERNELS)"},
    {GG_CUDA_ERROR_INVALID_CONTEXT, GG_ERROR_DEVICE_LOST,
     "The CUDA context no longer exists: something in this process reset the device or destroyed the context"},
    {GG_CUDA_ERROR_NO_BINARY_FOR_GPU, GG_ERROR_BUILD,
     "The image has no code for this GPU: use variant ptx or nvrtc (GRADGUARD_CUDA_KERNELS), or build with its "
     "architecture in gencode="},
    {GG_CUDA_ERROR_ECC_UNCORRECTABLE, GG_ERROR_DEVICE_LOST,
     "GPU memory is damaged (nvidia-smi -q -d ECC): reset or replace the GPU"},
    {GG_CUDA_ERROR_INVALID_PTX, GG_ERROR_BUILD, "Use variant cubin or nvrtc (GRADGUARD_CUDA_KERNELS)"},
    {GG_CUDA_ERROR_NVLINK_UNCORRECTABLE, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_JIT_COMPILER_NOT_FOUND, GG_ERROR_BUILD,
     "The driver's compiler, libnvidia-ptxjitcompiler.so.1, is missing: install the whole NVIDIA driver, or use "
     "variant cubin or nvrtc"},
    {GG_CUDA_ERROR_UNSUPPORTED_PTX_VERSION, GG_ERROR_BUILD,
     "The PTX was made by a newer CUDA toolkit than the driver knows: update the NVIDIA driver, use variant cubin, or "
     "use variant nvrtc with an NVRTC no newer than the driver (GRADGUARD_CUDA_KERNELS)"},
    {GG_CUDA_ERROR_JIT_COMPILATION_DISABLED, GG_ERROR_BUILD, "Unset CUDA_DISABLE_PTX_JIT, or use variant cubin"},
    {GG_CUDA_ERROR_CONTAINED, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_INVALID_SOURCE, GG_ERROR_BUILD, NULL},
    {GG_CUDA_ERROR_OPERATING_SYSTEM, GG_ERROR_DRIVER, "Check that this user may open /dev/nvidia*"},
    {GG_CUDA_ERROR_NOT_FOUND, GG_ERROR_BUILD, NULL},
    {GG_CUDA_ERROR_ILLEGAL_ADDRESS, GG_ERROR_DEVICE_LOST,
     "Work on this GPU, here or elsewhere in the process, touched memory that is not there (was a wrapped buffer freed "
     "too early?); compute-sanitizer finds where. " GG_FAULT_CURE},
    {GG_CUDA_ERROR_LAUNCH_TIMEOUT, GG_ERROR_DEVICE_LOST, "The display's time limit stopped a kernel. " GG_FAULT_CURE},
    {GG_CUDA_ERROR_CONTEXT_IS_DESTROYED, GG_ERROR_DEVICE_LOST,
     "Something in this process reset the device or destroyed the context"},
    {GG_CUDA_ERROR_ASSERT, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_HARDWARE_STACK_ERROR, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_ILLEGAL_INSTRUCTION, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_MISALIGNED_ADDRESS, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_INVALID_ADDRESS_SPACE, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_INVALID_PC, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_LAUNCH_FAILED, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_TENSOR_MEMORY_LEAK, GG_ERROR_DEVICE_LOST, GG_FAULT_CURE},
    {GG_CUDA_ERROR_SYSTEM_NOT_READY, GG_ERROR_NO_DRIVER,
     "The system is not ready for CUDA: on NVSwitch machines start nvidia-fabricmanager"},
    {GG_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, GG_ERROR_NO_DRIVER,
     "The driver's kernel module and libcuda.so.1 have different versions: reboot after the driver update"},
    {GG_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, GG_ERROR_NO_DRIVER,
     "A forward-compatibility libcuda.so.1 (package cuda-compat) was loaded that does not support this GPU: take it "
     "off LD_LIBRARY_PATH, or update the NVIDIA driver"},
    {GG_CUDA_ERROR_MPS_CLIENT_TERMINATED, GG_ERROR_DEVICE_LOST, "The MPS server stopped. " GG_FAULT_CURE},
    {GG_CUDA_ERROR_UNKNOWN, GG_ERROR_DEVICE_LOST,
     "Check dmesg for messages of the driver (Xid); after a suspend, reload the nvidia_uvm module"},
};

static gg_cuda_failure find_failure(gg_cu_result code) {
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
    if (failures[i].code == code) return failures[i];
  return (gg_cuda_failure){code, GG_ERROR_DRIVER, NULL};
}

gg_status gg_cuda_check(gg_cuda_device* cuda, gg_error* error, gg_cu_result code, const char* function,
                        const char* format, ...) {
  if (code == GG_CUDA_SUCCESS) return GG_OK;
  gg_cuda_failure failure = find_failure(code);
  if (failure.status == GG_ERROR_DEVICE_LOST) cuda->device.lost = true;

  char what[600];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  const char *name = NULL, *text = NULL;
  if (cuda->driver.cuGetErrorName(code, &name) != GG_CUDA_SUCCESS || !name) name = "an unknown CUDA error";
  if (cuda->driver.cuGetErrorString(code, &text) != GG_CUDA_SUCCESS || !text) text = "no description";
  return gg_fail_native(error, failure.status, code, name, function, "%s: %s failed with %s (%u), %s%s%s", what,
                        function, name, code, text, failure.cure ? ". " : "", failure.cure ? failure.cure : "");
}

gg_status gg_cuda_enter(gg_cuda_device* cuda, gg_error* error) {
  return GG_CUDA_TRY(cuda, error, cuCtxPushCurrent_v2, (cuda->context), "making the CUDA context current");
}

gg_status gg_cuda_leave(gg_cuda_device* cuda, gg_status status, gg_error* error) {
  gg_cu_context popped;
  gg_cu_result code = cuda->driver.cuCtxPopCurrent_v2(&popped);
  if (status) return status;
  return gg_cuda_check(cuda, error, code, "cuCtxPopCurrent_v2", "restoring the caller's CUDA context");
}

bool gg_cuda_enter_release(gg_cuda_device* cuda) {
  return cuda->context && cuda->driver.cuCtxPushCurrent_v2(cuda->context) == GG_CUDA_SUCCESS;
}

void gg_cuda_leave_release(gg_cuda_device* cuda, bool entered) {
  gg_cu_context popped;
  if (entered) cuda->driver.cuCtxPopCurrent_v2(&popped);
}

gg_status gg_cuda_settle(gg_cuda_device* cuda, gg_status status, gg_error* error) {
  if (cuda->device.lost) return status;
  bool entered = gg_cuda_enter_release(cuda);
  gg_cu_result code = cuda->driver.cuStreamSynchronize(cuda->stream);
  gg_cuda_leave_release(cuda, entered);
  if (code == GG_CUDA_SUCCESS) return status;
  const gg_error cause = error ? *error : (gg_error)GG_ERROR_INIT;
  cuda->device.lost = true;
  return gg_fail_native(error, GG_ERROR_DEVICE_LOST, cause.native_code, cause.native_name, cause.function,
                        "%.300s. Waiting for the stream failed too, so copies may still be running: destroy the "
                        "context before the host memory that was passed to it",
                        cause.message);
}
