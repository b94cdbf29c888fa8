#include "tests/support/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/compare.h"

/* The test programs are at build/VARIANT/tests/, three folders below the source tree. */
static json_t* load_beside_program(json_error_t* error) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
  if (length < 0) return NULL;
  path[length] = '\0';
  for (int levels = 0; levels < 4; levels++) {
    char* slash = strrchr(path, '/');
    if (slash) *slash = '\0';
  }
  strcat(path, "/tests/data/cases.json");
  return json_load_file(path, JSON_REJECT_DUPLICATES, error);
}

json_t* gg_cases_load(void) {
  json_error_t error;
  const char* folder = getenv("GG_TEST_DATA");
  char path[4096];
  snprintf(path, sizeof path, "%s/cases.json", folder && *folder ? folder : "tests/data");
  json_t* cases = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (!cases && !folder) cases = load_beside_program(&error);
  if (!cases) gg_test_fail("%s: line %d: %s (GG_TEST_DATA names the folder)", path, error.line, error.text);
  return cases;
}

const char* gg_case_text(const json_t* object, const char* key) {
  return json_string_value(json_object_get(object, key));
}

static double number_of(const json_t* value) {
  const char* text = json_string_value(value);
  if (!text) return json_number_value(value);
  if (strcmp(text, "nan") == 0) return NAN;
  if (strcmp(text, "inf") == 0) return INFINITY;
  if (strcmp(text, "-inf") == 0) return -INFINITY;
  gg_test_fail("\"%s\" is not a number", text);
}

double gg_case_number(const json_t* object, const char* key, double otherwise) {
  const json_t* value = json_object_get(object, key);
  return value ? number_of(value) : otherwise;
}

static bool is_true(const json_t* object, const char* key) { return json_is_true(json_object_get(object, key)); }

void gg_case_options(const json_t* one, gg_adamw_options* adamw, gg_guard_options* guard, bool* amsgrad) {
  const json_t* options = json_object_get(one, "options");
  *adamw = (gg_adamw_options)GG_ADAMW_OPTIONS_INIT;
  *guard = (gg_guard_options)GG_GUARD_OPTIONS_INIT;
  adamw->learning_rate = gg_case_number(options, "learning_rate", 1e-3);
  adamw->beta1 = gg_case_number(options, "beta1", 0.9);
  adamw->beta2 = gg_case_number(options, "beta2", 0.999);
  adamw->epsilon = gg_case_number(options, "epsilon", 1e-8);
  adamw->weight_decay = gg_case_number(options, "weight_decay", 0);
  adamw->gradient_scale = gg_case_number(options, "gradient_scale", 1);
  adamw->maximize = is_true(options, "maximize");
  adamw->skip_update = is_true(options, "skip_update");
  *amsgrad = is_true(options, "amsgrad");
  guard->clip = json_object_get(options, "max_norm") != NULL;
  guard->max_norm = gg_case_number(options, "max_norm", 1);
  guard->clip_epsilon = gg_case_number(options, "clip_epsilon", 1e-6);
  const char* policy = gg_case_text(options, "on_nonfinite");
  if (policy && strcmp(policy, "error") == 0) guard->on_nonfinite = GG_NONFINITE_ERROR;
}

static gg_dtype dtype_named(const char* name) {
  for (gg_dtype dtype = GG_F32; dtype <= GG_BF16; dtype++)
    if (name && strcmp(name, gg_dtype_name(dtype)) == 0) return dtype;
  gg_test_fail("no dtype \"%s\"", name ? name : "");
}

/* Numbers are rounded to the dtype; "0x.." gives its bits. */
static void set_value(gg_trial_entry* entry, uint64_t index, const json_t* value) {
  const char* text = json_string_value(value);
  bool raw = text && strncmp(text, "0x", 2) == 0;
  uint32_t bits = raw ? (uint32_t)strtoul(text, NULL, 16) : 0;
  float number = raw ? 0 : (float)number_of(value);
  GG_CHECK(index < entry->spec.elements);
  if (entry->spec.gradient == GG_F32) {
    memcpy((float*)entry->gradient + index, raw ? (void*)&bits : (void*)&number, 4);
  } else {
    uint16_t half = entry->spec.gradient == GG_F16 ? gg_model_to_half(number) : gg_model_to_bfloat(number);
    ((uint16_t*)entry->gradient)[index] = raw ? (uint16_t)bits : half;
  }
}

static void fill_gradient(gg_trial_entry* entry, const json_t* tensor) {
  const json_t *values = json_object_get(tensor, "values"), *all = json_object_get(tensor, "all");
  for (uint64_t i = 0; i < entry->spec.elements; i++) {
    const json_t* value = values ? json_array_get(values, i) : all;
    if (value) set_value(entry, i, value);
  }
  json_t* exceptions = json_object_get(tensor, "except");
  const char* index;
  json_t* value;
  json_object_foreach(exceptions, index, value) set_value(entry, strtoull(index, NULL, 10), value);
}

/* One number for all elements or a list of them. */
static void fill_state(float* values, uint64_t elements, const json_t* given, float otherwise) {
  for (uint64_t i = 0; i < elements; i++) {
    const json_t* value = json_is_array(given) ? json_array_get(given, i) : given;
    values[i] = value ? (float)number_of(value) : otherwise;
  }
}

gg_trial* gg_case_trial(const json_t* one, gg_update_mode mode) {
  static const char* const states[] = {"parameter", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  const json_t* tensors = json_object_get(one, "tensors");
  size_t count = json_array_size(tensors);
  bool amsgrad = is_true(json_object_get(one, "options"), "amsgrad");
  gg_trial_spec* specs = calloc(count, sizeof *specs);
  GG_CHECK(specs != NULL);
  for (size_t i = 0; i < count; i++) {
    const json_t* tensor = json_array_get(tensors, i);
    specs[i].elements = (uint64_t)json_integer_value(json_object_get(tensor, "elements"));
    specs[i].gradient = dtype_named(gg_case_text(tensor, "gradient"));
    specs[i].step = (uint64_t)json_integer_value(json_object_get(tensor, "step"));
  }
  gg_trial* trial = gg_trial_create(specs, count, mode, amsgrad);
  free(specs);
  for (size_t i = 0; i < count; i++) {
    const json_t* tensor = json_array_get(tensors, i);
    gg_trial_entry* entry = &trial->entries[i];
    fill_gradient(entry, tensor);
    for (int s = 0; s < (amsgrad ? 4 : 3); s++)
      fill_state(entry->states[s], entry->spec.elements, json_object_get(tensor, states[s]), s == 0 ? 1.0f : 0.0f);
  }
  return trial;
}

uint32_t gg_case_kinds(const json_t* list) {
  uint32_t kinds = 0;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char* name = json_string_value(json_array_get(list, i));
    kinds |= strcmp(name, "nan") == 0 ? GG_KIND_NAN : strcmp(name, "inf") == 0 ? GG_KIND_INF : GG_KIND_OVERFLOW;
  }
  return kinds;
}
