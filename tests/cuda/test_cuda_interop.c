/* The CUDA backend beside its caller: streams and device memory of the caller's. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "api/cuda.h"
#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/foreign.h"

static void other_backends_body(gg_context* context) {
  GG_CHECK(gg_cuda_stream(context) == NULL);
  gg_buffer *buffer = NULL, *own = NULL;
  GG_EXPECT_STATUS(context, gg_cuda_buffer_wrap(context, 4096, 4, &buffer), GG_ERROR_UNSUPPORTED);
  GG_CHECK(buffer == NULL);
  GG_OK_OR_FAIL(context, gg_buffer_create(context, 64, &own));
  GG_CHECK(gg_cuda_device_pointer(own) == 0);
  gg_buffer_destroy(&own);
}

Test(cuda_interop, contexts_of_other_backends_have_no_stream_cpu, .timeout = 30) {
  gg_test_on("cpu", NULL, 0, other_backends_body);
}

#ifdef GG_BACKEND_CUDA

#include "backends/cuda/driver.h"

typedef struct caller {
  gg_cuda_driver driver;
  gg_cu_context context;
  gg_cu_pointer memory[64];
  size_t count;
} caller;

/* The CUDA context is the one that the library's stream belongs to. */
static caller be_caller(gg_context* context) {
  caller made = {.count = 0};
  gg_error error = GG_ERROR_INIT;
  if (gg_cuda_driver_open(&made.driver, &error) != GG_OK) gg_test_fail("%s", error.message);
  GG_CHECK(gg_cuda_stream(context) != NULL);
  GG_CHECK(made.driver.cuStreamGetCtx(gg_cuda_stream(context), &made.context) == 0);
  GG_CHECK(made.driver.cuCtxPushCurrent_v2(made.context) == 0);
  return made;
}

static void be_done(caller* used) {
  for (size_t i = 0; i < used->count; i++) GG_CHECK(used->driver.cuMemFree_v2(used->memory[i]) == 0);
  gg_cu_context popped;
  GG_CHECK(used->driver.cuCtxPopCurrent_v2(&popped) == 0 && popped == used->context);
}

static gg_buffer* wrap_pointer(gg_context* context, uint64_t bytes, void* user) {
  caller* from = user;
  GG_CHECK(from->count < 64 && from->driver.cuMemAlloc_v2(&from->memory[from->count], bytes) == 0);
  gg_buffer* buffer = NULL;
  GG_OK_OR_FAIL(context, gg_cuda_buffer_wrap(context, from->memory[from->count], bytes, &buffer));
  GG_CHECK(gg_cuda_device_pointer(buffer) == from->memory[from->count]);
  from->count++;
  return buffer;
}

static void foreign_body(gg_context* context) {
  caller from = be_caller(context);
  gg_report report = gg_foreign_in_place(context, wrap_pointer, &from);
  GG_CHECK(report.update_launches == 1);
  gg_foreign_out_of_place(context, wrap_pointer, &from);
  be_done(&from);
}

Test(cuda_interop, device_memory_of_the_caller_gives_the_same_bits_cuda, .timeout = 60) {
  gg_test_on("cuda", NULL, 0, foreign_body);
}

static void adopted_stream_body(gg_context* context) {
  caller from = be_caller(context);
  gg_cu_stream stream = NULL;
  GG_CHECK(from.driver.cuStreamCreate(&stream, 0) == 0);
  gg_context* adopting = NULL;
  gg_error error = GG_ERROR_INIT;
  if (gg_cuda_context_create(stream, NULL, &adopting, &error) != GG_OK) gg_test_fail("%s", error.message);
  GG_CHECK(gg_cuda_stream(adopting) == stream);
  gg_foreign_in_place(adopting, wrap_pointer, &from);
  gg_context_destroy(&adopting);
  GG_CHECK(from.driver.cuStreamSynchronize(stream) == 0); /* still the caller's */
  GG_CHECK(from.driver.cuStreamDestroy_v2(stream) == 0);
  be_done(&from);
}

Test(cuda_interop, a_stream_of_the_caller_is_adopted_cuda, .timeout = 60) {
  gg_test_on("cuda", NULL, 0, adopted_stream_body);
}

static void refusals_body(gg_context* context) {
  caller from = be_caller(context);
  gg_context* none = NULL;
  gg_error error = GG_ERROR_INIT;
  GG_CHECK(gg_cuda_context_create(NULL, NULL, &none, &error) == GG_ERROR_ARGUMENT && none == NULL);
  gg_buffer* buffer = NULL;
  GG_CHECK(from.driver.cuMemAlloc_v2(&from.memory[from.count++], 1 << 20) == 0);
  GG_EXPECT_STATUS(context, gg_cuda_buffer_wrap(context, 0, 4, &buffer), GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_cuda_buffer_wrap(context, from.memory[0], (uint64_t)1 << 32, &buffer),
                   GG_ERROR_ARGUMENT);
  void* host = malloc(64);
  GG_EXPECT_STATUS(context, gg_cuda_buffer_wrap(context, (uint64_t)(uintptr_t)host, 64, &buffer), GG_ERROR_ARGUMENT);
  GG_CHECK(buffer == NULL);
  free(host);
  be_done(&from);
}

Test(cuda_interop, foreign_pointers_are_checked_cuda, .timeout = 60) { gg_test_on("cuda", NULL, 0, refusals_body); }

#endif
