/* Inputs that broke other guarded steps (tests/data/cases.json), on every backend, out of place and in place. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cases.h"
#include "tests/support/compare.h"
#include "tests/support/device.h"

/* Relative tolerances against exact arithmetic, and an absolute one for results that are subnormal in FP32. */
#define NORM_TOLERANCE        2e-7
#define COEFFICIENT_TOLERANCE 2e-7
#define PARAMETER_TOLERANCE   1e-6
#define MOMENT_TOLERANCE      2e-6
#define SUBNORMAL_TOLERANCE   3e-45

static void check_report(const json_t* expect, const gg_report* report) {
  const char *action = gg_case_text(expect, "action"), *reason = gg_case_text(expect, "reason");
  gg_action want = strcmp(action, "applied") == 0   ? GG_APPLIED
                   : strcmp(action, "skipped") == 0 ? GG_SKIPPED
                                                    : GG_REFUSED;
  GG_CHECK(report->action == want);
  gg_reason why = GG_REASON_NONE;
  if (reason) {
    why = strcmp(reason, "requested") == 0 ? GG_REASON_REQUESTED
          : strcmp(reason, "empty") == 0   ? GG_REASON_EMPTY
                                           : GG_REASON_NONFINITE;
  }
  GG_CHECK(report->reason == why);
  if (json_object_get(expect, "norm"))
    gg_test_near("norm", report->norm, gg_case_number(expect, "norm", 0), NORM_TOLERANCE, 0);
  if (json_object_get(expect, "max_abs"))
    gg_test_near("largest magnitude", report->max_abs, gg_case_number(expect, "max_abs", 0), NORM_TOLERANCE, 0);
  gg_test_near("clip coefficient", report->clip_coefficient, gg_case_number(expect, "clip_coefficient", 1),
               COEFFICIENT_TOLERANCE, 0);
  const json_t* per_tensor = json_object_get(expect, "per_tensor");
  GG_CHECK(!per_tensor || report->per_tensor);
  for (size_t i = 0; i < json_array_size(per_tensor); i++) {
    const json_t* want_tensor = json_array_get(per_tensor, i);
    const gg_tensor_report* got = &report->per_tensor[i];
    gg_test_near("norm of a tensor", got->norm, gg_case_number(want_tensor, "norm", 0), NORM_TOLERANCE, 0);
    gg_test_near("largest magnitude of a tensor", got->max_abs, gg_case_number(want_tensor, "max_abs", 0),
                 NORM_TOLERANCE, 0);
    GG_CHECK(got->nonfinite == gg_case_kinds(json_object_get(want_tensor, "nonfinite")));
  }
}

/* The sampled elements of one tensor after an applied step. */
static void check_values(const gg_trial* trial, const json_t* after) {
  static const char* const names[] = {"parameter", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  static const gg_role roles[] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ, GG_MAX_EXP_AVG_SQ};
  size_t tensor = (size_t)json_integer_value(json_object_get(after, "tensor"));
  uint64_t step = 0;
  GG_OK_OR_FAIL(trial->context, gg_group_step(trial->group, tensor, &step));
  GG_CHECK(step == (uint64_t)json_integer_value(json_object_get(after, "step")));
  const json_t* samples = json_object_get(after, "at");
  float* values = calloc(trial->entries[tensor].spec.elements + 1, sizeof *values);
  GG_CHECK(values != NULL);
  for (int s = 0; s < (trial->amsgrad ? 4 : 3); s++) {
    gg_trial_read(trial, tensor, roles[s], values);
    for (size_t i = 0; i < json_array_size(samples); i++) {
      const json_t* sample = json_array_get(samples, i);
      if (!json_object_get(sample, names[s])) continue;
      size_t index = (size_t)json_integer_value(json_object_get(sample, "index"));
      gg_test_near(names[s], (double)values[index], gg_case_number(sample, names[s], 0),
                   s == 0 ? PARAMETER_TOLERANCE : MOMENT_TOLERANCE, SUBNORMAL_TOLERANCE);
    }
  }
  free(values);
}

static void run_case(gg_context* context, const json_t* one, gg_update_mode mode) {
  const json_t* expect = json_object_get(one, "expect");
  const char* action = gg_case_text(expect, "action");
  gg_adamw_options adamw;
  gg_guard_options guard;
  bool amsgrad;
  gg_case_options(one, &adamw, &guard, &amsgrad);
  gg_trial* trial = gg_case_trial(one, mode);
  gg_trial_open(trial, context);
  gg_status want = strcmp(action, "argument_error") == 0 ? GG_ERROR_ARGUMENT
                   : strcmp(action, "error") == 0        ? GG_ERROR_NONFINITE
                                                         : GG_OK;
  gg_pending* pending = NULL;
  GG_EXPECT_STATUS(context, gg_guarded_adamw_step(trial->group, &adamw, &guard, &pending), want);
  GG_CHECK((pending != NULL) == (want == GG_OK));
  if (want != GG_ERROR_ARGUMENT) {
    gg_report report = GG_REPORT_INIT;
    GG_OK_OR_FAIL(context, gg_group_report(trial->group, &report));
    check_report(expect, &report);
  }
  if (pending) GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
  const json_t* after = json_object_get(expect, "after");
  for (size_t i = 0; i < json_array_size(after); i++) check_values(trial, json_array_get(after, i));
  if (strcmp(action, "applied") != 0) gg_trial_check(trial); /* not one bit has changed */
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(cases, inputs_that_broke_others_give_the_exact_results, 60) {
  json_t* cases = gg_cases_load();
  GG_CHECK(json_array_size(cases) >= 40);
  for (size_t i = 0; i < json_array_size(cases); i++) {
    const json_t* one = json_array_get(cases, i);
    for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
      gg_test_case("%s, %s: %s", gg_case_text(one, "name"), mode == GG_IN_PLACE ? "in place" : "out of place",
                   gg_case_text(one, "about"));
      run_case(context, one, mode);
    }
  }
  json_decref(cases);
}
