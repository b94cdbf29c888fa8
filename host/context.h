/* A context: an open device, the last error, and a reference count. */
#ifndef GG_HOST_CONTEXT_H
#define GG_HOST_CONTEXT_H

#include <sys/types.h>

#include "backends/backend.h"

struct gg_context {
  gg_device* device;
  gg_error error;
  pid_t process;     /* that created the context: drivers do not work after a fork */
  size_t references; /* the caller's handle, buffers and groups */
  bool destroyed;    /* the caller has destroyed the handle */
  char* report;      /* how "auto" chose */
};

/* Takes ownership of `device`, also on failure, and of `report` (malloc), which may be NULL. */
gg_status gg_context_make(gg_device* device, char* report, gg_context** context, gg_error* error);

/* Checks the caller's context options, which may be NULL, and copies them into a request. */
gg_status gg_context_request(const gg_context_options* options, gg_open_request* request, gg_error* error);

/* The kernel variant that the caller or the environment names, or NULL. */
const char* gg_context_variant(const gg_context_options* options, const gg_backend* backend);

void gg_context_retain(gg_context* context);
void gg_context_release(gg_context* context);

/* GG_OK if the device may be called: the context is not destroyed, belongs to this process, and its device is not lost.
 */
gg_status gg_context_usable(gg_context* context, const char* function);

/* Passes `status` on. After a failure it waits for what had been queued before, so that the caller may free what that
 * reads; the error stays the one that there was. */
gg_status gg_context_settle(gg_context* context, gg_status status);

/* Whether releases may call the device. False after a fork in the child, since the device belongs to the parent. */
bool gg_context_is_ours(const gg_context* context);

/* The backend of this name in this build, or NULL. */
const gg_backend* gg_backend_named(const char* name, size_t length);

#endif
