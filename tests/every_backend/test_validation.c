/* The whole group is checked before any device work: one bad entry, and nothing is made; the error says which entry,
 * which tensor and why. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"

#define ELEMENTS 24
#define ENTRIES  3

/* Three entries, each tensor in a buffer of its own with room for 64 elements. */
typedef struct scene {
  gg_context* context;
  gg_buffer* buffers[ENTRIES][GG_ROLES];
  gg_entry entries[ENTRIES];
  gg_group_options options;
} scene;

static const int64_t shape[3] = {2, 3, 4};

static scene make_scene(gg_context* context, bool amsgrad) {
  scene made = {.context = context, .options = GG_GROUP_OPTIONS_INIT};
  static const char* const names[ENTRIES] = {"embedding", "layer.weight", "head.bias"};
  made.options.amsgrad = amsgrad;
  for (int i = 0; i < ENTRIES; i++) {
    made.entries[i] = (gg_entry)GG_ENTRY_INIT;
    made.entries[i].name = names[i];
    for (gg_role role = 0; role < GG_ROLES; role++) {
      if (role == GG_MAX_EXP_AVG_SQ && !amsgrad) continue;
      gg_dtype dtype = role == GG_MODEL_COPY ? GG_F16 : role == GG_GRADIENT ? (gg_dtype)(GG_F32 + i) : GG_F32;
      GG_OK_OR_FAIL(context, gg_buffer_create(context, 256, &made.buffers[i][role]));
      made.entries[i].tensors[role] = gg_tensor_contiguous(made.buffers[i][role], 0, dtype, 3, shape);
    }
  }
  return made;
}

static void free_scene(scene* used) {
  for (int i = 0; i < ENTRIES; i++)
    for (int role = 0; role < GG_ROLES; role++) gg_buffer_destroy(&used->buffers[i][role]);
}

static void accept(scene* used) {
  gg_group* group = NULL;
  GG_OK_OR_FAIL(used->context, gg_group_create(used->context, used->entries, ENTRIES, &used->options, &group));
  GG_CHECK(gg_group_count(group) == ENTRIES);
  gg_group_destroy(&group);
  GG_CHECK(group == NULL);
}

/* Refused with an argument error whose message has every one of the words. */
static void refuse(scene* used, const char* a, const char* b, const char* c) {
  gg_group* group = (gg_group*)used; /* must be set to NULL */
  gg_test_case("expecting: %s, %s, %s", a, b, c);
  GG_EXPECT_STATUS(used->context, gg_group_create(used->context, used->entries, ENTRIES, &used->options, &group),
                   GG_ERROR_ARGUMENT);
  GG_CHECK(group == NULL);
  const gg_error* error = gg_context_error(used->context);
  GG_CHECK(error->status == GG_ERROR_ARGUMENT);
  gg_test_mentions(error->message, a);
  gg_test_mentions(error->message, b);
  gg_test_mentions(error->message, c);
}

/* A tensor of the scene, to be spoilt and put back. */
#define SPOIL(used, entry, role, change, word)                               \
  do {                                                                       \
    gg_tensor* spoilt = &(used)->entries[entry].tensors[role];               \
    gg_tensor saved = *spoilt;                                               \
    change;                                                                  \
    refuse((used), (used)->entries[entry].name, gg_role_name(role), (word)); \
    *spoilt = saved;                                                         \
  } while (0)

