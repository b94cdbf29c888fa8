/* An open CUDA device, and how every driver call on it is made and checked. */
#ifndef GG_BACKENDS_CUDA_DEVICE_H
#define GG_BACKENDS_CUDA_DEVICE_H

#include "backends/backend.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/nvrtc.h"

/* What the backend depends on. Tests replace the driver, the compiler and the images. */
typedef struct gg_cuda_platform {
  gg_cuda_driver driver;
  gg_status (*open_nvrtc)(gg_nvrtc* nvrtc, int driver_version, gg_error* error);
  const void* fatbin; /* NULL: this build has none */
  const char* ptx;    /* NULL: this build has none */
  const char* source;
} gg_cuda_platform;

/* The system's driver and this build's images. */
gg_status gg_cuda_platform_open(gg_cuda_platform* platform, gg_error* error);

typedef struct gg_cuda_device {
  gg_device device;
  gg_cuda_driver driver;
  int driver_version; /* 13000 is CUDA 13.0 */
  gg_cu_device number;
  int capability; /* 90 is compute capability 9.0 */
  bool maps_host; /* kernels can write to pinned host memory */
  gg_cu_context context;
  bool retained; /* `context` is the primary one and we hold a reference; else the adopted stream's */
  gg_cu_stream stream;
  bool own_stream;
  gg_cu_event arrived; /* the last read-back */
  bool readback_queued;
  gg_cu_module module;
  gg_cu_function reduce, finalize, update, unfused_clip;
} gg_cuda_device;

typedef struct gg_cuda_memory {
  gg_memory memory;
  gg_cu_pointer address;
  void* host; /* the host address of pinned memory that the device accesses at `address`; otherwise NULL */
} gg_cuda_memory;

static inline gg_cuda_device* gg_cuda_of(gg_device* device) { return (gg_cuda_device*)device; }
static inline gg_cuda_memory* gg_cuda_memory_of(gg_memory* memory) { return (gg_cuda_memory*)memory; }

/* ---- Driver calls (error.c) ---- */

/* Returns GG_OK for `code` 0. Otherwise fills `error`: what was being done, the driver's function, code and text and,
 * if known, how to fix it. Marks the device lost after a fault that makes its context unusable. */
__attribute__((format(printf, 5, 6))) gg_status gg_cuda_check(gg_cuda_device* cuda, gg_error* error, gg_cu_result code,
                                                              const char* function, const char* format, ...);

/* Calls a driver function by its name in the table: GG_CUDA_TRY(cuda, error, cuMemFree_v2, (address), "freeing"). */
#define GG_CUDA_TRY(cuda, error, function, arguments, ...) \
  gg_cuda_check((cuda), (error), (cuda)->driver.function arguments, #function, __VA_ARGS__)

/* Every function of the backend's vtable works between these two, so that the caller's current context is not changed.
 * `leave` returns `status`, or its own failure if `status` is GG_OK. */
gg_status gg_cuda_enter(gg_cuda_device* cuda, gg_error* error);
gg_status gg_cuda_leave(gg_cuda_device* cuda, gg_status status, gg_error* error);

/* The same for releases, which continue after an error: true if there is a context to leave. */
bool gg_cuda_enter_release(gg_cuda_device* cuda);
void gg_cuda_leave_release(gg_cuda_device* cuda, bool entered);

/* After a call has failed with `status`: waits for the stream, so that no copy that is still queued reads or writes
 * host memory that its owner takes back. Returns `status`; if that wait fails too, nothing can be promised: the device
 * is marked lost, and `error` says so with the first cause. The context need not be current. */
gg_status gg_cuda_settle(gg_cuda_device* cuda, gg_status status, gg_error* error);

/* ---- Life of a device (device.c, probe.c, module.c) ---- */

/* Initialises the driver and reads its version and the number of devices, at least 1. */
gg_status gg_cuda_start(gg_cuda_device* cuda, int* devices, gg_error* error);

/* Fills number, capability and info of device `ordinal`. */
gg_status gg_cuda_describe(gg_cuda_device* cuda, const gg_cuda_platform* platform, int ordinal, gg_error* error);

/* Loads the kernel variant that the request names, or the best that works. The context must be current. */
gg_status gg_cuda_load_kernels(gg_cuda_device* cuda, const gg_cuda_platform* platform, const gg_open_request* request,
                               gg_error* error);

size_t gg_cuda_probe_with(const gg_cuda_platform* platform, gg_device_info* infos, size_t capacity);
size_t gg_cuda_probe(gg_device_info* infos, size_t capacity);
gg_status gg_cuda_open_with(const gg_cuda_platform* platform, const gg_open_request* request, gg_device** device,
                            gg_error* error);
gg_status gg_cuda_open(const gg_open_request* request, gg_device** device, gg_error* error);
void gg_cuda_close(gg_device* device);
gg_status gg_cuda_sync(gg_device* device, gg_error* error);
void* gg_cuda_native_queue(gg_device* device);

/* ---- Memory (memory.c, wrap.c, transfer.c) ---- */

gg_status gg_cuda_alloc(gg_device* device, uint64_t bytes, gg_memory** memory, gg_error* error);
gg_status gg_cuda_wrap(gg_device* device, gg_handle_kind kind, uint64_t handle, uint64_t bytes, gg_memory** memory,
                       gg_error* error);
void gg_cuda_release(gg_device* device, gg_memory* memory);
uint64_t gg_cuda_native_address(const gg_memory* memory);
gg_status gg_cuda_upload(gg_device* device, gg_memory* memory, uint64_t offset, const void* source, uint64_t bytes,
                         gg_error* error);
gg_status gg_cuda_fill(gg_device* device, gg_memory* memory, uint64_t offset, uint64_t bytes, uint8_t value,
                       gg_error* error);
gg_status gg_cuda_readback(gg_device* device, const gg_readback* pieces, size_t count, gg_error* error);
gg_status gg_cuda_wait(gg_device* device, gg_error* error);
gg_status gg_cuda_copy(gg_device* device, gg_memory* to, uint64_t to_offset, const gg_memory* from,
                       uint64_t from_offset, uint64_t bytes, gg_error* error);

#endif
