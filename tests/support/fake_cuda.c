/* The state of the fake machine, its faults, and what a test asks of it. */
#include "tests/support/fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/fake_cuda_state.h"

gg_fake_cuda_machine gg_fake_cuda;
gg_fake_state gg_fake;
const char gg_fake_fatbin[] = "machine code of the build", gg_fake_ptx[] = ".target sm_75";
char gg_fake_caller_context, gg_fake_caller_stream;
bool gg_fake_caller_stream_lives;

static char primary[8];

gg_cu_context gg_fake_primary(int device) { return (gg_cu_context)(void*)&primary[device]; }

gg_cuda_platform gg_fake_cuda_start(void) {
  for (size_t i = 0; i < GG_FAKE_OBJECTS; i++) free(gg_fake.objects[i].handle);
  gg_fake = (gg_fake_state){.depth = 0};
  gg_fake_cuda = (gg_fake_cuda_machine){
      .devices = 2, .driver_version = 13000, .capability = 90, .maps_host = true, .nvrtc_architectures = {75, 90, 100}};
  gg_fake_caller_stream_lives = false;
  gg_cuda_platform platform = {
      .open_nvrtc = gg_fake_open_nvrtc, .fatbin = gg_fake_fatbin, .ptx = gg_fake_ptx, .source = "the kernels"};
  gg_fake_fill_driver(&platform.driver);
  return platform;
}

/* ---- Calls and faults ---- */

void gg_fake_violate(const char* function, const char* what) {
  if (!gg_fake.violation[0]) snprintf(gg_fake.violation, sizeof gg_fake.violation, "%s: %s", function, what);
}

const char* gg_fake_cuda_violation(void) { return gg_fake.violation; }

void gg_fake_cuda_fail(unsigned nth, unsigned code, bool sticky) {
  gg_fake.planned = nth;
  gg_fake.code = code;
  gg_fake.planned_sticky = sticky;
  gg_fake.struck = NULL;
}

unsigned gg_fake_begin(const char* function) {
  if (gg_fake.call_count < GG_FAKE_CALLS) gg_fake.calls[gg_fake.call_count++] = function;
  if (gg_fake.planned == 0 || --gg_fake.planned > 0) return 0;
  gg_fake.struck = function;
  bool in_driver = strncmp(function, "cu", 2) == 0; /* NVRTC has nothing to do with a context */
  if (gg_fake.planned_sticky && in_driver) gg_fake.fault = gg_fake.code;
  return gg_fake.code;
}

/* After a push that failed, releases are all there is to do. */
unsigned gg_fake_begin_in_context(const char* function) {
  bool current = gg_fake.depth > 0 && gg_fake.stack[gg_fake.depth - 1] != NULL;
  if (!current && !gg_fake.push_failed) gg_fake_violate(function, "there is no current context");
  unsigned code = gg_fake_begin(function);
  return gg_fake.fault ? gg_fake.fault : code;
}

const char* gg_fake_cuda_struck(void) { return gg_fake.struck; }

unsigned gg_fake_cuda_calls(const char* function) {
  unsigned count = 0;
  for (size_t i = 0; i < gg_fake.call_count; i++) count += strcmp(gg_fake.calls[i], function) == 0;
  return count;
}

const char* gg_fake_cuda_compiled_with(void) { return gg_fake.options; }
const void* gg_fake_cuda_loaded(void) { return gg_fake.loaded; }
float gg_fake_cuda_scale(void) { return gg_fake.scale; }

/* ---- Objects ---- */

void* gg_fake_make(gg_fake_kind kind, size_t bytes) {
  void* handle = NULL;
  size_t room = kind == GG_FAKE_MEMORY || kind == GG_FAKE_PINNED ? bytes : 1;
  if (posix_memalign(&handle, 256, room) != 0) abort();
  memset(handle, 0x5a, room);
  for (size_t i = 0; i < GG_FAKE_OBJECTS; i++)
    if (!gg_fake.objects[i].handle) {
      gg_fake.objects[i] = (gg_fake_object){kind, handle, bytes, 0};
      return handle;
    }
  abort(); /* a test with more objects needs a larger table */
}

gg_fake_object* gg_fake_find(gg_fake_kind kind, const void* handle) {
  for (size_t i = 0; handle && i < GG_FAKE_OBJECTS; i++)
    if (gg_fake.objects[i].handle == handle && gg_fake.objects[i].kind == kind) return &gg_fake.objects[i];
  return NULL;
}

