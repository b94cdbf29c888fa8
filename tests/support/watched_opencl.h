/*
 * The OpenCL driver of this machine with a watcher in front: it makes any call fail, counts what has not been given
 * back. What is not made to fail is done by the driver, so results can be compared.
 *
 * One state for the process: every Criterion test is one. All calls are made by one thread.
 */
#ifndef GG_TESTS_SUPPORT_WATCHED_OPENCL_H
#define GG_TESTS_SUPPORT_WATCHED_OPENCL_H

#include "backends/opencl/capability.h"

/* The functions to give to the backend, and the best device that they list. Skips the test if there is none, as
 * gg_test_on does. */
gg_opencl_api gg_watched_opencl(gg_device_info* best);

/* The driver's own functions: what a test calls through them is not counted and never fails by plan. */
const gg_opencl_api* gg_unwatched_opencl(void);

/* The nth call from now fails with `code`, 1 being the next; 0: none does. What the call would have done is left
 * undone, but for releases and waits. clSVMAlloc gives no memory; clSVMFree cannot fail and is not counted. */
void gg_watched_opencl_fail(unsigned nth, gg_cl_int code);

/* The function that failed by plan; NULL if none has yet. */
const char* gg_watched_opencl_struck(void);

/* What has not been given back, such as "1 event, 2 memory"; "" if nothing is left. */
const char* gg_watched_opencl_left(void);

/* From now on every device claims to be a GPU, and gets the kernels for one. */
void gg_watched_opencl_claim_gpu(void);

#endif
