#include "tests/support/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TILE  8
#define LANES 256

/* ---- Conversions ---- */

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float gg_model_from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude;
  if (exponent == 31) {
    magnitude = fraction ? NAN : INFINITY;
  } else if (exponent == 0) {
    magnitude = ldexpf((float)fraction, -24);
  } else {
    magnitude = ldexpf((float)(1024 + fraction), exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

float gg_model_from_bfloat(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t gg_model_to_half(float value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double magnitude = fabs((double)value);
  if (isnan(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;                              /* halfway from 65504 to 2^16 */
  if (magnitude < 0x1p-14) return sign | (uint16_t)rint(magnitude * 0x1p24); /* 1024 of these is the first normal */
  int exponent;
  double fraction = rint(frexp(magnitude, &exponent) * 2048); /* 1024 to 2048 */
  if (fraction >= 2048) {
    fraction = 1024;
    exponent++;
  }
  return sign | (uint16_t)((exponent + 14) * 1024 + ((int)fraction - 1024));
}

uint16_t gg_model_to_bfloat(float value) {
  if (isnan(value)) return 0x7fc0;
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  if (isinf(value)) return sign | 0x7f80;
  double magnitude = fabs((double)value);
  uint16_t below = (uint16_t)(bits_of((float)magnitude) >> 16), above = below + 1;
  double low = (double)gg_model_from_bfloat(below);
  double high = above == 0x7f80 ? 0x1p128 : (double)gg_model_from_bfloat(above); /* infinity, as if it went on */
  double down = magnitude - low, up = high - magnitude;
  bool take_above = up < down || (up == down && (below & 1));
  return sign | (take_above ? above : below);
}

float gg_model_element(const void* values, gg_dtype dtype, uint64_t index) {
  switch (dtype) {
    case GG_F32:
      return ((const float*)values)[index];
    case GG_F16:
      return gg_model_from_half(((const uint16_t*)values)[index]);
    default:
      return gg_model_from_bfloat(((const uint16_t*)values)[index]);
  }
}

float gg_model_inverse(double gradient_scale) { return (float)(1.0 / gradient_scale); }

/* ---- Statistics ---- */

/* An unevaluated sum of two floats. */
typedef struct pair {
  float high, low;
} pair;

static pair two_sum(float a, float b) {
  volatile float sum = a + b;
  volatile float b_part = sum - a;
  volatile float a_part = sum - b_part;
  volatile float a_error = a - a_part, b_error = b - b_part;
  pair result = {sum, a_error + b_error};
  return result;
}

static void accumulate(pair* bin, float term) {
  pair sum = two_sum(bin->high, term);
  bin->high = sum.high;
  bin->low = bin->low + sum.low;
}

typedef struct lane {
  pair big, middle, small;
  uint32_t largest; /* magnitude, as bits */
  uint32_t flags;
} lane;

static int exponent_of(float positive) {
  int exponent;
  frexpf(positive, &exponent);
  return exponent - 1;
}

static float power_of_two(int exponent) { return exponent < -126 ? 0.0f : ldexpf(1.0f, exponent); }

static float sum_of_squares(const float x[TILE], float scale) {
  float y[TILE], q[TILE / 2];
  for (int i = 0; i < TILE; i++) y[i] = x[i] * scale;
  for (int i = 0; i < TILE / 2; i++) q[i] = fmaf(y[i], y[i], y[i + 4] * y[i + 4]);
  float even = q[0] + q[2], odd = q[1] + q[3];
  return even + odd;
}

static void take_tile(lane* into, const void* gradient, gg_dtype dtype, uint64_t elements, uint64_t tile,
                      float inverse) {
  float x[TILE] = {0};
  uint32_t largest = 0;
  for (uint64_t i = 0; i < TILE && tile * TILE + i < elements; i++) {
    float raw = gg_model_element(gradient, dtype, tile * TILE + i);
    float unscaled = raw * inverse;
    if (isnan(unscaled)) {
      into->flags |= GG_KIND_NAN;
    } else if (isinf(unscaled)) {
      into->flags |= isinf(raw) ? GG_KIND_INF : GG_KIND_OVERFLOW;
    } else {
      x[i] = unscaled;
      uint32_t magnitude = bits_of(unscaled) & 0x7fffffff;
      if (magnitude > largest) largest = magnitude;
    }
  }
  float magnitude = float_of(largest);
  if (magnitude > 0x1p40f) {
    accumulate(&into->big, sum_of_squares(x, 0x1p-84f));
  } else if (magnitude > 0 && magnitude < 0x1p-40f) {
    accumulate(&into->small, sum_of_squares(x, 0x1p84f));
  } else {
    accumulate(&into->middle, sum_of_squares(x, 1.0f));
  }
  if (largest > into->largest) into->largest = largest;
}

static float scaled_twice(float value, float factor) {
  float once = value * factor;
  return once * factor;
}

/* A lane's three bins as one pair in units of 4^exponent. */
static pair gather_bins(const lane* from, int exponent) {
  pair total = {0, 0};
  if (exponent >= 40) {
    float factor = power_of_two(84 - exponent);
    total.high = scaled_twice(from->big.high, factor);
    total.low = scaled_twice(from->big.low, factor);
  }
  for (int bin = 0; bin < 2; bin++) {
    if (bin == 0 && exponent < -40) continue;
    const pair* part = bin == 0 ? &from->middle : &from->small;
    float factor = power_of_two(bin == 0 ? -exponent : -84 - exponent);
    float low = scaled_twice(part->low, factor);
    pair sum = two_sum(total.high, scaled_twice(part->high, factor));
    float carried = low + sum.low;
    total.high = sum.high;
    total.low = total.low + carried;
  }
  return total;
}

static void take_lane(pair* a, const pair* b) {
  pair sum = two_sum(a->high, b->high);
  float lows = a->low + b->low;
  a->high = sum.high;
  a->low = lows + sum.low;
}

/* Within 32 lanes first, then across. */
static float tree(pair lanes[LANES]) {
  for (int stride = 16; stride >= 1; stride /= 2)
    for (int l = 0; l < LANES; l++)
      if (l % 32 < stride) take_lane(&lanes[l], &lanes[l + stride]);
  for (int stride = 128; stride >= 32; stride /= 2)
    for (int l = 0; l < stride; l += 32) take_lane(&lanes[l], &lanes[l + stride]);
  return lanes[0].high + lanes[0].low;
}

static gg_triple reduce_block(const void* gradient, gg_dtype dtype, uint64_t elements, float inverse,
                              uint64_t first_tile, uint64_t tiles) {
  lane lanes[LANES];
  memset(lanes, 0, sizeof lanes);
  for (uint64_t t = 0; t < tiles; t++) take_tile(&lanes[t % LANES], gradient, dtype, elements, first_tile + t, inverse);
  uint32_t largest = 0, flags = 0;
  for (int l = 0; l < LANES; l++) {
    if (lanes[l].largest > largest) largest = lanes[l].largest;
    flags |= lanes[l].flags;
  }
  gg_triple triple = {float_of(largest), 0.0f, flags};
  if (largest == 0) return triple;
  pair sums[LANES];
  for (int l = 0; l < LANES; l++) sums[l] = gather_bins(&lanes[l], exponent_of(triple.max_abs));
  triple.ssq = tree(sums);
  return triple;
}

static gg_triple merge_partials(const gg_triple* partials, uint64_t count) {
  gg_triple total = {0, 0, 0};
  for (uint64_t i = 0; i < count; i++) {
    if (bits_of(partials[i].max_abs) > bits_of(total.max_abs)) total.max_abs = partials[i].max_abs;
    total.flags |= partials[i].flags;
  }
  if (total.max_abs == 0) return total;
  pair sums[LANES];
  memset(sums, 0, sizeof sums);
  for (uint64_t i = 0; i < count; i++) {
    if (partials[i].max_abs == 0) continue;
    float factor = power_of_two(exponent_of(partials[i].max_abs) - exponent_of(total.max_abs));
    accumulate(&sums[i % LANES], scaled_twice(partials[i].ssq, factor));
  }
  total.ssq = tree(sums);
  return total;
}

/* One tile a lane up to 65536 elements, then four, then as many as let 1024 blocks cover the tensor. */
static uint64_t tiles_of_block(uint64_t elements) {
  uint64_t tiles = (elements + TILE - 1) / TILE;
  uint64_t a_lane = elements > 65536 ? 4 : 1;
  while (a_lane * LANES * 1024 < tiles) a_lane++;
  return a_lane * LANES;
}

uint64_t gg_model_blocks(uint64_t elements) {
  uint64_t tiles = (elements + TILE - 1) / TILE, range = tiles_of_block(elements);
  return (tiles + range - 1) / range;
}

gg_triple gg_model_reduce(const void* gradient, gg_dtype dtype, uint64_t elements, float inverse) {
  gg_triple none = {0, 0, 0};
  if (elements == 0) return none;
  uint64_t tiles = (elements + TILE - 1) / TILE, range = tiles_of_block(elements), blocks = gg_model_blocks(elements);
  gg_triple* partials = calloc(blocks, sizeof *partials);
  if (!partials) abort();
  for (uint64_t b = 0; b < blocks; b++) {
    uint64_t first = b * range, count = tiles - first < range ? tiles - first : range;
    partials[b] = reduce_block(gradient, dtype, elements, inverse, first, count);
  }
  gg_triple total = blocks == 1 ? partials[0] : merge_partials(partials, blocks);
  free(partials);
  return total;
}

double gg_model_norm(gg_triple triple) {
  if (triple.max_abs == 0) return 0;
  return ldexp(sqrt((double)triple.ssq), exponent_of(triple.max_abs));
}

/* ---- Update ---- */

/* 1 - beta^step, right also where beta is next to 1 and the difference is small. */
static long double one_minus_power(double beta, uint64_t step) {
  if (beta == 0) return 1;
  return -expm1l((long double)step * logl((long double)beta));
}

gg_model_constants gg_model_constants_of(const gg_adamw_options* options, float factor1, float factor2, uint64_t step) {
  gg_model_constants c = {
      .inverse = gg_model_inverse(options->gradient_scale),
      .factor1 = factor1,
      .factor2 = factor2,
      .decay = (float)(1.0 - options->learning_rate * options->weight_decay),
      .beta1 = (float)options->beta1,
      .one_minus_beta1 = (float)(1.0 - options->beta1),
      .beta2 = (float)options->beta2,
      .one_minus_beta2 = (float)(1.0 - options->beta2),
      .epsilon = (float)options->epsilon,
      .step_size = (float)(options->learning_rate / one_minus_power(options->beta1, step)),
      .inverse_bias_correction2_sqrt = (float)(1.0L / sqrtl(one_minus_power(options->beta2, step))),
      .maximize = options->maximize,
  };
  return c;
}

void gg_model_update(const gg_model_constants* c, const void* gradient, gg_dtype dtype, uint64_t elements,
                     float* parameter, float* exp_avg, float* exp_avg_sq, float* max_exp_avg_sq) {
  for (uint64_t i = 0; i < elements; i++) {
    float x = gg_model_element(gradient, dtype, i) * c->inverse;
    float once = x * c->factor1;
    float g = once * c->factor2;
    if (c->maximize) g = -g;
    float kept1 = c->beta1 == 0 ? 0 : c->beta1 * exp_avg[i];
    float m = fmaf(c->one_minus_beta1, g, kept1);
    float weighted = c->one_minus_beta2 * g, kept2 = c->beta2 == 0 ? 0 : c->beta2 * exp_avg_sq[i];
    float v = fmaf(weighted, g, kept2);
    float w = v;
    if (max_exp_avg_sq) {
      if (!(v > max_exp_avg_sq[i])) w = max_exp_avg_sq[i];
      max_exp_avg_sq[i] = w;
    }
    float denominator = fmaf(sqrtf(w), c->inverse_bias_correction2_sqrt, c->epsilon);
    float decayed = parameter[i] * c->decay, direction = m / denominator;
    parameter[i] = fmaf(-c->step_size, direction, decayed);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
  }
}

void gg_model_copy(const float* parameter, gg_dtype dtype, uint64_t elements, uint16_t* copy) {
  for (uint64_t i = 0; i < elements; i++)
    copy[i] = dtype == GG_F16 ? gg_model_to_half(parameter[i]) : gg_model_to_bfloat(parameter[i]);
}
