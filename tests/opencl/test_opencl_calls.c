/* Every call that the OpenCL backend makes, on a driver that is none (tests/support/fake_opencl.h): a whole life with
 * each of them failing once, what a driver may refuse, and what it tells late. No OpenCL is needed; test_opencl_host.c
 * is like it on a driver that computes. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/compare.h"

#ifndef GG_BACKEND_OPENCL

Test(opencl_calls, this_build_has_no_opencl_backend, .timeout = 10) { cr_skip("built without backends=opencl"); }

#else

#include "tests/support/opencl_life.h"

/* ---- Every call fails once ---- */

/* Returns the status of a call that fails. */
#define TRY(call)                     \
  do {                                \
    gg_status tried = (call);         \
    if (tried != GG_OK) return tried; \
  } while (0)

static bool is_one_of(const char* word, const char* const* list) {
  while (*list && strcmp(*list, word) != 0) list++;
  return *list != NULL;
}

#define AT(what) (1u << GG_LIFE_##what)
#define ANY      (~0u)

/* What may fail without a word, and when. Releases have nobody to tell. A slab of the usual size that cannot be had is
 * made smaller. A name, a build log and a time are no results. After an update's last launch waiting tells. */
static bool may_be_silent(const gg_opencl_life* l, const char* function) {
  static const struct {
    const char* function;
    unsigned at;
    bool logs; /* only while times are kept */
  } silent[] = {{"clReleaseContext", ANY, false},
                {"clReleaseCommandQueue", ANY, false},
                {"clReleaseMemObject", ANY, false},
                {"clReleaseProgram", ANY, false},
                {"clReleaseKernel", ANY, false},
                {"clReleaseEvent", ANY, false},
                {"clFinish", AT(ENDING), false},
                {"clFlush", AT(UPDATING), false},
                {"clSVMAlloc", AT(ALLOCATING) | AT(TABLES), false},
                {"clEnqueueSVMMemFill", AT(ALLOCATING) | AT(TABLES), false},
                {"clCreateBuffer", AT(ALLOCATING), false},
                {"clEnqueueFillBuffer", AT(ALLOCATING), false},
                {"clGetPlatformInfo", AT(OPENING), false},
                {"clGetDeviceInfo", AT(OPENING), false},
                {"clGetDeviceIDs", AT(OPENING), false},
                {"clGetProgramBuildInfo", AT(OPENING) | AT(TABLES), false},
                {"clGetEventInfo", ANY, true},
                {"clGetEventProfilingInfo", ANY, true},
                {"clRetainEvent", ANY, true}};
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
    if (strcmp(silent[i].function, function) == 0 && silent[i].at & 1u << l->at && (!silent[i].logs || l->on.logs))
      return true;
  return false;
}

/* A wait that fails leaves nothing to go on with, whatever the code but for a lack of memory. */
static gg_status expected_status(gg_cl_int code, const char* function) {
  static const char* const waiting[] = {"clWaitForEvents", "clFinish", "clGetEventInfo", NULL};
  bool waits = is_one_of(function, waiting);
  if (strcmp(function, "clSVMAlloc") == 0 || code == GG_CL_OUT_OF_HOST_MEMORY) return GG_ERROR_NO_MEMORY;
  if (waits || code == GG_CL_DEVICE_NOT_AVAILABLE) return GG_ERROR_DEVICE_LOST;
  return code == GG_CL_OUT_OF_RESOURCES ? GG_ERROR_NO_MEMORY : GG_ERROR_DRIVER;
}

static void check_failure(const gg_opencl_life* l, gg_status status, const gg_error* error, gg_cl_int code,
                          bool sticky) {
  const char* function = gg_fake_opencl_struck();
  GG_CHECK(function != NULL);
  gg_test_case("%s fails with %d", function, (int)code);
  if (strcmp(function, "clGetDeviceInfo") == 0 && error->native_code == 0) { /* as good as missing */
    GG_CHECK(status == GG_ERROR_UNSUPPORTED && error->status == status);
    if (!strstr(error->message, "does not tell") && !strstr(error->message, "shared virtual memory"))
      gg_test_fail("%s", error->message);
    return;
  }
  if (sticky && strcmp(error->function, function) != 0) function = error->function; /* the next call tells */
  gg_status expected = l->half_done ? GG_ERROR_DEVICE_LOST : expected_status(code, function);
  if (status != expected)
    gg_test_fail("%s, not %s: %s", gg_status_name(status), gg_status_name(expected), error->message);
  GG_CHECK(error->status == status && error->native_name[0]);
  GG_CHECK(error->native_code == (strcmp(function, "clSVMAlloc") ? code : GG_CL_MEM_OBJECT_ALLOCATION_FAILURE));
  if (strcmp(error->function, function) != 0) gg_test_fail("the error blames %s: %s", error->function, error->message);
  GG_CHECK(strncmp(function, "cl", 2) == 0 && strstr(error->message, error->native_name) != NULL);
}

