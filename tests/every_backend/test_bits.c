/* The statistics and the update are those of docs/numerics.md, to the bit: compared with the scalar model on every
 * kernel variant of every backend. */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/life.h"
#include "tests/support/trial.h"

static const uint64_t sizes[] = {1,    7,    8,    9,    255,  256,   257,   1024,  1025,
                                 2047, 2048, 2049, 4095, 4097, 16384, 65535, 65536, 65537};
#define SIZES (sizeof sizes / sizeof *sizes)
static const gg_dtype dtypes[] = {GG_F32, GG_F16, GG_BF16};

/* Every size in every dtype, with and without a misalignment, with and without a model copy. */
static gg_trial* every_size(gg_random* random, gg_update_mode mode, bool amsgrad) {
  gg_trial_spec specs[SIZES * 3 * 2];
  size_t count = 0;
  for (size_t s = 0; s < SIZES; s++)
    for (size_t d = 0; d < 3; d++)
      for (int shifted = 0; shifted < 2; shifted++) {
        gg_trial_spec spec = {.elements = sizes[s], .gradient = dtypes[d], .step = s};
        if (shifted) spec.shift = 1 + (uint32_t)gg_random_below(random, 7);
        spec.model = (gg_dtype[]){0, GG_F16, GG_BF16}[(s + d + (size_t)shifted) % 3];
        specs[count++] = spec;
      }
  return gg_trial_create(specs, count, mode, amsgrad);
}

/* Three guarded steps and a plain one, so that each option is met: no clipping, clipping under a loss scale, maximize,
 * and a coefficient that needs two factors. */
static void take_steps(gg_trial* trial, gg_random* random) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, &guard);
  gg_trial_check(trial);

  gg_trial_fill_gradients(trial, random, GG_ORDINARY);
  adamw.gradient_scale = 1536.0;
  guard.clip = true;
  guard.max_norm = 1e-3;
  adamw.maximize = true;
  gg_test_case("clipped, loss scale 1536, maximize");
  gg_trial_step(trial, &adamw, &guard);
  gg_trial_check(trial);

  guard.max_norm = 1e-42;
  adamw.maximize = false;
  adamw.learning_rate = 0.05;
  adamw.weight_decay = 0.1;
  adamw.beta1 = 0;
  gg_test_case("a coefficient of two factors, beta1 = 0");
  gg_trial_step(trial, &adamw, &guard);
  gg_trial_check(trial);

  gg_test_case("the plain step");
  gg_trial_step(trial, &adamw, NULL);
  gg_trial_check(trial);
}

GG_TEST_VARIANTS(bits, a_step_gives_the_bits_of_the_scalar_model, 60) {
  gg_test_needs_exact(context);
  gg_random random = gg_random_stream(1);
  for (int variant = 0; variant < 4; variant++) {
    gg_trial* trial = every_size(&random, variant & 1 ? GG_IN_PLACE : GG_OUT_OF_PLACE, variant & 2);
    gg_test_case("%s, %s, first step", variant & 1 ? "in place" : "out of place", variant & 2 ? "AMSGrad" : "AdamW");
    gg_trial_fill(trial, &random, GG_ORDINARY);
    gg_trial_open(trial, context);
    take_steps(trial, &random);
    gg_trial_destroy(&trial);
  }
}

static bool same_triple(const gg_triple* a, const gg_triple* b) { return memcmp(a, b, sizeof *a) == 0; }

/* Runs the statistics over `count` gradients and compares the report of each with the model. */
static void check_statistics(gg_context* context, gg_trial* trial, double gradient_scale) {
  gg_tensor* tensors = calloc(trial->count, sizeof *tensors);
  gg_tensor_report* reports = calloc(trial->count, sizeof *reports);
  GG_CHECK(tensors && reports);
  gg_entry* entries = gg_trial_open_entries(trial, context);
  for (size_t i = 0; i < trial->count; i++) tensors[i] = entries[i].tensors[GG_GRADIENT];
  gg_report report = GG_REPORT_INIT;
  GG_OK_OR_FAIL(context, gg_gradient_stats(context, tensors, trial->count, gradient_scale, &report, reports));
  float inverse = gg_model_inverse(gradient_scale);
  for (size_t i = 0; i < trial->count; i++) {
    const gg_trial_entry* entry = &trial->entries[i];
    gg_triple want = gg_model_reduce(entry->gradient, entry->spec.gradient, entry->spec.elements, inverse);
    double norm = want.flags ? INFINITY : gg_model_norm(want);
    /* The square root in FP64 of an FP32 number, and a power of two: together they tell its bits. */
    bool same = reports[i].nonfinite == want.flags && reports[i].max_abs == (double)want.max_abs &&
                gg_test_is_near(reports[i].norm, norm, 1e-15, 0);
    if (!same)
      gg_test_fail("tensor %zu (%llu %s, shift %u): norm %.17g, largest %.9g, kinds %u; expected %.17g, %.9g, %u", i,
                   (unsigned long long)entry->spec.elements, gg_dtype_name(entry->spec.gradient), entry->spec.shift,
                   reports[i].norm, reports[i].max_abs, reports[i].nonfinite, norm, (double)want.max_abs, want.flags);
  }
  free(entries);
  free(tensors);
  free(reports);
}

