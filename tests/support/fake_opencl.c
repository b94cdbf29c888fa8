/* The state of the fake machine, its faults, and what a test asks of it. */
#include "tests/support/fake_opencl.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/compare.h"
#include "tests/support/fake_opencl_state.h"

gg_fake_opencl_machine gg_fake_opencl;
gg_fake_cl_state gg_fake_cl;

static const gg_fake_opencl_machine stock = {
    .platforms = 2,
    .devices = 2,
    .type = GG_CL_DEVICE_TYPE_GPU,
    .group = 256,
    .items = {256, 256, 64},
    .local_bytes = 3072,
    .most_bytes = (uint64_t)1 << 20, /* so that a life needs more than one slab */
    .address_bits = 64,
    .arithmetic = GG_CL_FP_DENORM | GG_CL_FP_INF_NAN | GG_CL_FP_ROUND_TO_NEAREST | GG_CL_FP_FMA |
                  GG_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT,
    .svm = GG_CL_DEVICE_SVM_COARSE_GRAIN_BUFFER,
    .available = 1,
    .compiler = 1,
    .little_endian = 1,
    .profile = "FULL_PROFILE",
    .version = "OpenCL 3.0 fake",
    .kernel_group = 256,
    .build_log = "",
};

static void throw_away(void) {
  while (gg_fake_cl.made) {
    gg_fake_cl_object* object = gg_fake_cl.made;
    gg_fake_cl.made = object->next;
    free(object->allocation);
    free(object);
  }
}

gg_opencl_api gg_fake_opencl_start(void) {
  throw_away();
  memset(&gg_fake_cl, 0, sizeof gg_fake_cl);
  gg_fake_opencl = stock;
  for (int p = 0; p < GG_FAKE_CL_MOST; p++) {
    gg_fake_cl.platforms[p].kind = GG_FAKE_CL_PLATFORM;
    for (int d = 0; d < GG_FAKE_CL_MOST; d++) {
      gg_fake_cl.devices[p][d].kind = GG_FAKE_CL_DEVICE;
      gg_fake_cl.devices[p][d].owner = &gg_fake_cl.platforms[p];
    }
  }
  gg_fake_cl.part.kind = GG_FAKE_CL_DEVICE;
  gg_fake_cl.part.owner = &gg_fake_cl.devices[0][0];
  gg_opencl_api api = {.svm = true};
#define FILL(result, name, parameters) api.name = gg_fake_##name;
  GG_CL_REQUIRED_SYMBOLS(FILL)
  GG_CL_OPTIONAL_SYMBOLS(FILL)
#undef FILL
  return api;
}

const gg_fake_opencl_machine* gg_fake_cl_machine(const gg_fake_cl_object* device) {
  bool first = device == &gg_fake_cl.devices[0][0] || device == &gg_fake_cl.part;
  return first ? &gg_fake_opencl : &stock;
}

/* ---- Calls and faults ---- */

void gg_fake_cl_violate(const char* function, const char* what) {
  if (!gg_fake_cl.violation[0]) snprintf(gg_fake_cl.violation, sizeof gg_fake_cl.violation, "%s: %s", function, what);
}

const char* gg_fake_opencl_violation(void) { return gg_fake_cl.violation; }

void gg_fake_opencl_fail(unsigned nth, gg_cl_int code, bool sticky) {
  gg_fake_cl.planned = nth;
  gg_fake_cl.code = code;
  gg_fake_cl.sticky = sticky;
  gg_fake_cl.struck = NULL;
}

void gg_fake_opencl_break(gg_cl_int code, bool quiet) {
  gg_fake_cl.broken = code;
  gg_fake_cl.quiet = quiet;
}

gg_cl_int gg_fake_cl_begin(const char* function) {
  if (gg_fake_cl.caller) return GG_CL_SUCCESS;
  if (gg_fake_cl.call_count < GG_FAKE_CL_CALLS) gg_fake_cl.calls[gg_fake_cl.call_count++] = function;
  if (gg_fake_cl.planned == 0 || --gg_fake_cl.planned > 0) return GG_CL_SUCCESS;
  gg_fake_cl.struck = function;
  if (gg_fake_cl.sticky) gg_fake_cl.fault = gg_fake_cl.code;
  return gg_fake_cl.code;
}

gg_cl_int gg_fake_cl_begin_work(const char* function) {
  gg_cl_int code = gg_fake_cl_begin(function);
  return gg_fake_cl.fault && !gg_fake_cl.caller ? gg_fake_cl.fault : code;
}

const char* gg_fake_opencl_struck(void) { return gg_fake_cl.struck; }

