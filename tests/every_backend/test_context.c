/* Devices, contexts, errors and buffers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef GG_BACKEND_CPU
#include <omp.h>

#include "backends/cpu/parallel.h"
#endif
#include "host/context.h"
#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/random.h"
#include "tests/support/trial.h"

Test(context, statuses_have_pinned_values_and_names, .timeout = 10) {
  static const struct {
    gg_status status;
    int value;
    const char* name;
  } pinned[] = {{GG_OK, 0, "GG_OK"},
                {GG_ERROR_ARGUMENT, -1, "GG_ERROR_ARGUMENT"},
                {GG_ERROR_NO_MEMORY, -2, "GG_ERROR_NO_MEMORY"},
                {GG_ERROR_UNSUPPORTED, -3, "GG_ERROR_UNSUPPORTED"},
                {GG_ERROR_NO_DEVICE, -4, "GG_ERROR_NO_DEVICE"},
                {GG_ERROR_NO_DRIVER, -5, "GG_ERROR_NO_DRIVER"},
                {GG_ERROR_DRIVER, -6, "GG_ERROR_DRIVER"},
                {GG_ERROR_BUILD, -7, "GG_ERROR_BUILD"},
                {GG_ERROR_DEVICE_LOST, -8, "GG_ERROR_DEVICE_LOST"},
                {GG_ERROR_STATE, -9, "GG_ERROR_STATE"},
                {GG_ERROR_NONFINITE, -10, "GG_ERROR_NONFINITE"}};
  for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
    GG_CHECK((int)pinned[i].status == pinned[i].value);
    GG_CHECK(strcmp(gg_status_name(pinned[i].status), pinned[i].name) == 0);
  }
  GG_CHECK(strcmp(gg_status_name((gg_status)1234), "unknown status") == 0);
}

Test(context, dtypes_and_roles_have_names, .timeout = 10) {
  GG_CHECK(gg_dtype_bytes(GG_F32) == 4 && gg_dtype_bytes(GG_F16) == 2 && gg_dtype_bytes(GG_BF16) == 2);
  GG_CHECK(gg_dtype_bytes((gg_dtype)77) == 0);
  GG_CHECK(strcmp(gg_dtype_name(GG_F32), "f32") == 0 && strcmp(gg_dtype_name(GG_F16), "f16") == 0);
  GG_CHECK(strcmp(gg_dtype_name(GG_BF16), "bf16") == 0);
  GG_CHECK(strcmp(gg_dtype_name((gg_dtype)77), "unknown dtype") == 0);
  GG_CHECK(strcmp(gg_role_name(GG_PARAMETER), "parameter") == 0);
  GG_CHECK(strcmp(gg_role_name(GG_GRADIENT), "gradient") == 0);
  GG_CHECK(strcmp(gg_role_name(GG_EXP_AVG), "exp_avg") == 0);
  GG_CHECK(strcmp(gg_role_name(GG_EXP_AVG_SQ), "exp_avg_sq") == 0);
  GG_CHECK(strcmp(gg_role_name(GG_MAX_EXP_AVG_SQ), "max_exp_avg_sq") == 0);
  GG_CHECK(strcmp(gg_role_name(GG_MODEL_COPY), "model_copy") == 0);
}

Test(context, the_version_is_that_of_the_headers, .timeout = 10) {
  GG_CHECK(gg_version() == GG_VERSION_MAJOR * 10000 + GG_VERSION_MINOR * 100 + GG_VERSION_PATCH);
  int major, minor, patch;
  GG_CHECK(sscanf(gg_version_string(), "%d.%d.%d", &major, &minor, &patch) == 3);
  GG_CHECK(major == GG_VERSION_MAJOR && minor == GG_VERSION_MINOR && patch == GG_VERSION_PATCH);
  GG_CHECK(strlen(gg_build_description()) > 0);
}

Test(context, every_backend_is_listed_and_says_why_it_is_unavailable, .timeout = 30) {
  size_t count = 0, again = 0;
  GG_CHECK(gg_devices(NULL, 0, &count, NULL) == GG_OK);
  GG_CHECK(count >= 1 && count < 64);
  gg_device_info infos[64];
  for (size_t i = 0; i < 64; i++) infos[i].size = sizeof infos[i];
  GG_CHECK(gg_devices(infos, 64, &again, NULL) == GG_OK);
  GG_CHECK(again == count);
  for (const gg_backend* const* backend = gg_backends; *backend; backend++) {
    bool found = false;
    for (size_t i = 0; i < count; i++) found = found || strcmp(infos[i].backend, (*backend)->name) == 0;
    if (!found) gg_test_fail("no entry for %s", (*backend)->name);
  }
  for (size_t i = 0; i < count; i++) {
    gg_test_case("device %s", infos[i].id);
    GG_CHECK(infos[i].id[0] != '\0');
    GG_CHECK(infos[i].available ? infos[i].kernels[0] != '\0' : infos[i].reason[0] != '\0');
    if (infos[i].available && !infos[i].exact) GG_CHECK(infos[i].reason[0] != '\0');
  }
  gg_device_info one = {.size = sizeof one};
  memset(&infos[1], 0x77, sizeof infos[1]);
  GG_CHECK(gg_devices(&one, 1, &again, NULL) == GG_OK && again == count);
  GG_CHECK(gg_devices(NULL, 0, NULL, NULL) == GG_ERROR_ARGUMENT);
}

static void refuse_device(const char* device, const char* mentions) {
  gg_context* context = (gg_context*)&refuse_device; /* must be set to NULL */
  gg_error error = GG_ERROR_INIT;
  gg_test_case("device \"%s\"", device);
  gg_status status = gg_context_create(device, NULL, &context, &error);
  GG_CHECK(status != GG_OK && context == NULL && error.status == status);
  gg_test_mentions(error.message, mentions);
}

