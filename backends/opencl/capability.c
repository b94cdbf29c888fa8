#include "backends/opencl/capability.h"

#include <stdio.h>
#include <string.h>

#include "kernels/types.h"

#define GG_NEEDED_LOCAL_BYTES 3072 /* one triple for each of 256 work-items */

/* The state of a device query. `info->reason` is empty until something is found to be missing. */
typedef struct gg_survey {
  const gg_opencl_api* api;
  gg_cl_device device;
  gg_device_info* info;
} gg_survey;

static void refuse(gg_device_info* info, const char* reason) {
  info->available = false;
  if (info->reason[0] == '\0') snprintf(info->reason, sizeof info->reason, "%s", reason);
}

/* A property of fixed size; without it the device is not available. */
static bool ask(const gg_survey* survey, gg_cl_enum property, const char* name, void* value, size_t bytes) {
  gg_cl_int code = survey->api->clGetDeviceInfo(survey->device, property, bytes, value, NULL);
  if (code == GG_CL_SUCCESS) return true;
  char reason[160];
  snprintf(reason, sizeof reason, "its driver does not tell %s (code %d)", name, (int)code);
  refuse(survey->info, reason);
  return false;
}

/* A text property, truncated to `capacity`; empty if the driver does not report it. */
static void ask_text(const gg_survey* survey, gg_cl_enum property, char* text, size_t capacity) {
  char whole[4096]; /* a driver refuses to give a part; not of the heap, so that a full one is not blamed on the device
                     */
  size_t bytes = 0;
  text[0] = '\0';
  if (survey->api->clGetDeviceInfo(survey->device, property, sizeof whole, whole, &bytes) != GG_CL_SUCCESS) return;
  if (bytes == 0 || bytes > sizeof whole) return;
  whole[bytes - 1] = '\0';
  snprintf(text, capacity, "%.*s", (int)capacity - 1, whole);
}

static void describe_identity(const gg_survey* survey, const gg_opencl_entry* entry) {
  gg_device_info* info = survey->info;
  snprintf(info->backend, sizeof info->backend, "opencl");
  snprintf(info->id, sizeof info->id, "opencl:%u.%u", entry->platform_index, entry->device_index);
  ask_text(survey, GG_CL_DEVICE_NAME, info->name, sizeof info->name);

  char platform[64] = "", version[56];
  if (survey->api->clGetPlatformInfo(entry->platform, GG_CL_PLATFORM_NAME, sizeof platform, platform, NULL) !=
      GG_CL_SUCCESS)
    platform[0] = '\0';
  ask_text(survey, GG_CL_DRIVER_VERSION, version, sizeof version);
  snprintf(info->driver, sizeof info->driver, "%s%s%s", platform, platform[0] != '\0' ? " " : "", version);

  gg_cl_bits type = 0;
  if (ask(survey, GG_CL_DEVICE_TYPE, "its type", &type, sizeof type))
    info->kind = type & GG_CL_DEVICE_TYPE_GPU   ? GG_DEVICE_GPU
                 : type & GG_CL_DEVICE_TYPE_CPU ? GG_DEVICE_CPU
                                                : GG_DEVICE_OTHER;
  gg_cl_uint units = 0;
  if (ask(survey, GG_CL_DEVICE_MAX_COMPUTE_UNITS, "its compute units", &units, sizeof units))
    info->compute_units = units;
  uint64_t bytes = 0;
  if (ask(survey, GG_CL_DEVICE_GLOBAL_MEM_SIZE, "its memory size", &bytes, sizeof bytes)) info->memory_bytes = bytes;
}

