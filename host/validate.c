#include "host/validate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "host/status.h"
#include "kernels/geometry.h"

void gg_subject_text(const gg_subject* subject, char* text, size_t capacity) {
  if (subject->name != NULL)
    snprintf(text, capacity, "entry %zu \"%.200s\"", subject->entry, subject->name);
  else
    snprintf(text, capacity, "entry %zu", subject->entry);
}

gg_status gg_refuse_tensor(const gg_subject* subject, gg_role role, const char* format, ...) {
  char who[256], why[512];
  gg_subject_text(subject, who, sizeof who);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  return gg_fail(&subject->context->error, GG_ERROR_ARGUMENT, subject->function, "%s, %s: %s", who, gg_role_name(role),
                 why);
}

static gg_status check_dtype(const gg_subject* subject, gg_role role, gg_dtype dtype) {
  bool known = gg_dtype_bytes(dtype) > 0;
  bool good = role == GG_GRADIENT     ? known
              : role == GG_MODEL_COPY ? dtype == GG_F16 || dtype == GG_BF16
                                      : dtype == GG_F32;
  if (good) return GG_OK;
  const char* expected = role == GG_GRADIENT ? "f32, f16 or bf16" : role == GG_MODEL_COPY ? "f16 or bf16" : "f32";
  if (!known)
    return gg_refuse_tensor(subject, role, "its dtype, %d, is not a valid dtype: expected %s", (int)dtype, expected);
  return gg_refuse_tensor(subject, role, "its dtype is %s, expected %s", gg_dtype_name(dtype), expected);
}

static gg_status count_elements(const gg_subject* subject, gg_role role, const gg_tensor* tensor, uint64_t* elements) {
  if (tensor->rank > GG_MAX_RANK)
    return gg_refuse_tensor(subject, role, "its rank is %u, the maximum is %d", tensor->rank, GG_MAX_RANK);
  bool empty = false;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    if (tensor->shape[i] < 0)
      return gg_refuse_tensor(subject, role, "dimension %u of its shape is negative: %" PRId64, i, tensor->shape[i]);
    empty = empty || tensor->shape[i] == 0;
  }
  *elements = empty ? 0 : 1;
  for (uint32_t i = 0; i < tensor->rank && !empty; i++) {
    uint64_t size = (uint64_t)tensor->shape[i];
    if (size > GG_MAX_ELEMENTS / *elements)
      return gg_refuse_tensor(subject, role, "its shape has more than 2^44 elements, the maximum");
    *elements *= size;
  }
  return GG_OK;
}

/* Row-major. Strides of dimensions of size 1, and all strides of an empty tensor, are ignored. */
static gg_status check_layout(const gg_subject* subject, gg_role role, const gg_tensor* tensor, uint64_t elements) {
  int64_t expected = 1;
  for (uint32_t i = tensor->rank; i-- > 0 && elements > 0;) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != expected)
      return gg_refuse_tensor(subject, role,
                              "it is not contiguous: dimension %u has stride %" PRId64 ", row-major order has %" PRId64
                              "; make a contiguous copy",
                              i, tensor->strides[i], expected);
    expected *= tensor->shape[i];
  }
  return GG_OK;
}

static gg_status check_range(const gg_subject* subject, gg_role role, const gg_tensor* tensor, uint64_t elements) {
  uint64_t size = gg_dtype_bytes(tensor->dtype), held = tensor->buffer->memory->bytes, needed = elements * size;
  if (tensor->offset % size != 0)
    return gg_refuse_tensor(subject, role,
                            "its offset, %" PRIu64 " bytes, is not aligned to the %" PRIu64 " bytes of %s",
                            tensor->offset, size, gg_dtype_name(tensor->dtype));
  /* Only wrapped memory can be misaligned. */
  if (elements > 0 && tensor->buffer->memory->base % size != 0)
    return gg_refuse_tensor(subject, role,
                            "the memory wrapped by its buffer is not aligned to the %" PRIu64
                            " bytes of %s: wrap from an address that is",
                            size, gg_dtype_name(tensor->dtype));
  if (tensor->offset > held || needed > held - tensor->offset)
    return gg_refuse_tensor(
        subject, role, "%" PRIu64 " bytes at offset %" PRIu64 " extend beyond its buffer, which has %" PRIu64 " bytes",
        needed, tensor->offset, held);
  return GG_OK;
}

