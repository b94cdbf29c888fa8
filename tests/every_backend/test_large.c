/* Tensors of more than 2^31 and 2^32 elements, where the device has twice the memory for them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

/* A half for the gradient, FP32 for parameter and moments. */
#define BYTES_PER_ELEMENT 14

static void only_if_possible(gg_context* context, uint64_t elements) {
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  double needed = (double)elements * BYTES_PER_ELEMENT / 1e9, there = (double)info.memory_bytes / 1e9;
  if (2 * needed > there) cr_skip("%s has %.1f GB of memory, the tensors need %.1f GB", info.id, there, needed);
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

static uint16_t value_at(const sparse* tensor, uint64_t index) {
  for (size_t i = 0; i < tensor->count; i++)
    if (tensor->places[i] == index) return tensor->values[i];
  return 0;
}

static sparse around_boundaries(uint64_t elements) {
  sparse tensor = {.elements = elements};
  const uint64_t half = (uint64_t)1 << 31, whole = (uint64_t)1 << 32;
  place(&tensor, elements - 1, -84); /* first: the ends may be the boundaries */
  place(&tensor, elements - 2, 2);
  place(&tensor, 0, 3);
  place(&tensor, 1, 0.5f);
  place(&tensor, half - 1, 4);
  place(&tensor, half, -12);
  place(&tensor, whole - 1, 7);
  place(&tensor, whole, 9);
  place(&tensor, elements / 2 + 3, 1.5f);
  return tensor;
}

/* NULL if there is not enough free memory. */
static gg_buffer* filled(gg_context* context, uint64_t bytes) {
  gg_buffer* buffer = NULL;
  gg_status status = gg_buffer_create(context, bytes, &buffer);
  if (status == GG_ERROR_NO_MEMORY) return NULL;
  GG_OK_OR_FAIL(context, status);
  GG_OK_OR_FAIL(context, gg_buffer_fill(buffer, 0, bytes, 0));
  return buffer;
}

/* The model's parameter and moments of an element with this gradient. */
typedef struct state {
  float values[3];
} state;
static const gg_role roles[3] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ};

static state expected(uint16_t gradient, const gg_model_constants* constants) {
  state want = {{0}};
  gg_model_update(constants, &gradient, GG_F16, 1, &want.values[0], &want.values[1], &want.values[2], NULL);
  return want;
}

static void check_place(gg_buffer* const buffers[], uint64_t index, uint16_t gradient,
                        const gg_model_constants* constants) {
  state want = expected(gradient, constants), got;
  gg_test_case("element %" PRIu64, index);
  for (int i = 0; i < 3; i++)
    GG_CHECK(gg_buffer_download(buffers[roles[i]], index * sizeof(float), &got.values[i], sizeof(float)) == GG_OK);
  gg_test_same_floats("parameter and moments", got.values, want.values, 3, false);
}

/* The norm of everything that was written: what landed where it does not belong would show. */
static void check_whole(gg_context* context, const gg_entry* entry, const sparse* tensor,
                        const gg_model_constants* constants) {
  for (int i = 0; i < 3; i++) {
    double squares = 0, largest = 0;
    for (size_t k = 0; k < tensor->count; k++) {
      double value = expected(tensor->values[k], constants).values[i];
      squares += value * value;
      largest = fmax(largest, fabs(value));
    }
    gg_report report = GG_REPORT_INIT;
    GG_OK_OR_FAIL(context, gg_gradient_stats(context, &entry->tensors[roles[i]], 1, 1, &report, NULL));
    gg_test_case("%s of %" PRIu64 " elements", gg_role_name(roles[i]), tensor->elements);
    gg_test_near("norm", report.norm, sqrt(squares), 1e-6, 0);
    GG_CHECK(report.max_abs == largest && report.elements == tensor->elements);
  }
}

static gg_model_constants step_once(gg_context* context, gg_entry* entry, const sparse* tensor) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_report report = GG_REPORT_INIT;
  guard.clip = true;
  guard.max_norm = 10;
  double squares = 0;
  for (size_t i = 0; i < tensor->count; i++) squares += pow((double)gg_model_from_half(tensor->values[i]), 2);
  GG_OK_OR_FAIL(context, gg_adamw_once(context, entry, 1, false, &adamw, &guard, &report, NULL));
  gg_test_case("%" PRIu64 " elements", tensor->elements);
  gg_test_near("norm", report.norm, sqrt(squares), 2e-7, 0);
  GG_CHECK(report.max_abs == 84 && report.elements == tensor->elements && entry->step == 1);
  return gg_model_constants_of(&adamw, (float)report.clip_coefficient, 1, 1);
}

static void step_huge_tensor(gg_context* context, uint64_t elements) {
  only_if_possible(context, elements);
  sparse tensor = around_boundaries(elements);
  gg_buffer* buffers[GG_ROLES] = {NULL};
  gg_entry entry = GG_ENTRY_INIT;
  int64_t shape[1] = {(int64_t)elements};
  for (gg_role role = 0; role <= GG_EXP_AVG_SQ; role++) {
    gg_dtype dtype = role == GG_GRADIENT ? GG_F16 : GG_F32;
    buffers[role] = filled(context, elements * gg_dtype_bytes(dtype));
    if (!buffers[role]) gg_test_fail("%s", gg_context_error(context)->message);
    entry.tensors[role] = gg_tensor_contiguous(buffers[role], 0, dtype, 1, shape);
  }
  for (size_t i = 0; i < tensor.count; i++)
    GG_OK_OR_FAIL(context, gg_buffer_upload(buffers[GG_GRADIENT], tensor.places[i] * 2, &tensor.values[i], 2));
  gg_model_constants constants = step_once(context, &entry, &tensor);
  for (size_t i = 0; i < tensor.count; i++) {
    for (int beside = -2; beside <= 2; beside++) {
      uint64_t index = tensor.places[i] + (uint64_t)(int64_t)beside;
      if (index < elements) check_place(buffers, index, value_at(&tensor, index), &constants);
    }
  }
  check_whole(context, &entry, &tensor, &constants);
  for (int role = 0; role < GG_ROLES; role++) gg_buffer_destroy(&buffers[role]);
}

GG_TEST_BACKENDS(large, a_tensor_beyond_2_to_the_31_elements, 900) {
  step_huge_tensor(context, ((uint64_t)1 << 31) + 1);
}

GG_TEST_BACKENDS(large, a_tensor_beyond_2_to_the_32_elements, 900) {
  step_huge_tensor(context, ((uint64_t)1 << 32) + 1);
}
