/*
 * The interface of a backend: a constant vtable of functions that allocate, copy, reduce and update. Policy, validation
 * and the sequence of a step are in host/; a backend makes no decisions.
 *
 * Rules for every function:
 *  - Each driver call is checked. A failure fills `error` (host/status.h) and returns its status; nothing is printed.
 *  - Work is ordered on one queue per device. fill, readback, reduce, update, unfused_clip and copy queue their work
 * and return; reduce and update may first wait for the previous call on the same table, because they replace its scale
 *    or bias corrections. Every other function may block until earlier work is done, and so may any function that
 *    fails. (The cpu backend has no queue: work is done on return.)
 *  - After readback has failed, and after wait or upload has returned, with or without an error, no queued work reads
 *    or writes the caller's host memory, unless the device is lost.
 *  - After a sticky fault the backend sets device->lost; from then on the host layer calls only the releases.
 *  - Releases (release, table_free, close) accept objects of a lost device and never fail.
 */
#ifndef GG_BACKENDS_BACKEND_H
#define GG_BACKENDS_BACKEND_H

#include "api/gradguard.h"
#include "kernels/types.h"

typedef struct gg_backend gg_backend;

/* An open device with its queue. A backend embeds it as the first member of its own struct. */
typedef struct gg_device {
  const gg_backend* backend;
  gg_device_info info;
  const char* kernel; /* the kernel variant in use; static storage */
  bool lost;
} gg_device;

/* Memory and its location, to find overlaps: two memories share bytes only if `space` is equal and their ranges [base,
 * base + bytes) overlap. Memory with an address has space 0 and the address as base. */
typedef struct gg_memory {
  uint64_t bytes;
  uint64_t space;
  uint64_t base;
  bool wrapped; /* belongs to the caller */
} gg_memory;

typedef enum gg_handle_kind {
  GG_HANDLE_HOST = 0,       /* host address */
  GG_HANDLE_CUDA = 1,       /* CUdeviceptr */
  GG_HANDLE_OPENCL_MEM = 2, /* cl_mem */
  GG_HANDLE_OPENCL_SVM = 3  /* SVM address */
} gg_handle_kind;

/* One piece of a batched read-back. */
typedef struct gg_readback {
  const gg_memory* memory;
  uint64_t offset;
  void* destination;
  uint64_t bytes;
} gg_readback;

/* Where a tensor is; memory NULL means absent. */
typedef struct gg_span {
  gg_memory* memory;
  uint64_t offset; /* bytes */
} gg_span;

/* One non-empty tensor of a group. In a table for statistics only, the gradient is the only tensor. */
typedef struct gg_row {
  uint64_t elements;
  gg_dtype gradient_dtype;
  gg_dtype model_dtype; /* of model_out, if present */
  gg_span gradient;
  gg_span in[GG_STATES];  /* by GG_STATE_; the maximum only with AMSGrad */
  gg_span out[GG_STATES]; /* the same spans as `in` when in place */
  gg_span model_out;
} gg_row;

/* The device table of a group. A backend embeds it as the first member of its own struct. */
typedef struct gg_table {
  uint32_t rows;
  bool amsgrad;
  bool updates;                /* false: statistics only */
  gg_memory* summaries;        /* rows * 12 bytes: one gg_triple for each row, in row order, after reduce */
  gg_triple* host_summaries;   /* where the host reads them; allocated by the backend (pinned, if that helps) */
  uint32_t reduction_launches; /* of one reduce */
  uint32_t update_launches;    /* of one update */
  uint64_t scratch_bytes;      /* device memory of this table */
} gg_table;

/* Everything that changes from step to step. `constants` and `bias` are rounded once, on the host. */
typedef struct gg_update {
  gg_update_constants constants;
  bool uniform;        /* every row has the bias corrections constants.bias; `bias` is not read */
  const gg_bias* bias; /* one for each row */
} gg_update;