unsigned gg_fake_opencl_calls(const char* function) {
  unsigned count = 0;
  for (size_t i = 0; i < gg_fake_cl.call_count; i++) count += strcmp(gg_fake_cl.calls[i], function) == 0;
  return count;
}

const char* gg_fake_opencl_options(void) { return gg_fake_cl.options; }
float gg_fake_opencl_scale(void) { return gg_fake_cl.scale; }

const gg_bias* gg_fake_opencl_bias(uint64_t elements) {
  for (size_t i = 0; i < gg_fake_cl.traced_count; i++)
    if (gg_fake_cl.traced[i].elements == elements) return &gg_fake_cl.traced[i].bias;
  return NULL;
}

/* ---- Objects ---- */

gg_fake_cl_object* gg_fake_cl_make(gg_fake_cl_kind kind, gg_fake_cl_object* owner) {
  gg_fake_cl_object* object = calloc(1, sizeof *object);
  if (!object) abort();
  *object = (gg_fake_cl_object){
      .kind = kind, .references = 1, .callers = gg_fake_cl.caller, .owner = owner, .next = gg_fake_cl.made};
  gg_fake_cl.made = object;
  gg_fake_cl_hold(owner);
  return object;
}

/* A context that only its queues keep may still be used, and a parent that only its sub-buffers keep. */
gg_fake_cl_object* gg_fake_cl_use(gg_fake_cl_kind kind, const void* handle, const char* function) {
  union {
    const void* in;
    gg_fake_cl_object* out;
  } found = {handle};
  if (!handle || found.out->kind != kind) {
    gg_fake_cl_violate(function, "a handle of another kind, or none");
    return NULL;
  }
  bool still =
      found.out->references > 0 || ((kind == GG_FAKE_CL_CONTEXT || kind == GG_FAKE_CL_MEMORY) && found.out->held > 0);
  if (kind < GG_FAKE_CL_KINDS && !still) {
    gg_fake_cl_violate(function, "what it is given was released");
    return NULL;
  }
  return found.out;
}

static void end_if_unused(gg_fake_cl_object* object) {
  if (object->kind > GG_FAKE_CL_KINDS || object->references > 0 || object->held > 0 || !object->owner) return;
  free(object->allocation);
  object->allocation = object->bytes = NULL;
  gg_fake_cl_object* owner = object->owner;
  object->owner = NULL;
  gg_fake_cl_let_go(owner);
}

void gg_fake_cl_hold(gg_fake_cl_object* object) { object->held++; }

void gg_fake_cl_let_go(gg_fake_cl_object* object) {
  object->held--;
  end_if_unused(object);
}

gg_cl_int gg_fake_cl_retain(gg_fake_cl_kind kind, const void* handle, const char* function) {
  gg_cl_int code = gg_fake_cl_begin(function);
  gg_fake_cl_object* object = gg_fake_cl_use(kind, handle, function);
  if (code || !object) return code;
  object->references++;
  object->callers += gg_fake_cl.caller;
  return GG_CL_SUCCESS;
}

/* Also after a release that failed: what is left is what nobody tried to give back. */
gg_cl_int gg_fake_cl_release(gg_fake_cl_kind kind, const void* handle, const char* function) {
  gg_cl_int code = gg_fake_cl_begin(function);
  gg_fake_cl_object* object = gg_fake_cl_use(kind, handle, function);
  if (!object) return code;
  if (object->references == 0) gg_fake_cl_violate(function, "what it is given was released");
  object->references--;
  object->callers -= gg_fake_cl.caller;
  end_if_unused(object);
  return code;
}

const char* gg_fake_opencl_left(void) {
  static const char* const names[GG_FAKE_CL_KINDS] = {"context", "queue",  "memory", "svm",
                                                      "program", "kernel", "event"};
  int counts[GG_FAKE_CL_KINDS] = {0};
  for (const gg_fake_cl_object* at = gg_fake_cl.made; at; at = at->next)
    counts[at->kind] += at->references - at->callers;
  gg_fake_cl.left[0] = '\0';
  for (int k = 0; k < GG_FAKE_CL_KINDS; k++) {
    size_t used = strlen(gg_fake_cl.left);
    if (counts[k])
      snprintf(gg_fake_cl.left + used, sizeof gg_fake_cl.left - used, "%s%d %s", used ? ", " : "", counts[k], names[k]);
  }
  return gg_fake_cl.left;
}

__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

void gg_fake_opencl_check_heap(void) {
  if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
    gg_test_fail("memory was leaked: see LeakSanitizer's report");
}

