/* Random groups, fresh in every run; the seed is printed, and GG_TEST_SEED brings a run back. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

static gg_random seeded(uint64_t salt) {
  fprintf(stderr, "GG_TEST_SEED=0x%" PRIx64 "\n", gg_random_seed());
  return gg_random_stream(salt);
}

/* Mostly small tensors, some around the borders of tiles and blocks, now and then a large or an empty one. */
static uint64_t random_size(gg_random* random) {
  switch (gg_random_below(random, 8)) {
    case 0:
      return 0;
    case 1:
      return 1 + gg_random_below(random, 16);
    case 2:
      return 2040 + gg_random_below(random, 16);
    case 3:
      return 65530 + gg_random_below(random, 12);
    case 4:
      return 1 + gg_random_below(random, 100000);
    default:
      return 1 + gg_random_below(random, 5000);
  }
}

static gg_trial* random_trial(gg_random* random, gg_magnitudes kind) {
  gg_trial_spec specs[12];
  size_t count = 1 + gg_random_below(random, 12);
  for (size_t i = 0; i < count; i++) {
    specs[i] = (gg_trial_spec){.elements = random_size(random),
                               .gradient = (gg_dtype)(GG_F32 + gg_random_below(random, 3)),
                               .shift = (uint32_t)gg_random_below(random, 9),
                               .step = gg_random_below(random, 3) ? gg_random_below(random, 1000) : 0};
    if (gg_random_below(random, 2)) specs[i].model = (gg_dtype)(GG_F16 + gg_random_below(random, 2));
  }
  gg_update_mode mode = gg_random_below(random, 2) ? GG_IN_PLACE : GG_OUT_OF_PLACE;
  gg_trial* trial = gg_trial_create(specs, count, mode, gg_random_below(random, 2));
  gg_trial_fill(trial, random, kind);
  return trial;
}

static void random_options(gg_random* random, gg_adamw_options* adamw, gg_guard_options* guard) {
  *adamw = (gg_adamw_options)GG_ADAMW_OPTIONS_INIT;
  *guard = (gg_guard_options)GG_GUARD_OPTIONS_INIT;
  adamw->learning_rate = pow(10, gg_random_between(random, -6, 0));
  adamw->beta1 = 1 - pow(10, gg_random_between(random, -3, 0));
  adamw->beta2 = 1 - pow(10, gg_random_between(random, -7, 0));
  adamw->epsilon = pow(10, gg_random_between(random, -12, -2));
  adamw->weight_decay = gg_random_below(random, 2) ? pow(10, gg_random_between(random, -4, 0)) : 0;
  adamw->gradient_scale =
      gg_random_below(random, 2) ? ldexp(1, (int)gg_random_below(random, 20)) : gg_random_between(random, 0.5, 5000);
  adamw->maximize = gg_random_below(random, 2);
  guard->clip = gg_random_below(random, 4);
  guard->max_norm = gg_random_below(random, 8) ? pow(10, gg_random_between(random, -40, 3)) : 0;
  guard->clip_epsilon = gg_random_below(random, 2) ? 1e-6 : 0;
}

GG_TEST_BACKENDS(properties, random_groups_step_as_the_scalar_model_does, 100) {
  gg_test_needs_exact(context);
  gg_random random = seeded(61);
  for (int round = 0; round < 24; round++) {
    gg_magnitudes kind = (gg_magnitudes)gg_random_below(&random, GG_MAGNITUDES_FINITE + 1);
    gg_trial* trial = random_trial(&random, kind);
    gg_trial_open(trial, context);
    for (int step = 0; step < 2; step++) {
      gg_adamw_options adamw;
      gg_guard_options guard;
      random_options(&random, &adamw, &guard);
      bool plain = gg_random_below(&random, 5) == 0 && kind != GG_NONFINITE;
      gg_test_case("round %d, step %d: %zu tensors of kind %d, %s, amsgrad %d, plain %d, clip %d to %g, scale %g",
                   round, step, trial->count, (int)kind, trial->mode == GG_IN_PLACE ? "in place" : "out of place",
                   trial->amsgrad, plain, guard.clip, guard.max_norm, adamw.gradient_scale);
      gg_trial_step(trial, &adamw, plain ? NULL : &guard);
      gg_trial_check(trial);
    }
    gg_trial_destroy(&trial);
  }
}

