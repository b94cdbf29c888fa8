/* The host side of the CUDA backend against a fake driver (tests/support/fake_cuda.h): a whole life with every driver
 * call failing once, and faults. No GPU is needed. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"

#ifndef GG_BACKEND_CUDA

Test(cuda_calls, this_build_has_no_cuda_backend, .timeout = 10) { cr_skip("built without backends=cuda"); }

#else

#include "backends/cuda/table.h"
#include "host/context.h"
#include "tests/support/fake_cuda.h"

/* ---- A life ---- */

typedef struct life {
  gg_device* device;
  gg_memory* memory[4]; /* two buffers, one of 0 bytes, one wrapped */
  gg_table *updating, *measuring;
  bool half_done; /* an update failed after its launch */
} life;

#define BYTES 256
enum { FIRST, SECOND, EMPTY, WRAPPED };

/* Returns the status of a call that fails. */
#define TRY(call)                     \
  do {                                \
    gg_status tried = (call);         \
    if (tried != GG_OK) return tried; \
  } while (0)

/* The driver knows this memory of nobody's as two ranges side by side, as PyTorch's expandable segments are. */
#define FOREIGN ((gg_cu_pointer)1 << 40)
static void know_foreign_memory(void) {
  gg_fake_cuda_range range = {FOREIGN, BYTES / 2, NULL, GG_CU_MEMORYTYPE_DEVICE, 0, 0, FOREIGN};
  gg_fake_cuda_know(range);
  range.start = range.address = FOREIGN + BYTES / 2;
  gg_fake_cuda_know(range);
}

static gg_status allocate(life* l, gg_error* error) {
  TRY(gg_cuda_alloc(l->device, BYTES, &l->memory[FIRST], error));
  TRY(gg_cuda_alloc(l->device, BYTES, &l->memory[SECOND], error));
  TRY(gg_cuda_alloc(l->device, 0, &l->memory[EMPTY], error));
  TRY(gg_cuda_wrap(l->device, GG_HANDLE_CUDA, FOREIGN, BYTES, &l->memory[WRAPPED], error));
  return GG_OK;
}

/* The fake kernels touch nothing, so the tensors may be larger than their memory: the first needs gg_finalize. */
static gg_status make_tables(life* l, gg_error* error) {
  gg_span a = {l->memory[FIRST], 0}, b = {l->memory[WRAPPED], 16};
  gg_row rows[2] = {{.elements = 70000, .gradient_dtype = GG_F16, .gradient = a, .in = {b, b, b}, .out = {b, b, b}},
                    {.elements = 9, .gradient_dtype = GG_F32, .gradient = b, .in = {a, a, a}, .out = {a, a, a}}};
  TRY(gg_cuda_table_make(l->device, rows, 2, false, true, &l->updating, error));
  TRY(gg_cuda_table_make(l->device, rows + 1, 1, false, false, &l->measuring, error));
  GG_CHECK(l->updating->rows == 2 && l->updating->reduction_launches == 2 && l->updating->update_launches == 1);
  GG_CHECK(l->measuring->reduction_launches == 1 && l->updating->scratch_bytes > 0);
  return GG_OK;
}

/* Bytes go up, are changed on the device and come back. */
static gg_status move_bytes(life* l, gg_error* error) {
  uint8_t sent[BYTES], received[BYTES] = {0};
  for (int i = 0; i < BYTES; i++) sent[i] = (uint8_t)i;
  gg_status status = gg_cuda_upload(l->device, l->memory[FIRST], 0, sent, BYTES, error);
  GG_CHECK(!gg_fake_cuda_will_touch(sent, sizeof sent)); /* it is the caller's again, whatever happened */
  TRY(status);
  TRY(gg_cuda_upload(l->device, l->memory[EMPTY], 0, sent, 0, error));
  TRY(gg_cuda_fill(l->device, l->memory[FIRST], 64, 32, 0x77, error));
  TRY(gg_cuda_copy(l->device, l->memory[SECOND], 0, l->memory[FIRST], 0, BYTES, error));
  gg_readback piece = {l->memory[SECOND], 32, received, 96};
  status = gg_cuda_readback(l->device, &piece, 1, error);
  GG_CHECK(gg_fake_cuda_will_touch(received, sizeof received) == (status == GG_OK));
  TRY(status);
  status = gg_cuda_wait(l->device, error);
  GG_CHECK(!gg_fake_cuda_will_touch(received, sizeof received)); /* and so is this */
  TRY(status);
  for (int i = 0; i < 96; i++) GG_CHECK(received[i] == (i >= 32 && i < 64 ? 0x77 : 32 + i));
  return GG_OK;
}

