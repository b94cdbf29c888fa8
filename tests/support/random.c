#include "tests/support/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tests/support/model.h"

uint64_t gg_random_seed(void) {
  static uint64_t seed;
  static bool drawn;
  if (!drawn) {
    const char* given = getenv("GG_TEST_SEED");
    if (given && *given) {
      seed = strtoull(given, NULL, 0);
    } else if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
      seed = 1;
    }
    drawn = true;
  }
  return seed;
}

gg_random gg_random_stream(uint64_t salt) {
  gg_random random = {gg_random_seed() ^ (salt * 0x9e3779b97f4a7c15u)};
  gg_random_bits(&random);
  return random;
}

/* SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014). */
uint64_t gg_random_bits(gg_random* random) {
  uint64_t z = random->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t gg_random_below(gg_random* random, uint64_t limit) { return gg_random_bits(random) % limit; }

double gg_random_unit(gg_random* random) { return (double)(gg_random_bits(random) >> 11) * 0x1p-53; }

double gg_random_between(gg_random* random, double low, double high) {
  return low + (high - low) * gg_random_unit(random);
}

/* A value in [2^e, 2^(e+1)) of either sign, e from `low` to `high`. From one draw and put together from bits: tests
 * fill tens of millions of these. */
static float with_exponent(gg_random* random, int low, int high) {
  uint64_t draw = gg_random_bits(random);
  uint32_t fraction = (uint32_t)draw & 0x7fffff, sign = (uint32_t)(draw >> 32) & 0x80000000u;
  int exponent = low + (int)((draw >> 24 & 0xffffff) % (uint32_t)(high - low + 1));
  bool normal = exponent >= -126;
  uint32_t bits = sign | (uint32_t)((normal ? exponent : 0) + 127) << 23 | fraction;
  float value;
  memcpy(&value, &bits, sizeof value);
  return normal ? value : ldexpf(value, exponent);
}

static float any_finite(gg_random* random) {
  for (;;) {
    uint32_t bits = (uint32_t)gg_random_bits(random);
    float value;
    memcpy(&value, &bits, sizeof value);
    if (isfinite(value)) return value;
  }
}

float gg_random_float(gg_random* random, gg_magnitudes kind) {
  switch (kind) {
    case GG_ORDINARY:
      return with_exponent(random, -12, -2);
    case GG_WHOLE_RANGE:
      return any_finite(random);
    case GG_HUGE:
      return with_exponent(random, 38, 127);
    case GG_TINY:
      return with_exponent(random, -148, -39);
    case GG_SPARSE:
      return gg_random_below(random, 61) ? 0.0f : any_finite(random);
    case GG_ALTERNATING: {
      /* At the borders of the bins, every other one exactly on a power of two. */
      static const int edges[] = {-100, -41, -40, -39, 0, 39, 40, 41, 100};
      int exponent = edges[gg_random_below(random, sizeof edges / sizeof *edges)];
      float value = with_exponent(random, exponent, exponent);
      return gg_random_bits(random) & 1 ? value : copysignf(ldexpf(1, exponent), value);
    }
    default: {
      uint64_t pick = gg_random_below(random, 97);
      if (pick == 0) return NAN;
      if (pick == 1) return gg_random_bits(random) & 1 ? INFINITY : -INFINITY;
      return with_exponent(random, -12, -2);
    }
  }
}

/* Half precision reaches neither huge nor tiny values of FP32: there the exponent alone is what matters. */
static uint16_t half_of(gg_random* random, gg_magnitudes kind) {
  switch (kind) {
    case GG_WHOLE_RANGE:
    case GG_ALTERNATING: {
      uint16_t bits = (uint16_t)gg_random_bits(random);
      return (bits & 0x7c00) == 0x7c00 ? bits & 0x83ff : bits;
    }
    case GG_HUGE:
      return gg_model_to_half(with_exponent(random, 10, 15));
    case GG_TINY:
      return (uint16_t)(gg_random_bits(random) & 0x83ff);
    case GG_SPARSE:
      return gg_random_below(random, 61) ? 0 : (uint16_t)(gg_random_bits(random) & 0xbbff);
    default:
      return gg_model_to_half(gg_random_float(random, kind));
  }
}

static uint16_t bfloat_of(gg_random* random, gg_magnitudes kind) {
  uint16_t bits = gg_model_to_bfloat(gg_random_float(random, kind));
  bool overflowed = (bits & 0x7fff) == 0x7f80 && kind != GG_NONFINITE;
  return overflowed ? (uint16_t)(bits - 1) : bits;
}

static void put(gg_dtype dtype, void* values, uint64_t index, float value) {
  if (dtype == GG_F32) {
    ((float*)values)[index] = value;
  } else {
    ((uint16_t*)values)[index] = dtype == GG_F16 ? gg_model_to_half(value) : gg_model_to_bfloat(value);
  }
}

/* Squares of 1, 2^-24 and twice 2^-48, each in a tile anywhere, the rest zeros. The sum of the first two is a tie; the
 * others break it if they meet each other first, and are lost one by one if they do not. */
static void fill_ties(gg_random* random, gg_dtype dtype, void* values, uint64_t count) {
  static const float roots[] = {1, 0x1p-12f, 0x1p-24f, 0x1p-24f};
  for (uint64_t i = 0; i < count; i++) put(dtype, values, i, 0);
  uint64_t tiles = (count + 7) / 8, stretch = tiles / 4;
  for (uint64_t k = 0, first = gg_random_below(random, 4); k < 4 && stretch; k++)
    put(dtype, values, 8 * (((first + k) % 4) * stretch + gg_random_below(random, stretch)), roots[k]);
}

/* A tile whose largest value is `top`: the rest is a little below it. */
static float below(gg_random* random, float top) { return top * (float)gg_random_between(random, -0.99, 0.99); }

/* Tiles on the borders of the bins next to each other. */
static void fill_alternating(gg_random* random, gg_dtype dtype, void* values, uint64_t count) {
  float top = 1;
  for (uint64_t i = 0; i < count; i++) {
    if (i % 8 == 0) top = gg_random_float(random, GG_ALTERNATING);
    put(dtype, values, i, i % 8 == 0 ? top : below(random, top));
  }
}

void gg_random_fill(gg_random* random, gg_magnitudes kind, gg_dtype dtype, void* values, uint64_t count) {
  if (kind == GG_TIES) {
    fill_ties(random, dtype, values, count);
  } else if (kind == GG_ALTERNATING && dtype != GG_F16) {
    fill_alternating(random, dtype, values, count);
  } else if (dtype == GG_F32) {
    float* to = values;
    for (uint64_t i = 0; i < count; i++) to[i] = gg_random_float(random, kind);
  } else {
    uint16_t* to = values;
    for (uint64_t i = 0; i < count; i++) to[i] = dtype == GG_F16 ? half_of(random, kind) : bfloat_of(random, kind);
  }
}
