/* Which OpenCL devices are taken, and how the others are refused: the devices of this machine claim to lack what the
 * kernels need (tests/support/watched_opencl.h). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/compare.h"

#ifndef GG_BACKEND_OPENCL

Test(opencl_devices, this_build_has_no_opencl_backend, .timeout = 10) { cr_skip("built without backends=opencl"); }

#else

#include "backends/opencl/device.h"
#include "host/context.h"
#include "tests/support/trial.h"
#include "tests/support/watched_opencl.h"

static gg_opencl_api api;
static gg_device_info best; /* the device under test */

static void start(void) { api = gg_watched_opencl(&best); }

/* ---- What a device must have ---- */

static gg_device_info first_listed(void) {
  static gg_device_info infos[16];
  GG_CHECK(gg_opencl_probe_with(&api, infos, 16) > 0);
  return infos[0];
}

static gg_status try_to_open(gg_error* error) {
  gg_open_request request = {.id = best.id};
  gg_device* device = NULL;
  gg_status status = gg_opencl_open_with(&api, &request, &device, error);
  if (device != NULL) gg_opencl_close(device);
  if (*gg_watched_opencl_left()) gg_test_fail("left behind: %s", gg_watched_opencl_left());
  return status;
}

/* Listed as unavailable with the reason, and refused with it. */
static void check_refused(gg_cl_enum property, const void* value, size_t bytes, const char* reason) {
  gg_error error = GG_ERROR_INIT;
  gg_test_case("property 0x%x: %s", property, reason);
  gg_watched_opencl_claim(property, value, bytes);
  gg_device_info info = first_listed();
  GG_CHECK(!info.available && info.kernels[0] == '\0');
  gg_test_mentions(info.reason, reason);
  GG_CHECK(try_to_open(&error) == GG_ERROR_UNSUPPORTED && error.status == GG_ERROR_UNSUPPORTED);
  gg_test_mentions(error.message, reason);
  gg_watched_opencl_claim(property, NULL, 0);
}

#define REFUSED(property, type, value, reason)                                \
  do {                                                                        \
    type claimed = value;                                                     \
    check_refused(GG_CL_DEVICE_##property, &claimed, sizeof claimed, reason); \
  } while (0)

Test(opencl_devices, a_device_that_cannot_run_the_kernels_is_refused_with_the_reason_opencl, .timeout = 60) {
  start();
  GG_CHECK(first_listed().available);
  REFUSED(AVAILABLE, gg_cl_bool, 0, "not available");
  REFUSED(COMPILER_AVAILABLE, gg_cl_bool, 0, "no compiler");
  REFUSED(ENDIAN_LITTLE, gg_cl_bool, 0, "big-endian");
  REFUSED(ADDRESS_BITS, gg_cl_uint, 32, "64 bits");
  REFUSED(MAX_WORK_GROUP_SIZE, size_t, 255, "at most 255 work-items, 256 are needed");
  REFUSED(LOCAL_MEM_SIZE, uint64_t, 2048, "2048 bytes of local memory");
  const size_t items[3] = {128, 1024, 1024};
  check_refused(GG_CL_DEVICE_MAX_WORK_ITEM_SIZES, items, sizeof items, "at most 128 work-items");
  check_refused(GG_CL_DEVICE_PROFILE, "EMBEDDED_PROFILE", 17, "embedded profile");
  check_refused(GG_CL_DEVICE_PROFILE, "", 1, "does not tell its profile");
  check_refused(GG_CL_DEVICE_VERSION, "OpenCL 1.1 old", 15, "older than OpenCL 1.2");
  check_refused(GG_CL_DEVICE_VERSION, "", 1, "does not tell its version");
  GG_CHECK(first_listed().available);
}

Test(opencl_devices, a_device_with_just_enough_is_not_refused_opencl, .timeout = 60) {
  start();
  const size_t group = 256, items[3] = {256, 1, 1};
  const uint64_t local = 3072;
  gg_watched_opencl_claim(GG_CL_DEVICE_MAX_WORK_GROUP_SIZE, &group, sizeof group);
  gg_watched_opencl_claim(GG_CL_DEVICE_MAX_WORK_ITEM_SIZES, items, sizeof items);
  gg_watched_opencl_claim(GG_CL_DEVICE_LOCAL_MEM_SIZE, &local, sizeof local);
  gg_watched_opencl_claim(GG_CL_DEVICE_VERSION, "OpenCL 1.2 enough", 18);
  gg_error error = GG_ERROR_INIT;
  if (!first_listed().available) gg_test_fail("%s", first_listed().reason);
  if (try_to_open(&error) != GG_OK) gg_test_fail("%s", error.message);
}

/* It runs, its results need not be the promised bits, and it says so; "auto" does not take it. */
Test(opencl_devices, a_device_without_exact_arithmetic_is_marked_opencl, .timeout = 60) {
  static const struct {
    gg_cl_bits bit;
    const char* name;
  } parts[] = {{GG_CL_FP_DENORM, "subnormal"},
               {GG_CL_FP_INF_NAN, "Inf and NaN"},
               {GG_CL_FP_ROUND_TO_NEAREST, "rounding to nearest"},
               {GG_CL_FP_FMA, "fused multiply-add"},
               {GG_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, "division"}};
  start();
  gg_cl_bits all = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) all |= parts[i].bit;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    gg_cl_bits claimed = all & ~parts[i].bit;
    gg_test_case("without %s", parts[i].name);
    gg_watched_opencl_claim(GG_CL_DEVICE_SINGLE_FP_CONFIG, &claimed, sizeof claimed);
    gg_device_info info = first_listed();
    GG_CHECK(info.available && !info.exact);
    gg_test_mentions(info.reason, parts[i].name);
    gg_error error = GG_ERROR_INIT;
    if (try_to_open(&error) != GG_OK) gg_test_fail("%s", error.message);
  }
  gg_watched_opencl_claim(GG_CL_DEVICE_SINGLE_FP_CONFIG, &all, sizeof all);
  GG_CHECK(first_listed().exact && first_listed().reason[0] == '\0');
}

