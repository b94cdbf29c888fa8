/*
 * A CUDA driver that is none, to run the host side of backends/cuda where there is no GPU, with a fault wherever a test
 * wants one. Memory is the process's own, and what a stream was told to copy is copied when something waits for it, so
 * AddressSanitizer sees a copy out of memory that was given back too early. Kernels compute nothing. With it goes an
 * NVRTC of the same kind.
 *
 * One state for the process: every Criterion test is one. All calls are made by one thread.
 */
#ifndef GG_TESTS_SUPPORT_FAKE_CUDA_H
#define GG_TESTS_SUPPORT_FAKE_CUDA_H

#include "backends/cuda/device.h"

/* CUDA_ERROR_INVALID_VALUE, for which the backend has no entry. */
#define GG_FAKE_INVALID_VALUE 1u

/* What the machine is like. gg_fake_cuda_start sets: two Hopper devices, CUDA 13.0, everything works. */
typedef struct gg_fake_cuda_machine {
  int devices;
  int driver_version;
  int capability;
  int compute_mode;
  bool maps_host;
  gg_cu_result fatbin, ptx, compiled; /* what loading an image of that kind gives */
  bool nvrtc_absent;
  int nvrtc_architectures[4]; /* up to the first 0 */
  bool nameless;              /* the driver knows no name of any error */
  bool never_waits;           /* every call that would wait fails with GG_FAKE_INVALID_VALUE and does not */
} gg_fake_cuda_machine;
extern gg_fake_cuda_machine gg_fake_cuda;

/* Begins again: nothing is open, nothing has been called. The platform has images of its own, and this driver. */
gg_cuda_platform gg_fake_cuda_start(void);

/* The nth call from now fails with `code`, 1 being the next; after a sticky one, so do all later calls that work in a
 * context, except push and pop. Names of errors can always be asked for. nth 0 plans nothing. */
void gg_fake_cuda_fail(unsigned nth, unsigned code, bool sticky);

/* The function that failed by plan; NULL if none has yet. */
const char* gg_fake_cuda_struck(void);

/* Calls of one function since the start. */
unsigned gg_fake_cuda_calls(const char* function);

/* The options of the last compilation, separated by blanks; the image that was loaded last. */
const char* gg_fake_cuda_compiled_with(void);
const void* gg_fake_cuda_loaded(void);

/* The inverse scale of the last gg_reduce, launched or in a graph. */
float gg_fake_cuda_scale(void);

/* Whether a copy is queued that will read or write these bytes of the host. */
bool gg_fake_cuda_will_touch(const void* memory, size_t bytes);

/* What has not been given back, such as "1 event, 2 device memory"; "" if nothing is left. */
const char* gg_fake_cuda_left(void);

/* The first thing that the backend may not do: work without a context, release what is not there, launch with a wrong
 * block; "" if there was none. */
const char* gg_fake_cuda_violation(void);

/* Under AddressSanitizer, fails the test if memory of the host was leaked. */
void gg_fake_cuda_check_heap(void);

/* The caller's side. A context of device 0 that is not the primary one, made current; whether it alone is current; a
 * stream in it, and the number of those that there are. */
gg_cu_context gg_fake_cuda_caller(void);
bool gg_fake_cuda_caller_is_current(void);
gg_cu_stream gg_fake_cuda_caller_stream(void);
bool gg_fake_cuda_caller_stream_lives(void);

/* Memory that the driver is to know: a range of addresses, which nothing reads. `type` is a GG_CU_MEMORYTYPE_*,
 * `address` the first one for the device, 0 if it has none. */
typedef struct gg_fake_cuda_range {
  gg_cu_pointer start;
  size_t bytes; /* 0: the driver does not tell */
  gg_cu_context context;
  unsigned type, managed;
  int ordinal;
  gg_cu_pointer address;
} gg_fake_cuda_range;
void gg_fake_cuda_know(gg_fake_cuda_range range);

#endif
