#include "tests/support/opencl_life.h"

#include <string.h>

#include "backends/opencl/arena.h"
#include "tests/support/compare.h"

gg_opencl_api gg_opencl_life_api;

enum { HALVES, STATES, LARGE, EMPTY, OBJECT, PART, SHARED };

/* Stays where a call failed. */
static void go_on(gg_opencl_life* l, gg_opencl_life_part at) {
  if (gg_fake_opencl_struck() == NULL) l->at = at;
}

/* Returns the status of a call that fails. */
#define TRY(call)                     \
  do {                                \
    gg_status tried = (call);         \
    if (tried != GG_OK) return tried; \
  } while (0)

#define MOST    70000 /* elements of the largest tensor: 35 reduction blocks or so */
#define PART_AT 65536
#define BYTES   256

static const uint64_t lengths[3] = {MOST, 5000, 9};

/* Memory of the caller's: an object, a part of it and shared virtual memory. */
static void make_foreign_memory(gg_opencl_life* l) {
  gg_cl_int code = 0;
  gg_cl_context context = gg_opencl_of(l->device)->context;
  gg_fake_opencl_caller(true);
  l->object = gg_opencl_life_api.clCreateBuffer(context, GG_CL_MEM_READ_WRITE, 2 * PART_AT, NULL, &code);
  l->part = gg_fake_opencl_sub_buffer(l->object, 0, PART_AT, PART_AT);
  if (!l->on.no_svm) l->shared = gg_opencl_life_api.clSVMAlloc(context, GG_CL_MEM_READ_WRITE, 4096, 0);
  gg_fake_opencl_caller(false);
}

/* What was wrapped is kept by the library; the caller of shared virtual memory keeps it. */
static void release_foreign_objects(gg_opencl_life* l) {
  gg_fake_opencl_caller(true);
  gg_opencl_life_api.clReleaseMemObject(l->part);
  gg_opencl_life_api.clReleaseMemObject(l->object);
  gg_fake_opencl_caller(false);
}

static uint64_t handle(const void* object) { return (uint64_t)(uintptr_t)object; }

static gg_status wrap(gg_opencl_life* l, gg_error* error) {
  TRY(gg_opencl_wrap(l->device, GG_HANDLE_OPENCL_MEM, handle(l->object), 2 * PART_AT, &l->memory[OBJECT], error));
  TRY(gg_opencl_wrap(l->device, GG_HANDLE_OPENCL_MEM, handle(l->part), PART_AT, &l->memory[PART], error));
  if (l->on.no_svm) return GG_OK;
  return gg_opencl_wrap(l->device, GG_HANDLE_OPENCL_SVM, handle(l->shared), 4096, &l->memory[SHARED], error);
}

static gg_status allocate(gg_opencl_life* l, gg_error* error) {
  go_on(l, GG_LIFE_ALLOCATING);
  TRY(gg_opencl_alloc(l->device, 2 * MOST, &l->memory[HALVES], error));
  TRY(gg_opencl_alloc(l->device, 4 * MOST, &l->memory[STATES], error));
  TRY(gg_opencl_alloc(l->device, (uint64_t)800 << 10, &l->memory[LARGE], error));
  GG_CHECK(gg_opencl_of(l->device)->slabs->next != NULL);
  for (int i = HALVES; i <= LARGE; i++) GG_CHECK(l->memory[i]->base % GG_OPENCL_ALIGNMENT == 0);
  TRY(gg_opencl_alloc(l->device, 0, &l->memory[EMPTY], error));
  make_foreign_memory(l);
  gg_status status = wrap(l, error);
  release_foreign_objects(l);
  return status;
}

/* Bytes go up, are changed on the device, copied to `to` and come back in two pieces, from another memory of the same
 * place if that is what `seen` is. */
