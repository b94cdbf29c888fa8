/* What the OpenCL backend makes of a machine: which devices it lists, which it refuses and why, which functions it
 * needs. On a driver that is none (tests/support/fake_opencl.h): no OpenCL is needed. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/compare.h"

#ifndef GG_BACKEND_OPENCL

Test(opencl_machine, this_build_has_no_opencl_backend, .timeout = 10) { cr_skip("built without backends=opencl"); }

#else

#include "backends/opencl/device.h"
#include "tests/support/fake_opencl.h"

static gg_opencl_api api;

/* ---- What a device must have ---- */

typedef struct lack {
  void (*make)(void);
  const char* reason;
} lack;

#define LACK(name, change) \
  static void name(void) { gg_fake_opencl.change; }
LACK(unavailable, available = 0)
LACK(no_compiler, compiler = 0)
LACK(big_endian, little_endian = 0)
LACK(narrow, address_bits = 32)
LACK(small_groups, group = 255)
LACK(few_items, items[0] = 128)
LACK(little_local_memory, local_bytes = 3071)
LACK(embedded, profile = "EMBEDDED_PROFILE")
LACK(old, version = "OpenCL 1.1 fake")
LACK(no_version, version = "fake")
LACK(no_subnormals, arithmetic &= ~(gg_cl_bits)GG_CL_FP_DENORM)
LACK(no_infinities, arithmetic &= ~(gg_cl_bits)GG_CL_FP_INF_NAN)
LACK(no_nearest, arithmetic &= ~(gg_cl_bits)GG_CL_FP_ROUND_TO_NEAREST)
LACK(no_fma, arithmetic &= ~(gg_cl_bits)GG_CL_FP_FMA)
LACK(no_division, arithmetic &= ~(gg_cl_bits)GG_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)

static gg_status try_to_open(const char* id, const char* variant, gg_error* error) {
  gg_open_request request = {.id = id, .kernel = variant};
  gg_device* device = NULL;
  gg_status status = gg_opencl_open_with(&api, &request, &device, error);
  GG_CHECK((device != NULL) == (status == GG_OK));
  if (device != NULL) gg_opencl_close(device);
  if (*gg_fake_opencl_left()) gg_test_fail("left behind: %s", gg_fake_opencl_left());
  if (*gg_fake_opencl_violation()) gg_test_fail("misuse of the driver: %s", gg_fake_opencl_violation());
  return status;
}

/* Lists the devices, and gives opencl:0.0; the others are as they were. */
static gg_device_info listed(int place) {
  gg_device_info infos[5];
  GG_CHECK(gg_opencl_probe_with(&api, infos, 5) == 4);
  for (int i = 0; i < 4; i++) {
    if (i == place) continue;
    GG_CHECK(infos[i].available && infos[i].exact && !infos[i].reason[0] && infos[i].kind == GG_DEVICE_GPU);
    GG_CHECK(strcmp(infos[i].id, "opencl:0.0") != 0 && strcmp(infos[i].kernels, "svm arena") == 0);
  }
  GG_CHECK(strcmp(infos[place].id, "opencl:0.0") == 0);
  return infos[place];
}

Test(opencl_machine, a_device_that_cannot_run_the_kernels_is_refused_and_the_others_are_not, .timeout = 30) {
  static const lack lacks[] = {{unavailable, "not available"},
                               {no_compiler, "no compiler"},
                               {big_endian, "big-endian"},
                               {narrow, "64 bits"},
                               {small_groups, "at most 255 work-items, 256 are needed"},
                               {few_items, "at most 128 work-items, 256 are needed"},
                               {little_local_memory, "3071 bytes of local memory, 3072 are needed"},
                               {embedded, "embedded profile"},
                               {old, "older than OpenCL 1.2"},
                               {no_version, "older than OpenCL 1.2"}};
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
    gg_error error = GG_ERROR_INIT;
    gg_test_case("%s", lacks[i].reason);
    api = gg_fake_opencl_start();
    lacks[i].make();
    gg_device_info info = listed(3); /* what cannot be used comes last */
    GG_CHECK(!info.available && info.kernels[0] == '\0');
    gg_test_mentions(info.reason, lacks[i].reason);
    GG_CHECK(try_to_open("opencl:0.0", NULL, &error) == GG_ERROR_UNSUPPORTED && error.status == GG_ERROR_UNSUPPORTED);
    gg_test_mentions(error.message, lacks[i].reason);
    if (try_to_open("opencl:0.1", NULL, &error) != GG_OK) gg_test_fail("%s", error.message);
    GG_CHECK(gg_fake_opencl_calls("clCreateContext") == 1);
  }
}