/* One life in which the nth call fails; false if there were fewer calls. */
static bool live(const gg_opencl_machine* on, unsigned nth, gg_cl_int code, bool sticky) {
  gg_opencl_life_api = gg_fake_opencl_start();
  if (on->no_svm) gg_fake_opencl.svm = 0;
  gg_fake_opencl_fail(nth, code, sticky);
  gg_opencl_life l = {.on = *on};
  gg_error error = GG_ERROR_INIT;
  gg_test_case("variant %s, call %u fails with %d", on->variant ? on->variant : "any", nth, (int)code);
  gg_status status = gg_opencl_life_open(&l, &error);
  if (status == GG_OK) status = gg_opencl_life_use(&l, &error);
  const char* struck = gg_fake_opencl_struck();
  gg_test_case("variant %s, call %u (%s) fails with %d", on->variant ? on->variant : "any", nth,
               struck ? struck : "none", (int)code);
  if (status != GG_OK)
    check_failure(&l, status, &error, code, sticky);
  else if (struck && !may_be_silent(&l, struck))
    gg_test_fail("%s failed and nobody said so", struck);
  if (l.device != NULL) {
    GG_CHECK(l.device->lost == (status == GG_ERROR_DEVICE_LOST));
    gg_opencl_life_put_away(&l);
    /* A failure that is no loss leaves a device that works, with no trace of what failed. */
    bool works = !sticky && !l.device->lost && status != GG_ERROR_UNSUPPORTED;
    if (struck && works && gg_opencl_life_use(&l, &error) != GG_OK) gg_test_fail("%s", error.message);
    gg_opencl_life_put_away(&l);
    gg_opencl_life_close(&l);
  }
  gg_opencl_life_check_end();
  return gg_fake_opencl_struck() != NULL;
}

static void every_call_fails(gg_opencl_machine on) {
  static const struct {
    gg_cl_int code;
    bool sticky;
  } faults[] = {{GG_CL_INVALID_VALUE, false},
                {GG_CL_OUT_OF_RESOURCES, false},
                {GG_CL_OUT_OF_HOST_MEMORY, false},
                {GG_CL_DEVICE_NOT_AVAILABLE, false},
                {GG_CL_DEVICE_NOT_AVAILABLE, true}};
  for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
    unsigned nth = 1;
    while (live(&on, nth, faults[f].code, faults[f].sticky)) nth++;
    GG_CHECK(nth > 300);
  }
  gg_fake_opencl_check_heap();
}

