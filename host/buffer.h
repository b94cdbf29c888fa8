/* Reference-counted device memory. */
#ifndef GG_HOST_BUFFER_H
#define GG_HOST_BUFFER_H

#include "host/context.h"

struct gg_buffer {
  gg_context* context;
  gg_memory* memory;
  size_t references; /* the caller's handle and groups */
};

/* Takes over `memory`, also on failure. */
gg_status gg_buffer_make(gg_context* context, gg_memory* memory, gg_buffer** buffer);

/* Wraps the caller's memory; the implementation of the gg_..._wrap... functions. */
gg_status gg_buffer_wrap(gg_context* context, const char* function, gg_handle_kind kind, uint64_t handle,
                         uint64_t bytes, gg_buffer** buffer);

void gg_buffer_retain(gg_buffer* buffer);
void gg_buffer_release(gg_buffer* buffer);

#endif
