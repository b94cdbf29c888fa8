/* What the parts of the fake CUDA share: fake_cuda.c keeps the state, fake_cuda_driver.c and fake_cuda_nvrtc.c are the
 * functions that the backend calls. */
#ifndef GG_TESTS_SUPPORT_FAKE_CUDA_STATE_H
#define GG_TESTS_SUPPORT_FAKE_CUDA_STATE_H

#include <string.h>

#include "tests/support/fake_cuda.h"

#define GG_FAKE_OBJECTS 64
#define GG_FAKE_RANGES  16
#define GG_FAKE_COPIES  64
#define GG_FAKE_DEPTH   8
#define GG_FAKE_CALLS   4096

typedef enum gg_fake_kind {
  GG_FAKE_CONTEXT,
  GG_FAKE_STREAM,
  GG_FAKE_EVENT,
  GG_FAKE_MODULE,
  GG_FAKE_MEMORY,
  GG_FAKE_PINNED,
  GG_FAKE_PROGRAM,
  GG_FAKE_GRAPH,
  GG_FAKE_GRAPH_EXEC,
  GG_FAKE_KINDS
} gg_fake_kind;

typedef struct gg_fake_object {
  gg_fake_kind kind;
  void* handle; /* NULL: a free entry */
  size_t bytes; /* of memory; of a context, its device */
  float scale;  /* of a graph */
} gg_fake_object;

typedef struct gg_fake_copy {
  void* destination;
  const void* source; /* NULL: bytes of `value` */
  size_t bytes;
  int value;
  bool from_host; /* nobody may change the source before the copy is made */
  unsigned checksum;
} gg_fake_copy;

typedef struct gg_fake_state {
  gg_fake_object objects[GG_FAKE_OBJECTS];
  gg_fake_cuda_range ranges[GG_FAKE_RANGES];
  size_t range_count;
  gg_fake_copy copies[GG_FAKE_COPIES]; /* queued on any stream */
  size_t copy_count;
  gg_cu_context stack[GG_FAKE_DEPTH]; /* the last is current */
  size_t depth;
  bool push_failed;
  const char* calls[GG_FAKE_CALLS];
  size_t call_count;
  unsigned planned, code;
  bool planned_sticky;
  unsigned fault; /* the code of a sticky one that has struck */
  const char* struck;
  gg_cu_stream capturing; /* NULL: none */
  const void* loaded;
  float scale; /* of the last reduction on the device */
  float captured_scale;
  char options[512];
  char violation[200];
  char left[300];
} gg_fake_state;
extern gg_fake_state gg_fake;

extern const char gg_fake_fatbin[], gg_fake_ptx[];
extern char gg_fake_caller_context, gg_fake_caller_stream;
extern bool gg_fake_caller_stream_lives;

gg_cu_context gg_fake_primary(int device);

/* Notes the first thing that a function was called with and should not have been. */
void gg_fake_violate(const char* function, const char* what);

/* Each function begins with one of these and returns the code, if it is not 0. The second is for those that need a
 * current context; the third for those that also wait for what was queued. */
unsigned gg_fake_begin(const char* function);
unsigned gg_fake_begin_in_context(const char* function);
unsigned gg_fake_wait_in_context(const char* function);

#define GG_FAKE_BEGIN                                          \
  do {                                                         \
    unsigned begun = gg_fake_begin(strchr(__func__, '_') + 1); \
    if (begun) return begun;                                   \
  } while (0)
#define GG_FAKE_BEGIN_IN_CONTEXT                                          \
  do {                                                                    \
    unsigned begun = gg_fake_begin_in_context(strchr(__func__, '_') + 1); \
    if (begun) return begun;                                              \
  } while (0)

void* gg_fake_make(gg_fake_kind kind, size_t bytes);
gg_fake_object* gg_fake_find(gg_fake_kind kind, const void* handle);
void gg_fake_unmake(gg_fake_kind kind, const void* handle, const char* function);

void gg_fake_queue(const char* function, gg_cu_stream stream, gg_fake_copy copy);

void gg_fake_fill_driver(gg_cuda_driver* driver);
gg_status gg_fake_open_nvrtc(gg_nvrtc* nvrtc, int driver_version, gg_error* error);

#endif