GG_TEST_BACKENDS(validation, one_bad_entry_is_refused_and_named, 30) {
  scene used = make_scene(context, true);
  accept(&used);
  for (gg_role role = 0; role < GG_MODEL_COPY; role++) {
    SPOIL(&used, 1, role, spoilt->buffer = NULL, "missing");
    SPOIL(&used, 2, role, spoilt->dtype = (gg_dtype)9, "dtype");
    SPOIL(&used, 2, role, spoilt->rank = GG_MAX_RANK + 1, "rank");
    SPOIL(&used, 0, role, spoilt->shape[1] = -3, "negative");
    SPOIL(&used, 1, role, spoilt->strides[0] = 13, "contiguous");
    SPOIL(&used, 1, role, (spoilt->strides[1] = 1, spoilt->strides[2] = 3), "contiguous");
    SPOIL(&used, 2, role, spoilt->offset = 256, "buffer");
    SPOIL(&used, 2, role, spoilt->offset = UINT64_MAX - 3, "buffer");
    SPOIL(&used, 1, role, spoilt->offset = 1, "aligned");
  }
  for (gg_role role = 0; role < GG_ROLES; role++) {
    if (role == GG_PARAMETER) continue; /* what the others are compared with */
    SPOIL(&used, 1, role, spoilt->shape[0] = 3, "shape");
    SPOIL(
        &used, 2, role,
        (spoilt->rank = 2, spoilt->shape[0] = 6, spoilt->shape[1] = 4, spoilt->strides[0] = 4, spoilt->strides[1] = 1),
        "shape");
  }
  SPOIL(&used, 0, GG_EXP_AVG, spoilt->offset = 2, "aligned");
  SPOIL(&used, 0, GG_PARAMETER, spoilt->dtype = GG_F16, "dtype");
  SPOIL(&used, 0, GG_EXP_AVG, spoilt->dtype = GG_BF16, "dtype");
  SPOIL(&used, 0, GG_EXP_AVG_SQ, spoilt->dtype = GG_F16, "dtype");
  SPOIL(&used, 0, GG_MODEL_COPY, spoilt->dtype = GG_F32, "dtype");
  accept(&used);
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, sizes_that_overflow_are_refused, 30) {
  scene used = make_scene(context, false);
  for (gg_role role = 0; role <= GG_EXP_AVG_SQ; role++) {
    gg_tensor* tensor = &used.entries[1].tensors[role];
    int64_t huge[3] = {(int64_t)1 << 32, (int64_t)1 << 31, 2};
    *tensor = gg_tensor_contiguous(tensor->buffer, 0, tensor->dtype, 3, huge);
  }
  used.entries[1].tensors[GG_MODEL_COPY].buffer = NULL;
  gg_group* group = NULL;
  GG_EXPECT_STATUS(context, gg_group_create(context, used.entries, ENTRIES, &used.options, &group), GG_ERROR_ARGUMENT);
  gg_test_mentions(gg_context_error(context)->message, "layer.weight");
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, a_shape_that_is_missing_is_refused, 30) {
  scene used = make_scene(context, false);
  for (gg_role role = 0; role < GG_ROLES; role++) {
    gg_tensor* tensor = &used.entries[1].tensors[role];
    if (tensor->buffer) *tensor = gg_tensor_contiguous(tensor->buffer, 0, tensor->dtype, 2, NULL);
  }
  refuse(&used, "layer.weight", "parameter", "shape");
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, entries_that_would_not_be_aligned_are_refused, 30) {
  scene used = make_scene(context, false);
  used.entries[0].size += 4;
  gg_group* group = NULL;
  GG_EXPECT_STATUS(context, gg_group_create(context, used.entries, ENTRIES, &used.options, &group), GG_ERROR_ARGUMENT);
  gg_test_mentions(gg_context_error(context)->message, "multiple");
  used.entries[0].size -= 4;
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, amsgrad_state_is_there_if_and_only_if_it_is_asked_for, 30) {
  scene used = make_scene(context, true);
  used.options.amsgrad = false;
  refuse(&used, "embedding", "max_exp_avg_sq", "amsgrad");
  used.options.amsgrad = true;
  SPOIL(&used, 2, GG_MAX_EXP_AVG_SQ, spoilt->buffer = NULL, "amsgrad");
  accept(&used);
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, size_one_dimensions_with_odd_strides_are_contiguous, 30) {
  scene used = make_scene(context, false);
  for (gg_role role = 0; role < GG_ROLES; role++) {
    gg_tensor* tensor = &used.entries[0].tensors[role];
    if (!tensor->buffer) continue;
    int64_t with_ones[5] = {1, 6, 1, 4, 1};
    *tensor = gg_tensor_contiguous(tensor->buffer, 0, tensor->dtype, 5, with_ones);
    tensor->strides[0] = -77;
    tensor->strides[2] = (int64_t)role * 1000 + 5;
    tensor->strides[4] = 0;
  }
  accept(&used);
  SPOIL(&used, 0, GG_GRADIENT, spoilt->strides[1] = 5, "contiguous");
  for (gg_role role = 0; role < GG_ROLES; role++) { /* empty: strides are free anywhere */
    gg_tensor* tensor = &used.entries[2].tensors[role];
    if (!tensor->buffer) continue;
    int64_t empty[2] = {0, 7};
    *tensor = gg_tensor_contiguous(tensor->buffer, 0, tensor->dtype, 2, empty);
    tensor->strides[0] = 99;
    tensor->strides[1] = -1;
  }
  accept(&used);
  for (gg_role role = 0; role < GG_ROLES; role++) { /* rank 0 is one element */
    gg_tensor* tensor = &used.entries[1].tensors[role];
    if (tensor->buffer) *tensor = gg_tensor_contiguous(tensor->buffer, 0, tensor->dtype, 0, NULL);
  }
  accept(&used);
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, memory_that_is_written_appears_nowhere_else, 30) {
  scene used = make_scene(context, true);
  used.options.mode = GG_IN_PLACE;
  accept(&used);
  for (gg_role role = 0; role < GG_MODEL_COPY; role++) {
    if (role == GG_GRADIENT) continue;
    /* the whole tensor, in another entry and in its own */
    SPOIL(&used, 1, role, spoilt->buffer = used.buffers[0][GG_PARAMETER], "overlap");
    SPOIL(&used, 2, role, spoilt->buffer = used.buffers[2][GG_GRADIENT], "overlap");
    /* one element: the last of the one is the first of the other */
    SPOIL(&used, 1, role,
          (spoilt->buffer = used.buffers[0][GG_EXP_AVG], spoilt->offset = (ELEMENTS - 1) * sizeof(float)), "overlap");
    /* next to each other is fine */
    gg_tensor saved = used.entries[1].tensors[role];
    used.entries[1].tensors[role].buffer = used.buffers[0][GG_EXP_AVG];
    used.entries[1].tensors[role].offset = ELEMENTS * sizeof(float);
    accept(&used);
    used.entries[1].tensors[role] = saved;
  }
  SPOIL(&used, 1, GG_MODEL_COPY, spoilt->buffer = used.buffers[0][GG_PARAMETER], "overlap");
  SPOIL(&used, 1, GG_MODEL_COPY, spoilt->buffer = used.buffers[1][GG_GRADIENT], "overlap");
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, a_parameter_passed_twice_in_place_is_refused, 30) {
  scene used = make_scene(context, false);
  used.options.mode = GG_IN_PLACE;
  SPOIL(&used, 2, GG_PARAMETER, *spoilt = used.entries[0].tensors[GG_PARAMETER], "overlap");
  gg_test_mentions(gg_context_error(context)->message, "embedding");
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, gradients_may_be_shared_since_they_are_only_read, 30) {
  scene used = make_scene(context, false);
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    used.options.mode = mode;
    used.entries[1].tensors[GG_GRADIENT] = used.entries[0].tensors[GG_GRADIENT];
    accept(&used);
  }
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, a_buffer_of_another_context_is_refused, 30) {
  scene used = make_scene(context, false);
  gg_context* other = gg_test_another_context(context);
  gg_buffer* foreign = NULL;
  GG_OK_OR_FAIL(other, gg_buffer_create(other, 256, &foreign));
  SPOIL(&used, 1, GG_EXP_AVG, spoilt->buffer = foreign, "context");
  SPOIL(&used, 2, GG_GRADIENT, spoilt->buffer = foreign, "context");
  gg_tensor tensor = gg_tensor_contiguous(foreign, 0, GG_F32, 3, shape);
  gg_report report = GG_REPORT_INIT;
  GG_EXPECT_STATUS(context, gg_gradient_stats(context, &tensor, 1, 1, &report, NULL), GG_ERROR_ARGUMENT);
  gg_test_mentions(gg_context_error(context)->message, "context");
  gg_buffer_destroy(&foreign);
  gg_context_destroy(&other);
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, a_step_out_of_range_is_refused, 30) {
  scene used = make_scene(context, false);
  used.entries[1].step = (uint64_t)GG_STEP_MAX + 1;
  refuse(&used, "layer.weight", "step", "step");
  used.entries[1].step = GG_STEP_MAX;
  accept(&used); /* it may be held, not stepped */
  free_scene(&used);
}

