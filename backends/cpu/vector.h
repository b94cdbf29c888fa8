/*
 * Vectors of GG_WIDTH floats, one for each of GG_WIDTH consecutive lanes, for the instruction set GG_ISA. The compiler
 * provides + - * & | ~ and comparisons; the operations without an operator are defined here.
 */
#ifndef GG_BACKENDS_CPU_VECTOR_H
#define GG_BACKENDS_CPU_VECTOR_H

#include <string.h>

#include "backends/cpu/isa.h"
#include "kernels/formulas.h"

#if GG_ISA_LEVEL == 512
#define GG_WIDTH 16
#elif GG_ISA_LEVEL == 2
#define GG_WIDTH 8
#else
#define GG_WIDTH 4
#endif

typedef gg_f32 gg_vector __attribute__((vector_size(4 * GG_WIDTH)));
typedef gg_i32 gg_mask __attribute__((vector_size(4 * GG_WIDTH))); /* 0 or -1; also the bits of |x| */

#if GG_ISA_LEVEL == 512

#include <immintrin.h>

GG_FN gg_vector gg_vector_all(gg_f32 x) { return (gg_vector)_mm512_set1_ps(x); }
GG_FN gg_mask gg_mask_all(gg_i32 x) { return (gg_mask)_mm512_set1_epi32(x); }
GG_FN gg_vector gg_vector_fma(gg_vector a, gg_vector b, gg_vector c) { return (gg_vector)_mm512_fmadd_ps(a, b, c); }
GG_FN gg_mask gg_mask_max(gg_mask a, gg_mask b) { return (gg_mask)_mm512_max_epi32((__m512i)a, (__m512i)b); }
GG_FN int gg_mask_any(gg_mask a) { return _mm512_test_epi32_mask((__m512i)a, (__m512i)a) != 0; }

/* Four values from each of the tiles k, k + 4, k + 8, k + 12, one 128-bit part each. */
GG_FN gg_vector gg_load_parts_f32(const gg_f32* p) {
  __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 32), 1);
  __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + 64)), _mm_loadu_ps(p + 96), 1);
  return (gg_vector)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

GG_FN __m256i gg_load_parts_u16(const gg_u16* p) {
  __m128i low =
      _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i*)p), _mm_loadl_epi64((const __m128i*)(const void*)(p + 32)));
  __m128i high = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i*)(const void*)(p + 64)),
                                    _mm_loadl_epi64((const __m128i*)(const void*)(p + 96)));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

GG_FN gg_vector gg_load_parts_f16(const gg_u16* p) { return (gg_vector)_mm512_cvtph_ps(gg_load_parts_u16(p)); }
GG_FN gg_vector gg_load_parts_bf16(const gg_u16* p) {
  return (gg_vector)_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(gg_load_parts_u16(p)), 16));
}

#define GG_UNPACK_LOW(a, b)   ((gg_vector)_mm512_unpacklo_ps((__m512)(a), (__m512)(b)))
#define GG_UNPACK_HIGH(a, b)  ((gg_vector)_mm512_unpackhi_ps((__m512)(a), (__m512)(b)))
#define GG_UNPACK_LOW2(a, b)  ((gg_vector)_mm512_shuffle_ps((__m512)(a), (__m512)(b), 0x44))
#define GG_UNPACK_HIGH2(a, b) ((gg_vector)_mm512_shuffle_ps((__m512)(a), (__m512)(b), 0xee))
#define GG_EVEN(a, b)         ((gg_vector)_mm512_shuffle_ps((__m512)(a), (__m512)(b), 0x88))
#define GG_ODD(a, b)          ((gg_vector)_mm512_shuffle_ps((__m512)(a), (__m512)(b), 0xdd))

#elif GG_ISA_LEVEL == 2

#include <immintrin.h>

GG_FN gg_vector gg_vector_all(gg_f32 x) { return (gg_vector)_mm256_set1_ps(x); }
GG_FN gg_mask gg_mask_all(gg_i32 x) { return (gg_mask)_mm256_set1_epi32(x); }
GG_FN gg_vector gg_vector_fma(gg_vector a, gg_vector b, gg_vector c) { return (gg_vector)_mm256_fmadd_ps(a, b, c); }
GG_FN gg_mask gg_mask_max(gg_mask a, gg_mask b) { return (gg_mask)_mm256_max_epi32((__m256i)a, (__m256i)b); }
GG_FN int gg_mask_any(gg_mask a) { return !_mm256_testz_si256((__m256i)a, (__m256i)a); }

/* Four values from each of the tiles k and k + 4, one 128-bit part each. */
GG_FN gg_vector gg_load_parts_f32(const gg_f32* p) {
  return (gg_vector)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 32), 1);
}

GG_FN __m128i gg_load_parts_u16(const gg_u16* p) {
  return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i*)(const void*)p),
                            _mm_loadl_epi64((const __m128i*)(const void*)(p + 32)));
}

GG_FN gg_vector gg_load_parts_f16(const gg_u16* p) { return (gg_vector)_mm256_cvtph_ps(gg_load_parts_u16(p)); }
GG_FN gg_vector gg_load_parts_bf16(const gg_u16* p) {
  return (gg_vector)_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(gg_load_parts_u16(p)), 16));
}

