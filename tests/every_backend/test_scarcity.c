/* Every allocation of host memory fails once: the call says GG_ERROR_NO_MEMORY and changes nothing, so that the same
 * call succeeds afterwards, and whatever follows gives the bits it always gives. The linker puts the functions below
 * between the library and the C library's (--wrap). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/device.h"
#include "tests/support/life.h"

/* ---- Memory that runs out ---- */

static bool limited;     /* inside a call of the library */
static unsigned planned; /* allocations until one fails; 0: none does */
static bool struck;

static bool runs_out(void) {
  if (!limited || planned == 0 || --planned > 0) return false;
  struck = true;
  return true;
}

void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
char* __real_strdup(const char* text);
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
FILE* __real_open_memstream(char** text, size_t* bytes);

void* __wrap_malloc(size_t bytes);
void* __wrap_calloc(size_t count, size_t bytes);
void* __wrap_realloc(void* memory, size_t bytes);
char* __wrap_strdup(const char* text);
int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes);
FILE* __wrap_open_memstream(char** text, size_t* bytes);

void* __wrap_malloc(size_t bytes) { return runs_out() ? NULL : __real_malloc(bytes); }
void* __wrap_calloc(size_t count, size_t bytes) { return runs_out() ? NULL : __real_calloc(count, bytes); }
void* __wrap_realloc(void* memory, size_t bytes) { return runs_out() ? NULL : __real_realloc(memory, bytes); }
char* __wrap_strdup(const char* text) { return runs_out() ? NULL : __real_strdup(text); }
int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  return runs_out() ? 12 : __real_posix_memalign(memory, alignment, bytes); /* ENOMEM */
}
FILE* __wrap_open_memstream(char** text, size_t* bytes) {
  return runs_out() ? NULL : __real_open_memstream(text, bytes);
}

static void enter(void) { limited = true; }
static void leave(void) { limited = false; }

/* ---- What may run out ---- */

static void check_refusal(gg_status status, const gg_error* error, const void* made) {
  GG_CHECK(struck);
  if (status != GG_ERROR_NO_MEMORY) gg_test_fail("%s: %s", gg_status_name(status), error->message);
  GG_CHECK(error->status == GG_ERROR_NO_MEMORY && made == NULL);
  gg_test_mentions(error->message, "memory");
}

static unsigned refusals;

static bool refused(gg_life* life, const char* call, gg_status status, const void* made) {
  gg_test_case("%s", call);
  check_refusal(status, gg_context_error(life->context), made);
  refusals++;
  return true;
}

static bool run_short(gg_life* life, unsigned nth) {
  planned = nth;
  struck = false;
  GG_CHECK(gg_life_run(life));
  return struck;
}

__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

/* PoCL keeps memory of its own for the life of the process. */
static void check_heap(const gg_device_info* info) {
  if (strcmp(info->backend, "cpu") == 0 && __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
    gg_test_fail("memory was leaked: see LeakSanitizer's report");
}

GG_TEST_VARIANTS(scarcity, any_allocation_of_the_host_may_fail_and_nothing_changes, 60) {
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  static gg_life usual, scarce;
  usual = (gg_life){.context = context, .enter = enter, .leave = leave, .refused = refused};
  gg_life_fill(&usual);
  for (usual.mode = GG_OUT_OF_PLACE; usual.mode <= GG_IN_PLACE; usual.mode++) {
    GG_CHECK(!run_short(&usual, 0));
    refusals = 0;
    scarce = usual;
    unsigned nth = 1;
    while (run_short(&scarce, nth)) {
      gg_test_case("mode %d, allocation %u fails", (int)usual.mode, nth++);
      gg_life_compare(&scarce, &usual);
    }
    GG_CHECK(refusals > 15 && refusals < nth);
  }
  check_heap(&info);
}

static void fail_to_make(const char* device, const gg_context_options* options) {
  struck = true;
  for (unsigned nth = 1; struck; nth++) {
    gg_test_case("\"%s\", allocation %u fails", device, nth);
    gg_context* made = NULL;
    gg_error error = GG_ERROR_INIT;
    planned = nth;
    struck = false;
    enter();
    gg_status status = gg_context_create(device, options, &made, &error);
    leave();
    if (status != GG_OK) check_refusal(status, &error, made);
    gg_context_destroy(&made);
    GG_CHECK(nth < 100 && (nth > 1 || status != GG_OK));
  }
}

GG_TEST_VARIANTS(scarcity, a_context_that_could_not_be_made_leaves_nothing, 60) {
  gg_device_info info = {.size = sizeof info};
  GG_OK_OR_FAIL(context, gg_context_device(context, &info));
  gg_context_options options = GG_CONTEXT_OPTIONS_INIT;
  options.kernel = gg_context_kernel(context);
  fail_to_make(info.id, &options);
  fail_to_make(info.backend, &options); /* which is looked for first */
  check_heap(&info);
}

/* A list of devices is what it is for when memory runs short: no call fails, a backend says why it is missing. */
Test(scarcity, devices_are_listed_whatever_fails, .timeout = 60) {
  for (unsigned nth = 1;; nth++) {
    gg_device_info infos[16] = {{.size = sizeof *infos}};
    size_t count = 0;
    gg_error error = GG_ERROR_INIT;
    planned = nth;
    struck = false;
    enter();
    gg_status status = gg_devices(infos, 16, &count, &error);
    leave();
    if (!struck) {
      GG_CHECK(status == GG_OK && count > 0);
      break;
    }
    gg_test_case("allocation %u fails", nth);
    if (status != GG_OK) {
      GG_CHECK(status == GG_ERROR_NO_MEMORY && error.status == status);
      gg_test_mentions(error.message, "memory");
    } else {
      for (size_t i = 0; i < count; i++) GG_CHECK(infos[i].available || infos[i].reason[0]);
    }
    GG_CHECK(nth < 1000);
  }
}
