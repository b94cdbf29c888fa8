/* The dialect header and the shared formulas, as C on the host: a kernel is only right if these are. */
#undef __FMA__ /* the emulation is what is tested; with the instruction there is nothing to test */
#undef __FP_FAST_FMAF
#include "kernels/formulas.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/model.h"
#include "tests/support/random.h"

static void check_fma(float a, float b, float c) {
  float got = gg_fma(a, b, c), want = fmaf(a, b, c);
  if (gg_bits(got) == gg_bits(want) || (isnan(got) && isnan(want))) return;
  gg_test_fail("fma(%a, %a, %a) gave %a, expected %a", (double)a, (double)b, (double)c, (double)got, (double)want);
}

Test(port, bits_and_floats_are_each_others_inverse, .timeout = 10) {
  GG_CHECK(gg_bits(1.0f) == 0x3f800000 && gg_bits(-0.0f) == 0x80000000 && gg_float(0x7f800000) == INFINITY);
  gg_random random = gg_random_stream(81);
  for (int i = 0; i < 100000; i++) {
    uint32_t bits = (uint32_t)gg_random_bits(&random);
    if ((bits & 0x7f800000) != 0x7f800000) GG_CHECK(gg_bits(gg_float(bits)) == bits);
  }
}

Test(port, fma_rounds_once_on_special_and_hard_values, .timeout = 60) {
  static const float values[] = {0.0f,
                                 -0.0f,
                                 1.0f,
                                 -1.0f,
                                 0x1p-149f,
                                 -0x1p-149f,
                                 0x1p-126f,
                                 0x1.fffffcp-127f,
                                 0x1.fffffep127f,
                                 -0x1.fffffep127f,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1.000002p0f,
                                 0x1.fffffep-1f,
                                 0x1.000002p12f,
                                 0x1.000002p-75f,
                                 0x1p-75f,
                                 -0x1p-75f,
                                 0x1p-24f,
                                 -0x1p-24f,
                                 0x1p-25f,
                                 0x1.8p-24f,
                                 0x1.000002p-126f,
                                 0x1p63f,
                                 0x1.555556p-2f,
                                 0x1.555554p-2f,
                                 0x1p127f,
                                 3.0f,
                                 0x1p-74f,
                                 0x1p-23f,
                                 0x1.7ffffep0f,
                                 0x1.7ffffep-24f,
                                 0x1p-100f,
                                 -0x1p100f};
  size_t count = sizeof values / sizeof *values;
  for (size_t a = 0; a < count; a++)
    for (size_t b = 0; b < count; b++)
      for (size_t c = 0; c < count; c++) check_fma(values[a], values[b], values[c]);
}

Test(port, fma_rounds_once_on_random_values, .timeout = 60) {
  gg_random random = gg_random_stream(82);
  for (int i = 0; i < 3000000; i++) {
    float a, b, c;
    uint32_t bits[3] = {(uint32_t)gg_random_bits(&random), (uint32_t)gg_random_bits(&random),
                        (uint32_t)gg_random_bits(&random)};
    memcpy(&a, &bits[0], 4);
    memcpy(&b, &bits[1], 4);
    memcpy(&c, &bits[2], 4);
    check_fma(a, b, c);
    /* the sum next to a tie: an addend that nearly cancels, or that is half a unit in the last place */
    float product = a * b;
    check_fma(a, b, -product);
    check_fma(a, b, ldexpf(product, -24));
    check_fma(a, b, ldexpf(product, 24));
    check_fma(a, b, ldexpf(product, -25 - (int)(bits[2] % 30)));
    check_fma(a, 1 + ldexpf(1, -23), ldexpf(c, -40));
  }
}

