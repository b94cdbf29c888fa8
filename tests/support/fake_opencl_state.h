/* What the parts of the fake OpenCL share: fake_opencl.c keeps the state, fake_opencl_device.c, fake_opencl_memory.c
 * and fake_opencl_kernel.c are the functions that the backend calls. */
#ifndef GG_TESTS_SUPPORT_FAKE_OPENCL_STATE_H
#define GG_TESTS_SUPPORT_FAKE_OPENCL_STATE_H

#include <string.h>

#include "kernels/geometry.h"
#include "tests/support/fake_opencl.h"

#define GG_FAKE_CL_MOST     4 /* platforms, and devices on each */
#define GG_FAKE_CL_CALLS    4096
#define GG_FAKE_CL_COMMANDS 256
#define GG_FAKE_CL_ARGS     17
#define GG_FAKE_CL_NAMED    8
#define GG_FAKE_CL_TRACED   16
#define GG_FAKE_CL_KERNELS  4

typedef enum gg_fake_cl_kind {
  GG_FAKE_CL_CONTEXT,
  GG_FAKE_CL_QUEUE,
  GG_FAKE_CL_MEMORY,
  GG_FAKE_CL_SVM,
  GG_FAKE_CL_PROGRAM,
  GG_FAKE_CL_KERNEL,
  GG_FAKE_CL_EVENT,
  GG_FAKE_CL_KINDS, /* those before can be left behind */
  GG_FAKE_CL_PLATFORM,
  GG_FAKE_CL_DEVICE
} gg_fake_cl_kind;

typedef struct gg_fake_cl_object gg_fake_cl_object;

/* A kernel's argument: a value, or a place in memory. */
typedef struct gg_fake_cl_argument {
  bool set;
  gg_fake_cl_object* object; /* of a place */
  unsigned char* place;
  unsigned char value[sizeof(gg_update_constants)];
} gg_fake_cl_argument;

/* Handles are the addresses of these, which stay until the next start, so that one that was released is known. */
struct gg_fake_cl_object {
  gg_fake_cl_kind kind;
  int references, callers;  /* all of them; the caller's */
  int held;                 /* by other objects and by queued commands */
  gg_fake_cl_object* owner; /* which it holds: a platform, device, context, program or parent */
  gg_fake_cl_object* next;

  gg_fake_cl_object* device;         /* of a context or queue */
  gg_cl_bits flags;                  /* of memory; properties of a queue */
  unsigned char *allocation, *bytes; /* of memory and SVM */
  size_t size, origin;
  void* host;
  gg_cl_int status;         /* of an event: GG_FAKE_CL_QUEUED until its command is done */
  bool built, arena, guard; /* of a program */
  int which;                /* of a kernel: see fake_opencl_kernel.c */
  gg_fake_cl_argument arguments[GG_FAKE_CL_ARGS];
  gg_fake_cl_object* named[GG_FAKE_CL_NAMED];
  size_t named_count;
};

#define GG_FAKE_CL_QUEUED 3

/* A launch of a kernel, with what its trace needs. */
typedef struct gg_fake_cl_launch {
  int which;
  const gg_device_row* rows;
  const gg_u32* first;
  gg_u32 begin, end;
  gg_triple *partials, *summaries;
  const gg_bias* bias; /* NULL: the same for all */
} gg_fake_cl_launch;

typedef struct gg_fake_cl_command {
  gg_fake_cl_object *queue, *event; /* event NULL: nobody asked for it */
  unsigned char* to;                /* NULL: a launch */
  const unsigned char* from;        /* NULL: the pattern */
  size_t bytes, unit;
  unsigned char pattern[16];
  bool from_host; /* nobody may change the source before the copy is made */
  unsigned checksum;
  gg_fake_cl_launch launch;
  gg_fake_cl_object* uses[GG_FAKE_CL_ARGS + GG_FAKE_CL_NAMED];
  size_t use_count;
} gg_fake_cl_command;

