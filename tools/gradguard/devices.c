/* `gradguard devices`: lists the devices, what they support, and why one is unavailable. */
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gradguard/command.h"
#include "tools/gradguard/report.h"

#define COMMAND "gradguard devices"

static const char help[] =
    "usage: gradguard devices [--report text|json]\n"
    "\n"
    "Lists every device of every backend in this build, what it can do and, for one that cannot be used, why.\n"
    "The names in the first column are what --device takes.\n"
    "\n"
    "  --report text|json    form of the list on stdout (text)\n"
    "  --help                this text\n"
    "\n"
    "Exit status: 0 listed, 2 bad arguments, 1 anything else.\n";

static const struct option options[] = {
    {"report", required_argument, NULL, 'r'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

static const char* kind_text(gg_device_kind kind) {
  switch (kind) {
    case GG_DEVICE_CPU:
      return "cpu";
    case GG_DEVICE_GPU:
      return "gpu";
    case GG_DEVICE_OTHER:
      return "other";
    default:
      return "none";
  }
}

/* The list can grow between asking for its length and reading it, hence the loop. */
static bool list_devices(gg_device_info** devices, size_t* count, gg_problem* problem) {
  size_t capacity = 16;
  for (;;) {
    gg_error error = GG_ERROR_INIT;
    *devices = calloc(capacity, sizeof **devices);
    if (*devices == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory");
    for (size_t i = 0; i < capacity; ++i) (*devices)[i].size = (uint32_t)sizeof **devices;
    const gg_status status = gg_devices(*devices, capacity, count, &error);
    if (status == GG_OK && *count <= capacity) return true;
    free(*devices);
    *devices = NULL;
    if (status != GG_OK) return gg_refuse_error(problem, status, &error, "listing devices");
    capacity = *count;
  }
}

/* ---- Text ---- */

static void print_device(FILE* out, const gg_device_info* device) {
  gg_quoted name;
  if (!device->available) {
    fprintf(out, "%-14s not available", device->id);
    if (device->name[0] != '\0') fprintf(out, ": %s", gg_quote(&name, device->name));
    fprintf(out, "\n%-14s %s\n", "", device->reason);
    return;
  }
  fprintf(out, "%-14s %s, %s, %u compute unit%s", device->id, gg_quote(&name, device->name), kind_text(device->kind),
          device->compute_units, device->compute_units == 1 ? "" : "s");
  if (device->memory_bytes != 0) fprintf(out, ", %.1f GiB", (double)device->memory_bytes / 1073741824.0);
  fprintf(out, "\n%-14s kernels: %s; %s\n", "", device->kernels,
          device->exact ? "exact: the bits of the definition" : "not exact: results may differ in the last bits");
  if (device->driver[0] != '\0') fprintf(out, "%-14s driver: %s\n", "", device->driver);
  if (device->reason[0] != '\0') fprintf(out, "%-14s note: %s\n", "", device->reason);
}

static char* devices_text(const gg_device_info* devices, size_t count) {
  char* text = NULL;
  size_t bytes = 0;
  FILE* out = open_memstream(&text, &bytes);
  if (out == NULL) return NULL;
  for (size_t i = 0; i < count; ++i) print_device(out, &devices[i]);
  fprintf(out, "\n%s\n", gg_build_description());
  if (fclose(out) == 0) return text;
  free(text);
  return NULL;
}

/* ---- JSON ---- */

static json_t* variants(const char* kernels) {
  json_t* list = json_array();
  for (const char* at = kernels; *at != '\0';) {
    const size_t length = strcspn(at, " ");
    if (length != 0) json_array_append_new(list, json_stringn(at, length));
    at += length + strspn(at + length, " ");
  }
  return list;
}

static char* devices_json(const gg_device_info* devices, size_t count) {
  json_t* list = json_array();
  for (size_t i = 0; i < count; ++i) {
    const gg_device_info* device = &devices[i];
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:s, s:o, s:s?}", "id", device->id, "backend",
                        device->backend, "kind", kind_text(device->kind), "name", device->name, "available",
                        (int)device->available, "exact", (int)device->exact, "compute_units",
                        (json_int_t)device->compute_units, "memory_bytes", (json_int_t)device->memory_bytes, "driver",
                        device->driver, "kernels", variants(device->kernels), "reason",
                        device->reason[0] == '\0' ? NULL : device->reason));
  }
  const bool whole = json_array_size(list) == count; /* a device that memory did not suffice for is missing */
  json_t* object =
      json_pack("{s:s, s:s, s:o}", "version", gg_version_string(), "build", gg_build_description(), "devices", list);
  char* text = object == NULL || !whole ? NULL : json_dumps(object, JSON_INDENT(2));
  json_decref(object);
  char* line = text == NULL ? NULL : realloc(text, strlen(text) + 2);
  if (line == NULL) {
    free(text);
    return NULL;
  }
  memcpy(line + strlen(line), "\n", 2);
  return line;
}

int gg_command_devices(int argc, char** argv) {
  gg_problem problem = {.exit_code = GG_EXIT_OK};
  gg_form form = GG_FORM_TEXT;
  for (int code; (code = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (code == 'h') return gg_print_report(help, &problem) ? GG_EXIT_OK : gg_end_with(COMMAND, &problem);
    if (code == '?') gg_refuse(&problem, GG_EXIT_INPUT, "%s", ""); /* getopt has said what is wrong */
    if (code == '?' || !gg_parse_form("--report", optarg, &form, &problem)) {
      return gg_end_with_usage(COMMAND, &problem);
    }
  }
  if (!gg_refuse_rest(argc, argv, optind, &problem)) return gg_end_with_usage(COMMAND, &problem);
  gg_device_info* devices = NULL;
  size_t count = 0;
  if (!list_devices(&devices, &count, &problem)) return gg_end_with(COMMAND, &problem);
  char* text = form == GG_FORM_JSON ? devices_json(devices, count) : devices_text(devices, count);
  const bool good = gg_print_report(text, &problem);
  free(text);
  free(devices);
  return good ? GG_EXIT_OK : gg_end_with(COMMAND, &problem);
}