/* Reductions launched, recorded, replayed and under another scale; summaries come by a read-back of the table's own. */
static gg_status measure(life* l, gg_error* error) {
  static const float scales[] = {1, 1, 1, 0.5f};
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
    gg_table* table = i == 2 ? l->measuring : l->updating;
    TRY(gg_cuda_reduce(l->device, table, scales[i], error));
    gg_readback piece = {table->summaries, 0, table->host_summaries, table->rows * sizeof(gg_triple)};
    TRY(gg_cuda_readback(l->device, &piece, 1, error));
    TRY(gg_cuda_wait(l->device, error));
    GG_CHECK(gg_fake_cuda_scale() == scales[i]);
  }
  return GG_OK;
}

/* What fails after the launch must not look as if nothing had happened: the device is lost with it. */
static gg_status take_update(life* l, const gg_update* update, gg_error* error) {
  unsigned launches = gg_fake_cuda_calls("cuLaunchKernel");
  gg_status status = gg_cuda_update(l->device, l->updating, update, error);
  const char* struck = gg_fake_cuda_struck();
  bool launched = gg_fake_cuda_calls("cuLaunchKernel") > launches && !(struck && !strcmp(struck, "cuLaunchKernel"));
  l->half_done = status && launched;
  if (l->half_done) GG_CHECK(status == GG_ERROR_DEVICE_LOST && l->device->lost);
  return status;
}

