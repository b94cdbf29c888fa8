/* The host side of the OpenCL backend on the driver of this machine, with every call of the driver failing once, and
 * with devices that claim to lack what the kernels need (tests/support/watched_opencl.h). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/compare.h"

#ifndef GG_BACKEND_OPENCL

Test(opencl_host, this_build_has_no_opencl_backend, .timeout = 10) { cr_skip("built without backends=opencl"); }

#else

#include "api/opencl.h"
#include "backends/opencl/device.h"
#include "host/context.h"
#include "tests/support/life.h"
#include "tests/support/random.h"
#include "tests/support/trial.h"
#include "tests/support/watched_opencl.h"

static gg_opencl_api api;
static gg_device_info best; /* the device under test */
static unsigned platform_index, device_index;

static void start(void) {
  api = gg_watched_opencl();
  gg_opencl_probe_with(&api, &best, 1);
  if (!best.available) cr_skip("%s", best.reason);
  GG_CHECK(sscanf(best.id, "opencl:%u.%u", &platform_index, &device_index) == 2);
}

static bool is_one_of(const char* word, const char* const* list) {
  while (*list && strcmp(*list, word) != 0) list++;
  return *list != NULL;
}

/* ---- Every call fails once ---- */

static gg_cl_int code;

/* Only the library calls through `api`, so nothing is to be done around its calls. */
static void pass(void) {}

/* A wait that fails leaves nothing to go on with, whatever the code but for a lack of memory. */
static gg_status expected_status(const char* function) {
  static const char* const waiting[] = {"clWaitForEvents", "clFinish", "clGetEventInfo", NULL};
  bool memory = code == GG_CL_OUT_OF_HOST_MEMORY || code == GG_CL_MEM_OBJECT_ALLOCATION_FAILURE;
  if (strcmp(function, "clSVMAlloc") == 0) return GG_ERROR_NO_MEMORY;
  if (memory) return GG_ERROR_NO_MEMORY;
  if (is_one_of(function, waiting) || code == GG_CL_DEVICE_NOT_AVAILABLE) return GG_ERROR_DEVICE_LOST;
  return GG_ERROR_DRIVER;
}

static void check_failure(gg_status status, const gg_error* error) {
  const char* function = gg_watched_opencl_struck();
  GG_CHECK(function != NULL);
  bool half_done = status == GG_ERROR_DEVICE_LOST && strstr(error->message, "half done") != NULL;
  if (strcmp(function, "clGetDeviceInfo") == 0) { /* what is not told may as well be missing */
    GG_CHECK(status == GG_ERROR_UNSUPPORTED && error->status == status);
    GG_CHECK(strstr(error->message, "does not tell") || strstr(error->message, "has no coarse-grained shared"));
    return;
  }
  if (!half_done && status != expected_status(function))
    gg_test_fail("%s, not %s: %s", gg_status_name(status), gg_status_name(expected_status(function)), error->message);
  GG_CHECK(error->status == status && error->native_code != 0 && error->native_name[0]);
  if (strcmp(function, "clSVMAlloc") != 0) GG_CHECK(error->native_code == code);
  if (strcmp(error->function, function) != 0) gg_test_fail("%s failed, the error blames %s", function, error->function);
  GG_CHECK(strstr(error->message, error->native_name) != NULL);
}

/* Releases have nobody to tell; a slab of the usual size that cannot be had is made smaller; a flush, a name, a build
 * log and a time are no results. */
static const char* const silent[] = {"clReleaseContext",
                                     "clReleaseCommandQueue",
                                     "clReleaseMemObject",
                                     "clReleaseProgram",
                                     "clReleaseKernel",
                                     "clReleaseEvent",
                                     "clFinish",
                                     "clFlush",
                                     "clSVMAlloc",
                                     "clCreateBuffer",
                                     "clEnqueueSVMMemFill",
                                     "clEnqueueFillBuffer",
                                     "clGetPlatformInfo",
                                     "clGetProgramBuildInfo",
                                     "clGetEventProfilingInfo",
                                     "clGetEventInfo",
                                     "clRetainEvent",
                                     NULL};

static bool told; /* the failure, by the library */

static bool refused(gg_life* life, const char* call, gg_status status, const void* made) {
  told = true;
  GG_CHECK(made == NULL);
  check_failure(status, gg_context_error(life->context));
  GG_CHECK(life->context->device->lost == (status == GG_ERROR_DEVICE_LOST));
  return status != GG_ERROR_DEVICE_LOST && strstr(call, "gg_pending_") == NULL;
}

typedef struct machine {
  const char* route;
  bool adopted; /* on a queue of the caller's */
  bool logs;    /* and so keeps times */
} machine;

static void hear(void* user, int level, const char* message) {
  (void)level;
  (void)message;
  ++*(unsigned*)user;
}

