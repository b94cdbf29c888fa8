/*
 * One test body, run on every backend. GG_TEST_BACKENDS(suite, name, seconds) { ... } makes the Criterion tests
 * suite/name_cpu, suite/name_opencl and suite/name_cuda; the body gets an open `context`. GG_TEST_VARIANTS does the
 * same for every kernel variant of every backend. `--filter '*' '/' '*_opencl'` (written as one word) runs one backend.
 *
 * A backend that is not there is skipped and says why, unless the comma list GG_TEST_REQUIRE names it: then the test
 * fails. GG_TEST_DEVICE_CPU, _OPENCL and _CUDA name a device other than the backend's best, such as
 * "opencl:name=Portable". Every test is a process of its own and opens one context.
 */
#ifndef GG_TESTS_SUPPORT_DEVICE_H
#define GG_TESTS_SUPPORT_DEVICE_H

#include <criterion/criterion.h>

#include "api/gradguard.h"
#include "backends/backend.h"

typedef void (*gg_test_body)(gg_context* context);
typedef void (*gg_test_device_body)(gg_device* device);

/* Opens a context on a backend (variant NULL: its best; threads 0: its choice), runs the body, destroys the context. */
void gg_test_on(const char* backend, const char* variant, uint32_t threads, gg_test_body body);

/* The same below the host layer, on the backend's own functions. */
void gg_test_on_device(const char* backend, const char* variant, uint32_t threads, gg_test_device_body body);

/* Opens another context on the device that `context` has. */
gg_context* gg_test_another_context(const gg_context* context);

/* Skips the test if the device's arithmetic does not give the bits of the definition. */
void gg_test_needs_exact(const gg_context* context);

#define GG_TEST_BACKENDS(suite, name, seconds)                                                        \
  static void suite##_##name(gg_context* context);                                                    \
  Test(suite, name##_cpu, .timeout = (seconds)) { gg_test_on("cpu", NULL, 0, suite##_##name); }       \
  Test(suite, name##_opencl, .timeout = (seconds)) { gg_test_on("opencl", NULL, 0, suite##_##name); } \
  Test(suite, name##_cuda, .timeout = (seconds)) { gg_test_on("cuda", NULL, 0, suite##_##name); }     \
  static void suite##_##name(gg_context* context)

#define GG_TEST_VARIANTS_WITH(opener, argument, suite, name, seconds)                                      \
  static void suite##_##name(argument);                                                                    \
  Test(suite, name##_avx512_cpu, .timeout = (seconds)) { opener("cpu", "avx512", 0, suite##_##name); }     \
  Test(suite, name##_avx2_cpu, .timeout = (seconds)) { opener("cpu", "avx2", 0, suite##_##name); }         \
  Test(suite, name##_portable_cpu, .timeout = (seconds)) { opener("cpu", "portable", 0, suite##_##name); } \
  Test(suite, name##_one_thread_cpu, .timeout = (seconds)) { opener("cpu", NULL, 1, suite##_##name); }     \
  Test(suite, name##_seven_threads_cpu, .timeout = (seconds)) { opener("cpu", NULL, 7, suite##_##name); }  \
  Test(suite, name##_svm_opencl, .timeout = (seconds)) { opener("opencl", "svm", 0, suite##_##name); }     \
  Test(suite, name##_arena_opencl, .timeout = (seconds)) { opener("opencl", "arena", 0, suite##_##name); } \
  Test(suite, name##_cubin_cuda, .timeout = (seconds)) { opener("cuda", "cubin", 0, suite##_##name); }     \
  Test(suite, name##_ptx_cuda, .timeout = (seconds)) { opener("cuda", "ptx", 0, suite##_##name); }         \
  Test(suite, name##_nvrtc_cuda, .timeout = (seconds)) { opener("cuda", "nvrtc", 0, suite##_##name); }     \
  static void suite##_##name(argument)

#define GG_TEST_VARIANTS(suite, name, seconds) \
  GG_TEST_VARIANTS_WITH(gg_test_on, gg_context* context, suite, name, seconds)
#define GG_TEST_DEVICE_VARIANTS(suite, name, seconds) \
  GG_TEST_VARIANTS_WITH(gg_test_on_device, gg_device* device, suite, name, seconds)

#endif