Test(context, an_explicit_device_never_falls_back, .timeout = 30) {
  refuse_device("", "device");
  refuse_device("tpu", "cpu");
  refuse_device("cpu:7", "cpu:7");
  refuse_device("cuda:97", "cuda");
  refuse_device("opencl:63.9", "opencl");
  refuse_device("opencl:name=No such device", "No such device");
  refuse_device("cpux", "cpu");
  GG_CHECK(gg_context_create("tpu", NULL, NULL, NULL) == GG_ERROR_ARGUMENT);
}

Test(context, the_environment_names_the_device_when_the_caller_does_not, .timeout = 30) {
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  setenv("GRADGUARD_DEVICE", "tpu", 1);
  GG_CHECK(gg_context_create(NULL, NULL, &context, &error) != GG_OK);
  gg_test_mentions(error.message, "tpu");
  setenv("GRADGUARD_DEVICE", "cpu", 1);
  if (gg_context_create(NULL, NULL, &context, &error) != GG_OK) gg_test_fail("%s", error.message);
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  GG_CHECK(strcmp(info.backend, "cpu") == 0 && info.available && info.exact);
  GG_CHECK(gg_context_device_report(context)[0] == '\0');
  gg_context_destroy(&context);
  setenv("GRADGUARD_DEVICE", "", 1); /* nothing is not a name */
  if (gg_context_create(NULL, NULL, &context, &error) != GG_OK) gg_test_fail("%s", error.message);
  GG_CHECK(gg_context_device_report(context)[0] != '\0');
  gg_context_destroy(&context);
}

Test(context, auto_says_why_each_earlier_device_was_refused, .timeout = 30) {
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  if (gg_context_create("auto", NULL, &context, &error) != GG_OK) gg_test_fail("%s", error.message);
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  const char* report = gg_context_device_report(context);
  gg_test_mentions(report, info.backend);
  if (strcmp(info.backend, "cpu") == 0)
    for (const gg_backend* const* backend = gg_backends; *backend; backend++)
      gg_test_mentions(report, (*backend)->name);
  gg_context_destroy(&context);
}

GG_TEST_BACKENDS(context, a_kernel_variant_that_is_not_there_is_an_error, 30) {
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  GG_CHECK(strstr(info.kernels, gg_context_kernel(context)) != NULL);
  gg_context_options options = GG_CONTEXT_OPTIONS_INIT;
  options.kernel = "abacus";
  gg_context* other = NULL;
  gg_error error = GG_ERROR_INIT;
  GG_CHECK(gg_context_create(info.id, &options, &other, &error) != GG_OK && other == NULL);
  gg_test_mentions(error.message, "abacus");
  options.kernel = NULL;
  options.size = 0;
  GG_CHECK(gg_context_create(info.id, &options, &other, &error) == GG_ERROR_ARGUMENT);
}

