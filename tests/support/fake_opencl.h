/*
 * An OpenCL driver that is none, to run the host side of backends/opencl where there is no driver, with a fault
 * wherever a test wants one and a device that lacks what a test wants it to lack. (watched_opencl.h does this in front
 * of a real driver, which is lenient and hides what it does.) Memory is the process's own; what a queue was told to do
 * is done when something waits for it, so AddressSanitizer sees a copy out of memory that was given back too early.
 * Every call is checked against what OpenCL allows.
 *
 * Kernels compute nothing but a trace: gg_reduce and gg_finalize carry each row's number of elements into its summary
 * as max_abs, and gg_update notes the bias corrections it would have used.
 *
 * One state for the process: every Criterion test is one. All calls are made by one thread.
 */
#ifndef GG_TESTS_SUPPORT_FAKE_OPENCL_H
#define GG_TESTS_SUPPORT_FAKE_OPENCL_H

#include "backends/opencl/loader.h"
#include "kernels/types.h"

/* What the machine is like. gg_fake_opencl_start sets: two platforms with two GPUs each, and everything works. From
 * `type` on it is about opencl:0.0 alone; the others stay as they are at the start. */
typedef struct gg_fake_opencl_machine {
  gg_cl_uint platforms, devices; /* devices on each platform */
  gg_cl_int no_platform;         /* what listing no platform gives: loaders differ */
  gg_cl_bits type;
  size_t group, items[3]; /* most work-items of a work-group */
  uint64_t local_bytes, most_bytes;
  gg_cl_uint address_bits;
  gg_cl_bits arithmetic, svm;
  gg_cl_bool available, compiler, little_endian;
  const char *profile, *version;
  size_t kernel_group; /* most work-items of a work-group of the kernel that `kernel` names */
  const char* kernel;  /* NULL: all kernels */
  gg_cl_int build;     /* what clBuildProgram gives */
  const char* build_log;
} gg_fake_opencl_machine;
extern gg_fake_opencl_machine gg_fake_opencl;

/* Begins again: nothing is open, nothing has been called. Gives the functions for the backend. */
gg_opencl_api gg_fake_opencl_start(void);

/* The nth call from now fails with `code`, 1 being the next, and leaves undone what it was to do; but a release and
 * clFinish do it, since there is nothing else that could. clSVMAlloc gives no memory; clSVMFree cannot fail and is not
 * counted. After a sticky fault so do all later calls that make, queue or wait, and nothing that is queued is done any
 * more. nth 0 plans nothing. */
void gg_fake_opencl_fail(unsigned nth, gg_cl_int code, bool sticky);

/* What is queued by the next wait fails with `code`. clFinish and clWaitForEvents say so, unless `quiet`, as some
 * drivers are: then only the events' status does. */
void gg_fake_opencl_break(gg_cl_int code, bool quiet);

/* The function that failed by plan; NULL if none has yet. */
const char* gg_fake_opencl_struck(void);

/* Calls of one function since the start. */
unsigned gg_fake_opencl_calls(const char* function);

/* The options of the last build. */
const char* gg_fake_opencl_options(void);

/* Rows that launches of a kernel have had since the start; the inverse scale of the last gg_reduce. */
unsigned gg_fake_opencl_rows(const char* kernel);
float gg_fake_opencl_scale(void);

/* The bias corrections that the last update of a row with so many elements had, from its table; NULL: none yet. */
const gg_bias* gg_fake_opencl_bias(uint64_t elements);

/* Whether a copy is queued that will read or write these bytes of the host. */
bool gg_fake_opencl_will_touch(const void* memory, size_t bytes);

/* What the library has not given back, such as "1 event, 2 memory", negative if it has given back too much of what is
 * the caller's; "" if nothing is left. */
const char* gg_fake_opencl_left(void);

/* The first thing that the backend may not do: use what was released, a wrong size, an argument that was not set, a
 * launch that misses its rows; "" if there was none. */
const char* gg_fake_opencl_violation(void);

/* Under AddressSanitizer, fails the test if memory of the host was leaked. */
void gg_fake_opencl_check_heap(void);

/* The caller's side, whose calls never fail by plan. Between caller(true) and caller(false) the functions are called by
 * the caller. */
void gg_fake_opencl_caller(bool calls);
gg_cl_device gg_fake_opencl_device(unsigned platform, unsigned device);
gg_cl_device gg_fake_opencl_part(void); /* a sub-device of opencl:0.0 */
gg_cl_mem gg_fake_opencl_sub_buffer(gg_cl_mem parent, gg_cl_bits flags, size_t origin, size_t bytes);

#endif
