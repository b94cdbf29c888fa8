/* A context: an open device, the last error, and who still needs them. */
#ifndef GG_HOST_CONTEXT_H
#define GG_HOST_CONTEXT_H

#include <sys/types.h>

#include "backends/backend.h"

struct gg_context {
  gg_device* device;
  gg_error error;
  pid_t process;     /* that created it: drivers do not survive a fork */
  size_t references; /* the caller's handle, buffers and groups */
  bool destroyed;    /* the caller's handle is gone */
  char* report;      /* how "auto" chose */
};

/* Takes over `device`, also on failure, and `report` (malloc), which may be NULL. */
gg_status gg_context_make(gg_device* device, char* report, gg_context** context, gg_error* error);

/* Checks what a caller passed as context options, NULL included, and puts them into a request. */
gg_status gg_context_request(const gg_context_options* options, gg_open_request* request, gg_error* error);

/* The kernel route that the caller or the environment names, or NULL. */
const char* gg_context_route(const gg_context_options* options, const gg_backend* backend);

void gg_context_retain(gg_context* context);
void gg_context_release(gg_context* context);

/* GG_OK if the device may be called: the context is alive, of this process, and its device not lost. */
gg_status gg_context_usable(gg_context* context, const char* function);

/* Passes `status` on. After a failure it waits for what had been queued before, so that the caller may free what that
 * reads; the error stays the one that there was. */
gg_status gg_context_settle(gg_context* context, gg_status status);

/* Whether releases may call the device: not in a child of fork, where it belongs to the parent. */
bool gg_context_is_ours(const gg_context* context);

/* The backend of this name in this build, or NULL. */
const gg_backend* gg_backend_named(const char* name, size_t length);

#endif