#define GG_UNPACK_LOW(a, b)   ((gg_vector)_mm256_unpacklo_ps((__m256)(a), (__m256)(b)))
#define GG_UNPACK_HIGH(a, b)  ((gg_vector)_mm256_unpackhi_ps((__m256)(a), (__m256)(b)))
#define GG_UNPACK_LOW2(a, b)  ((gg_vector)_mm256_shuffle_ps((__m256)(a), (__m256)(b), 0x44))
#define GG_UNPACK_HIGH2(a, b) ((gg_vector)_mm256_shuffle_ps((__m256)(a), (__m256)(b), 0xee))
#define GG_EVEN(a, b)         ((gg_vector)_mm256_shuffle_ps((__m256)(a), (__m256)(b), 0x88))
#define GG_ODD(a, b)          ((gg_vector)_mm256_shuffle_ps((__m256)(a), (__m256)(b), 0xdd))

#else

GG_FN gg_vector gg_vector_all(gg_f32 x) { return (gg_vector){x, x, x, x}; }
GG_FN gg_mask gg_mask_all(gg_i32 x) { return (gg_mask){x, x, x, x}; }
GG_FN gg_vector gg_vector_fma(gg_vector a, gg_vector b, gg_vector c) {
  return (gg_vector){gg_fma(a[0], b[0], c[0]), gg_fma(a[1], b[1], c[1]), gg_fma(a[2], b[2], c[2]),
                     gg_fma(a[3], b[3], c[3])};
}
GG_FN gg_mask gg_mask_max(gg_mask a, gg_mask b) {
  gg_mask more = a > b;
  return (a & more) | (b & ~more);
}
GG_FN int gg_mask_any(gg_mask a) { return (a[0] | a[1] | a[2] | a[3]) != 0; }

/* Four values of a tile. */
GG_FN gg_vector gg_load_parts_f32(const gg_f32* p) { return (gg_vector){p[0], p[1], p[2], p[3]}; }
GG_FN gg_vector gg_load_parts_f16(const gg_u16* p) {
  return (gg_vector){gg_half_to_float(p[0]), gg_half_to_float(p[1]), gg_half_to_float(p[2]), gg_half_to_float(p[3])};
}
GG_FN gg_vector gg_load_parts_bf16(const gg_u16* p) {
  return (gg_vector){gg_bf16_to_float(p[0]), gg_bf16_to_float(p[1]), gg_bf16_to_float(p[2]), gg_bf16_to_float(p[3])};
}

#define GG_UNPACK_LOW(a, b)   ((gg_vector){(a)[0], (b)[0], (a)[1], (b)[1]})
#define GG_UNPACK_HIGH(a, b)  ((gg_vector){(a)[2], (b)[2], (a)[3], (b)[3]})
#define GG_UNPACK_LOW2(a, b)  ((gg_vector){(a)[0], (a)[1], (b)[0], (b)[1]})
#define GG_UNPACK_HIGH2(a, b) ((gg_vector){(a)[2], (a)[3], (b)[2], (b)[3]})
#define GG_EVEN(a, b)         ((gg_vector){(a)[0], (a)[2], (b)[0], (b)[2]})
#define GG_ODD(a, b)          ((gg_vector){(a)[1], (a)[3], (b)[1], (b)[3]})

#endif

GG_FN gg_mask gg_vector_bits(gg_vector a) { return (gg_mask)a; }
GG_FN gg_mask gg_vector_magnitude(gg_vector a) { return (gg_mask)a & gg_mask_all(0x7fffffff); }
GG_FN gg_vector gg_vector_where(gg_mask keep, gg_vector a) { return (gg_vector)((gg_mask)a & keep); }

GG_FN gg_vector gg_vector_load(const gg_f32* p) {
  gg_vector a;
  memcpy(&a, p, sizeof a);
  return a;
}

GG_FN void gg_vector_store(gg_f32* p, gg_vector a) { memcpy(p, &a, sizeof a); }

/* A unit is GG_WIDTH consecutive tiles. Its values come as eight vectors of parts: parts[k] has elements 0 to 3 of the
 * tiles k, k + 4, k + 8..., each on its 128 bits, and parts[k + 4] elements 4 to 7 of the same tiles. */
GG_FN void gg_load_unit(gg_u32 type, const void* unit, gg_vector parts[GG_TILE]) {
  for (int k = 0; k < 4; k++)
    for (int half = 0; half < 2; half++) {
      int at = GG_TILE * k + 4 * half;
      parts[k + 4 * half] = type == GG_TYPE_F32   ? gg_load_parts_f32((const gg_f32*)unit + at)
                            : type == GG_TYPE_F16 ? gg_load_parts_f16((const gg_u16*)unit + at)
                                                  : gg_load_parts_bf16((const gg_u16*)unit + at);
    }
}

/* columns[i] receives element i of rows 0 to 3, on each 128 bits. */
GG_FN void gg_transpose(const gg_vector rows[4], gg_vector columns[4]) {
  gg_vector a = GG_UNPACK_LOW(rows[0], rows[1]), b = GG_UNPACK_LOW(rows[2], rows[3]);
  gg_vector c = GG_UNPACK_HIGH(rows[0], rows[1]), d = GG_UNPACK_HIGH(rows[2], rows[3]);
  columns[0] = GG_UNPACK_LOW2(a, b);
  columns[1] = GG_UNPACK_HIGH2(a, b);
  columns[2] = GG_UNPACK_LOW2(c, d);
  columns[3] = GG_UNPACK_HIGH2(c, d);
}

/* (r[0] + r[2]) + (r[1] + r[3]) of the columns r of the same transposition, with fewer instructions. */
GG_FN gg_vector gg_sum_rows(const gg_vector rows[4]) {
  gg_vector first = GG_UNPACK_LOW2(rows[0], rows[1]) + GG_UNPACK_HIGH2(rows[0], rows[1]);
  gg_vector second = GG_UNPACK_LOW2(rows[2], rows[3]) + GG_UNPACK_HIGH2(rows[2], rows[3]);
  return GG_EVEN(first, second) + GG_ODD(first, second);
}

#endif
