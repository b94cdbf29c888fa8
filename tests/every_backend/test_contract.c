/* Promises that are small enough to be read off one step, and that no other suite names. */
#include <math.h>
#include <string.h>

#include "host/context.h"
#include "kernels/geometry.h"
#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

Test(contract, defaults_are_those_of_the_definition, .timeout = 10) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  GG_CHECK(adamw.learning_rate == 1e-3 && adamw.beta1 == 0.9 && adamw.beta2 == 0.999);
  GG_CHECK(adamw.epsilon == 1e-8 && adamw.weight_decay == 1e-2 && adamw.gradient_scale == 1);
  GG_CHECK(!adamw.maximize && !adamw.skip_update);
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  GG_CHECK(!guard.clip && guard.clip_epsilon == 1e-6 && guard.on_nonfinite == GG_NONFINITE_SKIP);
  gg_group_options group = GG_GROUP_OPTIONS_INIT;
  GG_CHECK(group.mode == GG_OUT_OF_PLACE && !group.amsgrad);
}

Test(contract, a_tensor_has_at_most_1024_partial_triples, .timeout = 10) {
  for (uint64_t elements = 1; elements <= GG_MAX_ELEMENTS; elements *= 2)
    for (int off = -1; off <= 1; off++) {
      uint64_t size = elements + (uint64_t)(int64_t)off, range = (uint64_t)GG_LANES * gg_tiles_per_lane(size);
      uint32_t blocks = gg_reduce_blocks(size);
      if (size == 0 || size > GG_MAX_ELEMENTS) continue;
      GG_CHECK(blocks >= 1 && blocks <= GG_MAX_BLOCKS);
      GG_CHECK(blocks * range >= gg_tiles(size) && (blocks - 1) * range < gg_tiles(size));
    }
}

/* One element, stepped once; the values of each state before and after. */
typedef struct element {
  float parameter, exp_avg, exp_avg_sq, max_exp_avg_sq;
} element;

static element step_one(gg_context* context, element before, float gradient, const gg_adamw_options* adamw,
                        const gg_guard_options* guard, bool amsgrad) {
  gg_trial_spec spec = {.elements = 1};
  gg_trial* trial = gg_trial_create(&spec, 1, GG_IN_PLACE, amsgrad);
  float* states[4] = {&before.parameter, &before.exp_avg, &before.exp_avg_sq, &before.max_exp_avg_sq};
  for (int s = 0; s < (amsgrad ? 4 : 3); s++) trial->entries[0].states[s][0] = *states[s];
  ((float*)trial->entries[0].gradient)[0] = gradient;
  gg_trial_open(trial, context);
  gg_trial_step(trial, adamw, guard);
  gg_trial_read(trial, 0, GG_PARAMETER, &before.parameter);
  gg_trial_read(trial, 0, GG_EXP_AVG, &before.exp_avg);
  gg_trial_read(trial, 0, GG_EXP_AVG_SQ, &before.exp_avg_sq);
  if (amsgrad) gg_trial_read(trial, 0, GG_MAX_EXP_AVG_SQ, &before.max_exp_avg_sq);
  gg_trial_destroy(&trial);
  return before;
}

GG_TEST_BACKENDS(contract, weight_decay_applies_to_the_old_parameter, 30) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.learning_rate = 0.5;
  adamw.weight_decay = 0.5;
  /* Nothing but decay: 8 * (1 - 0.25). Then the Adam step of 0.5 on top, not under the decay. */
  GG_CHECK(step_one(context, (element){.parameter = 8}, 0, &adamw, NULL, false).parameter == 6);
  GG_CHECK(step_one(context, (element){.parameter = 8}, 1, &adamw, NULL, false).parameter == 5.5f);
}

GG_TEST_BACKENDS(contract, amsgrad_keeps_the_maximum_of_the_uncorrected_second_moment, 30) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  element after = step_one(context, (element){.parameter = 1}, 1, &adamw, NULL, true);
  GG_CHECK(after.exp_avg_sq == 0.001f && after.max_exp_avg_sq == 0.001f); /* corrected it would be 1 */
  after = step_one(context, (element){.parameter = 1, .max_exp_avg_sq = 0.5f}, 1, &adamw, NULL, true);
  GG_CHECK(after.exp_avg_sq == 0.001f && after.max_exp_avg_sq == 0.5f);
}

GG_TEST_BACKENDS(contract, nan_is_found_also_under_a_limit_of_zero, 30) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 0;
  element before = {.parameter = 3, .exp_avg = 1, .exp_avg_sq = 2}, after;
  after = step_one(context, before, NAN, &adamw, &guard, false);
  GG_CHECK(memcmp(&after, &before, sizeof after) == 0);
}

static gg_status no_unfused_clip(gg_device* device, gg_table* table, const gg_update_constants* constants,
                                 gg_error* error) {
  (void)device, (void)table, (void)constants, (void)error;
  gg_test_fail("a step has run the separate unscale-and-clip kernel");
  return GG_ERROR_STATE;
}

GG_TEST_BACKENDS(contract, no_step_runs_a_separate_clip_kernel, 30) {
  gg_backend without = *context->device->backend;
  const gg_backend* real = context->device->backend;
  without.unfused_clip = no_unfused_clip;
  context->device->backend = &without;
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.gradient_scale = 64;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 0.5;
  step_one(context, (element){.parameter = 3}, 640, &adamw, &guard, false);
  context->device->backend = real;
}
