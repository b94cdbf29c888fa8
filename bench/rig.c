#include "bench/rig.h"

#include <stdlib.h>
#include <time.h>

#include "kernels/formulas.h"

/* Random data repeat after this many elements: enough for the statistics, and fast to generate. */
#define GG_PATTERN ((uint64_t)1 << 22)

double gg_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool fail(gg_rig* rig, gg_status status, const char* doing, gg_problem* problem) {
  return gg_refuse_error(problem, status, gg_context_error(rig->context), doing);
}

/* Sebastiano Vigna's splitmix64, as published for the public domain. */
static uint64_t next_bits(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* What a buffer is filled with: numbers between two limits, as `dtype`. */
typedef struct gg_filling {
  uint64_t seed;
  double low, high;
  gg_dtype dtype;
  uint64_t elements;
} gg_filling;

static void make_pattern(const gg_filling* filling, void* pattern) {
  uint64_t state = filling->seed;
  for (uint64_t i = 0; i < GG_PATTERN; i++) {
    double unit = (double)(next_bits(&state) >> 11) * 0x1p-53;
    float value = (float)(filling->low + unit * (filling->high - filling->low));
    if (filling->dtype == GG_F32)
      ((float*)pattern)[i] = value;
    else
      ((gg_u16*)pattern)[i] = filling->dtype == GG_F16 ? gg_float_to_half(value) : gg_float_to_bf16(value);
  }
}

static bool make_buffer(gg_rig* rig, const gg_filling* filling, gg_buffer** buffer, gg_problem* problem) {
  uint64_t size = gg_dtype_bytes(filling->dtype), bytes = filling->elements * size, piece = GG_PATTERN * size;
  gg_status status = gg_buffer_create(rig->context, bytes, buffer);
  if (status != GG_OK) return fail(rig, status, "allocating for the benchmark", problem);
  void* pattern = malloc(piece);
  if (pattern == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  make_pattern(filling, pattern);
  for (uint64_t at = 0; at < bytes && status == GG_OK; at += piece)
    status = gg_buffer_upload(*buffer, at, pattern, bytes - at < piece ? bytes - at : piece);
  free(pattern);
  return status == GG_OK || fail(rig, status, "uploading random data", problem);
}

/* Tensors lie one after another, each at a multiple of 64 elements. */
static bool place_tensors(gg_rig* rig, gg_problem* problem) {
  const gg_bench_shapes* shapes = &rig->options->shapes;
  rig->places = calloc(shapes->count, sizeof *rig->places);
  if (rig->places == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  for (size_t i = 0; i < shapes->count; i++) {
    rig->places[i] = rig->room;
    rig->elements += gg_bench_elements(&shapes->shapes[i]);
    rig->room += (gg_bench_elements(&shapes->shapes[i]) + 63) / 64 * 64;
  }
  return true;
}

/* Large enough for a device to show its rate, and far larger than its caches. */
static uint64_t copy_bytes(const gg_rig* rig) {
  return rig->info.kind == GG_DEVICE_GPU ? (uint64_t)1 << 30 : (uint64_t)1 << 28;
}

static bool make_copy_buffers(gg_rig* rig, gg_problem* problem) {
  uint64_t bytes = copy_bytes(rig);
  const gg_filling filling = {rig->options->seed, -1, 1, GG_F32, bytes / sizeof(float)};
  if (!make_buffer(rig, &filling, &rig->copy_from, problem)) return false;
  gg_status status = gg_buffer_create(rig->context, bytes, &rig->copy_to);
  if (status == GG_OK) status = gg_buffer_fill(rig->copy_to, 0, bytes, 0x3d);
  return status == GG_OK || fail(rig, status, "allocating for a copy", problem);
}

bool gg_rig_fill(gg_rig* rig, gg_problem* problem) {
  const gg_bench_options* options = rig->options;
  double limit = GG_BENCH_GRADIENT * options->gradient_scale;
  const gg_filling gradient = {options->seed, -limit, limit, options->dtype, rig->room};
  const gg_filling states[GG_STATES] = {{options->seed + 1, -0.05, 0.05, GG_F32, rig->room},
                                        {options->seed + 2, -1e-3, 1e-3, GG_F32, rig->room},
                                        {options->seed + 3, 0, 1e-6, GG_F32, rig->room},
                                        {options->seed + 4, 0, 1e-6, GG_F32, rig->room}};
  bool good = make_buffer(rig, &gradient, &rig->gradient, problem) && make_copy_buffers(rig, problem);
  for (size_t s = 0; s < rig->states && good; s++) {
    good = make_buffer(rig, &states[s], &rig->original[s], problem);
    if (!good) break;
    gg_status status = gg_buffer_create(rig->context, rig->room * sizeof(float), &rig->state[s]);
    good = status == GG_OK || fail(rig, status, "allocating for the benchmark", problem);
  }
  return good;
}

double gg_rig_need(const gg_rig* rig) {
  const gg_bench_options* options = rig->options;
  double states = (double)(rig->states * sizeof(float)), element = (double)gg_dtype_bytes(options->dtype) + 2 * states;
  if (options->paths[GG_BENCH_UNFUSED]) element += sizeof(float);
  for (int kind = 0; kind < GG_BENCH_STATS && options->mode == GG_OUT_OF_PLACE; kind++)
    if (options->paths[kind]) element += states; /* a group's second places */
  return (double)rig->room * element + 2 * (double)copy_bytes(rig);
}

bool gg_rig_open(gg_rig* rig, const gg_bench_options* options, const gg_bench_target* target, gg_problem* problem) {
  *rig = (gg_rig){.options = options, .states = options->amsgrad ? 4 : 3, .info = {.size = sizeof rig->info}};
  gg_context_options context_options = GG_CONTEXT_OPTIONS_INIT;
  if (target->kernel[0] != '\0') context_options.kernel = target->kernel;
  gg_error error = GG_ERROR_INIT;
  gg_status status = gg_context_create(target->device, &context_options, &rig->context, &error);
  if (status != GG_OK) return gg_refuse_error(problem, status, &error, target->device);
  gg_context_device(rig->context, &rig->info);
  if (place_tensors(rig, problem)) return true;
  gg_rig_close(rig);
  return false;
}

void gg_rig_empty(gg_rig* rig) {
  gg_buffer_destroy(&rig->gradient);
  gg_buffer_destroy(&rig->copy_from);
  gg_buffer_destroy(&rig->copy_to);
  for (int s = 0; s < GG_STATES; s++) {
    gg_buffer_destroy(&rig->original[s]);
    gg_buffer_destroy(&rig->state[s]);
  }
}

void gg_rig_close(gg_rig* rig) {
  gg_rig_empty(rig);
  free(rig->places);
  rig->places = NULL;
  gg_context_destroy(&rig->context);
}

gg_tensor gg_rig_tensor(const gg_rig* rig, gg_buffer* buffer, gg_dtype dtype, size_t index) {
  const gg_bench_shape* shape = &rig->options->shapes.shapes[index];
  const int64_t sizes[2] = {shape->rows, shape->columns};
  return gg_tensor_contiguous(buffer, rig->places[index] * gg_dtype_bytes(dtype), dtype, shape->columns > 1 ? 2 : 1,
                              sizes);
}

bool gg_rig_copy_rate(gg_rig* rig, double* rate, gg_problem* problem) {
  gg_device* device = rig->context->device;
  uint64_t bytes = gg_buffer_bytes(rig->copy_from);
  gg_status status = gg_context_synchronize(rig->context);
  double begin = gg_seconds();
  if (status == GG_OK)
    status =
        device->backend->copy(device, rig->copy_to->memory, 0, rig->copy_from->memory, 0, bytes, &rig->context->error);
  if (status == GG_OK) status = gg_context_synchronize(rig->context);
  *rate = 2.0 * (double)bytes / (gg_seconds() - begin);
  return status == GG_OK || fail(rig, status, "measuring a copy", problem);
}
