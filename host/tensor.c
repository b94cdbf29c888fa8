/* Tensors, dtypes and roles; uses no device. */
#include "api/gradguard.h"

size_t gg_dtype_bytes(gg_dtype dtype) {
  switch (dtype) {
    case GG_F32:
      return 4;
    case GG_F16:
    case GG_BF16:
      return 2;
  }
  return 0;
}

const char* gg_dtype_name(gg_dtype dtype) {
  switch (dtype) {
    case GG_F32:
      return "f32";
    case GG_F16:
      return "f16";
    case GG_BF16:
      return "bf16";
  }
  return "unknown dtype";
}

const char* gg_role_name(gg_role role) {
  switch (role) {
    case GG_PARAMETER:
      return "parameter";
    case GG_GRADIENT:
      return "gradient";
    case GG_EXP_AVG:
      return "exp_avg";
    case GG_EXP_AVG_SQ:
      return "exp_avg_sq";
    case GG_MAX_EXP_AVG_SQ:
      return "max_exp_avg_sq";
    case GG_MODEL_COPY:
      return "model_copy";
  }
  return "unknown role";
}

gg_tensor gg_tensor_contiguous(gg_buffer* buffer, uint64_t offset, gg_dtype dtype, uint32_t rank,
                               const int64_t* shape) {
  gg_tensor tensor = {.buffer = buffer, .offset = offset, .dtype = dtype, .rank = rank};
  if (rank > GG_MAX_RANK) return tensor;
  uint64_t stride = 1; /* unsigned: a shape that overflows is reported later, by gg_group_create */
  for (uint32_t i = rank; i-- > 0;) {
    tensor.shape[i] = shape != NULL ? shape[i] : -1; /* a missing shape is reported there, too */
    tensor.strides[i] = (int64_t)stride;
    stride *= (uint64_t)tensor.shape[i];
  }
  return tensor;
}