GG_TEST_BACKENDS(validation, missing_arguments_and_struct_sizes_are_refused, 30) {
  scene used = make_scene(context, false);
  gg_group* group = NULL;
  GG_CHECK(gg_group_create(NULL, used.entries, ENTRIES, NULL, &group) == GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_group_create(context, NULL, ENTRIES, NULL, &group), GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_group_create(context, used.entries, ENTRIES, NULL, NULL), GG_ERROR_ARGUMENT);
  gg_entry entries[ENTRIES];
  memcpy(entries, used.entries, sizeof entries);
  entries[0].size = 0;
  GG_EXPECT_STATUS(context, gg_group_create(context, entries, ENTRIES, NULL, &group), GG_ERROR_ARGUMENT);
  gg_test_mentions(gg_context_error(context)->message, "size");
  used.options.size = 0;
  GG_EXPECT_STATUS(context, gg_group_create(context, used.entries, ENTRIES, &used.options, &group), GG_ERROR_ARGUMENT);
  used.options = (gg_group_options)GG_GROUP_OPTIONS_INIT;
  used.options.mode = (gg_update_mode)3;
  GG_EXPECT_STATUS(context, gg_group_create(context, used.entries, ENTRIES, &used.options, &group), GG_ERROR_ARGUMENT);
  GG_CHECK(group == NULL);
  GG_OK_OR_FAIL(context, gg_group_create(context, used.entries, ENTRIES, NULL, &group));
  gg_pending* pending = NULL;
  GG_CHECK(gg_adamw_step(NULL, NULL, &pending) == GG_ERROR_ARGUMENT);
  GG_CHECK(gg_guarded_adamw_step(NULL, NULL, NULL, &pending) == GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_adamw_step(group, NULL, NULL), GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_guarded_adamw_step(group, NULL, NULL, NULL), GG_ERROR_ARGUMENT);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  adamw.size = 4;
  GG_EXPECT_STATUS(context, gg_adamw_step(group, &adamw, &pending), GG_ERROR_ARGUMENT);
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.size = 0;
  GG_EXPECT_STATUS(context, gg_guarded_adamw_step(group, NULL, &guard, &pending), GG_ERROR_ARGUMENT);
  gg_tensor tensor;
  GG_EXPECT_STATUS(context, gg_group_tensor(group, ENTRIES, GG_PARAMETER, &tensor), GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_group_tensor(group, 0, (gg_role)GG_ROLES, &tensor), GG_ERROR_ARGUMENT);
  uint64_t step;
  GG_EXPECT_STATUS(context, gg_group_step(group, ENTRIES, &step), GG_ERROR_ARGUMENT);
  gg_group_destroy(&group);
  free_scene(&used);
}