Test(port, fma_is_right_where_results_are_subnormal, .timeout = 60) {
  gg_random random = gg_random_stream(83);
  for (int i = 0; i < 2000000; i++) {
    float a = ldexpf((float)(gg_random_below(&random, 1 << 24)), -24 - 60);
    float b = ldexpf((float)(gg_random_below(&random, 1 << 24)), -24 - 66);
    float c = ldexpf((float)(gg_random_below(&random, 1 << 24)), -149 + (int)gg_random_below(&random, 3) - 24);
    if (gg_random_bits(&random) & 1) c = -c;
    check_fma(a, b, c);
    check_fma(-a, b, gg_float((uint32_t)gg_random_below(&random, 1 << 22)));
  }
}

Test(port, basic_operations_round_once, .timeout = 60) {
  gg_random random = gg_random_stream(84);
  for (int i = 0; i < 1000000; i++) {
    float a = gg_random_float(&random, GG_WHOLE_RANGE), b = gg_random_float(&random, GG_WHOLE_RANGE);
    /* double holds sums and products of floats closely enough for one more rounding to be harmless in these */
    GG_CHECK(gg_bits(gg_mul(a, b)) == gg_bits((float)((double)a * (double)b)));
    GG_CHECK(gg_bits(gg_sqrt(fabsf(a))) == gg_bits((float)sqrt(fabs((double)a))));
    GG_CHECK(gg_bits(gg_div(a, b)) == gg_bits((float)((double)a / (double)b)) || b == 0);
    GG_CHECK(gg_bits(gg_add(a, b)) == gg_bits((float)((double)a + (double)b)));
    GG_CHECK(gg_bits(gg_sub(a, b)) == gg_bits((float)((double)a - (double)b)));
  }
}

static void check_two_sum(float a, float b, float want_error) {
  float error, sum = gg_two_sum(a, b, &error);
  if (gg_bits(sum) == gg_bits(a + b) && error == want_error) return;
  gg_test_fail("two_sum(%a, %a) gave %a and %a, expected %a and %a", (double)a, (double)b, (double)sum, (double)error,
               (double)(a + b), (double)want_error);
}

Test(port, two_sum_returns_what_rounding_lost, .timeout = 60) {
  gg_random random = gg_random_stream(85);
  for (int i = 0; i < 1000000; i++) {
    float a = ldexpf(1 + (float)gg_random_below(&random, 1 << 23) * 0x1p-23f, (int)gg_random_below(&random, 120) - 60);
    float b = ldexpf(1 + (float)gg_random_below(&random, 1 << 23) * 0x1p-23f, ilogbf(a));
    if (gg_random_bits(&random) & 1) b = -b;
    int apart = (int)gg_random_below(&random, 29);
    float near = ldexpf(b, -apart), far = ldexpf(b, -26 - apart);
    float lost = (float)((double)a + (double)near - (double)(a + near)); /* exact: the sum has at most 53 bits */
    check_two_sum(a, near, lost);
    check_two_sum(near, a, lost);
    check_two_sum(a, far, far); /* less than half a unit in the last place, so that all of it is lost */
    check_two_sum(far, a, far);
  }
  check_two_sum(0.0f, 0.0f, 0.0f);
  check_two_sum(0x1p-149f, 0x1.fffffcp-127f, 0.0f); /* sums of subnormals are exact */
  check_two_sum(1.0f, 0x1p-149f, 0x1p-149f);
}

Test(port, exponents_and_powers_of_two_agree_with_the_c_library, .timeout = 10) {
  for (int exponent = -400; exponent <= 127; exponent++)
    GG_CHECK(gg_bits(gg_power_of_two(exponent)) == gg_bits(exponent < -126 ? 0.0f : ldexpf(1, exponent)));
  for (int exponent = -149; exponent <= 127; exponent++) {
    float power = ldexpf(1, exponent);
    GG_CHECK(gg_exponent(gg_bits(power)) == exponent);
    GG_CHECK(exponent == 127 || gg_exponent(gg_bits(2 * power) - 1) == exponent);
  }
  GG_CHECK(gg_exponent(gg_bits(0x1.fffffep127f)) == 127);
}

/* A 16-bit type: its conversions, and the model's. */
typedef struct narrow_type {
  const char* name;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
  float (*model_widen)(uint16_t);
  uint16_t (*model_narrow)(float);
  uint16_t infinity;
} narrow_type;