/* The caller's side of an adopted queue. */
static gg_cl_queue make_queue(gg_cl_context* made) {
  const gg_opencl_api* own = gg_unwatched_opencl();
  gg_cl_platform platforms[16];
  gg_cl_device devices[16];
  gg_cl_int failed = 0;
  GG_CHECK(platform_index < 16 && device_index < 16);
  GG_CHECK(own->clGetPlatformIDs(16, platforms, NULL) == GG_CL_SUCCESS);
  GG_CHECK(own->clGetDeviceIDs(platforms[platform_index], GG_CL_DEVICE_TYPE_ALL, 16, devices, NULL) == GG_CL_SUCCESS);
  const gg_cl_property properties[] = {GG_CL_CONTEXT_PLATFORM, (gg_cl_property)platforms[platform_index], 0};
  *made = own->clCreateContext(properties, 1, &devices[device_index], NULL, NULL, &failed);
  GG_CHECK(*made != NULL && failed == GG_CL_SUCCESS);
  gg_cl_queue queue = own->clCreateCommandQueue(*made, devices[device_index], 0, &failed);
  GG_CHECK(queue != NULL && failed == GG_CL_SUCCESS);
  return queue;
}

static gg_status open_context(const machine* on, gg_cl_queue queue, unsigned* lines, gg_context** context,
                              gg_error* error) {
  gg_open_request request = {.id = queue ? NULL : best.id, .kernel = on->route, .queue = queue};
  if (on->logs) {
    request.log = hear;
    request.log_user = lines;
  }
  gg_device* device = NULL;
  gg_status status = gg_opencl_open_with(&api, &request, &device, error);
  GG_CHECK((device != NULL) == (status == GG_OK));
  return status == GG_OK ? gg_context_make(device, NULL, context, error) : status;
}

/* What is open while a test goes through the calls. */
typedef struct session {
  machine on;
  unsigned lines;
  gg_cl_context callers;
  gg_cl_queue queue;
  gg_context* context;
} session;

static gg_status begin_session(session* s, gg_error* error) {
  s->queue = s->on.adopted ? make_queue(&s->callers) : NULL;
  return open_context(&s->on, s->queue, &s->lines, &s->context, error);
}

static void end_session(session* s) {
  gg_context_destroy(&s->context);
  if (*gg_watched_opencl_left()) gg_test_fail("left behind: %s", gg_watched_opencl_left());
  if (!s->queue) return;
  GG_CHECK(gg_unwatched_opencl()->clReleaseCommandQueue(s->queue) == GG_CL_SUCCESS);
  GG_CHECK(gg_unwatched_opencl()->clReleaseContext(s->callers) == GG_CL_SUCCESS);
}

static void every_call_fails_while_opening(session* s) {
  for (unsigned nth = 1;; nth++) {
    gg_error error = GG_ERROR_INIT;
    gg_test_case("route %s, call %u of opening fails with %d", s->on.route, nth, (int)code);
    gg_watched_opencl_fail(nth, code);
    gg_status status = begin_session(s, &error);
    if (status != GG_OK) check_failure(status, &error);
    const char* struck = gg_watched_opencl_struck();
    gg_watched_opencl_fail(0, 0);
    end_session(s);
    if (!struck) break;
    GG_CHECK(nth < 200);
  }
}

/* One life in which the nth call of the driver fails; false if there were fewer calls. A context is kept for the next
 * life, unless its device is lost. */
static bool live(session* s, gg_life* life, unsigned nth, const gg_life* usual) {
  gg_error error = GG_ERROR_INIT;
  bool fresh = s->context == NULL;
  if (fresh && begin_session(s, &error) != GG_OK) gg_test_fail("%s", error.message);
  char before[200];
  snprintf(before, sizeof before, "%s", gg_watched_opencl_left());
  life->context = s->context;
  gg_test_case("route %s, call %u fails with %d", s->on.route, nth, (int)code);
  gg_watched_opencl_fail(nth, code);
  told = false;
  bool whole = gg_life_run(life);
  const char* struck = gg_watched_opencl_struck();
  gg_test_case("route %s, call %u (%s) fails with %d", s->on.route, nth, struck ? struck : "none", (int)code);
  GG_CHECK(whole || struck != NULL);
  if (struck && !told && !is_one_of(struck, silent)) gg_test_fail("%s failed and nobody said so", struck);
  if (whole && usual) gg_life_compare(life, usual);
  /* A first life leaves the context's own programs and its last slab. */
  if (!fresh && strcmp(gg_watched_opencl_left(), before) != 0)
    gg_test_fail("there were %s, left are %s", before, gg_watched_opencl_left());
  gg_watched_opencl_fail(0, 0);
  GG_CHECK(!s->on.logs || s->lines > 0);
  if (s->context->device->lost) end_session(s);
  return struck != NULL;
}

static void every_call_fails(machine on, gg_update_mode mode, gg_cl_int with) {
  static gg_life usual, life;
  session s = {.on = on};
  code = with;
  start();
  every_call_fails_while_opening(&s);
  usual = (gg_life){.enter = pass, .leave = pass, .refused = refused, .mode = mode};
  gg_life_fill(&usual);
  GG_CHECK(!live(&s, &usual, 0, NULL));
  life = usual;
  /* A lost device costs a new context, which takes a GPU's driver long: every fifth call, others with each seed. */
  unsigned stride = code == GG_CL_DEVICE_NOT_AVAILABLE ? 5 : 1, nth = 1 + (unsigned)(gg_random_seed() % stride);
  while (live(&s, &life, nth, &usual)) nth += stride;
  GG_CHECK(nth > 100);
  end_session(&s);
}

