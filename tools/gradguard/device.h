/* Opening a device and putting tensors from files on it. */
#ifndef GG_TOOL_DEVICE_H
#define GG_TOOL_DEVICE_H

#include "tools/gradguard/problem.h"
#include "tools/gradguard/progress.h"
#include "tools/gradguard/safetensors.h"

/* `device` and `kernel` may be NULL (the library's choice). Warnings of the library go to stderr. */
bool gg_open_device(const char* device, const char* kernel, gg_context** context, gg_problem* problem);

/* Refuses with the context's last error. */
bool gg_refuse_context(gg_problem* problem, gg_status status, const gg_context* context, const char* doing);

/* The tensor as a role of the library takes it: FP32, FP16 or BF16 and not too many dimensions. `what` names the kind
 * of tensor in the message. */
bool gg_check_storable(const gg_safetensors* file, const gg_stored_tensor* tensor, const char* what,
                       gg_problem* problem);

/* What one tensor on the device is made from: a tensor of a file or, where `values` is NULL, zeros of the dtype and
 * shape of `like`. */
typedef struct gg_content {
  const gg_stored_tensor* like;
  const gg_stored_tensor* values;
} gg_content;

/* Device memory for many tensors, packed into few buffers. */
typedef struct gg_device_memory {
  gg_buffer** buffers;
  size_t count;
} gg_device_memory;

/* Allocates and fills; tensors[i] describes contents[i]. */
bool gg_device_load(gg_context* context, const gg_content* contents, size_t count, gg_device_memory* memory,
                    gg_tensor* tensors, gg_problem* problem);
void gg_device_release(gg_device_memory* memory);

#endif