/* Statistics of the gradients of a trial that is open. */
static gg_report measure(gg_trial* trial, double scale, gg_tensor_report* per_tensor, bool reversed) {
  gg_tensor tensors[12];
  for (size_t i = 0; i < trial->count; i++) {
    size_t place = reversed ? trial->count - 1 - i : i;
    GG_OK_OR_FAIL(trial->context, gg_group_tensor(trial->group, i, GG_GRADIENT, &tensors[place]));
  }
  gg_report report = GG_REPORT_INIT;
  GG_OK_OR_FAIL(trial->context, gg_gradient_stats(trial->context, tensors, trial->count, scale, &report, per_tensor));
  return report;
}

GG_TEST_BACKENDS(properties, a_tensors_statistics_do_not_depend_on_its_neighbours, 60) {
  gg_random random = seeded(62);
  for (int round = 0; round < 10; round++) {
    gg_trial* trial = random_trial(&random, (gg_magnitudes)(round % 7));
    gg_trial_open(trial, context);
    gg_tensor_report forward[12], backward[12], alone;
    gg_report a = measure(trial, 3, forward, false), b = measure(trial, 3, backward, true);
    gg_test_case("round %d", round);
    gg_test_near("norm of the group in another order", b.norm, a.norm, 1e-14, 0);
    GG_CHECK(a.max_abs == b.max_abs && a.nonfinite == b.nonfinite);
    for (size_t i = 0; i < trial->count; i++) {
      gg_test_same_bytes("reversed", &backward[trial->count - 1 - i], &forward[i], sizeof forward[i]);
      gg_tensor tensor;
      gg_report report = GG_REPORT_INIT;
      GG_OK_OR_FAIL(context, gg_group_tensor(trial->group, i, GG_GRADIENT, &tensor));
      GG_OK_OR_FAIL(context, gg_gradient_stats(context, &tensor, 1, 3, &report, &alone));
      gg_test_same_bytes("alone", &alone, &forward[i], sizeof alone);
    }
    gg_trial_destroy(&trial);
  }
}

GG_TEST_BACKENDS(properties, a_loss_scale_of_a_power_of_two_scales_the_norm_exactly, 60) {
  gg_random random = seeded(63);
  gg_trial* trial = random_trial(&random, GG_ORDINARY); /* far from the range's ends */
  gg_trial_open(trial, context);
  gg_tensor_report plain[12], scaled[12];
  gg_report base = measure(trial, 1, plain, false);
  for (int power = -20; power <= 20; power += 4) {
    gg_report report = measure(trial, ldexp(1, power), scaled, false);
    gg_test_case("scale 2^%d", power);
    GG_CHECK(report.norm == ldexp(base.norm, -power) && report.max_abs == ldexp(base.max_abs, -power));
    for (size_t i = 0; i < trial->count; i++) GG_CHECK(scaled[i].norm == ldexp(plain[i].norm, -power));
  }
  gg_trial_destroy(&trial);
}

static long double exact_norm(const gg_trial_entry* entry, float inverse) {
  long double sum = 0;
  for (uint64_t i = 0; i < entry->spec.elements; i++) {
    long double x = (long double)(gg_model_element(entry->gradient, entry->spec.gradient, i) * inverse);
    sum += x * x; /* long double has the exponents for it */
  }
  return sqrtl(sum);
}

GG_TEST_BACKENDS(properties, the_norm_is_within_2e_7_of_exact_arithmetic, 60) {
  gg_random random = seeded(64);
  for (int round = 0; round < 18; round++) {
    gg_magnitudes kind = (gg_magnitudes)(round % GG_MAGNITUDES_FINITE);
    gg_trial* trial = random_trial(&random, kind);
    gg_trial_open(trial, context);
    gg_tensor_report per_tensor[12];
    gg_report report = measure(trial, 1, per_tensor, false);
    long double sum = 0;
    for (size_t i = 0; i < trial->count; i++) {
      long double norm = exact_norm(&trial->entries[i], 1);
      gg_test_case("round %d, tensor %zu, kind %d", round, i, (int)kind);
      gg_test_near("norm of a tensor", per_tensor[i].norm, (double)norm, 2e-7, 0);
      sum += norm * norm;
    }
    gg_test_near("norm of the group", report.norm, (double)sqrtl(sum), 2e-7, 0);
    gg_trial_destroy(&trial);
  }
}