static gg_status update(life* l, gg_error* error) {
  const gg_bias bias[2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
  gg_update uniform = {.uniform = true}, first = {.bias = bias[0]}, second = {.bias = bias[1]};
  TRY(take_update(l, &uniform, error));
  TRY(take_update(l, &first, error));
  TRY(take_update(l, &second, error)); /* its bias is uploaded after the first update */
  unsigned copies = gg_fake_cuda_calls("cuMemcpyHtoDAsync_v2");
  TRY(take_update(l, &second, error)); /* nothing has changed */
  GG_CHECK(gg_fake_cuda_calls("cuMemcpyHtoDAsync_v2") == copies);
  TRY(gg_cuda_wait_update(l->device, l->updating, error));
  TRY(gg_cuda_unfused_clip(l->device, l->updating, &uniform.constants, error));
  TRY(gg_cuda_sync(l->device, error));
  return GG_OK;
}

static gg_status use(life* l, gg_error* error) {
  TRY(allocate(l, error));
  TRY(move_bytes(l, error));
  TRY(make_tables(l, error));
  TRY(measure(l, error));
  return update(l, error);
}

static void put_away(life* l) {
  gg_cuda_table_free(l->device, l->updating);
  gg_cuda_table_free(l->device, l->measuring);
  l->updating = l->measuring = NULL;
  for (int i = 0; i < 4; i++) {
    gg_cuda_release(l->device, l->memory[i]);
    l->memory[i] = NULL;
  }
}

/* After any life: everything was given back, and the caller's context is current as before. */
static void check_end(void) {
  if (*gg_fake_cuda_left()) gg_test_fail("left behind: %s", gg_fake_cuda_left());
  if (*gg_fake_cuda_violation()) gg_test_fail("misuse of the driver: %s", gg_fake_cuda_violation());
  GG_CHECK(gg_fake_cuda_caller_is_current());
}

/* ---- Every call fails once ---- */

static bool is_one_of(const char* word, const char* const* list) {
  while (*list && strcmp(*list, word) != 0) list++;
  return *list != NULL;
}

/* Releases have nobody to tell, and what can no longer be recorded or destroyed does no harm. */
static const char* const silent[] = {"nvrtcDestroyProgram", "cuGraphDestroy", "cuGraphExecDestroy",
                                     "cuStreamDestroy_v2", NULL};

static gg_status expected_status(unsigned code, const char* function) {
  static const char* const starting[] = {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", NULL};
  if (strncmp(function, "nvrtc", 5) == 0) return code == 1 ? GG_ERROR_NO_MEMORY : GG_ERROR_BUILD;
  if (code == GG_CUDA_ERROR_OUT_OF_MEMORY) return GG_ERROR_NO_MEMORY;
  if (is_one_of(function, starting)) return GG_ERROR_NO_DRIVER;
  return code == GG_CUDA_ERROR_ILLEGAL_ADDRESS ? GG_ERROR_DEVICE_LOST : GG_ERROR_DRIVER;
}

static void check_failure(gg_status status, const gg_error* error, unsigned code, bool half_done) {
  const char* function = gg_fake_cuda_struck();
  GG_CHECK(function != NULL);
  gg_test_case("%s fails with code %u", function, code);
  if (code == GG_CUDA_ERROR_ILLEGAL_ADDRESS && is_one_of(function, silent)) {
    function = error->function; /* the next call tells */
    GG_CHECK(strncmp(function, "cu", 2) == 0);
  }
  gg_status expected = half_done ? GG_ERROR_DEVICE_LOST : expected_status(code, function);
  if (status != expected)
    gg_test_fail("%s, not %s: %s", gg_status_name(status), gg_status_name(expected), error->message);
  GG_CHECK(error->status == status && error->native_code == (int64_t)code);
  if (strcmp(error->function, function) != 0) gg_test_fail("the error blames %s", error->function);
  GG_CHECK(strstr(error->message, function) != NULL);
  GG_CHECK(error->native_name[0] && strstr(error->message, error->native_name) != NULL);
}

typedef struct machine {
  const char* variant;
  bool adopted;  /* on the caller's stream */
  bool unmapped; /* kernels cannot write to host memory */
  int capability;
} machine;

/* One life in which the nth call fails; false if there were fewer calls. */
static bool live(const machine* on, unsigned nth, unsigned code) {
  bool sticky = code == GG_CUDA_ERROR_ILLEGAL_ADDRESS;
  gg_cuda_platform platform = gg_fake_cuda_start();
  gg_fake_cuda.maps_host = !on->unmapped;
  gg_fake_cuda.capability = on->capability;
  gg_fake_cuda_caller();
  know_foreign_memory();
  gg_open_request request = {.id = "cuda:0", .kernel = on->variant};
  if (on->adopted) request.queue = gg_fake_cuda_caller_stream();
  gg_test_case("variant %s, call %u fails with code %u", on->variant ? on->variant : "any", nth, code);
  gg_fake_cuda_fail(nth, code, sticky);

  life l = {.device = NULL};
  gg_error error = GG_ERROR_INIT;
  gg_status status = gg_cuda_open_with(&platform, &request, &l.device, &error);
  GG_CHECK((l.device != NULL) == (status == GG_OK));
  if (status == GG_OK) {
    status = use(&l, &error);
    const char* at = gg_fake_cuda_struck();
    GG_CHECK(l.device->lost == (l.half_done || (sticky && at && strncmp(at, "cu", 2) == 0)));
  }
  const char* struck = gg_fake_cuda_struck();
  if (status != GG_OK)
    check_failure(status, &error, code, l.half_done);
  else if (struck && !is_one_of(struck, silent))
    gg_test_fail("%s failed and nobody said so", struck);
  if (l.device) {
    put_away(&l);
    /* A failure that is no fault leaves a device that works. */
    bool works = !sticky && !l.half_done;
    if (works && use(&l, &error) != GG_OK && gg_fake_cuda_struck() == struck) gg_test_fail("%s", error.message);
    if (works) put_away(&l);
    gg_cuda_close(l.device);
  }
  check_end();
  GG_CHECK(gg_fake_cuda_caller_stream_lives() == on->adopted);
  return gg_fake_cuda_struck() != NULL;
}

static void every_call_fails_on(machine on) {
  static const unsigned codes[] = {GG_FAKE_INVALID_VALUE, GG_CUDA_ERROR_OUT_OF_MEMORY, GG_CUDA_ERROR_ILLEGAL_ADDRESS};
  for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
    unsigned nth = 1;
    while (live(&on, nth, codes[c])) nth++;
    GG_CHECK(nth > 100);
  }
  gg_fake_cuda_check_heap();
}

Test(cuda_calls, any_call_may_fail_on_variant_cubin, .timeout = 60) {
  every_call_fails_on((machine){.variant = "cubin", .capability = 90});
}
Test(cuda_calls, any_call_may_fail_on_variant_ptx, .timeout = 60) {
  every_call_fails_on((machine){.variant = "ptx", .capability = 90, .unmapped = true});
}
Test(cuda_calls, any_call_may_fail_on_variant_nvrtc, .timeout = 60) {
  every_call_fails_on((machine){.variant = "nvrtc", .capability = 90});
  every_call_fails_on((machine){.variant = "nvrtc", .capability = 103}); /* the compiler makes PTX */
}
Test(cuda_calls, any_call_may_fail_on_the_best_variant, .timeout = 60) {
  every_call_fails_on((machine){.variant = NULL, .capability = 90});
}
Test(cuda_calls, any_call_may_fail_on_a_stream_of_the_caller, .timeout = 60) {
  every_call_fails_on((machine){.variant = "cubin", .capability = 90, .adopted = true});
}

/* A device that does not answer is listed with the reason, and the others as they are. */
Test(cuda_calls, any_call_may_fail_while_devices_are_listed, .timeout = 60) {
  gg_device_info infos[4];
  for (unsigned nth = 1;; nth++) {
    gg_cuda_platform platform = gg_fake_cuda_start();
    gg_fake_cuda_caller();
    gg_fake_cuda_fail(nth, GG_CUDA_ERROR_OUT_OF_MEMORY, false);
    size_t count = gg_cuda_probe_with(&platform, infos, 4), unavailable = 0;
    check_end();
    const char* struck = gg_fake_cuda_struck();
    gg_test_case("listing devices, call %u (%s) fails", nth, struck ? struck : "none");
    for (size_t i = 0; i < count; i++) {
      if (!infos[i].available) gg_test_mentions(infos[i].reason, struck ? struck : "nothing failed");
      unavailable += !infos[i].available;
      if (infos[i].available) gg_test_mentions(infos[i].kernels, "cubin ptx nvrtc");
    }
    GG_CHECK(unavailable == (struck != NULL) && count == (nth <= 3 ? 1 : 2));
    if (!struck) break;
    GG_CHECK(nth < 100);
  }
}

/* ---- Faults ---- */

static life open_life(const gg_cuda_platform* platform, const char* variant) {
  life l = {.device = NULL};
  gg_error error = GG_ERROR_INIT;
  gg_open_request request = {.id = "cuda:0", .kernel = variant};
  gg_fake_cuda_caller();
  know_foreign_memory();
  if (gg_cuda_open_with(platform, &request, &l.device, &error) != GG_OK) gg_test_fail("%s", error.message);
  return l;
}

Test(cuda_calls, a_sticky_fault_loses_the_device_and_closing_is_safe, .timeout = 60) {
  static const unsigned codes[] = {4,   201, 214, 220, 226, 700, 702, 709, 710,
                                   714, 715, 716, 717, 718, 719, 721, 810, 999};
  for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
    gg_cuda_platform platform = gg_fake_cuda_start();
    life l = open_life(&platform, NULL);
    gg_error error = GG_ERROR_INIT;
    GG_CHECK(use(&l, &error) == GG_OK && !l.device->lost);
    gg_fake_cuda_fail(2, codes[c], true); /* after the push */
    gg_test_case("fault %u", codes[c]);
    GG_CHECK(gg_cuda_sync(l.device, &error) == GG_ERROR_DEVICE_LOST && l.device->lost);
    GG_CHECK(error.native_code == codes[c]);
    gg_test_mentions(error.message, error.native_name);
    /* The driver's text is followed by what to do. */
    const char* text = strstr(error.message, "as the driver puts it. ");
    GG_CHECK(text != NULL && strlen(text) > 40);
    gg_memory* none = NULL;
    GG_CHECK(gg_cuda_alloc(l.device, 4, &none, &error) == GG_ERROR_DEVICE_LOST && none == NULL);
    unsigned waits = gg_fake_cuda_calls("cuStreamSynchronize");
    put_away(&l);
    gg_cuda_close(l.device);
    GG_CHECK(gg_fake_cuda_calls("cuStreamSynchronize") == waits); /* nothing waits for a device that is gone */
    check_end();
  }
  gg_fake_cuda_check_heap();
}

