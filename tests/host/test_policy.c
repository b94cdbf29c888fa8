/* The decision about a group, a pure function of its statistics: no device here. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/model.h"
#include "tests/support/random.h"

static gg_triple triple_of(float max_abs, float ssq, uint32_t flags) {
  gg_triple triple = {max_abs, ssq, flags};
  return triple;
}

static gg_decision decide(const gg_triple* triples, size_t count, const gg_guard_options* guard) {
  gg_decision decision = GG_DECISION_INIT;
  gg_error error = GG_ERROR_INIT;
  if (gg_decide(triples, count, NULL, guard, &decision, &error) != GG_OK) gg_test_fail("gg_decide: %s", error.message);
  return decision;
}

static gg_guard_options limit(double max_norm, double epsilon) {
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = max_norm;
  guard.clip_epsilon = epsilon;
  return guard;
}

/* A tensor of one element. */
static gg_triple single(float value) {
  int exponent;
  float fraction = frexpf(fabsf(value), &exponent) * 2; /* [1, 2) */
  return triple_of(fabsf(value), value == 0 ? 0 : fraction * fraction, 0);
}

Test(policy, one_norm_as_if_all_gradients_were_one_vector, .timeout = 10) {
  gg_triple triples[] = {single(3), single(4)};
  gg_guard_options guard = limit(1, 1e-6);
  gg_decision decision = decide(triples, 2, &guard);
  GG_CHECK(decision.action == GG_APPLIED && decision.reason == GG_REASON_NONE);
  GG_CHECK(decision.norm == 5 && decision.max_abs == 4);
  gg_test_near("coefficient", decision.clip_coefficient, 1 / (5 + 1e-6), 0, 0);
  GG_CHECK(decision.factor1 == (float)(1 / (5 + 1e-6)) && decision.factor2 == 1);
}

Test(policy, merging_is_exact_to_fp64_over_the_whole_range, .timeout = 10) {
  gg_random random = gg_random_stream(11);
  for (int round = 0; round < 2000; round++) {
    gg_triple triples[40];
    size_t count = 1 + gg_random_below(&random, 40);
    long double sum = 0;
    float largest = 0;
    for (size_t i = 0; i < count; i++) {
      float value = fabsf(gg_random_float(&random, (gg_magnitudes)gg_random_below(&random, 6)));
      int exponent = 0;
      if (value > 0) exponent = ilogbf(value);
      float ssq = value > 0 ? (float)gg_random_between(&random, 1, 1e9) : 0;
      triples[i] = triple_of(value, ssq, 0);
      sum += ldexpl((long double)ssq, 2 * exponent);
      if (value > largest) largest = value;
    }
    gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
    gg_decision decision = decide(triples, count, &guard);
    gg_test_case("round %d, %zu triples", round, count);
    gg_test_near("norm", decision.norm, (double)sqrtl(sum), 1e-14, 0);
    GG_CHECK(decision.max_abs == (double)largest);
    GG_CHECK(decision.clip_coefficient == 1 && decision.factor1 == 1 && decision.factor2 == 1);
  }
}

Test(policy, merging_can_neither_overflow_nor_underflow, .timeout = 10) {
  enum { MANY = 100000 };
  gg_triple* triples = malloc(MANY * sizeof *triples);
  GG_CHECK(triples != NULL);
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  for (size_t i = 0; i < MANY; i++) triples[i] = triple_of(0x1.fffffep127f, 0x1p35f, 0);
  gg_test_near("huge", decide(triples, MANY, &guard).norm, sqrt((double)MANY) * 0x1p17 * M_SQRT2 * 0x1p127, 1e-14, 0);
  for (size_t i = 0; i < MANY; i++) triples[i] = triple_of(0x1p-149f, 1, 0);
  gg_test_near("tiny", decide(triples, MANY, &guard).norm, sqrt((double)MANY) * 0x1p-149, 1e-14, 0);
  free(triples);
}

Test(policy, the_statistics_of_several_ranks_can_be_concatenated, .timeout = 10) {
  gg_triple ranks[] = {single(3), single(12), single(4), single(84)};
  gg_guard_options guard = limit(17, 0);
  gg_decision decision = decide(ranks, 4, &guard);
  gg_test_near("norm", decision.norm, 85, 1e-15, 0);
  gg_test_near("coefficient", decision.clip_coefficient, 0.2, 1e-15, 0);
}