/* What gg_context_create asks of a backend. */
typedef struct gg_open_request {
  const char* id;      /* an id that probe listed; NULL with `queue` */
  void* queue;         /* use this CUstream or cl_command_queue; NULL: create one */
  const char* kernel;  /* kernel variant; NULL: the best */
  uint32_t threads;    /* cpu */
  gg_log_function log; /* may be NULL */
  void* log_user;
} gg_open_request;

/* The vendor API whose handles a backend accepts from the caller and returns. */
typedef enum gg_native { GG_NATIVE_NONE = 0, GG_NATIVE_CUDA = 1, GG_NATIVE_OPENCL = 2 } gg_native;

struct gg_backend {
  const char* name;
  gg_native native;
  const char* kernel_variable; /* environment variable that names the kernel variant */
  const char* kernels;         /* all variants, best first; a device may support only some */

  /* Lists devices, best first, at least one entry: an unavailable backend gives an entry that says why. Writes at most
   * `capacity` entries and returns how many there are. Leaves nothing open. */
  size_t (*probe)(gg_device_info* infos, size_t capacity);
  gg_status (*open)(const gg_open_request* request, gg_device** device, gg_error* error);
  void (*close)(gg_device* device); /* waits for the queue first, unless the device is lost */

  gg_status (*alloc)(gg_device* device, uint64_t bytes, gg_memory** memory, gg_error* error);
  gg_status (*wrap)(gg_device* device, gg_handle_kind kind, uint64_t handle, uint64_t bytes, gg_memory** memory,
                    gg_error* error);
  void (*release)(gg_device* device, gg_memory* memory);
  gg_status (*upload)(gg_device* device, gg_memory* memory, uint64_t offset, const void* source, uint64_t bytes,
                      gg_error* error); /* the source may be reused on return */
  gg_status (*fill)(gg_device* device, gg_memory* memory, uint64_t offset, uint64_t bytes, uint8_t value,
                    gg_error* error);

  /* Queues `count` copies to the host as one batch; wait blocks until the last batch queued has arrived. */
  gg_status (*readback)(gg_device* device, const gg_readback* pieces, size_t count, gg_error* error);
  gg_status (*wait)(gg_device* device, gg_error* error);

  /* `rows` are non-empty tensors, largest first (kernels/geometry.h relies on it). */
  gg_status (*table)(gg_device* device, const gg_row* rows, uint32_t count, bool amsgrad, bool updates,
                     gg_table** table, gg_error* error);
  void (*table_free)(gg_device* device, gg_table* table);

  /* Queues the reduction of every row into table->summaries. NULL in a build without the guard. */
  gg_status (*reduce)(gg_device* device, gg_table* table, float inverse_scale, gg_error* error);

  /* On error either no queued work will change a tensor in place, so that the caller may retry, or the device is marked
   * lost. */
  gg_status (*update)(gg_device* device, gg_table* table, const gg_update* update, gg_error* error);
  gg_status (*wait_update)(gg_device* device, gg_table* table, gg_error* error); /* until the last update is done */

  gg_status (*sync)(gg_device* device, gg_error* error);

  /* (optional) The separate unscale-and-clip pass of the unfused baseline that bench/ measures against: writes
   * (x * factor1) * factor2 of every row in FP32 to out[GG_STATE_PARAMETER]. No step uses it. */
  gg_status (*unfused_clip)(gg_device* device, gg_table* table, const gg_update_constants* constants, gg_error* error);

  /* (optional) Queues a copy between two non-overlapping memories of the device. The benchmark measures memory
   * bandwidth with it. */
  gg_status (*copy)(gg_device* device, gg_memory* to, uint64_t to_offset, const gg_memory* from, uint64_t from_offset,
                    uint64_t bytes, gg_error* error);

  /* The queue as a handle of the `native` API, and the address of a memory if that API has addresses (CUDA). NULL if
   * not supported. */
  void* (*native_queue)(gg_device* device);
  uint64_t (*native_address)(const gg_memory* memory);
};

/* Every backend of this build, in the order "auto" tries them; NULL-terminated. */
extern const gg_backend* const gg_backends[];

extern const gg_backend gg_backend_cpu;
extern const gg_backend gg_backend_opencl;
extern const gg_backend gg_backend_cuda;

#endif