#define EVERY_CALL(name, ...) \
  Test(opencl_host, any_call_may_fail_##name##_opencl, .timeout = 240) { every_call_fails(__VA_ARGS__); }
EVERY_CALL(on_route_svm, (machine){"svm", false, false}, GG_OUT_OF_PLACE, GG_CL_INVALID_VALUE)
EVERY_CALL(on_route_arena, (machine){"arena", false, false}, GG_IN_PLACE, GG_CL_INVALID_VALUE)
EVERY_CALL(for_want_of_memory_on_route_svm, (machine){"svm", false, false}, GG_IN_PLACE, GG_CL_OUT_OF_HOST_MEMORY)
EVERY_CALL(for_want_of_memory_on_route_arena, (machine){"arena", false, false}, GG_OUT_OF_PLACE,
           GG_CL_MEM_OBJECT_ALLOCATION_FAILURE)
EVERY_CALL(when_the_device_goes_away_on_route_svm, (machine){"svm", false, false}, GG_IN_PLACE,
           GG_CL_DEVICE_NOT_AVAILABLE)
EVERY_CALL(when_the_device_goes_away_on_route_arena, (machine){"arena", false, false}, GG_OUT_OF_PLACE,
           GG_CL_DEVICE_NOT_AVAILABLE)
EVERY_CALL(on_a_queue_of_the_caller, (machine){"svm", true, false}, GG_OUT_OF_PLACE, GG_CL_INVALID_VALUE)
EVERY_CALL(while_times_are_kept, (machine){"arena", false, true}, GG_OUT_OF_PLACE, GG_CL_INVALID_VALUE)

Test(opencl_host, any_call_may_fail_while_memory_of_the_caller_is_wrapped_opencl, .timeout = 30) {
  session s = {.on = {"arena", false, false}};
  gg_error error = GG_ERROR_INIT;
  start();
  code = GG_CL_INVALID_VALUE;
  if (begin_session(&s, &error) != GG_OK) gg_test_fail("%s", error.message);
  const gg_opencl_api* own = gg_unwatched_opencl();
  gg_cl_context context = NULL;
  gg_cl_int failed = 0;
  GG_CHECK(own->clGetCommandQueueInfo(gg_opencl_queue(s.context), GG_CL_QUEUE_CONTEXT, sizeof context, &context,
                                      NULL) == GG_CL_SUCCESS);
  gg_cl_mem memory = own->clCreateBuffer(context, GG_CL_MEM_READ_WRITE, 4096, NULL, &failed);
  GG_CHECK(memory != NULL && failed == GG_CL_SUCCESS);
  char before[200];
  snprintf(before, sizeof before, "%s", gg_watched_opencl_left());
  const char* struck = "";
  for (unsigned nth = 1; struck; nth++) {
    gg_buffer* buffer = NULL;
    gg_watched_opencl_fail(nth, code);
    gg_status status = gg_opencl_buffer_wrap_mem(s.context, memory, 4096, &buffer);
    struck = gg_watched_opencl_struck();
    gg_test_case("call %u (%s) fails", nth, struck ? struck : "none");
    GG_CHECK((buffer == NULL) == (status != GG_OK) && (status == GG_OK) == (struck == NULL));
    if (struck) check_failure(status, gg_context_error(s.context));
    if (buffer) GG_CHECK(strcmp(gg_watched_opencl_left(), before) != 0); /* it holds the object */
    gg_buffer_destroy(&buffer);
    if (strcmp(gg_watched_opencl_left(), before) != 0)
      gg_test_fail("there were %s, left are %s", before, gg_watched_opencl_left());
    GG_CHECK(nth < 50);
  }
  GG_CHECK(own->clReleaseMemObject(memory) == GG_CL_SUCCESS);
  end_session(&s);
}

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

Test(opencl_host, a_device_that_cannot_run_the_kernels_is_refused_with_the_reason_opencl, .timeout = 60) {
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

Test(opencl_host, a_device_with_just_enough_is_not_refused_opencl, .timeout = 60) {
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
Test(opencl_host, a_device_without_exact_arithmetic_is_marked_opencl, .timeout = 60) {
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

Test(opencl_host, without_shared_virtual_memory_there_is_the_route_arena_opencl, .timeout = 60) {
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
Test(opencl_host, the_search_of_a_gpu_finds_the_tensors_too_opencl, .timeout = 60) {
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

Test(opencl_host, no_platform_and_no_device_are_told_apart_opencl, .timeout = 30) {
  start();
  gg_watched_opencl_limit(0, 0);
  check_nothing_listed(GG_ERROR_NO_DRIVER, "install an OpenCL driver");
  gg_watched_opencl_limit(UINT32_MAX, 0);
  check_nothing_listed(GG_ERROR_NO_DEVICE, "device files");
}

/* A device that does not answer is listed with the reason; a platform that does not, not at all. */
Test(opencl_host, any_call_may_fail_while_devices_are_listed_opencl, .timeout = 30) {
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