Test(context, a_variant_that_no_backend_has_is_the_callers_mistake, .timeout = 30) {
  gg_context_options options = GG_CONTEXT_OPTIONS_INIT;
  static const char* const wrong[] = {"abacus", "avx", "avx2 portable", " ", "portable "};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    options.kernel = wrong[i];
    gg_context* context = NULL;
    gg_error error = GG_ERROR_INIT;
    gg_test_case("variant \"%s\"", wrong[i]);
    GG_CHECK(gg_context_create("auto", &options, &context, &error) == GG_ERROR_ARGUMENT && context == NULL);
    gg_test_mentions(error.message, wrong[i]);
    for (const gg_backend* const* backend = gg_backends; *backend; backend++)
      gg_test_mentions(error.message, (*backend)->kernels);
  }
}

GG_TEST_BACKENDS(context, the_device_is_told_only_to_a_struct_with_a_size, 30) {
  gg_device_info info = {0};
  GG_EXPECT_STATUS(context, gg_context_device(context, &info), GG_ERROR_ARGUMENT);
  gg_test_mentions(gg_context_error(context)->message, "size");
  GG_EXPECT_STATUS(context, gg_context_device(context, NULL), GG_ERROR_ARGUMENT);
  GG_CHECK(info.size == 0 && info.id[0] == '\0');
}

Test(context, a_variable_with_a_variant_that_its_backend_lacks_passes_over_no_backend, .timeout = 30) {
  for (const gg_backend* const* backend = gg_backends; *backend; backend++) {
    gg_context* context = NULL;
    gg_error error = GG_ERROR_INIT;
    gg_test_case("%s", (*backend)->kernel_variable);
    setenv((*backend)->kernel_variable, "abacus", 1);
    GG_CHECK(gg_context_create("auto", NULL, &context, &error) == GG_ERROR_ARGUMENT && context == NULL);
    gg_test_mentions(error.message, (*backend)->kernel_variable);
    gg_test_mentions(error.message, "abacus");
    unsetenv((*backend)->kernel_variable);
  }
}

/* What a backend says of itself is what its devices offer. */
GG_TEST_BACKENDS(context, a_device_offers_variants_of_its_backend, 60) {
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  char list[80], *rest = NULL;
  snprintf(list, sizeof list, "%s", info.kernels);
  for (char* variant = strtok_r(list, " ", &rest); variant; variant = strtok_r(NULL, " ", &rest)) {
    gg_test_mentions(context->device->backend->kernels, variant);
    gg_context_options options = GG_CONTEXT_OPTIONS_INIT;
    options.kernel = variant;
    gg_context* chosen = NULL;
    gg_error error = GG_ERROR_INIT;
    if (gg_context_create("auto", &options, &chosen, &error) != GG_OK) gg_test_fail("%s", error.message);
    GG_CHECK(strcmp(gg_context_kernel(chosen), variant) == 0);
    gg_context_destroy(&chosen);
  }
}

Test(context, destroying_nothing_is_allowed, .timeout = 10) {
  gg_context_destroy(NULL);
  gg_buffer_destroy(NULL);
  gg_group_destroy(NULL);
  gg_context* context = NULL;
  gg_buffer* buffer = NULL;
  gg_group* group = NULL;
  gg_context_destroy(&context);
  gg_buffer_destroy(&buffer);
  gg_group_destroy(&group);
}