static float widen_half(uint16_t bits) { return gg_half_to_float(bits); }
static uint16_t narrow_half(float x) { return gg_float_to_half(x); }
static float widen_bf16(uint16_t bits) { return gg_bf16_to_float(bits); }
static uint16_t narrow_bf16(float x) { return gg_float_to_bf16(x); }

static const narrow_type narrow_types[] = {
    {"f16", widen_half, narrow_half, gg_model_from_half, gg_model_to_half, 0x7c00},
    {"bf16", widen_bf16, narrow_bf16, gg_model_from_bfloat, gg_model_to_bfloat, 0x7f80},
};

static void check_narrow(const narrow_type* type, float x) {
  uint16_t got = type->narrow(x), want = type->model_narrow(x);
  bool right = isnan(x) ? (got & 0x7fff) > type->infinity : got == want;
  if (!right) gg_test_fail("%s of %a gave %#06x, expected %#06x", type->name, (double)x, got, want);
}

Test(port, all_16_bit_values_widen_exactly_and_narrow_back, .timeout = 60) {
  for (size_t t = 0; t < sizeof narrow_types / sizeof *narrow_types; t++) {
    const narrow_type* type = &narrow_types[t];
    for (uint32_t bits = 0; bits < 65536; bits++) {
      float got = type->widen((uint16_t)bits), want = type->model_widen((uint16_t)bits);
      bool nan = (bits & 0x7fff) > type->infinity;
      bool same = nan ? isnan(got) && isnan(want) : gg_bits(got) == gg_bits(want);
      if (!same) gg_test_fail("%s %#06x gave %a, expected %a", type->name, bits, (double)got, (double)want);
      if (!nan && type->narrow(got) != bits) gg_test_fail("%s %#06x does not come back", type->name, bits);
      if (nan) GG_CHECK((type->narrow(got) & 0x7fff) > type->infinity);
    }
  }
}

/* Halfway between each two neighbours, where ties go to the even one, and one float to either side. */
Test(port, narrowing_rounds_to_nearest_even_at_every_boundary, .timeout = 60) {
  for (size_t t = 0; t < sizeof narrow_types / sizeof *narrow_types; t++) {
    const narrow_type* type = &narrow_types[t];
    for (uint16_t bits = 0; bits < type->infinity; bits++) {
      double low = (double)type->model_widen(bits),
             step = low - (double)type->model_widen((uint16_t)(bits - (bits > 0)));
      double high = bits + 1 < type->infinity ? (double)type->model_widen((uint16_t)(bits + 1)) : low + step;
      float middle = (float)((low + high) / 2);
      const float around[] = {middle, nextafterf(middle, 0.0f), nextafterf(middle, INFINITY)};
      for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        check_narrow(type, around[i]);
        check_narrow(type, -around[i]);
      }
    }
    check_narrow(type, INFINITY);
    check_narrow(type, -INFINITY);
    check_narrow(type, 0x1.fffffep127f);
    check_narrow(type, 0x1p-149f);
    for (uint32_t payload = 1; payload < 0x800000; payload = payload * 2 + 1) { /* NaNs stay NaNs */
      check_narrow(type, gg_float(0x7f800000 | payload));
      check_narrow(type, gg_float(0xff800000 | (0x800000 - payload)));
    }
  }
}

Test(port, narrowing_rounds_to_nearest_even_on_random_values, .timeout = 60) {
  gg_random random = gg_random_stream(86);
  for (int i = 0; i < 2000000; i++) {
    float x = gg_float((uint32_t)gg_random_bits(&random));
    for (size_t t = 0; t < sizeof narrow_types / sizeof *narrow_types; t++) check_narrow(&narrow_types[t], x);
    check_narrow(&narrow_types[0], ldexpf(1 + (float)gg_random_below(&random, 1 << 23) * 0x1p-23f,
                                          (int)gg_random_below(&random, 44) - 27)); /* where FP16 has its values */
  }
}
