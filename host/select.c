/* Selects the device of a context. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/context.h"
#include "host/probe.h"
#include "host/status.h"

#define FUNCTION "gg_context_create"

/* What the caller asked for, and where the result goes. */
typedef struct gg_selection {
  const gg_context_options* options;
  gg_open_request request;
  gg_error* error;
  gg_device* device;
  FILE* report; /* of "auto" */
} gg_selection;

static gg_status out_of_memory(gg_error* error) {
  return gg_fail(error, GG_ERROR_NO_MEMORY, FUNCTION, "out of host memory choosing a device");
}

static gg_status open_id(gg_selection* selection, const gg_backend* backend, const char* id) {
  selection->request.id = id;
  selection->request.kernel = gg_context_variant(selection->options, backend);
  return backend->open(&selection->request, &selection->device, selection->error);
}

/* "auto" chooses only exact devices, and uses a processor only through the cpu backend if there is one. */
static bool is_candidate(const gg_device_info* info, bool gpu) {
  return info->available && info->exact && (info->kind == GG_DEVICE_GPU) == gpu;
}

static bool try_device(gg_selection* selection, const gg_backend* backend, const gg_device_info* info) {
  gg_error refused = GG_ERROR_INIT;
  gg_error* caller = selection->error;
  selection->error = &refused;
  gg_status status = open_id(selection, backend, info->id);
  selection->error = caller;
  if (status == GG_OK)
    fprintf(selection->report, "%s: chosen\n", info->id);
  else
    fprintf(selection->report, "%s: %s\n", info->id, refused.message);
  return status == GG_OK;
}

/* Tries the GPUs of a backend, or its other devices. */
static gg_status try_backend(gg_selection* selection, const gg_backend* backend, bool gpu) {
  gg_device_info* infos;
  size_t count;
  if (!gg_probe(backend, &infos, &count)) return out_of_memory(selection->error);
  bool found = false;
  for (size_t i = 0; i < count && !found; i++) {
    if (is_candidate(&infos[i], gpu))
      found = try_device(selection, backend, &infos[i]);
    else if (gpu && infos[i].available && infos[i].exact)
      fprintf(selection->report, "%s: not a GPU, left for last\n", infos[i].id);
    else if (gpu)
      fprintf(selection->report, "%s: %s\n", infos[i].id, infos[i].reason);
  }
  free(infos);
  return GG_OK;
}

/* GPUs first, in the registry's order; then other devices, from its end, where the processor's own backend is. */
static gg_status select_automatically(gg_selection* selection) {
  gg_status status = GG_OK;
  size_t backends = 0;
  for (; gg_backends[backends] != NULL && status == GG_OK && selection->device == NULL; backends++)
    status = try_backend(selection, gg_backends[backends], true);
  while (backends > 0 && status == GG_OK && selection->device == NULL)
    status = try_backend(selection, gg_backends[--backends], false);
  return status;
}

static bool is_word_of(const char* list, const char* word) {
  size_t length = strlen(word);
  for (const char* at = list; (at = strstr(at, word)) != NULL; at += length)
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return strchr(word, ' ') == NULL;
  return false;
}

/* If no kernel variant is given, each backend reads its own variable. */
static gg_status check_variables(const gg_selection* selection) {
  for (const gg_backend* const* at = gg_backends; *at != NULL; at++) {
    const char* variant = gg_context_variant(NULL, *at);
    if (variant != NULL && !is_word_of((*at)->kernels, variant))
      return gg_fail(selection->error, GG_ERROR_ARGUMENT, FUNCTION,
                     "%s names a kernel variant that the %s backend does not have: \"%s\"; there are: %s",
                     (*at)->kernel_variable, (*at)->name, variant, (*at)->kernels);
  }
  return GG_OK;
}

/* A variant that no backend has is the caller's mistake, unlike a variant without a device on this machine. Skipping a
 * backend because of it would run a GPU's work on the processor. */
static gg_status check_variant(const gg_selection* selection) {
  const char* variant = selection->options != NULL ? selection->options->kernel : NULL;
  if (variant == NULL) return check_variables(selection);
  if (variant[0] == '\0') return GG_OK;
  char known[256] = "";
  for (const gg_backend* const* at = gg_backends; *at != NULL; at++) {
    if (is_word_of((*at)->kernels, variant)) return GG_OK;
    snprintf(known + strlen(known), sizeof known - strlen(known), "; %s: %s", (*at)->name, (*at)->kernels);
  }
  return gg_fail(selection->error, GG_ERROR_ARGUMENT, FUNCTION,
                 "no backend of this build has a kernel variant \"%s\"%s", variant, known);
}