/* Properties that every kernel requires. */
static void check_limits(const gg_survey* survey, gg_opencl_capability* can) {
  gg_device_info* info = survey->info;
  gg_cl_bool yes = 0;
  if (ask(survey, GG_CL_DEVICE_AVAILABLE, "whether it is available", &yes, sizeof yes) && !yes)
    refuse(info, "its driver says that it is not available");
  if (ask(survey, GG_CL_DEVICE_COMPILER_AVAILABLE, "whether it has a compiler", &yes, sizeof yes) && !yes)
    refuse(info, "its driver has no compiler for OpenCL C");
  if (ask(survey, GG_CL_DEVICE_ENDIAN_LITTLE, "its byte order", &yes, sizeof yes) && !yes)
    refuse(info, "it is big-endian");

  char text[64];
  ask_text(survey, GG_CL_DEVICE_PROFILE, text, sizeof text);
  if (text[0] == '\0') refuse(info, "its driver does not tell its profile");
  if (strcmp(text, "FULL_PROFILE") != 0) refuse(info, "it has the embedded profile of OpenCL, the full one is needed");
  ask_text(survey, GG_CL_DEVICE_VERSION, text, sizeof text);
  if (text[0] == '\0') refuse(info, "its driver does not tell its version of OpenCL");
  unsigned major = 0, minor = 0;
  if (sscanf(text, "OpenCL %u.%u", &major, &minor) != 2 || major * 10 + minor < 12)
    refuse(info, "it is older than OpenCL 1.2");

  gg_cl_uint bits = 0;
  if (ask(survey, GG_CL_DEVICE_ADDRESS_BITS, "its address size", &bits, sizeof bits) && bits != 64)
    refuse(info, "its addresses do not have 64 bits");
  ask(survey, GG_CL_DEVICE_MAX_MEM_ALLOC_SIZE, "its largest allocation", &can->max_allocation,
      sizeof can->max_allocation);
  char reason[160];
  size_t group = 0, items[16] = {0};
  if (ask(survey, GG_CL_DEVICE_MAX_WORK_GROUP_SIZE, "its work-group limit", &group, sizeof group) &&
      ask(survey, GG_CL_DEVICE_MAX_WORK_ITEM_SIZES, "its work-item limits", items, sizeof items)) {
    size_t most = group < items[0] ? group : items[0];
    snprintf(reason, sizeof reason, "a work-group of it has at most %zu work-items, %d are needed", most, GG_LANES);
    if (most < GG_LANES) refuse(info, reason);
  }
  uint64_t local = 0;
  if (ask(survey, GG_CL_DEVICE_LOCAL_MEM_SIZE, "its local memory", &local, sizeof local)) {
    snprintf(reason, sizeof reason, "it has %llu bytes of local memory, %d are needed", (unsigned long long)local,
             GG_NEEDED_LOCAL_BYTES);
    if (local < GG_NEEDED_LOCAL_BYTES) refuse(info, reason);
  }
}

/* The IEEE behaviour that bit-exact results need. A device without it can still be used, but is not `exact`. */
static void check_arithmetic(const gg_survey* survey, gg_opencl_capability* can) {
  static const struct {
    gg_cl_bits bit;
    const char* lack;
  } needed[] = {{GG_CL_FP_DENORM, "subnormal numbers"},
                {GG_CL_FP_INF_NAN, "Inf and NaN"},
                {GG_CL_FP_ROUND_TO_NEAREST, "rounding to nearest"},
                {GG_CL_FP_FMA, "fused multiply-add"},
                {GG_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, "correctly rounded division and square root"}};
  gg_cl_bits has = 0;
  if (!ask(survey, GG_CL_DEVICE_SINGLE_FP_CONFIG, "its arithmetic", &has, sizeof has)) return;
  can->rounded_divide = (has & GG_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  gg_device_info* info = survey->info;
  info->exact = true;
  char lacks[256] = "";
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
    if (has & needed[i].bit) continue;
    info->exact = false;
    size_t used = strlen(lacks);
    snprintf(lacks + used, sizeof lacks - used, "%s%s", used > 0 ? ", " : "", needed[i].lack);
  }
  if (!info->exact && info->reason[0] == '\0')
    snprintf(info->reason, sizeof info->reason, "not exact: its FP32 arithmetic lacks %s", lacks);
}

void gg_opencl_describe(const gg_opencl_api* api, const gg_opencl_entry* entry, gg_device_info* info,
                        gg_opencl_capability* can) {
  memset(info, 0, sizeof *info);
  memset(can, 0, sizeof *can);
  info->size = (uint32_t)sizeof *info;
  info->available = true;
  gg_survey survey = {api, entry->device, info};
  describe_identity(&survey, entry);
  check_limits(&survey, can);
  check_arithmetic(&survey, can);
  /* Devices before OpenCL 2.0 do not have this query. */
  gg_cl_bits svm = 0;
  if (api->clGetDeviceInfo(entry->device, GG_CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL) == GG_CL_SUCCESS)
    can->svm = api->svm && (svm & GG_CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
  if (info->available) snprintf(info->kernels, sizeof info->kernels, "%s", can->svm ? "svm arena" : "arena");
}