gg_status gg_check_tensor(const gg_subject* subject, gg_role role, const gg_tensor* tensor, uint64_t* elements) {
  *elements = 0;
  if (tensor->buffer == NULL)
    return gg_refuse_tensor(subject, role, "it is missing: its buffer is NULL%s",
                            role == GG_MAX_EXP_AVG_SQ ? ", and the group is amsgrad" : "");
  if (tensor->buffer->context != subject->context)
    return gg_refuse_tensor(
        subject, role, "its buffer belongs to another context: all tensors of a group must belong to the same one");
  gg_status status = check_dtype(subject, role, tensor->dtype);
  if (status == GG_OK) status = count_elements(subject, role, tensor, elements);
  if (status == GG_OK) status = check_layout(subject, role, tensor, *elements);
  if (status == GG_OK) status = check_range(subject, role, tensor, *elements);
  return status;
}

static void shape_text(const gg_tensor* tensor, char* text, size_t capacity) {
  size_t used = (size_t)snprintf(text, capacity, "[");
  for (uint32_t i = 0; i < tensor->rank && used < capacity; i++)
    used += (size_t)snprintf(text + used, capacity - used, "%s%" PRId64, i > 0 ? ", " : "", tensor->shape[i]);
  if (used < capacity) snprintf(text + used, capacity - used, "]");
}

static gg_status check_same_shape(const gg_subject* subject, gg_role role, const gg_tensor* tensor,
                                  const gg_tensor* parameter) {
  bool same = tensor->rank == parameter->rank;
  for (uint32_t i = 0; same && i < tensor->rank; i++) same = tensor->shape[i] == parameter->shape[i];
  if (same) return GG_OK;
  char shape[192], expected[192];
  shape_text(tensor, shape, sizeof shape);
  shape_text(parameter, expected, sizeof expected);
  return gg_refuse_tensor(subject, role, "its shape is %s, the parameter's is %s", shape, expected);
}

static bool is_needed(const gg_entry* entry, gg_role role, bool amsgrad) {
  if (role == GG_MAX_EXP_AVG_SQ) return amsgrad;
  return role != GG_MODEL_COPY || entry->tensors[role].buffer != NULL;
}

gg_status gg_check_entry(const gg_subject* subject, const gg_entry* entry, bool amsgrad, uint64_t* elements) {
  *elements = 0;
  if (!amsgrad && entry->tensors[GG_MAX_EXP_AVG_SQ].buffer != NULL)
    return gg_refuse_tensor(subject, GG_MAX_EXP_AVG_SQ, "it must be absent, because the group is not amsgrad");
  for (gg_role role = 0; role < GG_ROLES; role++) {
    if (!is_needed(entry, role, amsgrad)) continue;
    uint64_t count = 0;
    gg_status status = gg_check_tensor(subject, role, &entry->tensors[role], &count);
    if (status == GG_OK) status = check_same_shape(subject, role, &entry->tensors[role], &entry->tensors[GG_PARAMETER]);
    if (status != GG_OK) return status;
    *elements = count;
  }
  if (entry->step <= GG_STEP_MAX) return GG_OK;
  char who[256];
  gg_subject_text(subject, who, sizeof who);
  return gg_fail(&subject->context->error, GG_ERROR_ARGUMENT, subject->function,
                 "%s: its step is %" PRIu64 ", the maximum is %" PRId64, who, entry->step, (int64_t)GG_STEP_MAX);
}