static void just_enough(void) {
  gg_fake_opencl.group = gg_fake_opencl.items[0] = 256;
  gg_fake_opencl.local_bytes = 3072;
  gg_fake_opencl.version = "OpenCL 1.2 fake";
}

Test(opencl_machine, a_device_with_just_enough_is_not_refused, .timeout = 10) {
  gg_error error = GG_ERROR_INIT;
  api = gg_fake_opencl_start();
  just_enough();
  gg_device_info infos[5];
  GG_CHECK(gg_opencl_probe_with(&api, infos, 5) == 4);
  for (int i = 0; i < 4; i++)
    if (!infos[i].available) gg_test_fail("%s: %s", infos[i].id, infos[i].reason);
  if (try_to_open("opencl:0.0", NULL, &error) != GG_OK) gg_test_fail("%s", error.message);
}

Test(opencl_machine, a_device_with_inexact_arithmetic_opens_and_says_so, .timeout = 30) {
  static const lack lacks[] = {{no_subnormals, "subnormal"},
                               {no_infinities, "Inf and NaN"},
                               {no_nearest, "rounding to nearest"},
                               {no_fma, "fused multiply-add"},
                               {no_division, "division"}};
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
    gg_error error = GG_ERROR_INIT;
    gg_test_case("without %s", lacks[i].reason);
    api = gg_fake_opencl_start();
    lacks[i].make();
    gg_device_info info = listed(3);
    GG_CHECK(info.available && !info.exact);
    gg_test_mentions(info.reason, "not exact");
    gg_test_mentions(info.reason, lacks[i].reason);
    if (try_to_open("opencl:0.0", NULL, &error) != GG_OK) gg_test_fail("%s", error.message);
    GG_CHECK(!strstr(gg_fake_opencl_options(), "-correctly-rounded-") == (lacks[i].make == no_division));
  }
}

/* Processors come after GPUs, and get their own form of the kernels. */
Test(opencl_machine, a_processor_is_one, .timeout = 10) {
  gg_error error = GG_ERROR_INIT;
  api = gg_fake_opencl_start();
  gg_fake_opencl.type = GG_CL_DEVICE_TYPE_CPU;
  gg_device_info info = listed(3);
  GG_CHECK(info.available && info.exact && info.kind == GG_DEVICE_CPU);
  GG_CHECK(try_to_open("opencl:0.0", NULL, &error) == GG_OK);
  gg_test_mentions(gg_fake_opencl_options(), "-DGG_PROCESSOR=1");
}

Test(opencl_machine, without_shared_virtual_memory_there_is_the_variant_arena, .timeout = 10) {
  for (int lacking = 0; lacking < 3; lacking++) {
    gg_error error = GG_ERROR_INIT;
    gg_test_case("%s has none", lacking == 0 ? "the device" : lacking == 1 ? "its version" : "the loader");
    api = gg_fake_opencl_start();
    if (lacking == 0) gg_fake_opencl.svm = 0;
    if (lacking == 1) gg_fake_opencl.version = "OpenCL 1.2 fake";
    if (lacking == 2) api.svm = false;
    gg_device_info infos[4];
    GG_CHECK(gg_opencl_probe_with(&api, infos, 4) == 4);
    GG_CHECK(infos[0].available && infos[0].exact && strcmp(infos[0].kernels, "arena") == 0);
    GG_CHECK(try_to_open("opencl:0.0", "svm", &error) == GG_ERROR_UNSUPPORTED);
    gg_test_mentions(error.message, "use arena");
    GG_CHECK(strstr(error.message, "that the OpenCL loader gives access to") == NULL || lacking == 2);
    GG_CHECK(try_to_open("opencl:0.0", NULL, &error) == GG_OK);
    gg_test_mentions(gg_fake_opencl_options(), "-DGG_ARENA=1");
  }
  api = gg_fake_opencl_start();
  gg_error error = GG_ERROR_INIT;
  GG_CHECK(try_to_open("opencl:0.0", "cubin", &error) == GG_ERROR_ARGUMENT);
  gg_test_mentions(error.message, "svm arena");
}

/* ---- Lists ---- */

static void check_nothing_listed(gg_status want, const char* cure) {
  gg_error error = GG_ERROR_INIT;
  gg_device_info info;
  GG_CHECK(gg_opencl_probe_with(&api, &info, 1) == 1);
  GG_CHECK(!info.available && strcmp(info.id, "opencl") == 0 && strcmp(info.backend, "opencl") == 0);
  gg_test_mentions(info.reason, cure);
  GG_CHECK(try_to_open("opencl:0.0", NULL, &error) == want && error.status == want);
  gg_test_mentions(error.message, cure);
}