GG_TEST_BACKENDS(context, buffers_move_bytes_and_keep_to_their_bounds, 30) {
  gg_random random = gg_random_stream(41);
  uint8_t data[5000], back[5000];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)gg_random_bits(&random);
  gg_buffer *buffer = NULL, *empty = NULL;
  GG_OK_OR_FAIL(context, gg_buffer_create(context, sizeof data, &buffer));
  GG_CHECK(gg_buffer_bytes(buffer) == sizeof data && !gg_buffer_is_wrapped(buffer));
  GG_OK_OR_FAIL(context, gg_buffer_upload(buffer, 0, data, sizeof data));
  GG_OK_OR_FAIL(context, gg_buffer_fill(buffer, 1001, 777, 0x5a));
  memset(data + 1001, 0x5a, 777);
  GG_OK_OR_FAIL(context, gg_buffer_upload(buffer, 4993, data, 7));
  memcpy(data + 4993, data, 7);
  GG_OK_OR_FAIL(context, gg_buffer_download(buffer, 0, back, sizeof back));
  gg_test_same_bytes("buffer", back, data, sizeof data);
  GG_OK_OR_FAIL(context, gg_buffer_download(buffer, 1003, back, 3));
  gg_test_same_bytes("piece", back, data + 1003, 3);
  GG_OK_OR_FAIL(context, gg_buffer_upload(buffer, 5000, data, 0));
  GG_EXPECT_STATUS(context, gg_buffer_upload(buffer, 4999, data, 2), GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_buffer_upload(buffer, UINT64_MAX, data, 2), GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_buffer_download(buffer, 5001, back, 0), GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_buffer_fill(buffer, 1, 5000, 0), GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_buffer_upload(buffer, 0, NULL, 4), GG_ERROR_ARGUMENT);
  GG_OK_OR_FAIL(context, gg_buffer_download(buffer, 0, back, sizeof back));
  gg_test_same_bytes("after refusals", back, data, sizeof data);
  GG_OK_OR_FAIL(context, gg_buffer_create(context, 0, &empty));
  GG_CHECK(gg_buffer_bytes(empty) == 0);
  gg_buffer_destroy(&empty);
  gg_buffer_destroy(&buffer);
  GG_CHECK(buffer == NULL);
  gg_buffer_destroy(&buffer);
  GG_CHECK(gg_buffer_create(NULL, 4, &buffer) == GG_ERROR_ARGUMENT);
  GG_EXPECT_STATUS(context, gg_buffer_create(context, 4, NULL), GG_ERROR_ARGUMENT);
}

GG_TEST_BACKENDS(context, more_memory_than_there_is_gives_an_error, 30) {
  gg_buffer* buffer = NULL;
  gg_status status = gg_buffer_create(context, (uint64_t)1 << 60, &buffer);
  GG_CHECK(status != GG_OK && buffer == NULL);
  GG_CHECK(gg_context_error(context)->message[0] != '\0');
  GG_OK_OR_FAIL(context, gg_buffer_create(context, 64, &buffer)); /* and the context goes on */
  gg_buffer_destroy(&buffer);
}

GG_TEST_BACKENDS(context, a_group_keeps_the_buffers_it_uses, 30) {
  gg_trial_spec spec = {.elements = 100, .gradient = GG_F16};
  gg_trial* trial = gg_trial_create(&spec, 1, GG_IN_PLACE, false);
  gg_random random = gg_random_stream(42);
  gg_trial_fill(trial, &random, GG_ORDINARY);
  gg_trial_open(trial, context);
  gg_buffer* again[GG_ROLES];
  for (int role = 0; role < GG_ROLES; role++) {
    again[role] = trial->entries[0].buffers[role];
    if (again[role]) gg_buffer_destroy(&trial->entries[0].buffers[role]); /* the caller's handle alone */
  }
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, &guard);
  float got[100];
  gg_trial_read(trial, 0, GG_PARAMETER, got);
  gg_test_same_floats("parameter", got, trial->entries[0].states[0], 100, false);
  gg_trial_destroy(&trial);
}

GG_TEST_BACKENDS(context, a_context_may_go_before_its_buffers_and_groups, 30) {
  gg_context* other = gg_test_another_context(context);
  gg_trial_spec spec = {.elements = 100};
  gg_trial* trial = gg_trial_create(&spec, 1, GG_OUT_OF_PLACE, false);
  gg_trial_open(trial, other);
  gg_context_destroy(&other);
  GG_CHECK(other == NULL);
  gg_trial_destroy(&trial); /* destroys the group and the buffers */
}

/* What a child process may do with its parent's context: be told so, and destroy it. */
static int child_of_fork(gg_context* context, gg_group* group) {
  gg_buffer* buffer = NULL;
  gg_pending* pending = NULL;
  if (gg_buffer_create(context, 64, &buffer) == GG_OK) return 1;
  if (!strcasestr(gg_context_error(context)->message, "fork")) return 2;
  if (gg_guarded_adamw_step(group, NULL, NULL, &pending) == GG_OK) return 3;
  if (gg_context_synchronize(context) == GG_OK) return 4;
  gg_group_destroy(&group);
  gg_context_destroy(&context);
  return 0;
}