/* ---- What queues were told to do ---- */

static unsigned checksum_of(const void* memory, size_t bytes) {
  unsigned sum = 2166136261u;
  for (size_t i = 0; i < bytes; i++) sum = (sum ^ ((const uint8_t*)memory)[i]) * 16777619u;
  return sum;
}

void gg_fake_cl_will_use(gg_fake_cl_command* command, gg_fake_cl_object* object) {
  if (object) command->uses[command->use_count++] = object;
}

gg_cl_int gg_fake_cl_queue(const char* function, gg_cl_queue queue, gg_fake_cl_command command, bool blocking,
                           gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done) {
  command.queue = gg_fake_cl_use(GG_FAKE_CL_QUEUE, queue, function);
  if (!command.queue) return GG_CL_INVALID_COMMAND_QUEUE;
  if (count || after) gg_fake_cl_violate(function, "the queue is in order: there is nothing to wait for");
  for (size_t i = 0; i < command.use_count; i++)
    if (command.uses[i]->kind != GG_FAKE_CL_EVENT && command.uses[i]->owner != command.queue->owner &&
        !(command.uses[i]->owner && command.uses[i]->owner->owner == command.queue->owner))
      gg_fake_cl_violate(function, "memory of another context");
  if (gg_fake_cl.command_count == GG_FAKE_CL_COMMANDS) abort(); /* a test that waits less needs a longer queue */
  if (done) {
    command.event = gg_fake_cl_make(GG_FAKE_CL_EVENT, command.queue);
    command.event->status = GG_FAKE_CL_QUEUED;
    *done = (gg_cl_event)(void*)command.event;
    gg_fake_cl_hold(command.event);
  }
  for (size_t i = 0; i < command.use_count; i++) gg_fake_cl_hold(command.uses[i]);
  if (command.from_host) command.checksum = checksum_of(command.from, command.bytes);
  gg_fake_cl.commands[gg_fake_cl.command_count++] = command;
  return blocking ? gg_fake_cl_run(NULL) : GG_CL_SUCCESS;
}

static void carry_out(const gg_fake_cl_command* at) {
  if (at->from_host && at->checksum != checksum_of(at->from, at->bytes))
    gg_fake_cl_violate("a copy to the device", "the source changed before the copy was made");
  if (!at->to)
    gg_fake_cl_trace(&at->launch);
  else if (at->from)
    memcpy(at->to, at->from, at->bytes);
  else
    for (size_t i = 0; i < at->bytes; i++) at->to[i] = at->pattern[i % at->unit];
}

gg_cl_int gg_fake_cl_run(const gg_fake_cl_object* last) {
  size_t count = 0;
  gg_cl_int failed = gg_fake_cl.fault ? gg_fake_cl.fault : gg_fake_cl.broken;
  while (count < gg_fake_cl.command_count) {
    gg_fake_cl_command* at = &gg_fake_cl.commands[count++];
    const gg_fake_cl_object* event = at->event;
    if (!failed) carry_out(at);
    if (at->event) at->event->status = failed;
    if (at->event) gg_fake_cl_let_go(at->event);
    for (size_t i = 0; i < at->use_count; i++) gg_fake_cl_let_go(at->uses[i]);
    if (last && event == last) break;
  }
  gg_fake_cl.command_count -= count;
  memmove(gg_fake_cl.commands, gg_fake_cl.commands + count, gg_fake_cl.command_count * sizeof *gg_fake_cl.commands);
  if (count) gg_fake_cl.broken = GG_CL_SUCCESS;
  return count && !gg_fake_cl.quiet ? failed : GG_CL_SUCCESS;
}

bool gg_fake_opencl_will_touch(const void* memory, size_t bytes) {
  const unsigned char *begin = memory, *end = begin + bytes;
  for (size_t i = 0; i < gg_fake_cl.command_count && !gg_fake_cl.fault; i++) {
    const gg_fake_cl_command* at = &gg_fake_cl.commands[i];
    if ((at->to && at->to < end && at->to + at->bytes > begin) ||
        (at->from && at->from < end && at->from + at->bytes > begin))
      return true;
  }
  return false;
}

/* ---- The caller ---- */

void gg_fake_opencl_caller(bool calls) { gg_fake_cl.caller = calls; }

gg_cl_device gg_fake_opencl_device(unsigned platform, unsigned device) {
  return (gg_cl_device)(void*)&gg_fake_cl.devices[platform][device];
}

gg_cl_device gg_fake_opencl_part(void) { return (gg_cl_device)(void*)&gg_fake_cl.part; }