Test(opencl_machine, no_platform_and_no_device_are_told_apart_with_a_cure, .timeout = 10) {
  static const gg_cl_int codes[] = {GG_CL_SUCCESS, GG_CL_PLATFORM_NOT_FOUND_KHR};
  for (int i = 0; i < 2; i++) {
    api = gg_fake_opencl_start();
    gg_fake_opencl.platforms = 0;
    gg_fake_opencl.no_platform = codes[i];
    check_nothing_listed(GG_ERROR_NO_DRIVER, "install an OpenCL driver");
  }
  api = gg_fake_opencl_start();
  gg_fake_opencl.devices = 0;
  check_nothing_listed(GG_ERROR_NO_DEVICE, "device files");
  api = gg_fake_opencl_start();
  gg_error error = GG_ERROR_INIT;
  GG_CHECK(try_to_open("opencl:2.0", NULL, &error) == GG_ERROR_NO_DEVICE);
  gg_test_mentions(error.message, "gradguard devices");
}

/* A device that does not answer is listed with the reason; a platform that does not, not at all; the others stay. No
 * more than its name, its driver's version and its shared virtual memory may be left unknown. */
Test(opencl_machine, any_call_may_fail_while_devices_are_listed, .timeout = 30) {
  gg_device_info infos[5];
  unsigned unknown = 0;
  for (unsigned nth = 1;; nth++) {
    api = gg_fake_opencl_start();
    gg_fake_opencl_fail(nth, GG_CL_OUT_OF_HOST_MEMORY, false);
    size_t count = gg_opencl_probe_with(&api, infos, 5), unavailable = 0;
    const char* struck = gg_fake_opencl_struck();
    gg_test_case("listing devices, call %u (%s) fails", nth, struck ? struck : "none");
    if (*gg_fake_opencl_violation()) gg_test_fail("misuse of the driver: %s", gg_fake_opencl_violation());
    bool platforms = struck && strcmp(struck, "clGetPlatformIDs") == 0;
    bool devices = struck && strcmp(struck, "clGetDeviceIDs") == 0;
    GG_CHECK(count == (platforms ? 1 : devices ? 2 : 4));
    for (size_t i = 0; i < count; i++) {
      unavailable += !infos[i].available;
      if (!infos[i].available) gg_test_mentions(infos[i].reason, platforms ? "CL_OUT_OF_HOST_MEMORY" : "does not tell");
      if (infos[i].available) GG_CHECK(infos[i].exact && !infos[i].reason[0]);
    }
    bool asked = struck && strcmp(struck, "clGetDeviceInfo") == 0;
    GG_CHECK(asked ? unavailable <= 1 : unavailable == (platforms ? 1 : 0));
    unknown += asked && unavailable == 0;
    if (!struck) break;
    GG_CHECK(nth < 200);
  }
  GG_CHECK(unknown == 4 * 3);
}

/* ---- The loader ---- */

static const char* absent_symbol;

static void* find_all_but_one(void* library, const char* name) {
  return strcmp(name, absent_symbol) == 0 ? NULL : library;
}

Test(opencl_machine, a_loader_without_one_function_is_too_old_or_has_no_shared_virtual_memory, .timeout = 10) {
  gg_opencl_api found;
  gg_error error = GG_ERROR_INIT;
  int object = 0;
#define WITHOUT(result, name, parameters)                                                         \
  absent_symbol = #name;                                                                          \
  GG_CHECK(gg_opencl_load_with(&found, find_all_but_one, &object, &error) == GG_ERROR_NO_DRIVER); \
  gg_test_mentions(error.message, "lacks " #name);                                                \
  gg_test_mentions(error.message, "install");
  GG_CL_REQUIRED_SYMBOLS(WITHOUT)
#undef WITHOUT
#define WITHOUT(result, name, parameters) \
  absent_symbol = #name;                  \
  GG_CHECK(gg_opencl_load_with(&found, find_all_but_one, &object, &error) == GG_OK && !found.svm);
  GG_CL_OPTIONAL_SYMBOLS(WITHOUT)
#undef WITHOUT
  absent_symbol = "none";
  GG_CHECK(gg_opencl_load_with(&found, find_all_but_one, &object, &error) == GG_OK && found.svm);
}

#endif
