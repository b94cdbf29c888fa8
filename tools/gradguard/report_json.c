#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gradguard/report.h"

/* JSON has no infinity: the string "inf" stands for it. */
static json_t* number(double value) { return isinf(value) ? json_string("inf") : json_real(value); }

static json_t* measured_number(const gg_result* result, double value) {
  return result->report->measured ? number(value) : json_null();
}

static json_t* text_or_null(const char* text) { return text == NULL ? json_null() : json_string(text); }

static json_t* kinds(uint32_t bits) {
  json_t* names = json_array();
  for (size_t i = 0; i < GG_KIND_NAMES; ++i) {
    if (bits & gg_kind_names[i].kind) json_array_append_new(names, json_string(gg_kind_names[i].name));
  }
  return names;
}

static json_t* shape(const gg_stored_tensor* tensor) {
  json_t* sizes = json_array();
  for (size_t i = 0; i < tensor->rank; ++i) json_array_append_new(sizes, json_integer(tensor->shape[i]));
  return sizes;
}

static void add_census(json_t* object, const gg_nonfinite_census* census) {
  json_t* counts = json_object();
  json_t* firsts = json_object();
  for (size_t i = 0; i < GG_VALUE_KINDS; ++i) {
    const uint64_t count = gg_census_count(census, gg_kind_names[i].kind);
    const uint64_t first = gg_census_first(census, gg_kind_names[i].kind);
    json_object_set_new(counts, gg_kind_names[i].name, json_integer((json_int_t)count));
    json_object_set_new(firsts, gg_kind_names[i].name, count == 0 ? json_null() : json_integer((json_int_t)first));
  }
  json_object_set_new(object, "nonfinite_count", counts);
  json_object_set_new(object, "first_index", firsts);
}

static json_t* tensors(const gg_result* result) {
  json_t* list = json_array();
  for (size_t i = 0; i < result->count; ++i) {
    const gg_stored_tensor* gradient = result->gradients[i];
    const gg_tensor_report* measured = result->report->per_tensor == NULL ? NULL : &result->report->per_tensor[i];
    json_t* object = json_object();
    json_object_set_new(object, "name", json_string(gradient->name));
    if (result->census != NULL) {
      json_object_set_new(object, "dtype", json_string(gradient->dtype));
      json_object_set_new(object, "shape", shape(gradient));
    }
    json_object_set_new(object, "elements", json_integer((json_int_t)gradient->elements));
    json_object_set_new(object, "norm", measured == NULL ? json_null() : measured_number(result, measured->norm));
    json_object_set_new(object, "max_abs", measured == NULL ? json_null() : measured_number(result, measured->max_abs));
    json_object_set_new(object, "nonfinite", kinds(measured == NULL ? 0 : measured->nonfinite));
    if (result->census != NULL) add_census(object, &result->census[i]);
    json_array_append_new(list, object);
  }
  return list;
}

static void add_measurement(json_t* object, const gg_result* result) {
  const gg_report* report = result->report;
  json_object_set_new(object, "norm", measured_number(result, report->norm));
  json_object_set_new(object, "max_abs", measured_number(result, report->max_abs));
  json_object_set_new(object, "nonfinite", kinds(report->nonfinite));
}

static void add_work(json_t* object, const gg_result* result) {
  const gg_report* report = result->report;
  json_object_set_new(object, "device", json_string(result->device->id));
  json_object_set_new(object, "backend", json_string(result->device->backend));
  json_object_set_new(object, "kernel", json_string(result->kernel));
  json_object_set_new(object, "reduction_launches", json_integer(report->reduction_launches));
  json_object_set_new(object, "update_launches", json_integer(report->update_launches));
  json_object_set_new(object, "readback_bytes", json_integer((json_int_t)report->readback_bytes));
  json_object_set_new(object, "scratch_bytes", json_integer((json_int_t)report->scratch_bytes));
}

/* Ends `object`. A value that could not be made (no memory) is missing from it, which the dump cannot see: `fields` is
 * how many there must be. */
static char* dump(json_t* object, size_t fields) {
  char* text = json_object_size(object) == fields ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(object);
  if (text == NULL) return NULL;
  const size_t length = strlen(text);
  char* line = realloc(text, length + 2);
  if (line == NULL) {
    free(text);
    return NULL;
  }
  memcpy(line + length, "\n", 2);
  return line;
}

char* gg_step_json(const gg_result* result) {
  const gg_report* report = result->report;
  json_t* object = json_object();
  json_object_set_new(object, "action", json_string(gg_action_text(report->action)));
  json_object_set_new(object, "reason", text_or_null(gg_reason_text(report->reason)));
  add_measurement(object, result);
  json_object_set_new(object, "clip_coefficient", number(report->clip_coefficient));
  json_object_set_new(object, "grad_scale", number(report->gradient_scale));
  json_object_set_new(object, "elements", json_integer((json_int_t)report->elements));
  json_object_set_new(object, "passed_through", json_integer((json_int_t)result->passed_through));
  json_object_set_new(object, "tensors", tensors(result));
  add_work(object, result);
  return dump(object, 17);
}

char* gg_inspect_json(const gg_result* result) {
  json_t* object = json_object();
  add_measurement(object, result);
  json_object_set_new(object, "grad_scale", number(result->report->gradient_scale));
  json_object_set_new(object, "elements", json_integer((json_int_t)result->report->elements));
  json_object_set_new(object, "tensors", tensors(result));
  add_work(object, result);
  return dump(object, 13);
}
