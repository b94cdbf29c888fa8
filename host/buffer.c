#include "host/buffer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "host/status.h"

gg_status gg_buffer_make(gg_context* context, gg_memory* memory, gg_buffer** buffer) {
  gg_buffer* made = calloc(1, sizeof *made);
  if (made == NULL) {
    context->device->backend->release(context->device, memory);
    return gg_fail(&context->error, GG_ERROR_NO_MEMORY, "gg_buffer_create", "out of host memory making a buffer");
  }
  made->context = context;
  made->memory = memory;
  made->references = 1;
  gg_context_retain(context);
  *buffer = made;
  return GG_OK;
}

/* Checks common to every way to create a buffer. */
static gg_status begin(gg_context* context, const char* function, gg_buffer** buffer) {
  if (buffer != NULL) *buffer = NULL;
  if (context == NULL) return GG_ERROR_ARGUMENT;
  if (buffer == NULL) return gg_fail(&context->error, GG_ERROR_ARGUMENT, function, "`buffer` is NULL");
  return gg_context_usable(context, function);
}

gg_status gg_buffer_create(gg_context* context, uint64_t bytes, gg_buffer** buffer) {
  gg_status status = begin(context, "gg_buffer_create", buffer);
  if (status != GG_OK) return status;
  gg_memory* memory = NULL;
  status = context->device->backend->alloc(context->device, bytes, &memory, &context->error);
  return status != GG_OK ? status : gg_buffer_make(context, memory, buffer);
}

gg_status gg_buffer_wrap(gg_context* context, const char* function, gg_handle_kind kind, uint64_t handle,
                         uint64_t bytes, gg_buffer** buffer) {
  gg_status status = begin(context, function, buffer);
  if (status != GG_OK) return status;
  if (handle == 0 && bytes > 0)
    return gg_fail(&context->error, GG_ERROR_ARGUMENT, function, "the memory to be wrapped is NULL");
  gg_memory* memory = NULL;
  status = context->device->backend->wrap(context->device, kind, handle, bytes, &memory, &context->error);
  return status != GG_OK ? status : gg_buffer_make(context, memory, buffer);
}

gg_status gg_buffer_wrap_host(gg_context* context, void* memory, uint64_t bytes, gg_buffer** buffer) {
  return gg_buffer_wrap(context, "gg_buffer_wrap_host", GG_HANDLE_HOST, (uint64_t)(uintptr_t)memory, bytes, buffer);
}

void gg_buffer_retain(gg_buffer* buffer) { buffer->references++; }

void gg_buffer_release(gg_buffer* buffer) {
  if (--buffer->references > 0) return;
  gg_context* context = buffer->context;
  if (gg_context_is_ours(context)) context->device->backend->release(context->device, buffer->memory);
  gg_context_release(context);
  free(buffer);
}

void gg_buffer_destroy(gg_buffer** buffer) {
  if (buffer == NULL || *buffer == NULL) return;
  gg_buffer_release(*buffer);
  *buffer = NULL;
}

uint64_t gg_buffer_bytes(const gg_buffer* buffer) { return buffer != NULL ? buffer->memory->bytes : 0; }

bool gg_buffer_is_wrapped(const gg_buffer* buffer) { return buffer != NULL && buffer->memory->wrapped; }

/* Checks common to every copy. `host` is the host memory, or NULL if there is none. */
static gg_status check_range(const gg_buffer* buffer, uint64_t offset, const void* host, uint64_t bytes,
                             const char* function) {
  if (buffer == NULL) return GG_ERROR_ARGUMENT;
  gg_status status = gg_context_usable(buffer->context, function);
  if (status != GG_OK) return status;
  uint64_t size = buffer->memory->bytes;
  if (offset > size || bytes > size - offset)
    return gg_fail(&buffer->context->error, GG_ERROR_ARGUMENT, function,
                   "%" PRIu64 " bytes at offset %" PRIu64 " are not within the buffer, which has %" PRIu64 " bytes",
                   bytes, offset, size);
  if (host == NULL && bytes > 0)
    return gg_fail(&buffer->context->error, GG_ERROR_ARGUMENT, function, "the host memory is NULL");
  return GG_OK;
}

gg_status gg_buffer_upload(gg_buffer* buffer, uint64_t offset, const void* source, uint64_t bytes) {
  gg_status status = check_range(buffer, offset, source, bytes, "gg_buffer_upload");
  if (status != GG_OK || bytes == 0) return status;
  gg_context* context = buffer->context;
  return context->device->backend->upload(context->device, buffer->memory, offset, source, bytes, &context->error);
}

gg_status gg_buffer_download(const gg_buffer* buffer, uint64_t offset, void* destination, uint64_t bytes) {
  gg_status status = check_range(buffer, offset, destination, bytes, "gg_buffer_download");
  if (status != GG_OK || bytes == 0) return status;
  gg_context* context = buffer->context;
  const gg_backend* backend = context->device->backend;
  gg_readback piece = {.memory = buffer->memory, .offset = offset, .destination = destination, .bytes = bytes};
  status = backend->readback(context->device, &piece, 1, &context->error);
  return status != GG_OK ? status : backend->wait(context->device, &context->error);
}

gg_status gg_buffer_fill(gg_buffer* buffer, uint64_t offset, uint64_t bytes, uint8_t value) {
  gg_status status = check_range(buffer, offset, buffer, bytes, "gg_buffer_fill");
  if (status != GG_OK || bytes == 0) return status;
  gg_context* context = buffer->context;
  return context->device->backend->fill(context->device, buffer->memory, offset, bytes, value, &context->error);
}
