/* The functions of api/cuda.h and api/opencl.h, for the backends in this build. */
#include "api/cuda.h"
#include "api/opencl.h"
#include "host/buffer.h"
#include "host/status.h"

static const gg_backend* backend_of(gg_native native) {
  for (const gg_backend* const* backend = gg_backends; *backend != NULL; backend++)
    if ((*backend)->native == native) return *backend;
  return NULL;
}

/* Opens the device that the caller's queue belongs to. `name` is for the message if no backend accepts such queues. */
static gg_status adopt(gg_native native, const char* name, const char* function, void* queue,
                       const gg_context_options* options, gg_context** context, gg_error* error) {
  if (context == NULL) return gg_fail(error, GG_ERROR_ARGUMENT, function, "`context` is NULL");
  *context = NULL;
  if (queue == NULL)
    return gg_fail(error, GG_ERROR_ARGUMENT, function,
                   "the stream or queue is NULL: pass one that you created, or use gg_context_create");
  const gg_backend* backend = backend_of(native);
  if (backend == NULL)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, function,
                   "this build has no %s backend: build it with backends=%s or backends=all", name, name);
  gg_error own = GG_ERROR_INIT;
  if (error == NULL) error = &own;
  gg_open_request request;
  gg_status status = gg_context_request(options, &request, error);
  if (status != GG_OK) return status;
  request.queue = queue;
  request.kernel = gg_context_variant(options, backend);
  gg_device* device = NULL;
  status = backend->open(&request, &device, error);
  return status != GG_OK ? status : gg_context_make(device, NULL, context, error);
}

static void* queue_of(const gg_context* context, gg_native native) {
  if (context == NULL || context->destroyed) return NULL;
  const gg_backend* backend = context->device->backend;
  return backend->native == native ? backend->native_queue(context->device) : NULL;
}

gg_status gg_cuda_context_create(struct CUstream_st* stream, const gg_context_options* options, gg_context** context,
                                 gg_error* error) {
  return adopt(GG_NATIVE_CUDA, "cuda", "gg_cuda_context_create", stream, options, context, error);
}

gg_status gg_cuda_buffer_wrap(gg_context* context, uint64_t device_pointer, uint64_t bytes, gg_buffer** buffer) {
  return gg_buffer_wrap(context, "gg_cuda_buffer_wrap", GG_HANDLE_CUDA, device_pointer, bytes, buffer);
}

struct CUstream_st* gg_cuda_stream(const gg_context* context) {
  return queue_of(context, GG_NATIVE_CUDA);
}

uint64_t gg_cuda_device_pointer(const gg_buffer* buffer) {
  if (buffer == NULL || buffer->context->destroyed) return 0;
  const gg_backend* backend = buffer->context->device->backend;
  return backend->native == GG_NATIVE_CUDA ? backend->native_address(buffer->memory) : 0;
}

gg_status gg_opencl_context_create(struct _cl_command_queue* queue, const gg_context_options* options,
                                   gg_context** context, gg_error* error) {
  return adopt(GG_NATIVE_OPENCL, "opencl", "gg_opencl_context_create", queue, options, context, error);
}

gg_status gg_opencl_buffer_wrap_mem(gg_context* context, struct _cl_mem* memory, uint64_t bytes, gg_buffer** buffer) {
  return gg_buffer_wrap(context, "gg_opencl_buffer_wrap_mem", GG_HANDLE_OPENCL_MEM, (uint64_t)(uintptr_t)memory, bytes,
                        buffer);
}

gg_status gg_opencl_buffer_wrap_svm(gg_context* context, void* memory, uint64_t bytes, gg_buffer** buffer) {
  return gg_buffer_wrap(context, "gg_opencl_buffer_wrap_svm", GG_HANDLE_OPENCL_SVM, (uint64_t)(uintptr_t)memory, bytes,
                        buffer);
}

struct _cl_command_queue* gg_opencl_queue(const gg_context* context) {
  return queue_of(context, GG_NATIVE_OPENCL);
}
