/* Writes the JSON file. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "bench/result.h"

/* The build names the revision of a git checkout; there is none in a source archive. */
#ifndef GG_REVISION
#define GG_REVISION ""
#endif

static json_t* samples_of(const gg_bench_result* result) {
  json_t* list = json_array();
  for (size_t i = 0; i < result->sample_count; i++) json_array_append_new(list, json_real(result->samples[i] * 1e3));
  return list;
}

static json_t* digests_of(const gg_bench_run* run, const gg_bench_result* result) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < run->options->batches; i++) {
    char text[20];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)result->digests[i]);
    json_array_append_new(list, json_string(text));
  }
  return list;
}

static json_t* row_of(const gg_bench_run* run, const gg_bench_result* r) {
  double floor_time = gg_bench_floor(r);
  json_t* row = json_object();
  json_object_set_new(row, "device", json_string(r->info.id));
  json_object_set_new(row, "backend", json_string(r->info.backend));
  json_object_set_new(row, "kind", json_string(r->info.kind == GG_DEVICE_GPU ? "gpu" : "cpu"));
  json_object_set_new(row, "name", json_string(r->info.name));
  json_object_set_new(row, "compute_units", json_integer(r->info.compute_units));
  json_object_set_new(row, "driver", json_string(r->info.driver));
  json_object_set_new(row, "kernel", json_string(r->kernel));
  json_object_set_new(row, "path", json_string(gg_bench_path_names[r->path]));
  json_object_set_new(row, "bytes", json_integer((json_int_t)r->bytes));
  json_object_set_new(row, "traffic_bytes", json_integer((json_int_t)r->traffic));
  json_object_set_new(row, "copy_gb_per_s", json_real(r->copy_rate / 1e9));
  json_object_set_new(row, "floor_ms", json_real(floor_time * 1e3));
  json_object_set_new(row, "median_ms", json_real(r->median * 1e3));
  json_object_set_new(row, "min_ms", json_real(r->least * 1e3));
  json_object_set_new(row, "max_ms", json_real(r->most * 1e3));
  json_object_set_new(row, "first_ms", json_real(r->first * 1e3));
  json_object_set_new(row, "ratio", json_real(r->median / floor_time));
  json_object_set_new(row, "gb_per_s", json_real((double)r->traffic / r->median / 1e9));
  json_object_set_new(row, "reduction_launches", json_integer(r->reduction_launches));
  json_object_set_new(row, "update_launches", json_integer(r->update_launches));
  json_object_set_new(row, "scratch_bytes", json_integer((json_int_t)r->scratch_bytes));
  json_object_set_new(row, "samples_ms", samples_of(r));
  json_object_set_new(row, "digests", digests_of(run, r));
  return row;
}

static json_t* settings_of(const gg_bench_run* run) {
  const gg_bench_options* options = run->options;
  json_t* settings = json_object();
  json_object_set_new(settings, "shapes", json_string(options->shapes.name));
  json_object_set_new(settings, "tensors", json_integer((json_int_t)options->shapes.count));
  json_object_set_new(settings, "elements", json_integer((json_int_t)run->elements));
  json_object_set_new(settings, "dtype", json_string(gg_dtype_name(options->dtype)));
  json_object_set_new(settings, "amsgrad", json_boolean(options->amsgrad));
  json_object_set_new(settings, "mode", json_string(options->mode == GG_IN_PLACE ? "in-place" : "out-of-place"));
  json_object_set_new(settings, "samples", json_integer(options->samples));
  json_object_set_new(settings, "batches", json_integer(options->batches));
  json_object_set_new(settings, "warmup", json_integer(options->warmup));
  json_object_set_new(settings, "grad_scale", json_real(options->gradient_scale));
  json_object_set_new(settings, "max_norm", json_real(options->max_norm));
  json_object_set_new(settings, "alternating_devices", json_boolean(run->alternating));
  json_object_set_new(settings, "seed", json_integer((json_int_t)options->seed));
  return settings;
}

static json_t* machine_now(void) {
  json_t* machine = json_object();
  struct utsname name;
  if (uname(&name) == 0) {
    json_object_set_new(machine, "system", json_string(name.sysname));
    json_object_set_new(machine, "release", json_string(name.release));
    json_object_set_new(machine, "architecture", json_string(name.machine));
  }
  char text[32] = "";
  time_t now = time(NULL);
  struct tm parts;
  if (gmtime_r(&now, &parts) != NULL) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  json_object_set_new(machine, "time", json_string(text));
  return machine;
}

bool gg_bench_write_json(const gg_bench_run* run, const char* file, gg_problem* problem) {
  json_t* rows = json_array();
  for (size_t i = 0; i < run->count; i++) json_array_append_new(rows, row_of(run, &run->results[i]));
  json_t* document = json_object();
  json_object_set_new(document, "program", json_string("gradguard-bench"));
  json_object_set_new(document, "build", json_string(gg_build_description()));
  json_object_set_new(document, "revision", GG_REVISION[0] != '\0' ? json_string(GG_REVISION) : json_null());
  json_object_set_new(document, "machine", machine_now());
  json_object_set_new(document, "settings", settings_of(run));
  json_object_set_new(document, "same_bits", json_boolean(run->same));
  json_object_set_new(document, "rows", rows);
  int failed = document != NULL ? json_dump_file(document, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : -1;
  json_decref(document);
  return failed == 0 || gg_refuse(problem, GG_EXIT_FAILURE, "%s could not be written: %s", file, strerror(errno));
}