/* An entry without a name is called by its number. */
GG_TEST_BACKENDS(validation, a_nameless_entry_is_named_by_its_index, 30) {
  scene used = make_scene(context, false);
  used.entries[2].name = NULL;
  used.entries[2].tensors[GG_GRADIENT].offset = 4096;
  refuse(&used, "entry", "2", "gradient");
  free_scene(&used);
}

/* Callers compiled against an older or newer header: the stride of the entries is entries[0].size. */
GG_TEST_BACKENDS(validation, entries_may_be_larger_than_this_build_knows, 30) {
  struct newer {
    gg_entry entry;
    uint64_t future[3];
  } newer[ENTRIES];
  scene used = make_scene(context, false);
  memset(newer, 0xee, sizeof newer);
  for (int i = 0; i < ENTRIES; i++) {
    newer[i].entry = used.entries[i];
    newer[i].entry.size = sizeof newer[i];
    newer[i].entry.step = (uint64_t)i + 40;
  }
  gg_group* group = NULL;
  GG_OK_OR_FAIL(context, gg_group_create(context, &newer[0].entry, ENTRIES, NULL, &group));
  uint64_t step = 0;
  GG_OK_OR_FAIL(context, gg_group_step(group, 2, &step));
  GG_CHECK(step == 42);
  gg_group_destroy(&group);
  free_scene(&used);
}

/* Found with the rest of the group, whatever the mode, and not by the first step. */
Test(validation, wrapped_memory_off_its_elements_is_refused_and_named_cpu, .timeout = 30) {
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  if (gg_context_create("cpu", NULL, &context, &error) != GG_OK) gg_test_fail("%s", error.message);
  _Alignas(256) static unsigned char memory[512];
  scene used = make_scene(context, true);
  for (gg_role role = 0; role < GG_ROLES; role++) {
    gg_buffer* odd = NULL;
    GG_OK_OR_FAIL(context, gg_buffer_wrap_host(context, memory + 1, 256, &odd));
    for (int mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
      used.options.mode = (gg_update_mode)mode;
      SPOIL(&used, 1, role, spoilt->buffer = odd, "aligned");
    }
    gg_buffer_destroy(&odd);
  }
  accept(&used);
  free_scene(&used);
  gg_context_destroy(&context);
}