#define EVERY_CALL(name, ...) \
  Test(opencl_calls, any_call_may_fail_##name, .timeout = 120) { every_call_fails((gg_opencl_machine){__VA_ARGS__}); }
EVERY_CALL(on_variant_svm, .variant = "svm")
EVERY_CALL(on_variant_arena, .variant = "arena")
EVERY_CALL(out_of_place, .variant = "svm", .apart = true)
EVERY_CALL(without_shared_virtual_memory, .no_svm = true)
EVERY_CALL(on_a_queue_of_the_caller, .variant = "svm", .adopted = true)
EVERY_CALL(while_times_are_kept, .variant = "arena", .logs = true)
EVERY_CALL(while_times_of_the_callers_queue_are_kept, .adopted = true, .logs = true, .apart = true)

/* ---- Commands that fail after they were queued ---- */

static void break_and_wait(bool quiet, gg_status (*wait)(gg_opencl_life*, gg_error*)) {
  gg_opencl_machine on = {.variant = "svm"};
  gg_opencl_life l = {.on = on};
  gg_error error = GG_ERROR_INIT;
  gg_opencl_life_api = gg_fake_opencl_start();
  if (gg_opencl_life_open(&l, &error) != GG_OK || gg_opencl_life_use(&l, &error) != GG_OK)
    gg_test_fail("%s", error.message);
  gg_fake_opencl_break(GG_CL_ILLEGAL_ACCESS_NVIDIA, quiet);
  GG_CHECK(wait(&l, &error) == GG_ERROR_DEVICE_LOST && l.device->lost);
  GG_CHECK(error.native_code == GG_CL_ILLEGAL_ACCESS_NVIDIA);
  gg_test_mentions(error.message, "illegal read or write by a kernel");
  gg_test_mentions(error.message, "make a new one");
  gg_opencl_life_put_away(&l);
  gg_opencl_life_close(&l);
  gg_opencl_life_check_end();
  gg_fake_opencl_check_heap();
}

static gg_status fail_in_readback(gg_opencl_life* l, gg_error* error) {
  gg_readback piece = {l->updating->summaries, 0, l->updating->host_summaries, 3 * sizeof(gg_triple)};
  TRY(gg_opencl_reduce(l->device, l->updating, 1, error));
  TRY(gg_opencl_readback(l->device, &piece, 1, error));
  GG_CHECK(!l->device->lost);
  return gg_opencl_wait(l->device, error);
}

static gg_status fail_in_update(gg_opencl_life* l, gg_error* error) {
  gg_update uniform = {.uniform = true};
  TRY(gg_opencl_update(l->device, l->updating, &uniform, error));
  GG_CHECK(!l->device->lost);
  return gg_opencl_wait_update(l->device, l->updating, error);
}

/* The copy of the biases of the step before failed: the next step finds out. */
static gg_status fail_in_bias(gg_opencl_life* l, gg_error* error) {
  const gg_bias bias[3] = {{1, 2}, {3, 4}, {5, 6}};
  gg_update update = {.bias = bias};
  TRY(gg_opencl_update(l->device, l->updating, &update, error));
  return gg_opencl_update(l->device, l->updating, &update, error);
}

static gg_status fail_in_sync(gg_opencl_life* l, gg_error* error) {
  gg_update_constants constants = {0};
  TRY(gg_opencl_unfused_clip(l->device, l->updating, &constants, error));
  return gg_opencl_sync(l->device, error);
}

Test(opencl_calls, a_queued_command_that_fails_loses_the_device_however_the_driver_tells, .timeout = 30) {
  for (int quiet = 0; quiet < 2; quiet++) {
    gg_test_case("%s", quiet ? "only the event's status says so" : "the wait says so");
    break_and_wait(quiet, fail_in_readback);
    break_and_wait(quiet, fail_in_update);
    break_and_wait(quiet, fail_in_bias);
  }
  break_and_wait(false, fail_in_sync);
}

/* ---- What is refused ---- */

static gg_opencl_life opened(gg_opencl_machine on) {
  gg_opencl_life l = {.on = on};
  gg_error error = GG_ERROR_INIT;
  if (gg_opencl_life_open(&l, &error) != GG_OK) gg_test_fail("%s", error.message);
  return l;
}

Test(opencl_calls, what_the_driver_cannot_build_is_told_with_its_log, .timeout = 10) {
  gg_opencl_life_api = gg_fake_opencl_start();
  gg_fake_opencl.build = GG_CL_BUILD_PROGRAM_FAILURE;
  gg_fake_opencl.build_log = "line 7:\nno such type\n";
  gg_opencl_life l = {.on = {.variant = "arena"}};
  gg_error error = GG_ERROR_INIT;
  GG_CHECK(gg_opencl_life_open(&l, &error) == GG_ERROR_BUILD && error.native_code == GG_CL_BUILD_PROGRAM_FAILURE);
  gg_test_mentions(error.message, "line 7: no such type");
  gg_test_mentions(error.message, "-DGG_ARENA=1");
  GG_CHECK(strcmp(error.function, "clBuildProgram") == 0);
  gg_opencl_life_check_end();
}

Test(opencl_calls, a_kernel_that_gets_too_few_work_items_is_refused_with_its_group, .timeout = 10) {
  static const char* const kernels[] = {"gg_reduce", "gg_finalize", "gg_update"};
  for (int k = 0; k < 3; k++) {
    gg_opencl_life_api = gg_fake_opencl_start();
    gg_fake_opencl.kernel = kernels[k];
    gg_fake_opencl.kernel_group = 255;
    gg_opencl_life l = opened((gg_opencl_machine){.variant = "svm"});
    gg_error error = GG_ERROR_INIT;
    GG_CHECK(gg_opencl_life_use(&l, &error) == GG_ERROR_UNSUPPORTED && l.updating == NULL && !l.device->lost);
    gg_test_mentions(error.message, kernels[k]);
    gg_test_mentions(error.message, "at most 255 work-items in a group, 256 are needed");
    gg_opencl_life_put_away(&l);
    gg_opencl_life_close(&l);
    gg_opencl_life_check_end();
  }
}

Test(opencl_calls, a_queue_that_is_out_of_order_is_not_adopted, .timeout = 10) {
  static const gg_cl_bits refused[] = {GG_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                       GG_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | GG_CL_QUEUE_ON_DEVICE};
  for (int i = 0; i < 2; i++) {
    gg_opencl_life_api = gg_fake_opencl_start();
    gg_open_request request = {.queue = gg_opencl_life_queue(refused[i])};
    gg_device* device = NULL;
    gg_error error = GG_ERROR_INIT;
    GG_CHECK(gg_opencl_open_with(&gg_opencl_life_api, &request, &device, &error) == GG_ERROR_ARGUMENT &&
             device == NULL);
    gg_test_mentions(error.message, "in-order queue");
    gg_opencl_life_check_end();
  }
}

/* More than one allocation can have is the memory's fault, and the device goes on. */
Test(opencl_calls, an_allocation_beyond_the_device_is_refused, .timeout = 10) {
  static const char* const variants[] = {"svm", "arena"};
  for (int r = 0; r < 2; r++) {
    gg_opencl_life_api = gg_fake_opencl_start();
    gg_opencl_life l = opened((gg_opencl_machine){.variant = variants[r]});
    gg_memory* memory = NULL;
    gg_error error = GG_ERROR_INIT;
    GG_CHECK(gg_opencl_alloc(l.device, (1 << 20) + 1, &memory, &error) == GG_ERROR_NO_MEMORY && memory == NULL);
    gg_test_mentions(error.message, "has at most 1048576");
    GG_CHECK(!l.device->lost && gg_opencl_life_use(&l, &error) == GG_OK);
    gg_opencl_life_put_away(&l);
    gg_opencl_life_close(&l);
    gg_opencl_life_check_end();
  }
}

#endif