Test(policy, the_coefficient_is_computed_in_fp64_and_never_amplifies, .timeout = 10) {
  gg_random random = gg_random_stream(12);
  for (int round = 0; round < 5000; round++) {
    gg_triple triple = single(gg_random_float(&random, GG_ORDINARY));
    double norm = decide(&triple, 1, NULL).norm, epsilon = round % 3 ? pow(10, gg_random_between(&random, -12, 0)) : 0;
    double max_norm = norm * pow(10, gg_random_between(&random, -6, 3));
    gg_guard_options guard = limit(max_norm, epsilon);
    gg_decision decision = decide(&triple, 1, &guard);
    gg_test_case("norm %g, limit %g, epsilon %g", norm, max_norm, epsilon);
    gg_test_near("coefficient", decision.clip_coefficient, fmin(1, max_norm / (norm + epsilon)), 1e-15, 0);
    GG_CHECK(decision.clip_coefficient <= 1 && decision.factor1 <= 1);
    GG_CHECK(decision.factor1 == (float)decision.clip_coefficient && decision.factor2 == 1);
  }
}

Test(policy, epsilon_zero_leaves_a_norm_within_the_limit_alone, .timeout = 10) {
  gg_triple triples[] = {single(3), single(4)};
  gg_guard_options guard = limit(5, 0);
  gg_decision decision = decide(triples, 2, &guard);
  GG_CHECK(decision.clip_coefficient == 1 && decision.factor1 == 1 && decision.factor2 == 1);
  guard = limit(4.999, 0);
  decision = decide(triples, 2, &guard);
  GG_CHECK(decision.clip_coefficient == 4.999 / 5);
}

Test(policy, max_norm_zero_always_gives_the_coefficient_zero, .timeout = 10) {
  const float values[] = {0, 1e-30f, 1, 3e38f};
  const double epsilons[] = {0, 1e-6, 1};
  for (int v = 0; v < 4; v++)
    for (int e = 0; e < 3; e++) {
      gg_triple triple = single(values[v]);
      gg_guard_options guard = limit(0, epsilons[e]);
      gg_decision decision = decide(&triple, 1, &guard);
      gg_test_case("value %g, epsilon %g", (double)values[v], epsilons[e]);
      GG_CHECK(decision.action == GG_APPLIED);
      GG_CHECK(decision.clip_coefficient == 0 && decision.factor1 * decision.factor2 == 0);
      GG_CHECK(isfinite(decision.factor1) && isfinite(decision.factor2));
    }
}

Test(policy, a_norm_of_zero_gives_the_coefficient_one, .timeout = 10) {
  const double limits[] = {1e-300, 1e-9, 1, 1e300}, epsilons[] = {0, 1e-6, 1};
  for (int l = 0; l < 4; l++)
    for (int e = 0; e < 3; e++) {
      gg_triple triple = single(0);
      gg_guard_options guard = limit(limits[l], epsilons[e]);
      gg_decision decision = decide(&triple, 1, &guard);
      gg_test_case("limit %g, epsilon %g", limits[l], epsilons[e]);
      GG_CHECK(decision.norm == 0 && decision.clip_coefficient == 1);
      GG_CHECK(decision.factor1 == 1 && decision.factor2 == 1);
    }
}

static bool is_power_of_two(float value) {
  int exponent;
  return value > 0 && frexpf(value, &exponent) == 0.5f;
}

Test(policy, a_coefficient_too_small_for_fp32_becomes_two_factors, .timeout = 10) {
  gg_random random = gg_random_stream(13);
  for (int round = 0; round < 5000; round++) {
    gg_triple triple = single(fabsf(gg_random_float(&random, GG_HUGE)));
    double max_norm = pow(10, gg_random_between(&random, -44, 3));
    gg_guard_options guard = limit(max_norm, 1e-6);
    gg_decision decision = decide(&triple, 1, &guard);
    double c = decision.clip_coefficient;
    gg_test_case("norm %g, limit %g: coefficient %g = %a * %a", decision.norm, max_norm, c, (double)decision.factor1,
                 (double)decision.factor2);
    GG_CHECK(c > 0);
    if ((float)c >= 0x1p-126f) {
      GG_CHECK(decision.factor1 == (float)c && decision.factor2 == 1);
      continue;
    }
    GG_CHECK(isnormal(decision.factor1) && is_power_of_two(decision.factor2) && decision.factor2 < 1);
    double product = (double)decision.factor1 * (double)decision.factor2;
    gg_test_near("product of the factors", product, c, 0x1p-23, 0);
  }
}

Test(policy, four_gradients_of_flt_max_clip_to_one_half_each, .timeout = 10) {
  gg_triple triple = triple_of(0x1.fffffep127f, 4 * 0x1.fffffep0f * 0x1.fffffep0f, 0);
  gg_guard_options guard = limit(1, 1e-6);
  gg_decision decision = decide(&triple, 1, &guard);
  gg_test_near("norm", decision.norm, 6.8056469327705772e38, 2e-7, 0);
  gg_test_near("coefficient", decision.clip_coefficient, 1.4693680261090186e-39, 2e-7, 0);
  float once = 0x1.fffffep127f * decision.factor1;
  gg_test_near("gradient", (double)(once * decision.factor2), 0.5, 2e-7, 0);
}

