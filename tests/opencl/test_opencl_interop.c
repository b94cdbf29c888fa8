/* The OpenCL backend beside its caller: queues and memory of the caller's. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "api/opencl.h"
#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/foreign.h"

#ifndef GG_BACKEND_OPENCL

Test(opencl_interop, this_build_has_no_opencl_backend, .timeout = 10) { cr_skip("built without backends=opencl"); }

#else

#include "backends/opencl/loader.h"

/* The caller's side: a queue, as the library made it for another context, and what belongs to it. */
typedef struct caller {
  gg_opencl_api api;
  gg_cl_queue queue;
  gg_cl_context context;
  gg_cl_device device;
  void* objects[64]; /* what has been allocated, to be freed behind the library's users */
  size_t count;
} caller;

static caller be_caller(gg_context* context) {
  caller made = {.queue = gg_opencl_queue(context)};
  gg_error error = GG_ERROR_INIT;
  if (gg_opencl_load(&made.api, &error) != GG_OK) gg_test_fail("%s", error.message);
  GG_CHECK(made.queue != NULL);
  GG_CHECK(made.api.clGetCommandQueueInfo(made.queue, GG_CL_QUEUE_CONTEXT, sizeof made.context, &made.context, NULL) ==
           0);
  GG_CHECK(made.api.clGetCommandQueueInfo(made.queue, GG_CL_QUEUE_DEVICE, sizeof made.device, &made.device, NULL) == 0);
  return made;
}

static gg_buffer* wrap_mem(gg_context* context, uint64_t bytes, void* user) {
  caller* from = user;
  gg_cl_int code = 0;
  gg_cl_mem memory = from->api.clCreateBuffer(from->context, GG_CL_MEM_READ_WRITE, bytes, NULL, &code);
  GG_CHECK(code == 0 && memory != NULL);
  gg_buffer* buffer = NULL;
  GG_OK_OR_FAIL(context, gg_opencl_buffer_wrap_mem(context, memory, bytes, &buffer));
  from->api.clReleaseMemObject(memory); /* the buffer holds it now */
  return buffer;
}

static gg_buffer* wrap_svm(gg_context* context, uint64_t bytes, void* user) {
  caller* from = user;
  void* memory = from->api.clSVMAlloc(from->context, GG_CL_MEM_READ_WRITE, bytes, 0);
  GG_CHECK(memory != NULL && from->count < 64);
  from->objects[from->count++] = memory;
  gg_buffer* buffer = NULL;
  GG_OK_OR_FAIL(context, gg_opencl_buffer_wrap_svm(context, memory, bytes, &buffer));
  return buffer;
}

static void foreign_mem_body(gg_context* context) {
  caller from = be_caller(context);
  gg_report report = gg_foreign_in_place(context, wrap_mem, &from);
  GG_CHECK(report.update_launches == 3); /* one for each tensor */
  gg_foreign_out_of_place(context, wrap_mem, &from);
}

Test(opencl_interop, memory_objects_of_the_caller_give_the_same_bits_svm_opencl, .timeout = 60) {
  gg_test_on("opencl", "svm", 0, foreign_mem_body);
}
Test(opencl_interop, memory_objects_of_the_caller_give_the_same_bits_arena_opencl, .timeout = 60) {
  gg_test_on("opencl", "arena", 0, foreign_mem_body);
}

static void foreign_svm_body(gg_context* context) {
  caller from = be_caller(context);
  if (!from.api.svm) cr_skip("no shared virtual memory");
  gg_report report = gg_foreign_in_place(context, wrap_svm, &from);
  GG_CHECK(report.update_launches == 1);
  gg_foreign_out_of_place(context, wrap_svm, &from);
  GG_OK_OR_FAIL(context, gg_context_synchronize(context));
  for (size_t i = 0; i < from.count; i++) from.api.clSVMFree(from.context, from.objects[i]);
}

Test(opencl_interop, shared_virtual_memory_of_the_caller_gives_the_same_bits_opencl, .timeout = 60) {
  gg_test_on("opencl", "svm", 0, foreign_svm_body);
}

