/* An open OpenCL device. */
#ifndef GG_BACKENDS_OPENCL_DEVICE_H
#define GG_BACKENDS_OPENCL_DEVICE_H

#include "backends/backend.h"
#include "backends/opencl/capability.h"
#include "backends/opencl/loader.h"

/* How kernels address tensors; the kernel source is compiled accordingly. `svm`: the table has absolute addresses in
 * shared virtual memory. `arena`: the table has offsets into memory objects that are kernel arguments. */
typedef enum gg_opencl_variant { GG_OPENCL_SVM = 0, GG_OPENCL_ARENA = 1 } gg_opencl_variant;
#define GG_OPENCL_VARIANTS 2

#define GG_OPENCL_TIMED 64 /* maximum number of timed launches between two waits */

/* A launch that is being timed (profile.h). */
typedef struct gg_opencl_timed {
  const char* kernel;
  uint32_t blocks;
  gg_cl_event event;
} gg_opencl_timed;

/* A read-back whose items must be reordered for the host (transfer.c). */
typedef struct gg_opencl_reorder {
  const struct gg_opencl_memory* memory;
  unsigned char* arrived; /* owned */
  unsigned char* destination;
} gg_opencl_reorder;

typedef struct gg_opencl_device {
  gg_device base;
  gg_opencl_api api;
  gg_opencl_capability can;
  gg_cl_device id;
  gg_cl_context context;
  gg_cl_queue queue;                          /* in-order */
  gg_opencl_variant variant;                  /* of memory that the library allocates */
  gg_cl_program programs[GG_OPENCL_VARIANTS]; /* NULL until a table needs it */
  struct gg_opencl_slab* slabs;               /* arena.h */
  uint64_t slab_bytes;                        /* of all slabs */

  gg_cl_event readback; /* the last piece of the last read-back; NULL if none is pending */
  gg_opencl_reorder* reorders;
  size_t reorder_count, reorder_capacity;

  gg_log_function log;
  void* log_user;
  bool profiling; /* the queue records times and there is a log function to report them to */
  gg_opencl_timed timed[GG_OPENCL_TIMED];
  uint32_t timed_count;
} gg_opencl_device;

static inline gg_opencl_device* gg_opencl_of(gg_device* device) { return (gg_opencl_device*)device; }

gg_status gg_opencl_open(const gg_open_request* request, gg_device** device, gg_error* error);
/* The same with functions that are already loaded. */
gg_status gg_opencl_open_with(const gg_opencl_api* api, const gg_open_request* request, gg_device** device,
                              gg_error* error);
void gg_opencl_close(gg_device* device);
gg_status gg_opencl_sync(gg_device* device, gg_error* error);
void* gg_opencl_native_queue(gg_device* device);

/* Waits for one event; `waited_for` names it in the error. */
gg_status gg_opencl_wait_event(gg_opencl_device* device, gg_cl_event event, const char* waited_for, gg_error* error);

#endif
