#include "host/context.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/prefix.h"
#include "host/status.h"

gg_status gg_context_make(gg_device* device, char* report, gg_context** context, gg_error* error) {
  gg_context* made = calloc(1, sizeof *made);
  if (made == NULL) {
    device->backend->close(device);
    free(report);
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_context_create", "out of host memory making a context");
  }
  made->device = device;
  made->error = (gg_error)GG_ERROR_INIT;
  made->process = getpid();
  made->references = 1;
  made->report = report;
  *context = made;
  return GG_OK;
}

gg_status gg_context_request(const gg_context_options* options, gg_open_request* request, gg_error* error) {
  *request = (gg_open_request){0};
  if (options == NULL) return GG_OK;
  gg_status status = gg_check_size(options->size, sizeof *options, "gg_context_options", "gg_context_create", error);
  if (status != GG_OK) return status;
  request->threads = options->threads;
  request->log = options->log;
  request->log_user = options->log_user;
  return GG_OK;
}

const char* gg_context_variant(const gg_context_options* options, const gg_backend* backend) {
  const char* variant = options != NULL && options->kernel != NULL ? options->kernel : getenv(backend->kernel_variable);
  return variant != NULL && variant[0] != '\0' ? variant : NULL;
}

void gg_context_retain(gg_context* context) { context->references++; }

bool gg_context_is_ours(const gg_context* context) { return context->process == getpid(); }

void gg_context_release(gg_context* context) {
  if (--context->references > 0) return;
  if (gg_context_is_ours(context)) context->device->backend->close(context->device);
  free(context->report);
  free(context);
}

void gg_context_destroy(gg_context** context) {
  if (context == NULL || *context == NULL) return;
  gg_context* gone = *context;
  *context = NULL;
  gone->destroyed = true;
  /* If buffers are left, the device is closed later, when the caller's memory and stream may no longer exist. */
  bool waits = gone->references > 1 && gg_context_is_ours(gone) && !gone->device->lost;
  if (waits) gone->device->backend->sync(gone->device, NULL);
  gg_context_release(gone);
}

gg_status gg_context_usable(gg_context* context, const char* function) {
  if (context->destroyed)
    return gg_fail(&context->error, GG_ERROR_STATE, function,
                   "the context has been destroyed: what was made from it can only be destroyed too");
  if (!gg_context_is_ours(context))
    return gg_fail(&context->error, GG_ERROR_STATE, function,
                   "the context was created by process %ld before a fork: create contexts after forking",
                   (long)context->process);
  if (context->device->lost)
    return gg_fail(&context->error, GG_ERROR_DEVICE_LOST, function,
                   "the device %s was lost in an earlier fault: destroy the context, create a new one and restore "
                   "parameters and state from the last checkpoint",
                   context->device->info.id);
  return GG_OK;
}

gg_status gg_context_settle(gg_context* context, gg_status status) {
  if (status != GG_OK && !context->device->lost) context->device->backend->sync(context->device, NULL);
  return status;
}

const gg_error* gg_context_error(const gg_context* context) {
  static const gg_error missing = {sizeof missing, GG_ERROR_ARGUMENT, 0, "", "gg_context_error", "the context is NULL"};
  return context != NULL ? &context->error : &missing;
}

gg_status gg_context_device(const gg_context* context, gg_device_info* info) {
  if (context == NULL) return GG_ERROR_ARGUMENT;
  if (info == NULL || info->size < sizeof(uint32_t))
    return gg_fail(&((gg_context*)context)->error, GG_ERROR_ARGUMENT, "gg_context_device",
                   "`info` is NULL or its size is not set: set it to sizeof(gg_device_info)");
  gg_copy_prefix(info, &context->device->info, sizeof *info);
  return GG_OK;
}

const char* gg_context_kernel(const gg_context* context) { return context != NULL ? context->device->kernel : ""; }

const char* gg_context_device_report(const gg_context* context) {
  return context != NULL && context->report != NULL ? context->report : "";
}

gg_status gg_context_synchronize(gg_context* context) {
  if (context == NULL) return GG_ERROR_ARGUMENT;
  gg_status status = gg_context_usable(context, "gg_context_synchronize");
  return status != GG_OK ? status : context->device->backend->sync(context->device, &context->error);
}

const gg_backend* gg_backend_named(const char* name, size_t length) {
  for (const gg_backend* const* at = gg_backends; *at != NULL; at++)
    if (strlen((*at)->name) == length && memcmp((*at)->name, name, length) == 0) return *at;
  return NULL;
}