/* ---- Copies to memory that its owner takes back ---- */

/* A download into memory that is freed as soon as the call is back, and a census, which does the same inside. Returns
 * the status of the first call that fails. */
static gg_status read_back(gg_context* context, gg_buffer* buffer) {
  gg_nonfinite_census census = GG_NONFINITE_CENSUS_INIT;
  const int64_t length = BYTES / sizeof(float);
  gg_tensor gradient = gg_tensor_contiguous(buffer, 0, GG_F32, 1, &length);
  void* received = malloc(BYTES);
  GG_CHECK(received != NULL);
  gg_status status = gg_buffer_download(buffer, 0, received, BYTES);
  if (!context->device->lost) GG_CHECK(!gg_fake_cuda_will_touch(received, BYTES));
  free(received);
  return status != GG_OK ? status : gg_gradient_census(context, &gradient, 1, &census);
}

static gg_context* open_context(gg_buffer** buffer) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  life l = open_life(&platform, NULL);
  GG_CHECK(gg_context_make(l.device, NULL, &context, &error) == GG_OK);
  GG_OK_OR_FAIL(context, gg_buffer_create(context, BYTES, buffer));
  return context;
}

Test(cuda_calls, nothing_arrives_in_memory_that_a_failed_call_gave_back, .timeout = 30) {
  gg_buffer* buffer = NULL;
  gg_context* context = open_context(&buffer);
  bool struck = true;
  for (unsigned nth = 1; struck; nth++) {
    gg_fake_cuda_fail(nth, GG_FAKE_INVALID_VALUE, false);
    gg_status status = read_back(context, buffer);
    struck = gg_fake_cuda_struck() != NULL;
    gg_test_case("call %u (%s) fails", nth, struck ? gg_fake_cuda_struck() : "none");
    GG_CHECK((status == GG_ERROR_DRIVER) == struck && (status == GG_OK) == !struck);
    GG_CHECK(!context->device->lost);
    gg_fake_cuda_fail(0, 0, false);
    GG_OK_OR_FAIL(context, read_back(context, buffer)); /* with whatever was left under way */
  }
  gg_buffer_destroy(&buffer);
  gg_context_destroy(&context);
  check_end();
}