static void adopted_queue_body(gg_context* context) {
  caller from = be_caller(context);
  gg_cl_int code = 0;
  gg_cl_queue queue = from.api.clCreateCommandQueue(from.context, from.device, 0, &code);
  GG_CHECK(code == 0);
  gg_context* adopting = NULL;
  gg_error error = GG_ERROR_INIT;
  if (gg_opencl_context_create(queue, NULL, &adopting, &error) != GG_OK) gg_test_fail("%s", error.message);
  from.api.clReleaseCommandQueue(queue); /* retained */
  GG_CHECK(gg_opencl_queue(adopting) == queue);
  gg_trial_spec spec = {.elements = 5000, .gradient = GG_F16};
  gg_trial* trial = gg_trial_create(&spec, 1, GG_OUT_OF_PLACE, false);
  gg_random random = gg_random_stream(102);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_trial_open(trial, adopting);
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, &guard);
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
  gg_context_destroy(&adopting);
}

Test(opencl_interop, a_queue_of_the_caller_is_adopted_opencl, .timeout = 60) {
  gg_test_on("opencl", NULL, 0, adopted_queue_body);
}

static void refusals_body(gg_context* context) {
  caller from = be_caller(context);
  gg_cl_int code = 0;
  gg_context* none = NULL;
  gg_error error = GG_ERROR_INIT;
  GG_CHECK(gg_opencl_context_create(NULL, NULL, &none, &error) == GG_ERROR_ARGUMENT && none == NULL);
  gg_cl_queue queue =
      from.api.clCreateCommandQueue(from.context, from.device, GG_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
  if (code == 0) {
    GG_CHECK(gg_opencl_context_create(queue, NULL, &none, &error) != GG_OK && none == NULL);
    gg_test_mentions(error.message, "order");
    from.api.clReleaseCommandQueue(queue);
  }
  gg_buffer* buffer = NULL;
  gg_cl_mem memory = from.api.clCreateBuffer(from.context, GG_CL_MEM_READ_WRITE, 64, NULL, &code);
  GG_EXPECT_STATUS(context, gg_opencl_buffer_wrap_mem(context, memory, 65, &buffer), GG_ERROR_ARGUMENT);
  GG_CHECK(buffer == NULL);
  GG_EXPECT_STATUS(context, gg_opencl_buffer_wrap_mem(context, NULL, 4, &buffer), GG_ERROR_ARGUMENT);
  if (from.api.svm)
    GG_EXPECT_STATUS(context, gg_opencl_buffer_wrap_svm(context, memory, UINT64_MAX, &buffer), GG_ERROR_ARGUMENT);
  gg_context* other = gg_test_another_context(context); /* it has an OpenCL context of its own */
  if (gg_opencl_queue(other) != from.queue) {
    gg_cl_context theirs = NULL;
    from.api.clGetCommandQueueInfo(gg_opencl_queue(other), GG_CL_QUEUE_CONTEXT, sizeof theirs, &theirs, NULL);
    if (theirs != from.context)
      GG_EXPECT_STATUS(other, gg_opencl_buffer_wrap_mem(other, memory, 64, &buffer), GG_ERROR_ARGUMENT);
  }
  gg_context_destroy(&other);
  from.api.clReleaseMemObject(memory);
}

Test(opencl_interop, foreign_objects_are_checked_opencl, .timeout = 60) {
  gg_test_on("opencl", NULL, 0, refusals_body);
}

static void other_backends_body(gg_context* context) {
  GG_CHECK(gg_opencl_queue(context) == NULL);
  gg_buffer* buffer = NULL;
  int object = 0;
  GG_EXPECT_STATUS(context, gg_opencl_buffer_wrap_mem(context, (struct _cl_mem*)&object, 4, &buffer),
                   GG_ERROR_UNSUPPORTED);
  GG_EXPECT_STATUS(context, gg_opencl_buffer_wrap_svm(context, &object, 4, &buffer), GG_ERROR_UNSUPPORTED);
  GG_CHECK(buffer == NULL);
}

Test(opencl_interop, contexts_of_other_backends_have_no_queue_cpu, .timeout = 30) {
  gg_test_on("cpu", NULL, 0, other_backends_body);
}

#endif