typedef struct gg_fake_cl_state {
  gg_fake_cl_object platforms[GG_FAKE_CL_MOST], devices[GG_FAKE_CL_MOST][GG_FAKE_CL_MOST], part;
  gg_fake_cl_object* made;
  gg_fake_cl_command commands[GG_FAKE_CL_COMMANDS]; /* queued on any queue */
  size_t command_count;
  const char* calls[GG_FAKE_CL_CALLS];
  size_t call_count;
  bool caller;
  unsigned planned;
  gg_cl_int code, fault, broken; /* fault: of a sticky failure that has struck */
  bool sticky, quiet;
  const char* struck;
  unsigned rows[GG_FAKE_CL_KERNELS];
  float scale;
  struct {
    uint64_t elements;
    gg_bias bias;
  } traced[GG_FAKE_CL_TRACED];
  size_t traced_count;
  char options[200], violation[200], left[200];
} gg_fake_cl_state;
extern gg_fake_cl_state gg_fake_cl;

/* Notes the first thing that a function was called with and should not have been. */
void gg_fake_cl_violate(const char* function, const char* what);

/* Each function begins with one of these and returns the code, if it is not 0. The second is for those that make, queue
 * or wait, and fail after a sticky fault. */
gg_cl_int gg_fake_cl_begin(const char* function);
gg_cl_int gg_fake_cl_begin_work(const char* function);

#define GG_FAKE_CL_NAME (__func__ + sizeof "gg_fake_" - 1)
#define GG_FAKE_CL_BEGIN                                 \
  do {                                                   \
    gg_cl_int begun = gg_fake_cl_begin(GG_FAKE_CL_NAME); \
    if (begun) return begun;                             \
  } while (0)
#define GG_FAKE_CL_BEGIN_WORK                                 \
  do {                                                        \
    gg_cl_int begun = gg_fake_cl_begin_work(GG_FAKE_CL_NAME); \
    if (begun) return begun;                                  \
  } while (0)
/* `code` is where the caller wants it. */
#define GG_FAKE_CL_BEGIN_MAKING                               \
  do {                                                        \
    gg_cl_int begun = gg_fake_cl_begin_work(GG_FAKE_CL_NAME); \
    *code = begun;                                            \
    if (begun) return NULL;                                   \
  } while (0)

const gg_fake_opencl_machine* gg_fake_cl_machine(const gg_fake_cl_object* device);

gg_fake_cl_object* gg_fake_cl_make(gg_fake_cl_kind kind, gg_fake_cl_object* owner);
/* The object of a handle; NULL, and a violation, if it is none, or was released. */
gg_fake_cl_object* gg_fake_cl_use(gg_fake_cl_kind kind, const void* handle, const char* function);
gg_cl_int gg_fake_cl_retain(gg_fake_cl_kind kind, const void* handle, const char* function);
gg_cl_int gg_fake_cl_release(gg_fake_cl_kind kind, const void* handle, const char* function);
void gg_fake_cl_hold(gg_fake_cl_object* object);
void gg_fake_cl_let_go(gg_fake_cl_object* object);

/* An answer of a ...Info function; `exact`: the room has to have the answer's size. */
gg_cl_int gg_fake_cl_answer(const void* answer, size_t size, bool exact, size_t bytes, void* value, size_t* told);

/* The SVM that these bytes lie in; NULL: none. */
gg_fake_cl_object* gg_fake_cl_svm_at(const void* memory, size_t bytes);

/* Queues a command and makes its event, if `done` is not NULL. A blocking one is done on return. */
gg_cl_int gg_fake_cl_queue(const char* function, gg_cl_queue queue, gg_fake_cl_command command, bool blocking,
                           gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done);
void gg_fake_cl_will_use(gg_fake_cl_command* command, gg_fake_cl_object* object);
/* Does what is queued up to the command of `last`, NULL: everything, and tells what went wrong unless it is quiet. */
gg_cl_int gg_fake_cl_run(const gg_fake_cl_object* last);
void gg_fake_cl_trace(const gg_fake_cl_launch* launch);

#define GG_FAKE_CL_DECLARE(result, name, parameters) result gg_fake_##name parameters;
GG_CL_REQUIRED_SYMBOLS(GG_FAKE_CL_DECLARE)
GG_CL_OPTIONAL_SYMBOLS(GG_FAKE_CL_DECLARE)
#undef GG_FAKE_CL_DECLARE

#endif
