/* Sizes beyond 2^31 and 2^32 elements, and ten thousand steps. They need a GPU with the memory for it and take
 * minutes, so they run only with GG_TEST_LARGE=1. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

static void only_if_asked(gg_context* context) {
  const char* asked = getenv("GG_TEST_LARGE");
  if (!asked || strcmp(asked, "1") != 0) cr_skip("GG_TEST_LARGE=1 runs it");
  GG_OK_OR_FAIL(context, gg_context_synchronize(context));
}

/* A tensor of zeros with a few halves at both sides of the boundaries. */
typedef struct sparse {
  uint64_t elements;
  uint64_t places[16];
  uint16_t values[16];
  size_t count;
} sparse;

static void place(sparse* tensor, uint64_t index, float value) {
  if (index >= tensor->elements) return;
  for (size_t i = 0; i < tensor->count; i++)
    if (tensor->places[i] == index) return;
  tensor->places[tensor->count] = index;
  tensor->values[tensor->count++] = gg_model_to_half(value);
}

static sparse around_boundaries(uint64_t elements) {
  sparse tensor = {.elements = elements};
  const uint64_t half = (uint64_t)1 << 31, whole = (uint64_t)1 << 32;
  place(&tensor, 0, 3);
  place(&tensor, 1, 0.5f);
  place(&tensor, half - 1, 4);
  place(&tensor, half, -12);
  place(&tensor, whole - 1, 7);
  place(&tensor, whole, 9);
  place(&tensor, elements - 2, 2);
  place(&tensor, elements - 1, -84);
  place(&tensor, elements / 2 + 3, 1.5f);
  return tensor;
}

static gg_buffer* filled(gg_context* context, uint64_t bytes) {
  gg_buffer* buffer = NULL;
  GG_OK_OR_FAIL(context, gg_buffer_create(context, bytes, &buffer));
  GG_OK_OR_FAIL(context, gg_buffer_fill(buffer, 0, bytes, 0));
  return buffer;
}

/* The state of one element against the model's. */
static void check_place(gg_buffer* const buffers[], uint64_t index, uint16_t gradient,
                        const gg_model_constants* constants) {
  float p = 0, m = 0, v = 0, got[3];
  gg_model_update(constants, &gradient, GG_F16, 1, &p, &m, &v, NULL);
  const float want[3] = {p, m, v};
  static const gg_role roles[3] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ};
  gg_test_case("element %" PRIu64, index);
  for (int i = 0; i < 3; i++)
    GG_CHECK(gg_buffer_download(buffers[roles[i]], index * sizeof(float), &got[i], sizeof(float)) == GG_OK);
  gg_test_same_floats("parameter and moments", got, want, 3, false);
}

static void step_huge_tensor(gg_context* context, uint64_t elements) {
  sparse tensor = around_boundaries(elements);
  gg_buffer* buffers[GG_ROLES] = {NULL};
  gg_entry entry = GG_ENTRY_INIT;
  int64_t shape[1] = {(int64_t)elements};
  for (gg_role role = 0; role <= GG_EXP_AVG_SQ; role++) {
    gg_dtype dtype = role == GG_GRADIENT ? GG_F16 : GG_F32;
    buffers[role] = filled(context, elements * gg_dtype_bytes(dtype));
    entry.tensors[role] = gg_tensor_contiguous(buffers[role], 0, dtype, 1, shape);
  }
  double squares = 0;
  for (size_t i = 0; i < tensor.count; i++) {
    GG_OK_OR_FAIL(context, gg_buffer_upload(buffers[GG_GRADIENT], tensor.places[i] * 2, &tensor.values[i], 2));
    squares += pow((double)gg_model_from_half(tensor.values[i]), 2);
  }
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_report report = GG_REPORT_INIT;
  guard.clip = true;
  guard.max_norm = 10;
  GG_OK_OR_FAIL(context, gg_adamw_once(context, &entry, 1, false, &adamw, &guard, &report, NULL));
  gg_test_case("%" PRIu64 " elements", elements);
  gg_test_near("norm", report.norm, sqrt(squares), 2e-7, 0);
  GG_CHECK(report.max_abs == 84 && report.elements == elements && entry.step == 1);
  gg_model_constants constants = gg_model_constants_of(&adamw, (float)report.clip_coefficient, 1, 1);
  for (size_t i = 0; i < tensor.count; i++) {
    check_place(buffers, tensor.places[i], tensor.values[i], &constants);
    if (tensor.places[i] >= 2) check_place(buffers, tensor.places[i] - 2, 0, &constants);
  }
  for (int role = 0; role < GG_ROLES; role++) gg_buffer_destroy(&buffers[role]);
}

static void huge_body(gg_context* context) {
  only_if_asked(context);
  step_huge_tensor(context, ((uint64_t)1 << 31) + 1);
  step_huge_tensor(context, ((uint64_t)1 << 32) + 1);
}

Test(large, tensors_beyond_2_to_the_32_elements_cuda, .timeout = 600) { gg_test_on("cuda", NULL, 0, huge_body); }

/* Pages of this process that are in memory. */
static long resident_pages(void) {
  long total = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  int fields = fscanf(file, "%ld %ld", &total, &resident);
  fclose(file);
  return fields == 2 ? resident : 0;
}

static void many_steps_body(gg_context* context) {
  only_if_asked(context);
  static const gg_trial_spec specs[] = {{.elements = 1000},
                                        {.elements = 3000, .gradient = GG_F16, .model = GG_F16, .shift = 1},
                                        {.elements = 70000, .gradient = GG_BF16, .step = 7}};
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_trial* trial = gg_trial_create(specs, 3, mode, true);
    gg_random random = gg_random_stream(71);
    gg_trial_fill(trial, &random, GG_ORDINARY);
    gg_trial_open(trial, context);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
    guard.clip = true;
    guard.max_norm = 0.5;
    uint64_t scratch = 0;
    long pages = 0;
    for (int step = 0; step < 10000; step++) {
      gg_trial_step(trial, &adamw, &guard);
      gg_report report = GG_REPORT_INIT;
      GG_OK_OR_FAIL(context, gg_group_report(trial->group, &report));
      if (step == 100) {
        scratch = report.scratch_bytes;
        pages = resident_pages();
      }
      if (step > 100) GG_CHECK(report.scratch_bytes == scratch);
    }
    long growth = (resident_pages() - pages) * sysconf(_SC_PAGESIZE);
    if (growth > 4 << 20) gg_test_fail("host memory grew by %ld bytes over 9900 steps", growth);
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
}

Test(large, ten_thousand_steps_keep_the_bits_and_the_memory_cuda, .timeout = 600) {
  gg_test_on("cuda", NULL, 0, many_steps_body);
}
Test(large, ten_thousand_steps_keep_the_bits_and_the_memory_cpu, .timeout = 600) {
  gg_test_on("cpu", NULL, 0, many_steps_body);
}