GG_TEST_BACKENDS(context, a_fork_after_creation_is_refused, 30) {
  gg_trial_spec spec = {.elements = 100};
  gg_trial* trial = gg_trial_create(&spec, 1, GG_IN_PLACE, false);
  gg_trial_open(trial, context);
  pid_t child = fork();
  GG_CHECK(child >= 0);
  if (child == 0) _exit(child_of_fork(context, trial->group));
  int status = 0;
  GG_CHECK(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    gg_test_fail("the child ended with %d (signal %d)", WEXITSTATUS(status), WTERMSIG(status));
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_trial_step(trial, &adamw, NULL); /* the parent goes on */
  gg_trial_check(trial);
  gg_trial_destroy(&trial);
}

/* One context a thread, all at once; each compares its own bits with the model. */
static void* one_thread(void* device) {
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  gg_context_options options = GG_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  if (gg_context_create(device, &options, &context, &error) != GG_OK) return (void*)1;
  float gradient[4000], expected;
  for (int i = 0; i < 4000; i++) gradient[i] = (float)i * 0.25f;
  gg_buffer* buffer = NULL;
  int64_t shape[1] = {4000};
  bool good = gg_buffer_create(context, sizeof gradient, &buffer) == GG_OK &&
              gg_buffer_upload(buffer, 0, gradient, sizeof gradient) == GG_OK;
  expected = gg_model_reduce(gradient, GG_F32, 4000, 1).ssq;
  gg_triple triple = {gradient[3999], expected, 0};
  for (int round = 0; good && round < 50; round++) {
    gg_tensor tensor = gg_tensor_contiguous(buffer, 0, GG_F32, 1, shape);
    gg_report report = GG_REPORT_INIT;
    good = gg_gradient_stats(context, &tensor, 1, 1, &report, NULL) == GG_OK &&
           gg_test_is_near(report.norm, gg_model_norm(triple), 1e-15, 0);
  }
  gg_buffer_destroy(&buffer);
  gg_context_destroy(&context);
  return good ? NULL : (void*)2;
}

GG_TEST_BACKENDS(context, contexts_on_several_threads_are_independent, 60) {
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) GG_CHECK(pthread_create(&threads[i], NULL, one_thread, info.id) == 0);
  for (int i = 0; i < 4; i++) {
    void* result = NULL;
    GG_CHECK(pthread_join(threads[i], &result) == 0);
    if (result) gg_test_fail("thread %d: %s", i, result == (void*)1 ? "no context" : "wrong statistics");
  }
}

static pthread_barrier_t all_ready;

static void* list_devices(void* infos) {
  size_t count = 0;
  pthread_barrier_wait(&all_ready);
  return (void*)(intptr_t)(gg_devices(infos, 8, &count, NULL) == GG_OK ? count : 0);
}

/* Nobody in this process has asked a driver for anything yet: it makes itself ready while several threads ask. */
Test(context, devices_are_listed_alike_on_several_threads_at_once, .timeout = 30) {
  enum { THREADS = 8, DEVICES = 8 };
  static gg_device_info infos[THREADS][DEVICES];
  pthread_t threads[THREADS];
  void* counts[THREADS];
  GG_CHECK(pthread_barrier_init(&all_ready, NULL, THREADS) == 0);
  for (int i = 0; i < THREADS; i++) {
    infos[i][0].size = sizeof infos[i][0];
    GG_CHECK(pthread_create(&threads[i], NULL, list_devices, infos[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) GG_CHECK(pthread_join(threads[i], &counts[i]) == 0);
  for (int i = 0; i < THREADS; i++) {
    GG_CHECK(counts[i] != NULL && counts[i] == counts[0]);
    for (int k = 0; k < DEVICES; k++) {
      GG_CHECK(infos[i][k].available == infos[0][k].available);
      GG_CHECK(strcmp(infos[i][k].id, infos[0][k].id) == 0 && strcmp(infos[i][k].name, infos[0][k].name) == 0);
    }
  }
}

#ifdef GG_BACKEND_CPU

static void note_threads(void* most, uint64_t begin, uint64_t end) {
  (void)begin, (void)end;
#pragma omp critical
  if (omp_get_num_threads() > *(int*)most) *(int*)most = omp_get_num_threads();
}

/* As OMP_NUM_THREADS does; where a process cannot have as many, OpenMP ends it. */
Test(context, openmp_is_not_told_to_make_threads_without_end, .timeout = 60) {
  int most = 0;
  omp_set_num_threads(50000);
  gg_cpu_parallel(0, 60000, 1, note_threads, &most);
  GG_CHECK(most > 0 && most <= (int)GG_CPU_MOST_THREADS);
}

#endif
