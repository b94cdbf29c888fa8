/* The arithmetic (docs/numerics.md), the same bits in every dialect. */
#ifndef GG_KERNELS_FORMULAS_H
#define GG_KERNELS_FORMULAS_H

#include "kernels/types.h"

#define GG_INFINITY_BITS 0x7f800000u
#define GG_MAGNITUDE     0x7fffffffu /* all bits of a float except the sign */

/* Returns a + b; *error is what rounding lost (Knuth, The Art of Computer Programming 2, 4.2.2). */
GG_FN gg_f32 gg_two_sum(gg_f32 a, gg_f32 b, gg_f32* error) {
  gg_f32 sum = gg_add(a, b), part = gg_sub(sum, a);
  *error = gg_add(gg_sub(a, gg_sub(sum, part)), gg_sub(b, part));
  return sum;
}

/* 2^exponent for exponents up to 127; 0 where it would be subnormal. */
GG_FN gg_f32 gg_power_of_two(gg_i32 exponent) {
  return exponent < -126 ? 0.0f : gg_float((gg_u32)(exponent + 127) << 23);
}

/* The exponent of the largest power of two <= a positive finite value with these bits. */
GG_FN gg_i32 gg_exponent(gg_u32 bits) {
  return bits >= 0x800000u ? (gg_i32)(bits >> 23) - 127 : 31 - gg_leading(bits) - 149;
}

/* FP16 by integer arithmetic, for devices without conversion instructions. NaNs become quiet. */
GG_FN gg_f32 gg_half_to_float(gg_u16 half_bits) {
  gg_u32 sign = (gg_u32)(half_bits & 0x8000u) << 16, magnitude = half_bits & 0x7fffu;
  gg_u32 subnormal = gg_bits(gg_mul((gg_f32)(gg_i32)magnitude, 0x1p-24f));
  gg_u32 normal = (magnitude << 13) + 0x38000000u;
  gg_u32 special = (magnitude << 13) | GG_INFINITY_BITS | (magnitude > 0x7c00u ? 0x400000u : 0u);
  return gg_float(sign | (magnitude < 0x400u ? subnormal : magnitude < 0x7c00u ? normal : special));
}

/* Rounds to nearest even. */
GG_FN gg_u16 gg_float_to_half(gg_f32 x) {
  gg_u32 sign = gg_bits(x) >> 16 & 0x8000u, magnitude = gg_bits(x) & GG_MAGNITUDE;
  gg_u32 normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  /* Below 2^-14, halves are multiples of 2^-24, the unit in the last place of floats in [1/2, 1). */
  gg_u32 subnormal = gg_bits(gg_add(gg_float(magnitude), 0.5f)) - 0x3f000000u;
  gg_u32 special = magnitude > GG_INFINITY_BITS ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : 0x7c00u;
  gg_u32 bits = magnitude < 0x38800000u ? subnormal : magnitude < 0x477ff000u ? normal : special;
  return (gg_u16)(sign | bits);
}

GG_FN gg_f32 gg_bf16_to_float(gg_u16 bits) { return gg_float((gg_u32)bits << 16); }

/* Rounds to nearest even; NaNs become quiet rather than infinite. */
GG_FN gg_u16 gg_float_to_bf16(gg_f32 x) {
  gg_u32 bits = gg_bits(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (gg_u16)((bits & GG_MAGNITUDE) > GG_INFINITY_BITS ? (bits >> 16 | 0x40u) : rounded);
}

/* An unscaled gradient times the clip coefficient, given as two factors; the first is never subnormal. */
GG_FN gg_f32 gg_clip(gg_f32 x, gg_f32 factor1, gg_f32 factor2) { return gg_mul(gg_mul(x, factor1), factor2); }

/* beta times the old moment. If beta is zero the moment is not used, since 0 * Inf is NaN. */
GG_FN gg_f32 gg_kept(gg_f32 beta, gg_f32 moment) {
  gg_f32 product = gg_mul(beta, moment);
  return beta == 0.0f ? 0.0f : product;
}

/* The state of one element: read before the update, written after it. */
typedef struct gg_element {
  gg_f32 parameter, exp_avg, exp_avg_sq, max_exp_avg_sq;
} gg_element;

/* AdamW: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019; AMSGrad: Reddi, Kale and Kumar, On the
 * Convergence of Adam and Beyond, 2018. The bias corrections are in step_size and inverse_bias_correction2_sqrt. */
GG_FN void gg_adamw_element(const gg_update_constants* k, gg_bias bias, gg_u32 amsgrad, gg_f32 raw, gg_element* e) {
  gg_f32 g = gg_clip(gg_mul(raw, k->inverse_scale), k->factor1, k->factor2);
  g = gg_float(gg_bits(g) ^ (k->maximize << 31));
  gg_f32 m = gg_fma(k->one_minus_beta1, g, gg_kept(k->beta1, e->exp_avg));
  gg_f32 v = gg_fma(gg_mul(k->one_minus_beta2, g), g, gg_kept(k->beta2, e->exp_avg_sq));
  gg_f32 w = v;
  if (amsgrad) w = e->max_exp_avg_sq = v > e->max_exp_avg_sq ? v : e->max_exp_avg_sq;
  gg_f32 denominator = gg_fma(gg_sqrt(w), bias.inverse_bias_correction2_sqrt, k->epsilon);
  e->parameter = gg_fma(-bias.step_size, gg_div(m, denominator), gg_mul(e->parameter, k->decay));
  e->exp_avg = m;
  e->exp_avg_sq = v;
}

#endif
