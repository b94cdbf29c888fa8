/* The host side of the OpenCL backend on the driver of this machine, with every call of the driver failing once
 * (tests/support/watched_opencl.h). */
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
  api = gg_watched_opencl(&best);
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
  const char* variant;
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
  gg_open_request request = {.id = queue ? NULL : best.id, .kernel = on->variant, .queue = queue};
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
    gg_test_case("variant %s, call %u of opening fails with %d", s->on.variant, nth, (int)code);
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
  gg_test_case("variant %s, call %u fails with %d", s->on.variant, nth, (int)code);
  gg_watched_opencl_fail(nth, code);
  told = false;
  bool whole = gg_life_run(life);
  const char* struck = gg_watched_opencl_struck();
  gg_test_case("variant %s, call %u (%s) fails with %d", s->on.variant, nth, struck ? struck : "none", (int)code);
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
EVERY_CALL(on_variant_svm, (machine){"svm", false, false}, GG_OUT_OF_PLACE, GG_CL_INVALID_VALUE)
EVERY_CALL(on_variant_arena, (machine){"arena", false, false}, GG_IN_PLACE, GG_CL_INVALID_VALUE)
EVERY_CALL(for_want_of_memory_on_variant_svm, (machine){"svm", false, false}, GG_IN_PLACE, GG_CL_OUT_OF_HOST_MEMORY)
EVERY_CALL(for_want_of_memory_on_variant_arena, (machine){"arena", false, false}, GG_OUT_OF_PLACE,
           GG_CL_MEM_OBJECT_ALLOCATION_FAILURE)
EVERY_CALL(when_the_device_goes_away_on_variant_svm, (machine){"svm", false, false}, GG_IN_PLACE,
           GG_CL_DEVICE_NOT_AVAILABLE)
EVERY_CALL(when_the_device_goes_away_on_variant_arena, (machine){"arena", false, false}, GG_OUT_OF_PLACE,
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

/* Two entries, each in a memory object of its own, so that an update takes two launches. */
typedef struct pair {
  gg_cl_mem memory[2];
  gg_buffer* buffers[2];
  gg_entry entries[2];
  gg_group* group;
} pair;

#define PAIR_BYTES 4096

static void make_pair(session* s, pair* p, const uint8_t* values) {
  const int64_t length = 200;
  gg_cl_context context = NULL;
  gg_cl_int failed = 0;
  gg_group_options options = GG_GROUP_OPTIONS_INIT;
  options.mode = GG_IN_PLACE;
  GG_CHECK(gg_unwatched_opencl()->clGetCommandQueueInfo(gg_opencl_queue(s->context), GG_CL_QUEUE_CONTEXT,
                                                        sizeof context, &context, NULL) == GG_CL_SUCCESS);
  for (int i = 0; i < 2; i++) {
    p->memory[i] = gg_unwatched_opencl()->clCreateBuffer(context, GG_CL_MEM_READ_WRITE, PAIR_BYTES, NULL, &failed);
    GG_CHECK(p->memory[i] != NULL && failed == GG_CL_SUCCESS);
    GG_OK_OR_FAIL(s->context, gg_opencl_buffer_wrap_mem(s->context, p->memory[i], PAIR_BYTES, &p->buffers[i]));
    GG_OK_OR_FAIL(s->context, gg_buffer_upload(p->buffers[i], 0, values, PAIR_BYTES));
    p->entries[i] = (gg_entry)GG_ENTRY_INIT;
    for (int role = GG_PARAMETER; role <= GG_EXP_AVG_SQ; role++)
      p->entries[i].tensors[role] = gg_tensor_contiguous(p->buffers[i], (uint64_t)(1024 * role), GG_F32, 1, &length);
  }
  GG_OK_OR_FAIL(s->context, gg_group_create(s->context, p->entries, 2, &options, &p->group));
}

static void release_pair(pair* p) {
  gg_group_destroy(&p->group);
  for (int i = 0; i < 2; i++) {
    gg_buffer_destroy(&p->buffers[i]);
    GG_CHECK(gg_unwatched_opencl()->clReleaseMemObject(p->memory[i]) == GG_CL_SUCCESS);
  }
}

/* A step that failed has changed nothing, or nothing can be done with the context any more. */
Test(opencl_host, an_update_that_stops_between_its_launches_is_not_tried_again_opencl, .timeout = 240) {
  static uint8_t values[PAIR_BYTES], found[PAIR_BYTES];
  memset(values, 0x3c, sizeof values);
  session s = {.on = {"arena", false, false}};
  gg_error error = GG_ERROR_INIT;
  unsigned lost = 0, kept = 0;
  start();
  code = GG_CL_INVALID_VALUE;
  const char* struck = "";
  for (unsigned nth = 1; struck; nth++) {
    pair p;
    gg_pending* pending = NULL;
    if (begin_session(&s, &error) != GG_OK) gg_test_fail("%s", error.message);
    make_pair(&s, &p, values);
    gg_watched_opencl_fail(nth, code);
    gg_status status = gg_adamw_step(p.group, NULL, &pending);
    struck = gg_watched_opencl_struck();
    gg_watched_opencl_fail(0, 0);
    gg_test_case("call %u (%s) fails", nth, struck ? struck : "none");
    if (status == GG_OK) {
      GG_OK_OR_FAIL(s.context, gg_pending_commit(&pending));
    } else if (s.context->device->lost) {
      gg_test_mentions(gg_context_error(s.context)->message, "of the 2 launches of an update");
      lost++;
    } else {
      for (int i = 0; i < 2; i++) {
        GG_OK_OR_FAIL(s.context, gg_buffer_download(p.buffers[i], 0, found, PAIR_BYTES));
        gg_test_same_bytes("what a failed step left alone", found, values, PAIR_BYTES);
      }
      kept++;
    }
    release_pair(&p);
    end_session(&s);
    GG_CHECK(nth < 200);
  }
  GG_CHECK(lost > 0 && kept > 0);
}

/* ---- The form of the kernels for a GPU ---- */

/* The kernels look for their tensors in another way on a GPU. What claims to be one gets that form; newer versions of
 * PoCL abort the process when they compile it. */
Test(opencl_host, the_search_of_a_gpu_finds_the_tensors_too_opencl, .timeout = 60) {
  enum { TENSORS = 700 };
  static gg_trial_spec specs[TENSORS];
  start();
  if (!best.exact) cr_skip("%s is not exact: %s", best.id, best.reason);
  unsigned pocl = 0;
  if (sscanf(best.driver, "Portable Computing Language %u", &pocl) == 1 && pocl > 3)
    cr_skip("no opencl GPU here, and %s cannot compile the kernels for one", best.driver);
  gg_watched_opencl_claim_gpu();
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

#endif
