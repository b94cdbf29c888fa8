/*
 * The update of a range of elements of a row, and the unfused baseline's pass over them, in pieces that fit in the L1
 * cache. Compiled once for each instruction set; the loops over the shared formula are vectorised by the compiler.
 */
#include <string.h>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "kernels/formulas.h"

#if GG_ISA_LEVEL > 0
#include <immintrin.h>
#endif

#ifdef __clang__ /* builds with sanitizers or for debugging do not vectorise the loops */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

enum { GG_PIECE = 128, GG_STEP = 8 /* elements of one conversion instruction */ };

/* What a piece reads and writes. */
typedef struct gg_piece {
  const gg_f32* gradient;
  const gg_f32* in[GG_STATES];
  gg_f32* out[GG_STATES];
  int count;
} gg_piece;

void GG_ISA_NAME(gg_cpu_update)(const gg_device_row* row, uint64_t begin, uint64_t end,
                                const gg_update_constants* constants, gg_bias bias, bool stream);
void GG_ISA_NAME(gg_cpu_unfused_clip)(const gg_device_row* row, uint64_t begin, uint64_t end,
                                      const gg_update_constants* constants, bool stream);

static void widen_f16(const gg_u16* from, gg_f32* to, int count) {
  int i = 0;
#if GG_ISA_LEVEL > 0
  for (; i + GG_STEP <= count; i += GG_STEP)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(const void*)(from + i))));
#endif
  for (; i < count; i++) to[i] = gg_half_to_float(from[i]);
}

static void widen_bf16(const gg_u16* restrict from, gg_f32* restrict to, int count) {
#pragma omp simd
  for (int i = 0; i < count; i++) to[i] = gg_bf16_to_float(from[i]);
}

static void narrow_f16(const gg_f32* from, gg_u16* to, int count) {
  int i = 0;
#if GG_ISA_LEVEL > 0
  for (; i + GG_STEP <= count; i += GG_STEP)
    _mm_storeu_si128((__m128i*)(void*)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; i++) to[i] = gg_float_to_half(from[i]);
}

static void narrow_bf16(const gg_f32* restrict from, gg_u16* restrict to, int count) {
#pragma omp simd
  for (int i = 0; i < count; i++) to[i] = gg_float_to_bf16(from[i]);
}

/* Copies without reading the destination into the caches first, so that a write costs one transfer instead of two. */
static void store_past_caches(void* to, const void* from, size_t bytes) {
  char* target = to;
  const char* source = from;
#if GG_ISA_LEVEL > 0
  size_t head = (size_t)(-(uintptr_t)target % 32);
  if (head > bytes) head = bytes;
  memcpy(target, source, head);
  size_t done = head;
  for (; done + 32 <= bytes; done += 32)
    _mm256_stream_si256((__m256i*)(void*)(target + done),
                        _mm256_loadu_si256((const __m256i*)(const void*)(source + done)));
  target += done;
  source += done;
  bytes -= done;
#endif
  memcpy(target, source, bytes);
}

static void finish_stores(bool stream) {
#if GG_ISA_LEVEL > 0
  if (stream) _mm_sfence(); /* other threads must see them */
#else
  (void)stream;
#endif
}

/* The gradients of a piece in FP32, in place or in `buffer`. */
static const gg_f32* gradients_of(const gg_device_row* row, uint64_t begin, int count, gg_f32* buffer) {
  if (row->gradient_type == GG_TYPE_F32) return (const gg_f32*)(uintptr_t)row->gradient + begin;
  const gg_u16* raw = (const gg_u16*)(uintptr_t)row->gradient + begin;
  if (row->gradient_type == GG_TYPE_F16)
    widen_f16(raw, buffer, count);
  else
    widen_bf16(raw, buffer, count);
  return buffer;
}

/* `amsgrad` is a compile-time constant in each call, so that the loop has no branch. In place, in and out are the same.
 */
