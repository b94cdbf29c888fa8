/* Many guarded steps in a row on one group: memory of the device and of the host does not grow, and at the end every
 * bit is as on the cpu backend. Between ordinary steps come steps that are skipped for an overflow, steps that are
 * discarded, and changes of the loss scale. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/cuda.h"
#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/trial.h"

#define TENSORS 4

/* OpenCL on a processor needs a millisecond for a step. */
#define STEPS         10000
#define STEPS_ON_POCL 2000

/* When everything has happened that allocates once: both buffers of an out-of-place group, a change of scale. */
#define WARM_STEPS 200

/* Growth that is no leak: the process's heap and the driver's pools are not exact to the page. */
#define TOLERANCE ((int64_t)2 << 20)

/* AddressSanitizer keeps what is freed for a while; it finds leaks itself. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Pages of this process that are in memory, as bytes. */
static int64_t host_bytes(void) {
  if (SANITIZED) return 0;
  long total = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  GG_CHECK(file != NULL);
  int fields = fscanf(file, "%ld %ld", &total, &resident);
  fclose(file);
  GG_CHECK(fields == 2);
  return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

#ifdef GG_BACKEND_CUDA

#include "backends/cuda/driver.h"

/* Memory of the GPU that is in use, by any process. */
static int64_t device_bytes(gg_context* context) {
  void* stream = gg_cuda_stream(context);
  if (!stream) return 0;
  static gg_cuda_driver driver;
  static gg_cu_result (*get_info)(size_t * free_bytes, size_t * total_bytes);
  if (!get_info) {
    gg_error error = GG_ERROR_INIT;
    if (gg_cuda_driver_open(&driver, &error) != GG_OK) gg_test_fail("%s", error.message);
    void* address = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "cuMemGetInfo_v2");
    GG_CHECK(address != NULL);
    memcpy(&get_info, &address, sizeof address);
  }
  size_t free_bytes = 0, total_bytes = 0;
  gg_cu_context owner = NULL, popped;
  GG_CHECK(driver.cuStreamGetCtx(stream, &owner) == 0 && driver.cuCtxPushCurrent_v2(owner) == 0);
  GG_CHECK(get_info(&free_bytes, &total_bytes) == 0);
  GG_CHECK(driver.cuCtxPopCurrent_v2(&popped) == 0);
  return (int64_t)(total_bytes - free_bytes);
}

#else

static int64_t device_bytes(gg_context* context) {
  GG_CHECK(gg_cuda_stream(context) == NULL);
  return 0;
}

#endif

static gg_trial* open_trial(gg_context* context, gg_update_mode mode) {
  static const gg_trial_spec specs[TENSORS] = {{.elements = 1000},
                                               {.elements = 3000, .gradient = GG_F16, .model = GG_F16, .shift = 1},
                                               {.elements = 0},
                                               {.elements = 9000, .gradient = GG_BF16, .step = 7}};
  gg_random random = gg_random_stream(71);
  gg_trial* trial = gg_trial_create(specs, TENSORS, mode, true);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  ((float*)trial->entries[0].gradient)[5] = 8; /* overflows under the scale that is to be skipped */
  gg_trial_open(trial, context);
  return trial;
}

static void take_step(gg_trial* trial, int step, gg_report* report) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  bool overflow = step % 100 == 99;
  adamw.gradient_scale = overflow ? 1e-38 : step / 50 % 2 ? 2 : 1;
  guard.clip = true;
  guard.max_norm = 0.5;
  gg_pending* pending = NULL;
  gg_context* context = trial->context;
  GG_OK_OR_FAIL(context, gg_guarded_adamw_step(trial->group, &adamw, &guard, &pending));
  *report = (gg_report)GG_REPORT_INIT;
  GG_OK_OR_FAIL(context, gg_group_report(trial->group, report));
  GG_CHECK(report->action == (overflow ? GG_SKIPPED : GG_APPLIED));
  if (trial->mode == GG_OUT_OF_PLACE && step % 10 == 3)
    GG_OK_OR_FAIL(context, gg_pending_discard(&pending));
  else
    GG_OK_OR_FAIL(context, gg_pending_commit(&pending));
}

static void check_growth(const char* what, int64_t before, int64_t after, int steps) {
  if (after - before > TOLERANCE)
    gg_test_fail("%s grew by %" PRId64 " bytes over %d steps, from %" PRId64, what, after - before, steps, before);
}

static void take_steps(gg_trial* trial, int steps) {
  gg_report report = GG_REPORT_INIT;
  uint64_t scratch = 0;
  int64_t host = 0, device = 0;
  for (int step = 0; step < steps; step++) {
    if (step == WARM_STEPS) {
      scratch = report.scratch_bytes;
      host = host_bytes();
      device = device_bytes(trial->context);
    }
    take_step(trial, step, &report);
    if (step >= WARM_STEPS) GG_CHECK(report.scratch_bytes == scratch);
  }
  check_growth("host memory", host, host_bytes(), steps - WARM_STEPS);
  check_growth("device memory (is another process at work there?)", device, device_bytes(trial->context),
               steps - WARM_STEPS);
}

static void check_same(const gg_trial* trial, const gg_trial* reference) {
  static const gg_role roles[] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ, GG_MAX_EXP_AVG_SQ, GG_MODEL_COPY};
  for (size_t i = 0; i < TENSORS; i++) {
    uint64_t elements = trial->entries[i].spec.elements, step = 0, reference_step = 0;
    GG_OK_OR_FAIL(trial->context, gg_group_step(trial->group, i, &step));
    GG_OK_OR_FAIL(reference->context, gg_group_step(reference->group, i, &reference_step));
    GG_CHECK(step == reference_step);
    for (size_t r = 0; r < sizeof roles / sizeof *roles && elements > 0; r++) {
      if (roles[r] == GG_MODEL_COPY && !trial->entries[i].spec.model) continue;
      uint64_t bytes = elements * (roles[r] == GG_MODEL_COPY ? 2 : 4);
      void *got = malloc(bytes), *want = malloc(bytes);
      GG_CHECK(got != NULL && want != NULL);
      gg_trial_read(trial, i, roles[r], got);
      gg_trial_read(reference, i, roles[r], want);
      gg_test_case("%s of tensor %zu beside the cpu backend", gg_role_name(roles[r]), i);
      gg_test_same_bytes("the bytes", got, want, bytes);
      free(got);
      free(want);
    }
  }
}

GG_TEST_BACKENDS(endurance, many_steps_keep_the_memory_and_the_bits, 300) {
  gg_test_needs_exact(context);
  gg_device_info info = {.size = sizeof info};
  gg_context* cpu = NULL;
  gg_error error = GG_ERROR_INIT;
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  if (gg_context_create("cpu", NULL, &cpu, &error) != GG_OK) gg_test_fail("no cpu backend to compare with");
  bool slow = strcmp(info.backend, "opencl") == 0 && info.kind != GG_DEVICE_GPU;
  int steps = slow ? STEPS_ON_POCL : STEPS;
  if (SANITIZED) steps /= 5;
  for (gg_update_mode mode = GG_OUT_OF_PLACE; mode <= GG_IN_PLACE; mode++) {
    gg_test_case("%d steps on %s, mode %d", steps, info.backend, (int)mode);
    gg_trial *trial = open_trial(context, mode), *reference = open_trial(cpu, mode);
    take_steps(trial, steps);
    take_steps(reference, steps);
    check_same(trial, reference);
    gg_trial_destroy(&reference);
    gg_trial_destroy(&trial);
  }
  gg_context_destroy(&cpu);
}
