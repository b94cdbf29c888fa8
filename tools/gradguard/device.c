#include "tools/gradguard/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT   UINT64_C(256)
#define SLAB_BYTES  (UINT64_C(128) << 20) /* below the smallest limit of one OpenCL allocation */
#define CHUNK_BYTES (UINT64_C(16) << 20)

static void print_warning(void* user, int level, const char* message) {
  (void)user;
  if (level >= 1) fprintf(stderr, "gradguard: %s\n", message);
}

bool gg_open_device(const char* device, const char* kernel, gg_context** context, gg_problem* problem) {
  gg_context_options options = GG_CONTEXT_OPTIONS_INIT;
  options.kernel = kernel;
  options.log = print_warning;
  gg_error error = GG_ERROR_INIT;
  const gg_status status = gg_context_create(device, &options, context, &error);
  return status == GG_OK || gg_refuse_error(problem, status, &error, "opening the device");
}

bool gg_refuse_context(gg_problem* problem, gg_status status, const gg_context* context, const char* doing) {
  return gg_refuse_error(problem, status, gg_context_error(context), doing);
}

/* ---- Tensors of files as tensors of the library ---- */

static gg_dtype dtype_of(const gg_stored_tensor* tensor) {
  switch (tensor->stored) {
    case GG_STORED_F16:
      return GG_F16;
    case GG_STORED_BF16:
      return GG_BF16;
    default:
      return GG_F32;
  }
}

bool gg_check_storable(const gg_safetensors* file, const gg_stored_tensor* tensor, const char* what,
                       gg_problem* problem) {
  gg_quoted name;
  if (tensor->stored != GG_STORED_F32 && tensor->stored != GG_STORED_F16 && tensor->stored != GG_STORED_BF16) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s %s has dtype %s; it must be F32, F16 or BF16", file->path, what,
                     gg_quote(&name, tensor->name), tensor->dtype);
  }
  if (tensor->rank > GG_MAX_RANK) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s %s has %zu dimensions; the limit is %d", file->path, what,
                     gg_quote(&name, tensor->name), tensor->rank, GG_MAX_RANK);
  }
  return true;
}

/* ---- Memory ---- */

static uint64_t align(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Puts contents[first...] into one new buffer while they fit; returns the first that does not. */
static size_t place_run(gg_context* context, const gg_content* contents, size_t first, size_t count,
                        gg_device_memory* memory, gg_tensor* tensors, gg_status* status) {
  uint64_t used = 0;
  size_t end = first;
  while (end < count && (end == first || align(used) + contents[end].like->bytes <= SLAB_BYTES)) {
    used = align(used);
    tensors[end].offset = used;
    used += contents[end].like->bytes;
    ++end;
  }
  gg_buffer* buffer = NULL;
  *status = gg_buffer_create(context, used, &buffer);
  if (*status != GG_OK) return end;
  memory->buffers[memory->count++] = buffer;
  for (size_t i = first; i < end; ++i) {
    const gg_stored_tensor* like = contents[i].like;
    tensors[i] = gg_tensor_contiguous(buffer, tensors[i].offset, dtype_of(like), (uint32_t)like->rank, like->shape);
  }
  return end;
}

static gg_status fill(const gg_content* content, const gg_tensor* tensor, gg_progress* progress) {
  if (content->values == NULL) return gg_buffer_fill(tensor->buffer, tensor->offset, content->like->bytes, 0);
  const uint64_t bytes = content->values->bytes;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t chunk = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
    const gg_status status =
        gg_buffer_upload(tensor->buffer, tensor->offset + done, content->values->data + done, chunk);
    if (status != GG_OK) return status;
    done += chunk;
    gg_progress_add(progress, chunk);
  }
  return GG_OK;
}

bool gg_device_load(gg_context* context, const gg_content* contents, size_t count, gg_device_memory* memory,
                    gg_tensor* tensors, gg_problem* problem) {
  memory->count = 0;
  memory->buffers = calloc(count + 1, sizeof(gg_buffer*));
  if (memory->buffers == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory");
  gg_status status = GG_OK;
  for (size_t next = 0; next < count && status == GG_OK;) {
    next = place_run(context, contents, next, count, memory, tensors, &status);
  }
  if (status != GG_OK) return gg_refuse_context(problem, status, context, "allocating device memory");
  gg_progress progress;
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += contents[i].values == NULL ? 0 : contents[i].values->bytes;
  gg_progress_begin(&progress, "loading", total);
  for (size_t i = 0; i < count && status == GG_OK; ++i) {
    if (contents[i].like->bytes != 0) status = fill(&contents[i], &tensors[i], &progress);
  }
  gg_progress_end(&progress);
  return status == GG_OK || gg_refuse_context(problem, status, context, "loading tensors to the device");
}

void gg_device_release(gg_device_memory* memory) {
  for (size_t i = 0; i < memory->count; ++i) gg_buffer_destroy(&memory->buffers[i]);
  free(memory->buffers);
  memory->buffers = NULL;
  memory->count = 0;
}