GG_FN void update_piece(const gg_piece* piece, const gg_update_constants* constants, gg_bias bias, gg_u32 amsgrad) {
  const gg_update_constants k = *constants;
  const gg_f32 *gradient = piece->gradient, *p_in = piece->in[0], *m_in = piece->in[1], *v_in = piece->in[2],
               *w_in = piece->in[3];
  gg_f32 *p_out = piece->out[0], *m_out = piece->out[1], *v_out = piece->out[2], *w_out = piece->out[3];
  int count = piece->count;
#pragma omp simd
  for (int i = 0; i < count; i++) {
    gg_element e = {p_in[i], m_in[i], v_in[i], amsgrad ? w_in[i] : 0.0f};
    gg_adamw_element(&k, bias, amsgrad, gradient[i], &e);
    p_out[i] = e.parameter;
    m_out[i] = e.exp_avg;
    v_out[i] = e.exp_avg_sq;
    if (amsgrad) w_out[i] = e.max_exp_avg_sq;
  }
}

static void update_amsgrad(const gg_piece* piece, const gg_update_constants* constants, gg_bias bias) {
  update_piece(piece, constants, bias, 1);
}

static void update_adamw(const gg_piece* piece, const gg_update_constants* constants, gg_bias bias) {
  update_piece(piece, constants, bias, 0);
}

static void write_model(const gg_device_row* row, uint64_t begin, int count, const gg_f32* parameter, bool stream) {
  _Alignas(64) gg_u16 buffer[GG_PIECE];
  gg_u16* model = (gg_u16*)(uintptr_t)row->model + begin;
  gg_u16* to = stream ? buffer : model;
  if (row->model_type == GG_TYPE_F16)
    narrow_f16(parameter, to, count);
  else
    narrow_bf16(parameter, to, count);
  if (stream) store_past_caches(model, buffer, (size_t)count * sizeof *model);
}

void GG_ISA_NAME(gg_cpu_update)(const gg_device_row* row, uint64_t begin, uint64_t end,
                                const gg_update_constants* constants, gg_bias bias, bool stream) {
  _Alignas(64) gg_f32 widened[GG_PIECE], results[GG_STATES][GG_PIECE];
  bool amsgrad = (row->flags & GG_ROW_AMSGRAD) != 0;
  bool buffered = stream && row->out[GG_STATE_PARAMETER] != row->in[GG_STATE_PARAMETER];
  for (uint64_t at = begin; at < end; at += GG_PIECE) {
    gg_piece piece = {.count = end - at < GG_PIECE ? (int)(end - at) : GG_PIECE};
    piece.gradient = gradients_of(row, at, piece.count, widened);
    gg_f32* out[GG_STATES];
    int states = amsgrad ? 4 : 3;
    for (int state = 0; state < states; state++) {
      piece.in[state] = (const gg_f32*)(uintptr_t)row->in[state] + at;
      out[state] = (gg_f32*)(uintptr_t)row->out[state] + at;
      piece.out[state] = buffered ? results[state] : out[state];
    }
    if (amsgrad)
      update_amsgrad(&piece, constants, bias);
    else
      update_adamw(&piece, constants, bias);
    if (row->model_type != 0) write_model(row, at, piece.count, piece.out[GG_STATE_PARAMETER], stream);
    for (int state = 0; buffered && state < states; state++)
      store_past_caches(out[state], results[state], (size_t)piece.count * sizeof(gg_f32));
  }
  finish_stores(stream);
}

void GG_ISA_NAME(gg_cpu_unfused_clip)(const gg_device_row* row, uint64_t begin, uint64_t end,
                                      const gg_update_constants* constants, bool stream) {
  _Alignas(64) gg_f32 widened[GG_PIECE], results[GG_PIECE];
  const gg_update_constants k = *constants;
  for (uint64_t at = begin; at < end; at += GG_PIECE) {
    int count = end - at < GG_PIECE ? (int)(end - at) : GG_PIECE;
    const gg_f32* gradient = gradients_of(row, at, count, widened);
    gg_f32* out = (gg_f32*)(uintptr_t)row->out[GG_STATE_PARAMETER] + at;
    gg_f32* to = stream ? results : out;
#pragma omp simd
    for (int i = 0; i < count; i++) to[i] = gg_clip(gg_mul(gradient[i], k.inverse_scale), k.factor1, k.factor2);
    if (stream) store_past_caches(out, results, (size_t)count * sizeof(gg_f32));
  }
  finish_stores(stream);
}
