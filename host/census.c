/* Counts the non-finite values of one gradient on the host: a diagnostic. */
#include <stdlib.h>

#include "host/buffer.h"
#include "host/constants.h"
#include "host/environment.h"
#include "host/prefix.h"
#include "host/status.h"
#include "host/validate.h"
#include "kernels/formulas.h"

#define FUNCTION "gg_gradient_census"

/* Elements copied to the host at a time. */
#define GG_PIECE_ELEMENTS ((uint64_t)1 << 20)

static float decode(gg_dtype dtype, const void* values, uint64_t index) {
  if (dtype == GG_F32) return ((const float*)values)[index];
  gg_u16 half = ((const gg_u16*)values)[index];
  return dtype == GG_F16 ? gg_half_to_float(half) : gg_bf16_to_float(half);
}

static void note(uint64_t index, uint64_t* count, uint64_t* first) {
  if ((*count)++ == 0) *first = index;
}

static void count_piece(gg_nonfinite_census* census, gg_dtype dtype, const void* values, uint64_t begin,
                        uint64_t elements, float inverse_scale) {
  const gg_u32 infinity = 0x7f800000u;
  for (uint64_t i = 0; i < elements; i++) {
    float raw = decode(dtype, values, i);
    gg_u32 magnitude = gg_bits(gg_mul(raw, inverse_scale)) & 0x7fffffffu;
    if (magnitude < infinity) continue;
    if (magnitude > infinity)
      note(begin + i, &census->nan_count, &census->first_nan);
    else if ((gg_bits(raw) & 0x7fffffffu) == infinity)
      note(begin + i, &census->inf_count, &census->first_inf);
    else
      note(begin + i, &census->overflow_count, &census->first_overflow);
  }
}

static gg_status count_all(const gg_tensor* gradient, uint64_t elements, float inverse_scale, void* piece,
                           gg_nonfinite_census* census) {
  size_t size = gg_dtype_bytes(gradient->dtype);
  for (uint64_t begin = 0; begin < elements; begin += GG_PIECE_ELEMENTS) {
    uint64_t count = elements - begin < GG_PIECE_ELEMENTS ? elements - begin : GG_PIECE_ELEMENTS;
    gg_status status = gg_buffer_download(gradient->buffer, gradient->offset + begin * size, piece, count * size);
    if (status != GG_OK) return status;
    count_piece(census, gradient->dtype, piece, begin, count, inverse_scale);
  }
  return GG_OK;
}

static gg_status take_census(gg_context* context, const gg_tensor* gradient, double gradient_scale,
                             gg_nonfinite_census* census) {
  if (context == NULL) return GG_ERROR_ARGUMENT;
  gg_error* error = &context->error;
  gg_status status = gg_context_usable(context, FUNCTION);
  if (status != GG_OK) return status;
  if (gradient == NULL || census == NULL || census->size < sizeof(uint32_t))
    return gg_fail(error, GG_ERROR_ARGUMENT, FUNCTION,
                   "`gradient` or `census` is NULL, or the census's size is not set: use GG_NONFINITE_CENSUS_INIT");
  status = gg_check_gradient_scale(gradient_scale, error);
  gg_subject subject = {context, FUNCTION, 0, NULL};
  uint64_t elements = 0;
  if (status == GG_OK) status = gg_check_tensor(&subject, GG_GRADIENT, gradient, &elements);
  if (status != GG_OK) return status;
  void* piece = malloc(GG_PIECE_ELEMENTS * sizeof(float));
  if (piece == NULL) return gg_fail(error, GG_ERROR_NO_MEMORY, FUNCTION, "out of host memory");
  gg_nonfinite_census made = GG_NONFINITE_CENSUS_INIT;
  status = count_all(gradient, elements, gg_inverse_scale(gradient_scale), piece, &made);
  free(piece);
  if (status == GG_OK) gg_copy_prefix(census, &made, sizeof made);
  return status;
}

gg_status gg_gradient_census(gg_context* context, const gg_tensor* gradient, double gradient_scale,
                             gg_nonfinite_census* census) {
  gg_environment saved = gg_environment_enter();
  gg_status status = take_census(context, gradient, gradient_scale, census);
  gg_environment_leave(saved);
  return status;
}