GG_TEST_VARIANTS(bits, statistics_of_any_magnitudes_have_the_bits_of_the_scalar_model, 60) {
  gg_test_needs_exact(context);
  gg_random random = gg_random_stream(2);
  static const double scales[GG_NONFINITE + 1] = {3.0, 65536.0, 1.0, 1e-3, 3.0, 1.0, 1.0, 1e-3};
  for (int kind = 0; kind <= GG_NONFINITE; kind++) {
    gg_test_case("magnitudes of kind %d, loss scale %g", kind, scales[kind]);
    gg_trial* trial = every_size(&random, GG_IN_PLACE, false);
    gg_trial_fill(trial, &random, (gg_magnitudes)kind);
    check_statistics(context, trial, scales[kind]);
    gg_trial_destroy(&trial);
  }
}

/* More tensors than a block has items to look for its own with, alike and of mixed sizes. */
GG_TEST_VARIANTS(bits, hundreds_of_tensors_have_the_bits_of_the_scalar_model, 60) {
  gg_test_needs_exact(context);
  enum { TENSORS = 700 };
  gg_random random = gg_random_stream(5);
  gg_trial_spec specs[TENSORS];
  for (int mixed = 0; mixed < 2; mixed++) {
    for (int i = 0; i < TENSORS; i++) {
      uint64_t elements = mixed ? gg_random_below(&random, i % 50 ? 600 : 9000) : 1000;
      specs[i] = (gg_trial_spec){.elements = elements, .gradient = dtypes[i % 3], .step = mixed ? (uint64_t)i % 5 : 0};
    }
    gg_trial* trial = gg_trial_create(specs, TENSORS, GG_IN_PLACE, false);
    gg_trial_fill(trial, &random, GG_ORDINARY);
    gg_trial_open(trial, context);
    gg_test_case("%s sizes", mixed ? "mixed" : "the same");
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
    guard.clip = true;
    gg_trial_step(trial, &adamw, &guard);
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
}

/* One tensor that needs more than four tiles a lane: over 1024 ranges of 8192 elements. */
GG_TEST_VARIANTS(bits, a_tensor_of_more_than_1024_ranges_gives_the_bits_of_the_scalar_model, 120) {
  gg_test_needs_exact(context);
  gg_random random = gg_random_stream(3);
  for (size_t d = 0; d < 3; d++) {
    gg_trial_spec spec = {.elements = 8388608 + 12345 + d, .gradient = dtypes[d], .shift = (uint32_t)d};
    gg_test_case("%llu %s", (unsigned long long)spec.elements, gg_dtype_name(spec.gradient));
    GG_CHECK(gg_model_blocks(spec.elements) > 512 && gg_model_blocks(spec.elements) <= 1024);
    gg_trial* trial = gg_trial_create(&spec, 1, d ? GG_IN_PLACE : GG_OUT_OF_PLACE, false);
    gg_trial_fill(trial, &random, (gg_magnitudes[]){GG_ORDINARY, GG_WHOLE_RANGE, GG_ALTERNATING}[d]);
    gg_trial_open(trial, context);
    gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
    gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
    guard.clip = true;
    gg_trial_step(trial, &adamw, &guard);
    gg_trial_check(trial);
    gg_trial_destroy(&trial);
  }
}

/* The triples themselves, below the host layer: what the device writes for one table. */
static void check_triples(gg_device* device, gg_random* random, gg_magnitudes kind, float inverse) {
  const gg_backend* backend = device->backend;
  gg_error error = GG_ERROR_INIT;
  gg_row rows[SIZES];
  void* values[SIZES];
  memset(rows, 0, sizeof rows);
  for (size_t i = 0; i < SIZES; i++) { /* largest first, as a table wants them */
    uint64_t elements = sizes[SIZES - 1 - i];
    gg_dtype dtype = dtypes[i % 3];
    uint64_t size = gg_dtype_bytes(dtype), offset = size * (i % 5);
    values[i] = malloc(elements * size);
    GG_CHECK(values[i] != NULL);
    gg_random_fill(random, kind, dtype, values[i], elements);
    rows[i].elements = elements;
    rows[i].gradient_dtype = dtype;
    rows[i].gradient.offset = offset;
    GG_CHECK(backend->alloc(device, offset + elements * size, &rows[i].gradient.memory, &error) == GG_OK);
    GG_CHECK(backend->upload(device, rows[i].gradient.memory, offset, values[i], elements * size, &error) == GG_OK);
  }
  gg_table* table = NULL;
  GG_CHECK(backend->table(device, rows, SIZES, false, false, &table, &error) == GG_OK);
  GG_CHECK(backend->reduce(device, table, inverse, &error) == GG_OK);
  gg_readback piece = {table->summaries, 0, table->host_summaries, SIZES * sizeof(gg_triple)};
  GG_CHECK(backend->readback(device, &piece, 1, &error) == GG_OK);
  GG_CHECK(backend->wait(device, &error) == GG_OK);
  for (size_t i = 0; i < SIZES; i++) {
    gg_triple want = gg_model_reduce(values[i], rows[i].gradient_dtype, rows[i].elements, inverse);
    const gg_triple* got = &table->host_summaries[i];
    if (!same_triple(got, &want))
      gg_test_fail("row %zu (%llu %s): {%a, %a, %u}, expected {%a, %a, %u}", i, (unsigned long long)rows[i].elements,
                   gg_dtype_name(rows[i].gradient_dtype), (double)got->max_abs, (double)got->ssq, got->flags,
                   (double)want.max_abs, (double)want.ssq, want.flags);
  }
  backend->table_free(device, table);
  for (size_t i = 0; i < SIZES; i++) {
    backend->release(device, rows[i].gradient.memory);
    free(values[i]);
  }
}

GG_TEST_DEVICE_VARIANTS(bits, the_twelve_byte_triples_are_those_of_the_scalar_model, 60) {
  if (!device->info.exact) cr_skip("%s is not exact: %s", device->info.id, device->info.reason);
  gg_random random = gg_random_stream(4);
  for (int kind = 0; kind <= GG_NONFINITE; kind++) {
    gg_test_case("magnitudes of kind %d", kind);
    for (int again = 0; again < (kind == GG_TIES ? 8 : 1); again++)
      check_triples(device, &random, (gg_magnitudes)kind, 1.0f);
    check_triples(device, &random, (gg_magnitudes)kind, 1.0f / 3.0f);
    check_triples(device, &random, (gg_magnitudes)kind, 0x1p30f);
  }
}

/* ---- The caller's floating-point mode ---- */

static const struct {
  const char* name;
  int rounding, traps;
  bool flushes;
} modes[] = {{"upward", FE_UPWARD, 0, false},
             {"downward", FE_DOWNWARD, 0, false},
             {"toward zero", FE_TOWARDZERO, 0, false},
             {"traps", FE_TONEAREST, FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW, false},
             {"flushing", FE_TONEAREST, 0, true}};
static size_t mode;
static fenv_t usual_mode;

static void set_mode(void) {
  fegetenv(&usual_mode);
  fesetround(modes[mode].rounding);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(modes[mode].traps);
#ifdef __x86_64__
  if (modes[mode].flushes)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* what -ffast-math and PyTorch's set_flush_denormal set */
#endif
}

static void reset_mode(void) { fesetenv(&usual_mode); }
static void keep_mode(void) {}

/* The norm of subnormal gradients, and a loss scale whose reciprocal overflows. */
static void check_extremes(gg_context* context) {
  const float values[2] = {0x3p-140f, 0x4p-140f};
  gg_triple triple = gg_model_reduce(values, GG_F32, 2, 1);
  gg_buffer* buffer = NULL;
  GG_OK_OR_FAIL(context, gg_buffer_create(context, sizeof values, &buffer));
  GG_OK_OR_FAIL(context, gg_buffer_upload(buffer, 0, values, sizeof values));
  gg_tensor gradient = gg_tensor_contiguous(buffer, 0, GG_F32, 1, (const int64_t[]){2});
  gg_report report = GG_REPORT_INIT;
  gg_tensor_report tensor;
  gg_decision decision = GG_DECISION_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = 0x1p-140;
  guard.clip_epsilon = 0;
  set_mode();
  gg_status measured = gg_gradient_stats(context, &gradient, 1, 1, &report, &tensor);
  gg_status refused = gg_gradient_stats(context, &gradient, 1, 1e-300, &report, NULL);
  gg_status decided = gg_decide(&triple, 1, NULL, &guard, &decision, NULL);
  reset_mode();
  GG_CHECK(measured == GG_OK && refused == GG_ERROR_ARGUMENT && decided == GG_OK);
  GG_CHECK(report.norm == 0x5p-140 && tensor.norm == 0x5p-140 && tensor.max_abs == 0x4p-140);
  GG_CHECK(decision.norm == 0x5p-140 && decision.clip_coefficient == 0.2);
  gg_buffer_destroy(&buffer);
}

static bool nothing_is_refused(gg_life* life, const char* call, gg_status status, const void* made) {
  (void)made;
  gg_test_fail("%s: %s, %s", call, gg_status_name(status), gg_context_error(life->context)->message);
}

GG_TEST_BACKENDS(bits, the_callers_floating_point_mode_changes_none, 60) {
  gg_test_needs_exact(context);
  static gg_life usual, other;
  usual = (gg_life){.context = context, .enter = keep_mode, .leave = keep_mode, .refused = nothing_is_refused};
  gg_life_fill(&usual);
  other = usual;
  GG_CHECK(gg_life_run(&usual));
  other.enter = set_mode;
  other.leave = reset_mode;
  for (mode = 0; mode < sizeof modes / sizeof modes[0]; mode++) {
    gg_test_case("%s", modes[mode].name);
    check_extremes(context);
    GG_CHECK(gg_life_run(&other));
    gg_life_compare(&other, &usual);
  }
}