Test(opencl_devices, without_shared_virtual_memory_there_is_the_route_arena_opencl, .timeout = 60) {
  start();
  const gg_opencl_api whole = api;
  const gg_cl_bits none = 0;
  for (int lacking = 0; lacking < 2; lacking++) { /* the device, the loader */
    api = whole;
    if (lacking == 0) gg_watched_opencl_claim(GG_CL_DEVICE_SVM_CAPABILITIES, &none, sizeof none);
    if (lacking == 1) gg_watched_opencl_claim(GG_CL_DEVICE_SVM_CAPABILITIES, NULL, 0);
    if (lacking == 1) api.svm = false;
    GG_CHECK(strcmp(first_listed().kernels, "arena") == 0);
    gg_open_request request = {.id = best.id, .kernel = "svm"};
    gg_device* device = NULL;
    gg_error error = GG_ERROR_INIT;
    GG_CHECK(gg_opencl_open_with(&api, &request, &device, &error) == GG_ERROR_UNSUPPORTED && device == NULL);
    gg_test_mentions(error.message, "use arena");
    request.kernel = NULL;
    if (gg_opencl_open_with(&api, &request, &device, &error) != GG_OK) gg_test_fail("%s", error.message);
    GG_CHECK(strcmp(device->kernel, "arena") == 0);
    gg_opencl_close(device);
  }
}

/* The kernels look for their tensors in another way on a GPU. What claims to be one gets that form; newer versions of
 * PoCL abort the process when they compile it. */
Test(opencl_devices, the_search_of_a_gpu_finds_the_tensors_too_opencl, .timeout = 60) {
  enum { TENSORS = 700 };
  static gg_trial_spec specs[TENSORS];
  const gg_cl_bits type = GG_CL_DEVICE_TYPE_GPU;
  start();
  if (!best.exact) cr_skip("%s is not exact: %s", best.id, best.reason);
  unsigned pocl = 0;
  if (sscanf(best.driver, "Portable Computing Language %u", &pocl) == 1 && pocl > 3)
    cr_skip("%s cannot compile that form", best.driver);
  gg_watched_opencl_claim(GG_CL_DEVICE_TYPE, &type, sizeof type);
  gg_open_request request = {.id = best.id};
  gg_device* device = NULL;
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  gg_status status = gg_opencl_open_with(&api, &request, &device, &error);
  GG_CHECK(status == GG_OK && device->info.kind == GG_DEVICE_GPU);
  GG_CHECK(gg_context_make(device, NULL, &context, &error) == GG_OK);
  gg_random random = gg_random_stream(8);
  for (int mixed = 0; mixed < 2; mixed++) {
    for (int i = 0; i < TENSORS; i++)
      specs[i] = (gg_trial_spec){.elements = mixed ? gg_random_below(&random, i % 50 ? 600 : 9000) : 1000};
    gg_test_case("%s sizes", mixed ? "mixed" : "the same");
    gg_trial* trial = gg_trial_create(specs, TENSORS, GG_IN_PLACE, false);
    gg_trial_fill(trial, &random, GG_ORDINARY);
    gg_trial_open(trial, context);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
    gg_trial_step(trial, &adamw, &guard);
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
  gg_context_destroy(&context);
}

/* ---- Lists ---- */

static void check_nothing_listed(gg_status want, const char* cure) {
  gg_error error = GG_ERROR_INIT;
  gg_device_info info = first_listed();
  GG_CHECK(!info.available && strcmp(info.id, "opencl") == 0);
  gg_test_mentions(info.reason, cure);
  GG_CHECK(try_to_open(&error) == want);
  gg_test_mentions(error.message, cure);
}

Test(opencl_devices, no_platform_and_no_device_are_told_apart_opencl, .timeout = 30) {
  start();
  gg_watched_opencl_limit(0, 0);
  check_nothing_listed(GG_ERROR_NO_DRIVER, "install an OpenCL driver");
  gg_watched_opencl_limit(UINT32_MAX, 0);
  check_nothing_listed(GG_ERROR_NO_DEVICE, "device files");
}

/* A device that does not answer is listed with the reason; a platform that does not, not at all. */
Test(opencl_devices, any_call_may_fail_while_devices_are_listed_opencl, .timeout = 30) {
  static gg_device_info infos[16];
  start();
  size_t usual = gg_opencl_probe_with(&api, infos, 16);
  for (unsigned nth = 1;; nth++) {
    gg_watched_opencl_fail(nth, GG_CL_INVALID_VALUE);
    size_t count = gg_opencl_probe_with(&api, infos, 16), unavailable = 0;
    const char* struck = gg_watched_opencl_struck();
    gg_test_case("listing devices, call %u (%s) fails", nth, struck ? struck : "none");
    if (!struck) break;
    GG_CHECK(count > 0 && count <= usual);
    for (size_t i = 0; i < count; i++) {
      GG_CHECK(infos[i].available || infos[i].reason[0]);
      unavailable += !infos[i].available;
    }
    GG_CHECK(unavailable <= 1);
    GG_CHECK(nth < 400);
  }
}

#endif