/* Also after a release that failed: what is left is what nobody tried to give back. */
void gg_fake_unmake(gg_fake_kind kind, const void* handle, const char* function) {
  gg_fake_object* found = gg_fake_find(kind, handle);
  if (!found) {
    gg_fake_violate(function, "what is to be released is not there");
    return;
  }
  free(found->handle);
  found->handle = NULL;
}

const char* gg_fake_cuda_left(void) {
  static const char* const names[GG_FAKE_KINDS] = {"retained context", "stream",        "event",
                                                   "module",           "device memory", "pinned memory",
                                                   "NVRTC program",    "graph",         "executable graph"};
  unsigned counts[GG_FAKE_KINDS] = {0};
  for (size_t i = 0; i < GG_FAKE_OBJECTS; i++)
    if (gg_fake.objects[i].handle) counts[gg_fake.objects[i].kind]++;
  gg_fake.left[0] = '\0';
  for (int k = 0; k < GG_FAKE_KINDS; k++) {
    size_t used = strlen(gg_fake.left);
    if (counts[k])
      snprintf(gg_fake.left + used, sizeof gg_fake.left - used, "%s%u %s", used ? ", " : "", counts[k], names[k]);
  }
  return gg_fake.left;
}

__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

void gg_fake_cuda_check_heap(void) {
  if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
    gg_test_fail("memory was leaked: see LeakSanitizer's report");
}

void gg_fake_cuda_know(gg_fake_cuda_range range) {
  if (gg_fake.range_count == GG_FAKE_RANGES) abort(); /* a test with more ranges needs a larger table */
  gg_fake.ranges[gg_fake.range_count++] = range;
}

/* ---- What streams were told to do ---- */

static unsigned checksum_of(const void* memory, size_t bytes) {
  unsigned sum = 2166136261u;
  for (size_t i = 0; i < bytes; i++) sum = (sum ^ ((const uint8_t*)memory)[i]) * 16777619u;
  return sum;
}

void gg_fake_queue(const char* function, gg_cu_stream stream, gg_fake_copy copy) {
  if ((void*)stream != &gg_fake_caller_stream && !gg_fake_find(GG_FAKE_STREAM, stream))
    gg_fake_violate(function, "no such stream");
  if (gg_fake.copy_count == GG_FAKE_COPIES) abort(); /* a test with more copies between waits needs a longer queue */
  if (copy.from_host) copy.checksum = checksum_of(copy.source, copy.bytes);
  gg_fake.copies[gg_fake.copy_count++] = copy;
}

static void run_copies(void) {
  for (size_t i = 0; i < gg_fake.copy_count; i++) {
    const gg_fake_copy* at = &gg_fake.copies[i];
    if (at->from_host && at->checksum != checksum_of(at->source, at->bytes))
      gg_fake_violate("cuMemcpyHtoDAsync_v2", "the source changed before the copy was made");
    if (at->source)
      memcpy(at->destination, at->source, at->bytes);
    else
      memset(at->destination, at->value, at->bytes);
  }
  gg_fake.copy_count = 0;
}

bool gg_fake_cuda_will_touch(const void* memory, size_t bytes) {
  const char *begin = memory, *end = begin + bytes;
  for (size_t i = 0; i < gg_fake.copy_count && !gg_fake.fault; i++) {
    const gg_fake_copy* at = &gg_fake.copies[i];
    const char *to = at->destination, *from = at->source;
    if ((to < end && to + at->bytes > begin) || (from && from < end && from + at->bytes > begin)) return true;
  }
  return false;
}

/* A sticky fault stops the work that was queued; a wait that fails otherwise has not waited. */
unsigned gg_fake_wait_in_context(const char* function) {
  unsigned code = gg_fake_begin_in_context(function);
  if (code == 0 && gg_fake_cuda.never_waits) code = GG_FAKE_INVALID_VALUE;
  if (code == 0) run_copies();
  if (gg_fake.fault) gg_fake.copy_count = 0;
  return code;
}

/* ---- The caller ---- */

gg_cu_context gg_fake_cuda_caller(void) {
  gg_fake.stack[0] = (gg_cu_context)(void*)&gg_fake_caller_context;
  gg_fake.depth = 1;
  return gg_fake.stack[0];
}

bool gg_fake_cuda_caller_is_current(void) {
  return gg_fake.depth == 1 && (void*)gg_fake.stack[0] == &gg_fake_caller_context;
}

gg_cu_stream gg_fake_cuda_caller_stream(void) {
  gg_fake_caller_stream_lives = true;
  return (gg_cu_stream)(void*)&gg_fake_caller_stream;
}

bool gg_fake_cuda_caller_stream_lives(void) { return gg_fake_caller_stream_lives; }