Test(policy, one_bad_tensor_decides_for_the_whole_group, .timeout = 10) {
  for (uint32_t kinds = 1; kinds < 8; kinds++)
    for (int place = 0; place < 3; place++)
      for (int clip = 0; clip < 2; clip++) {
        gg_triple triples[] = {single(3), single(4), single(12)};
        triples[place].flags = kinds;
        gg_guard_options guard = limit(1, 1e-6);
        guard.clip = clip;
        gg_decision decision = decide(triples, 3, &guard);
        gg_test_case("kinds %u in tensor %d, clip %d", kinds, place, clip);
        GG_CHECK(decision.action == GG_SKIPPED && decision.reason == GG_REASON_NONFINITE);
        GG_CHECK(decision.nonfinite == kinds && isinf(decision.norm) && decision.norm > 0);
        GG_CHECK(decision.clip_coefficient == 1);
        GG_CHECK(decision.max_abs == 12); /* the largest finite magnitude */
        guard.on_nonfinite = GG_NONFINITE_ERROR;
        decision = decide(triples, 3, &guard);
        GG_CHECK(decision.action == GG_REFUSED && decision.reason == GG_REASON_NONFINITE);
      }
}

Test(policy, kinds_of_all_tensors_are_gathered, .timeout = 10) {
  gg_triple triples[] = {triple_of(1, 1, GG_KIND_NAN), single(4), triple_of(0, 0, GG_KIND_OVERFLOW)};
  GG_CHECK(decide(triples, 3, NULL).nonfinite == (GG_KIND_NAN | GG_KIND_OVERFLOW));
}

Test(policy, without_options_nothing_is_clipped_and_bad_values_skip, .timeout = 10) {
  gg_triple triple = single(1e30f);
  gg_decision decision = decide(&triple, 1, NULL);
  GG_CHECK(decision.action == GG_APPLIED && decision.clip_coefficient == 1);
  triple.flags = GG_KIND_INF;
  GG_CHECK(decide(&triple, 1, NULL).action == GG_SKIPPED);
}

static void refuse(gg_guard_options guard, const char* mentions) {
  gg_triple triple = single(1);
  gg_decision decision = GG_DECISION_INIT;
  gg_error error = GG_ERROR_INIT;
  gg_test_case("max_norm %g, epsilon %g, policy %d", guard.max_norm, guard.clip_epsilon, (int)guard.on_nonfinite);
  GG_CHECK(gg_decide(&triple, 1, NULL, &guard, &decision, &error) == GG_ERROR_ARGUMENT);
  GG_CHECK(error.status == GG_ERROR_ARGUMENT);
  gg_test_mentions(error.message, mentions);
  GG_CHECK(gg_decide(&triple, 1, NULL, &guard, &decision, NULL) == GG_ERROR_ARGUMENT);
}

Test(policy, options_out_of_range_are_argument_errors, .timeout = 10) {
  const double bad[] = {-1, -1e-300, (double)NAN, (double)INFINITY, -(double)INFINITY};
  for (int i = 0; i < 5; i++) {
    refuse(limit(bad[i], 1e-6), "max_norm");
    refuse(limit(1, bad[i]), "epsilon");
  }
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.on_nonfinite = (gg_nonfinite_policy)7;
  refuse(guard, "nonfinite");
}

Test(policy, deciding_is_a_pure_function, .timeout = 10) {
  gg_random random = gg_random_stream(14);
  gg_triple triples[64], before[64];
  for (int i = 0; i < 64; i++) triples[i] = single(gg_random_float(&random, GG_WHOLE_RANGE));
  memcpy(before, triples, sizeof before);
  gg_guard_options guard = limit(1, 1e-6);
  gg_decision first = decide(triples, 64, &guard), second = decide(triples, 64, &guard);
  gg_test_same_bytes("triples", triples, before, sizeof before);
  GG_CHECK(first.norm == second.norm && first.clip_coefficient == second.clip_coefficient &&
           first.factor1 == second.factor1 && first.factor2 == second.factor2);
}

Test(policy, the_norm_of_modelled_tensors_is_within_2e_7_of_exact, .timeout = 60) {
  gg_random random = gg_random_stream(15);
  float values[5000];
  for (int round = 0; round < 300; round++) {
    gg_magnitudes kind = (gg_magnitudes)(round % GG_MAGNITUDES_FINITE);
    uint64_t count = 1 + gg_random_below(&random, 5000);
    gg_random_fill(&random, kind, GG_F32, values, count);
    long double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += (long double)values[i] * (long double)values[i];
    gg_triple triple = gg_model_reduce(values, GG_F32, count, 1);
    gg_test_case("magnitudes of kind %d, %llu elements", (int)kind, (unsigned long long)count);
    gg_test_near("norm", decide(&triple, 1, NULL).norm, (double)sqrtl(sum), 2e-7, 0);
  }
}