static gg_status move_bytes(gg_opencl_life* l, int from, gg_span to, gg_span seen, gg_error* error) {
  uint8_t sent[BYTES], received[BYTES] = {0};
  for (int i = 0; i < BYTES; i++) sent[i] = (uint8_t)i;
  gg_status status = gg_opencl_upload(l->device, l->memory[from], 0, sent, BYTES, error);
  GG_CHECK(!gg_fake_opencl_will_touch(sent, sizeof sent)); /* it is the caller's again, whatever happened */
  TRY(status);
  TRY(gg_opencl_fill(l->device, l->memory[from], 64, 32, 0x77, error));
  TRY(gg_opencl_fill(l->device, l->memory[from], 97, 3, 0x55, error));
  TRY(gg_opencl_copy(l->device, to.memory, to.offset, l->memory[from], 0, BYTES, error));
  gg_readback pieces[3] = {{seen.memory, seen.offset + 32, received, 40},
                           {seen.memory, seen.offset + 72, received + 40, 56},
                           {l->memory[EMPTY], 0, NULL, 0}};
  status = gg_opencl_readback(l->device, pieces, 3, error);
  GG_CHECK(gg_fake_opencl_will_touch(received, sizeof received) == (status == GG_OK));
  TRY(status);
  status = gg_opencl_wait(l->device, error);
  GG_CHECK(!gg_fake_opencl_will_touch(received, sizeof received));
  TRY(status);
  for (int i = 0; i < 96; i++) GG_CHECK(received[i] == (i >= 32 && i < 64 ? 0x77 : i >= 65 && i < 68 ? 0x55 : 32 + i));
  return GG_OK;
}

static gg_status move_all(gg_opencl_life* l, gg_error* error) {
  go_on(l, GG_LIFE_MOVING);
  TRY(gg_opencl_upload(l->device, l->memory[EMPTY], 0, NULL, 0, error));
  TRY(gg_opencl_fill(l->device, l->memory[EMPTY], 0, 0, 1, error));
  TRY(gg_opencl_wait(l->device, error)); /* for nothing */
  gg_span large = {l->memory[LARGE], 0}, part = {l->memory[PART], 512}, whole = {l->memory[OBJECT], PART_AT + 512};
  gg_span shared = {l->memory[SHARED], 1024};
  TRY(move_bytes(l, HALVES, large, large, error));
  TRY(move_bytes(l, OBJECT, part, whole, error));
  return l->on.no_svm ? GG_OK : move_bytes(l, SHARED, shared, shared, error);
}

/* `out` are the outputs out of place. */
static gg_row row_in(gg_opencl_life* l, uint64_t elements, gg_dtype dtype, int gradient, int states, gg_span out) {
  gg_row row = {.elements = elements, .gradient_dtype = dtype, .gradient = {l->memory[gradient], 0}};
  for (int s = 0; s < GG_STATES; s++) {
    row.in[s] = (gg_span){l->memory[states], 0};
    row.out[s] = l->on.apart ? out : row.in[s];
  }
  return row;
}

/* Rows in the library's memory, in an object and in shared virtual memory, and out of place in both: some launches have
 * the one form of the kernels and some the other, in an order that is not the caller's. */
static gg_status make_tables(gg_opencl_life* l, gg_error* error) {
  go_on(l, GG_LIFE_TABLES);
  int small = l->on.no_svm ? OBJECT : SHARED;
  gg_row rows[3] = {row_in(l, lengths[0], GG_F16, HALVES, STATES, (gg_span){l->memory[LARGE], 256}),
                    row_in(l, lengths[1], GG_F32, PART, OBJECT, (gg_span){l->memory[PART], PART_AT / 2}),
                    row_in(l, lengths[2], GG_BF16, small, small, (gg_span){l->memory[OBJECT], PART_AT / 2})};
  rows[1].model_dtype = GG_BF16;
  rows[1].model_out = (gg_span){l->memory[OBJECT], 20480};
  gg_row measured[2] = {{.elements = lengths[0], .gradient_dtype = GG_F16, .gradient = rows[0].gradient},
                        {.elements = lengths[2], .gradient_dtype = GG_BF16, .gradient = rows[2].gradient}};
  TRY(gg_opencl_table_create(l->device, rows, 3, true, true, &l->updating, error));
  TRY(gg_opencl_table_create(l->device, measured, 2, false, false, &l->measuring, error));
  bool three = !l->on.no_svm && (l->on.apart || strcmp(l->device->kernel, "arena") == 0);
  GG_CHECK(l->updating->rows == 3 && l->updating->update_launches == (three ? 3 : 2));
  GG_CHECK(l->updating->scratch_bytes > 0 && l->measuring->rows == 2 && !l->measuring->updates);
  return GG_OK;
}