Test(cuda_calls, a_stream_that_cannot_be_waited_for_loses_the_device, .timeout = 10) {
  gg_buffer* buffer = NULL;
  gg_context* context = open_context(&buffer);
  static uint8_t received[BYTES];
  gg_fake_cuda.never_waits = true;
  GG_CHECK(gg_buffer_download(buffer, 0, received, BYTES) == GG_ERROR_DEVICE_LOST);
  const gg_error* error = gg_context_error(context);
  GG_CHECK(strcmp(error->function, "cuEventSynchronize") == 0 && error->native_code == GG_FAKE_INVALID_VALUE);
  gg_test_mentions(error->message, "waiting for a read-back");
  gg_test_mentions(error->message, "destroy the context before the host memory");
  GG_CHECK(gg_buffer_upload(buffer, 0, received, BYTES) == GG_ERROR_DEVICE_LOST);
  gg_buffer_destroy(&buffer);
  gg_context_destroy(&context);
  check_end();
}

/* ---- Other failures ---- */

Test(cuda_calls, other_failures_leave_the_device_alone, .timeout = 30) {
  static const unsigned codes[] = {1, 2, 304, 400, 701, 801};
  for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
    gg_cuda_platform platform = gg_fake_cuda_start();
    life l = open_life(&platform, NULL);
    gg_error error = GG_ERROR_INIT;
    gg_fake_cuda_fail(2, codes[c], false);
    GG_CHECK(gg_cuda_sync(l.device, &error) != GG_OK && error.native_code == codes[c] && !l.device->lost);
    GG_CHECK(use(&l, &error) == GG_OK);
    put_away(&l);
    gg_cuda_close(l.device);
    check_end();
  }
  gg_fake_cuda_check_heap();
}

Test(cuda_calls, an_error_without_a_name_still_has_its_number, .timeout = 10) {
  gg_cuda_platform platform = gg_fake_cuda_start();
  life l = open_life(&platform, NULL);
  gg_error error = GG_ERROR_INIT;
  gg_fake_cuda.nameless = true;
  gg_fake_cuda_fail(2, 12345, false);
  GG_CHECK(gg_cuda_sync(l.device, &error) == GG_ERROR_DRIVER && error.native_code == 12345);
  gg_test_mentions(error.message, "unknown CUDA error (12345)");
  gg_cuda_close(l.device);
  check_end();
}

#endif
