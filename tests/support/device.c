#include "tests/support/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"

/* True if `word` stands in a list separated by blanks or commas. */
static bool lists(const char* list, const char* word) {
  size_t length = strlen(word);
  for (const char* at = list; at && *at;) {
    size_t span = strcspn(at, " ,");
    if (span == length && memcmp(at, word, span) == 0) return true;
    at += span + (at[span] != '\0');
  }
  return false;
}

/* Under LeakSanitizer: PoCL 3.1 keeps memory of its own until the process ends, and Criterion's runner, which starts a
 * child for each test and tells it so in BXFI_MAP, leaks a little. In a test, what the library leaks is a failure. */
__attribute__((visibility("default"))) const char* __lsan_default_suppressions(void);
const char* __lsan_default_suppressions(void) { return "leak:libpocl\nleak:libLLVM\nleak:libOpenCL\n"; }
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return getenv("BXFI_MAP") == NULL; }
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

static void fail_on_leaks(void) {
  if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
    gg_test_fail("memory was leaked: see LeakSanitizer's report");
}

static bool required(const char* backend) { return lists(getenv("GG_TEST_REQUIRE"), backend); }

static const char* device_of(const char* backend) {
  char variable[64] = "GG_TEST_DEVICE_";
  size_t used = strlen(variable);
  for (size_t i = 0; backend[i] && used + 1 < sizeof variable; i++)
    variable[used++] = (char)toupper((unsigned char)backend[i]);
  const char* given = getenv(variable);
  return given && *given ? given : backend;
}

/* A status that says "not on this machine or not in this build"; anything else is a fault. */
static bool says_absent(gg_status status) {
  return status == GG_ERROR_NO_DEVICE || status == GG_ERROR_NO_DRIVER || status == GG_ERROR_UNSUPPORTED;
}

/* True if some available device of the backend offers the variant. */
static bool variant_is_offered(const char* backend, const char* variant) {
  gg_device_info infos[16];
  for (size_t i = 0; i < 16; i++) infos[i].size = sizeof infos[i];
  size_t count = 0;
  if (gg_devices(infos, 16, &count, NULL) != GG_OK) return false;
  for (size_t i = 0; i < count && i < 16; i++) {
    bool same = strcmp(infos[i].backend, backend) == 0 && infos[i].available;
    if (same && lists(infos[i].kernels, variant)) return true;
  }
  return false;
}

static bool any_device(const char* backend) {
  gg_device_info infos[16];
  for (size_t i = 0; i < 16; i++) infos[i].size = sizeof infos[i];
  size_t count = 0;
  if (gg_devices(infos, 16, &count, NULL) != GG_OK) return false;
  for (size_t i = 0; i < count && i < 16; i++)
    if (strcmp(infos[i].backend, backend) == 0 && infos[i].available) return true;
  return false;
}

/* Ends the test as skipped if the backend, or the variant, is not there; fails if it is required. */
static void skip_if_absent(const char* backend, const char* variant) {
  if (!any_device(backend)) {
    if (required(backend)) gg_test_fail("GG_TEST_REQUIRE names %s, which has no available device", backend);
    cr_skip("no %s device here", backend);
  }
  if (variant && !variant_is_offered(backend, variant))
    cr_skip("no %s device here offers the kernel variant %s", backend, variant);
}

void gg_test_on(const char* backend, const char* variant, uint32_t threads, gg_test_body body) {
  gg_context_options options = GG_CONTEXT_OPTIONS_INIT;
  options.kernel = variant;
  options.threads = threads;
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  gg_status status = gg_context_create(device_of(backend), &options, &context, &error);
  if (status != GG_OK) {
    if (says_absent(status)) skip_if_absent(backend, variant);
    gg_test_fail("%s: %s: %s", device_of(backend), gg_status_name(status), error.message);
  }
  body(context);
  gg_context_destroy(&context);
  GG_CHECK(context == NULL);
  fail_on_leaks();
}

static const gg_backend* find_backend(const char* name) {
  for (const gg_backend* const* at = gg_backends; *at; at++)
    if (strcmp((*at)->name, name) == 0) return *at;
  return NULL;
}

void gg_test_on_device(const char* backend, const char* variant, uint32_t threads, gg_test_device_body body) {
  const gg_backend* found = find_backend(backend);
  skip_if_absent(backend, variant);
  gg_device_info infos[16];
  for (size_t i = 0; i < 16; i++) infos[i].size = sizeof infos[i];
  size_t count = found->probe(infos, 16), at = 0;
  while (at < count && at < 15 && !infos[at].available) at++;
  gg_open_request request = {.id = infos[at].id, .kernel = variant, .threads = threads};
  gg_device* device = NULL;
  gg_error error = GG_ERROR_INIT;
  gg_status status = found->open(&request, &device, &error);
  if (status != GG_OK) gg_test_fail("%s: %s: %s", infos[at].id, gg_status_name(status), error.message);
  body(device);
  found->close(device);
  fail_on_leaks();
}

gg_context* gg_test_another_context(const gg_context* context) {
  gg_device_info info = {.size = sizeof info};
  gg_context_options options = GG_CONTEXT_OPTIONS_INIT;
  options.kernel = gg_context_kernel(context);
  gg_context* other = NULL;
  gg_error error = GG_ERROR_INIT;
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  gg_status status = gg_context_create(info.id, &options, &other, &error);
  if (status != GG_OK) gg_test_fail("a second context on %s: %s", info.id, error.message);
  return other;
}

void gg_test_needs_exact(const gg_context* context) {
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  if (info.exact) return;
  if (required(info.backend)) gg_test_fail("%s is required but not exact: %s", info.id, info.reason);
  cr_skip("%s is not exact: %s", info.id, info.reason);
}