/* The fake reduces a row to its length: each summary has to come to its own row, whatever the order of the launches. */
static gg_status measure(gg_opencl_life* l, gg_error* error) {
  static const float scales[] = {1, 0.5f, 0.25f};
  go_on(l, GG_LIFE_MEASURING);
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
    gg_table* table = i == 1 ? l->measuring : l->updating;
    memset(table->host_summaries, 0, table->rows * sizeof(gg_triple));
    unsigned rows = gg_fake_opencl_rows("gg_reduce"), finalized = gg_fake_opencl_rows("gg_finalize");
    TRY(gg_opencl_reduce(l->device, table, scales[i], error));
    GG_CHECK(gg_fake_opencl_rows("gg_reduce") == rows + table->rows);
    GG_CHECK(gg_fake_opencl_rows("gg_finalize") == finalized + (i == 1 ? 1 : 2));
    GG_CHECK(gg_fake_opencl_scale() == scales[i]);
    gg_readback piece = {table->summaries, 0, table->host_summaries, table->rows * sizeof(gg_triple)};
    TRY(gg_opencl_readback(l->device, &piece, 1, error));
    gg_status status = gg_opencl_wait(l->device, error);
    GG_CHECK(!gg_fake_opencl_will_touch(table->host_summaries, table->rows * sizeof(gg_triple)));
    TRY(status);
    GG_CHECK(table->host_summaries[0].max_abs == (float)lengths[0]);
    GG_CHECK(table->host_summaries[table->rows - 1].max_abs == (float)lengths[2]);
    if (table->rows == 3) GG_CHECK(table->host_summaries[1].max_abs == (float)lengths[1]);
  }
  return GG_OK;
}

/* A caller who is told of a failure may try again, unless the device is lost: it has to be, once an update in place is
 * partly under way. */
static gg_status take_update(gg_opencl_life* l, const gg_update* update, gg_error* error) {
  unsigned rows = gg_fake_opencl_rows("gg_update");
  gg_status status = gg_opencl_update(l->device, l->updating, update, error);
  bool launched = gg_fake_opencl_rows("gg_update") > rows;
  if (status == GG_OK) GG_CHECK(gg_fake_opencl_rows("gg_update") == rows + 3);
  l->half_done = status != GG_OK && launched && !l->on.apart;
  if (l->half_done) {
    GG_CHECK(status == GG_ERROR_DEVICE_LOST && l->device->lost);
    gg_test_mentions(error->message, "partly updated in place");
  }
  gg_error again = GG_ERROR_INIT;
  if (status != GG_OK && !l->device->lost && gg_opencl_update(l->device, l->updating, update, &again) != GG_OK)
    gg_test_fail("tried again: %s", again.message);
  return status;
}

static gg_status update(gg_opencl_life* l, gg_error* error) {
  const gg_bias bias[2][3] = {{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}};
  gg_update uniform = {.uniform = true}, first = {.bias = bias[0]}, second = {.bias = bias[1]};
  go_on(l, GG_LIFE_UPDATING);
  TRY(gg_opencl_wait_update(l->device, l->updating, error)); /* for nothing */
  TRY(take_update(l, &uniform, error));
  TRY(take_update(l, &first, error));
  TRY(take_update(l, &second, error));
  TRY(gg_opencl_wait_update(l->device, l->updating, error));
  for (int i = 0; i < 3; i++) {
    const gg_bias* had = gg_fake_opencl_bias(lengths[i]);
    GG_CHECK(had != NULL && had->step_size == bias[1][i].step_size &&
             had->inverse_bias_correction2_sqrt == bias[1][i].inverse_bias_correction2_sqrt);
  }
  unsigned rows = gg_fake_opencl_rows("gg_unfused_clip");
  TRY(gg_opencl_unfused_clip(l->device, l->updating, &uniform.constants, error));
  GG_CHECK(gg_fake_opencl_rows("gg_unfused_clip") == rows + 3);
  TRY(gg_opencl_sync(l->device, error));
  GG_CHECK(!l->on.logs || l->lines > 10);
  return GG_OK;
}

