/* The dialect header itself, as C on the host: a kernel is only right if these are. */
#undef __FMA__ /* the emulation is what is tested; with the instruction there is nothing to test */
#undef __FP_FAST_FMAF
#include "kernels/port.h"

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