static gg_status open_automatically(gg_selection* selection, char** report) {
  gg_status status = check_variant(selection);
  if (status != GG_OK) return status;
  size_t bytes = 0;
  selection->report = open_memstream(report, &bytes);
  if (selection->report == NULL) return out_of_memory(selection->error);
  status = select_automatically(selection);
  bool written = fclose(selection->report) == 0 && *report != NULL;
  if (status == GG_OK && !written) status = out_of_memory(selection->error);
  if (status == GG_OK && selection->device == NULL)
    status = gg_fail(selection->error, GG_ERROR_NO_DEVICE, FUNCTION, "no device can be used. %s",
                     bytes > 0 ? *report : "This build has no backend");
  return status;
}

static gg_status open_best(gg_selection* selection, const gg_backend* backend) {
  gg_device_info* infos;
  size_t count, best = 0;
  if (!gg_probe(backend, &infos, &count)) return out_of_memory(selection->error);
  while (best < count && !infos[best].available) best++;
  /* Opening an unavailable device gives the reason, with the driver's own code. */
  gg_status status = open_id(selection, backend, infos[best < count ? best : 0].id);
  free(infos);
  return status;
}

static gg_status open_by_name(gg_selection* selection, const gg_backend* backend, const char* text) {
  gg_device_info* infos;
  size_t count, found = 0;
  if (!gg_probe(backend, &infos, &count)) return out_of_memory(selection->error);
  while (found < count && (text[0] == '\0' || strstr(infos[found].name, text) == NULL)) found++;
  gg_status status;
  if (found < count)
    status = open_id(selection, backend, infos[found].id);
  else
    status = gg_fail(selection->error, GG_ERROR_NO_DEVICE, FUNCTION,
                     "no %s device has \"%s\" in its name%s%s; gg_devices and `gradguard devices` list them",
                     backend->name, text, infos[0].available ? "" : ": ", infos[0].available ? "" : infos[0].reason);
  free(infos);
  return status;
}

static gg_status unknown_device(gg_selection* selection, const char* device) {
  char names[128] = "";
  for (const gg_backend* const* at = gg_backends; *at != NULL; at++)
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s\"%s\"", at == gg_backends ? "" : ", ",
             (*at)->name);
  return gg_fail(selection->error, GG_ERROR_NO_DEVICE, FUNCTION,
                 "there is no device \"%s\": expected \"auto\", a backend of this build (%s), or an id that gg_devices "
                 "lists",
                 device, names[0] != '\0' ? names : "it has none");
}

static gg_status open_named(gg_selection* selection, const char* device) {
  size_t length = strcspn(device, ":");
  const gg_backend* backend = gg_backend_named(device, length);
  if (backend == NULL) return unknown_device(selection, device);
  if (device[length] == '\0') return open_best(selection, backend);
  if (strncmp(device + length, ":name=", 6) == 0) return open_by_name(selection, backend, device + length + 6);
  return open_id(selection, backend, device);
}

/* An empty value counts as not set, as with the variables for kernel variants. */
static const char* device_of_environment(void) {
  const char* device = getenv("GRADGUARD_DEVICE");
  return device != NULL && device[0] != '\0' ? device : "auto";
}

gg_status gg_context_create(const char* device, const gg_context_options* options, gg_context** context,
                            gg_error* error) {
  if (context == NULL)
    return gg_fail(error, GG_ERROR_ARGUMENT, FUNCTION, "there is no place for the context: `context` is NULL");
  *context = NULL;
  gg_error own = GG_ERROR_INIT; /* complete, because backends may read fields that they have written */
  gg_selection selection = {.options = options, .error = error != NULL ? error : &own};
  gg_status status = gg_context_request(options, &selection.request, selection.error);
  if (status != GG_OK) return status;
  if (device == NULL) device = device_of_environment();
  char* report = NULL;
  status = strcmp(device, "auto") == 0 ? open_automatically(&selection, &report) : open_named(&selection, device);
  if (status == GG_OK) return gg_context_make(selection.device, report, context, selection.error);
  if (selection.device != NULL) selection.device->backend->close(selection.device);
  free(report);
  return status;
}