gg_status gg_opencl_life_use(gg_opencl_life* l, gg_error* error) {
  TRY(allocate(l, error));
  TRY(move_all(l, error));
  TRY(make_tables(l, error));
  TRY(measure(l, error));
  return update(l, error);
}

void gg_opencl_life_put_away(gg_opencl_life* l) {
  go_on(l, GG_LIFE_ENDING);
  gg_opencl_table_free(l->device, l->updating);
  gg_opencl_table_free(l->device, l->measuring);
  l->updating = l->measuring = NULL;
  gg_error error = GG_ERROR_INIT; /* something is still queued while memory is released */
  if (l->memory[STATES] != NULL && !l->device->lost) gg_opencl_fill(l->device, l->memory[STATES], 0, BYTES, 1, &error);
  for (int i = 0; i < GG_LIFE_MEMORIES; i++) {
    gg_opencl_release(l->device, l->memory[i]);
    l->memory[i] = NULL;
  }
  if (l->shared != NULL) {
    gg_fake_opencl_caller(true);
    gg_opencl_life_api.clFinish(gg_opencl_of(l->device)->queue);
    gg_opencl_life_api.clSVMFree(gg_opencl_of(l->device)->context, l->shared);
    gg_fake_opencl_caller(false);
  }
  l->shared = NULL;
}

/* With a read-back under way that nobody has waited for. */
void gg_opencl_life_close(gg_opencl_life* l) {
  static uint8_t received[BYTES];
  gg_error error = GG_ERROR_INIT;
  gg_memory* memory = NULL;
  if (!l->device->lost && gg_opencl_alloc(l->device, BYTES, &memory, &error) == GG_OK) {
    gg_readback piece = {memory, 0, received, BYTES};
    gg_opencl_readback(l->device, &piece, 1, &error);
    gg_opencl_release(l->device, memory);
  }
  gg_opencl_close(l->device);
  GG_CHECK(!gg_fake_opencl_will_touch(received, sizeof received));
}

void gg_opencl_life_check_end(void) {
  if (*gg_fake_opencl_left()) gg_test_fail("left behind: %s", gg_fake_opencl_left());
  if (*gg_fake_opencl_violation()) gg_test_fail("misuse of the driver: %s", gg_fake_opencl_violation());
}

static void hear(void* user, int level, const char* message) {
  GG_CHECK(level == 0 && message[0]);
  ++*(unsigned*)user;
}

gg_cl_queue gg_opencl_life_queue(gg_cl_bits properties) {
  gg_cl_int code = 0;
  gg_fake_opencl_caller(true);
  gg_cl_device device = gg_fake_opencl_part();
  gg_cl_platform platforms[1];
  GG_CHECK(gg_opencl_life_api.clGetPlatformIDs(1, platforms, NULL) == GG_CL_SUCCESS);
  const gg_cl_property in[] = {GG_CL_CONTEXT_PLATFORM, (gg_cl_property)platforms[0], 0};
  gg_cl_context context = gg_opencl_life_api.clCreateContext(in, 1, &device, NULL, NULL, &code);
  gg_cl_queue queue = gg_opencl_life_api.clCreateCommandQueue(context, device, properties, &code);
  gg_opencl_life_api.clReleaseContext(context);
  gg_fake_opencl_caller(false);
  return queue;
}

gg_status gg_opencl_life_open(gg_opencl_life* l, gg_error* error) {
  gg_open_request request = {.id = "opencl:0.0", .kernel = l->on.variant};
  if (l->on.adopted) request.queue = gg_opencl_life_queue(GG_CL_QUEUE_PROFILING_ENABLE);
  if (l->on.adopted) request.id = NULL;
  if (l->on.logs) request.log = hear;
  request.log_user = &l->lines;
  go_on(l, GG_LIFE_OPENING);
  gg_status status = gg_opencl_open_with(&gg_opencl_life_api, &request, &l->device, error);
  GG_CHECK((l->device != NULL) == (status == GG_OK));
  if (status == GG_OK) GG_CHECK(gg_opencl_native_queue(l->device) != NULL && !l->device->lost);
  gg_fake_opencl_caller(true); /* the caller's share ends here: the library has its own */
  if (request.queue) gg_opencl_life_api.clReleaseCommandQueue(request.queue);
  gg_fake_opencl_caller(false);
  return status;
}
