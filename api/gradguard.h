/*
 * gradguard: the guarded AdamW step.
 *
 * For a group of tensors on one device: unscale the gradients in FP32, check them for NaN and Inf, compute the L2 norm
 * of the whole group, decide once (apply, skip, error), and fold one clip coefficient into a fused AdamW or AMSGrad
 * update. Unscaled or clipped gradients are never written to memory.
 *
 * Conventions that hold for every function here:
 *  - Functions that can fail return a gg_status: GG_OK or a negative value. The details are in gg_context_error() of
 *    that context, or in the caller's gg_error where a function takes one.
 *  - Option and result structs begin with `size`. Initialise them with the GG_..._INIT macros; new fields are added at
 *    the end.
 *  - A context and everything made from it belong to one thread at a time. Different contexts are independent.
 *  - Destroy functions take a pointer to the handle, accept NULL, and set the handle to NULL.
 *  - The library never prints, exits, aborts or installs handlers.
 *  - A build without the guard (guard=none) does not have gg_guarded_adamw_step, gg_gradient_stats, gg_gradient_census
 *    and gg_decide; gg_build_description says so.
 */
#ifndef GRADGUARD_H
#define GRADGUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GG_API __attribute__((visibility("default")))
#else
#define GG_API
#endif

/* ---- Statuses and errors ------------------------------------------------------------------------------- */

/* The values never change between versions. */
typedef enum gg_status {
  GG_OK = 0,
  GG_ERROR_ARGUMENT = -1,    /* an argument is not valid */
  GG_ERROR_NO_MEMORY = -2,   /* host or device memory ran out */
  GG_ERROR_UNSUPPORTED = -3, /* this device or this build does not support it */
  GG_ERROR_NO_DEVICE = -4,   /* no such device */
  GG_ERROR_NO_DRIVER = -5,   /* the backend's driver library is absent or unusable */
  GG_ERROR_DRIVER = -6,      /* a driver call failed; native_code says how */
  GG_ERROR_BUILD = -7,       /* kernels could not be built or loaded */
  GG_ERROR_DEVICE_LOST = -8, /* a fault after which the context cannot be used: destroy it */
  GG_ERROR_STATE = -9,       /* the object is in a state that does not allow the call */
  GG_ERROR_NONFINITE = -10   /* non-finite gradients under GG_NONFINITE_ERROR, or a second moment that would become
                                infinite under GG_MOMENT_ERROR */
} gg_status;

/* What went wrong, where and why. All strings are NUL-terminated and may be truncated. */
typedef struct gg_error {
  uint32_t size;
  gg_status status;
  int64_t native_code;  /* the driver's own code, 0 if none */
  char native_name[64]; /* its name, such as "CUDA_ERROR_NO_DEVICE"; empty if none */
  char function[64];    /* the function that failed, of the library or of the driver */
  char message[1024];   /* one or two sentences: what failed, why and, if known, how to fix it */
} gg_error;
#define GG_ERROR_INIT \
  { (uint32_t)sizeof(gg_error), GG_OK, 0, "", "", "" }

/* The name of a status, such as "GG_ERROR_ARGUMENT". Never NULL; unknown values give "unknown status". */
GG_API const char* gg_status_name(gg_status status);

/* The library's version as a number (major * 10000 + minor * 100 + patch) and as a string. */
GG_API uint32_t gg_version(void);
GG_API const char* gg_version_string(void);

/* One line that describes this build: its backends, the guard option and the compiler. */
GG_API const char* gg_build_description(void);

/* ---- Devices and contexts ------------------------------------------------------------------------------- */

typedef enum gg_device_kind {
  GG_DEVICE_NONE = 0,
  GG_DEVICE_CPU = 1,
  GG_DEVICE_GPU = 2,
  GG_DEVICE_OTHER = 3
} gg_device_kind;

/* What a device can do and, when it cannot be used, why. */
typedef struct gg_device_info {
  uint32_t size;
  gg_device_kind kind;
  bool available; /* a context can be created on it */
  bool exact;     /* its results are bit-exact: as defined in docs/numerics.md */
  uint32_t compute_units;
  uint64_t memory_bytes; /* total device memory; 0 if unknown */
  char backend[16];      /* "cpu", "opencl", "cuda" */
  char id[32];           /* what gg_context_create takes: "cpu", "cuda:0", "opencl:0.1"; the backend name alone
                            when the backend itself is unavailable */
  char name[128];
  char driver[128]; /* driver or runtime version */
  char kernels[64]; /* the kernel variants it supports, best first: "avx2 portable", "cubin ptx nvrtc", "svm arena" */
  char reason[512]; /* why it is unavailable or not exact; empty otherwise */
} gg_device_info;

/*
 * Lists every device of every backend in this build. A backend that cannot be used at all gets one unavailable entry,
 * so every backend appears. `infos` is an array of `capacity` structs of infos[0].size bytes each; `*count` receives
 * the number of entries, which may be larger than `capacity`. `infos` may be NULL when `capacity` is 0.
 */
GG_API gg_status gg_devices(gg_device_info* infos, size_t capacity, size_t* count, gg_error* error);

typedef struct gg_context gg_context;

/* Receives one line of text without a newline: `level` 0 is information, 1 a warning. */
typedef void (*gg_log_function)(void* user, int level, const char* message);

typedef struct gg_context_options {
  uint32_t size;
  uint32_t threads;    /* cpu: number of threads; 0: OpenMP's default */
  const char* kernel;  /* kernel variant: cpu "avx512", "avx2", "portable"; opencl "svm", "arena"; cuda "cubin", "ptx",
                          "nvrtc". NULL: the value of GRADGUARD_CPU_KERNELS, GRADGUARD_OPENCL_KERNELS or
                          GRADGUARD_CUDA_KERNELS, else the best. A variant that is not available is an error. */
  gg_log_function log; /* optional */
  void* log_user;
} gg_context_options;
#define GG_CONTEXT_OPTIONS_INIT \
  { (uint32_t)sizeof(gg_context_options), 0, NULL, NULL, NULL }

/*
 * Opens a device. `device` is "auto", a backend name ("cpu", "opencl", "cuda": its best device), an id from gg_devices
 * ("cuda:1", "opencl:0.1"), or "BACKEND:name=TEXT" (the first device whose name contains TEXT). NULL means the value of
 * GRADGUARD_DEVICE, or "auto" if that is not set. "auto" tries CUDA, then an OpenCL GPU, then the CPU (in a build
 * without the cpu backend, OpenCL on the CPU) and skips devices that are not exact; gg_context_device_report() says why
 * each one was rejected. A device that is named is never replaced by another. `options` and `error` may be NULL. On
 * failure *context is NULL.
 */
GG_API gg_status gg_context_create(const char* device, const gg_context_options* options, gg_context** context,
                                   gg_error* error);

/* Waits for the device, then frees the context. Destroy its buffers and groups first. Any that are left may still be
 * destroyed afterwards, but not used. */
GG_API void gg_context_destroy(gg_context** context);

/* The last error of this context; status GG_OK if there was none. Owned by the context. */
GG_API const gg_error* gg_context_error(const gg_context* context);

/* The device of this context. `info->size` must be set. */
GG_API gg_status gg_context_device(const gg_context* context, gg_device_info* info);

/* The kernel variant in use, such as "avx2" or "nvrtc". Owned by the context. */
GG_API const char* gg_context_kernel(const gg_context* context);

/* How "auto" chose: one line for each device tried. Empty if a device was named. Owned by the context. */
GG_API const char* gg_context_device_report(const gg_context* context);

/* Waits until the device has finished everything this context submitted. */
GG_API gg_status gg_context_synchronize(gg_context* context);

/* ---- Buffers and tensors --------------------------------------------------------------------------------- */

typedef struct gg_buffer gg_buffer;

/* Allocates `bytes` of device memory, aligned to 256 bytes, contents undefined. 0 bytes is allowed. */
GG_API gg_status gg_buffer_create(gg_context* context, uint64_t bytes, gg_buffer** buffer);

/* Wraps the caller's host memory; cpu backend only (others return GG_ERROR_UNSUPPORTED). The caller keeps it alive
 * until the buffer and every group that uses it are destroyed. For device memory see cuda.h and opencl.h. */
GG_API gg_status gg_buffer_wrap_host(gg_context* context, void* memory, uint64_t bytes, gg_buffer** buffer);

/* Releases the caller's handle. A group that uses the buffer keeps it alive until the group is destroyed. */
GG_API void gg_buffer_destroy(gg_buffer** buffer);

GG_API uint64_t gg_buffer_bytes(const gg_buffer* buffer);

/* True if the buffer wraps memory that belongs to the caller. */
GG_API bool gg_buffer_is_wrapped(const gg_buffer* buffer);

/* Copies between host memory and bytes [offset, offset + bytes) of the buffer. They run after all work submitted to the
 * context earlier, and return when the copy is done. */
GG_API gg_status gg_buffer_upload(gg_buffer* buffer, uint64_t offset, const void* source, uint64_t bytes);
GG_API gg_status gg_buffer_download(const gg_buffer* buffer, uint64_t offset, void* destination, uint64_t bytes);

/* Sets every byte of [offset, offset + bytes) to `value`, after all work submitted earlier. May return before it is
 * done. */
GG_API gg_status gg_buffer_fill(gg_buffer* buffer, uint64_t offset, uint64_t bytes, uint8_t value);

typedef enum gg_dtype { GG_F32 = 1, GG_F16 = 2, GG_BF16 = 3 } gg_dtype;

/* Bytes of one element; 0 for an unknown dtype. */
GG_API size_t gg_dtype_bytes(gg_dtype dtype);
/* "f32", "f16", "bf16"; "unknown dtype" otherwise. */
GG_API const char* gg_dtype_name(gg_dtype dtype);

#define GG_MAX_RANK 8

/* A view of a buffer. buffer == NULL means that an optional tensor is absent; the other fields are then ignored. */
typedef struct gg_tensor {
  gg_buffer* buffer;
  uint64_t offset; /* bytes from the start of the buffer; a multiple of the dtype's size */
  gg_dtype dtype;
  uint32_t rank; /* 0 (one element) to GG_MAX_RANK */
  int64_t shape[GG_MAX_RANK];
  int64_t strides[GG_MAX_RANK]; /* in elements; must be row-major contiguous. Ignored for dimensions of size 1, and for
                                   empty tensors */
} gg_tensor;

/* A contiguous tensor of the given shape. `shape` may be NULL when `rank` is 0. Arguments are not checked here, but
 * when a group is created. */
GG_API gg_tensor gg_tensor_contiguous(gg_buffer* buffer, uint64_t offset, gg_dtype dtype, uint32_t rank,
                                      const int64_t* shape);

/* ---- Groups ----------------------------------------------------------------------------------------------- */

/* The largest number of completed steps. A step on an entry that has reached it is an error. */
#define GG_STEP_MAX INT64_MAX

typedef enum gg_role {
  GG_PARAMETER = 0,      /* FP32 master parameter */
  GG_GRADIENT = 1,       /* FP32, FP16 or BF16; read only */
  GG_EXP_AVG = 2,        /* first moment, FP32 */
  GG_EXP_AVG_SQ = 3,     /* second moment, FP32 */
  GG_MAX_EXP_AVG_SQ = 4, /* AMSGrad: running maximum of the uncorrected second moment, FP32 */
  GG_MODEL_COPY = 5      /* optional FP16 or BF16 copy of the new parameter, rounded to nearest even; write only */
} gg_role;
#define GG_ROLES 6

/* "parameter", "gradient", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "model_copy". */
GG_API const char* gg_role_name(gg_role role);

/* One parameter with its gradient and state. All tensors of an entry have the same shape. */
typedef struct gg_entry {
  uint32_t size;
  const char* name;            /* used in errors; copied; may be NULL */
  gg_tensor tensors[GG_ROLES]; /* by gg_role; max_exp_avg_sq with AMSGrad and only then; model_copy is optional */
  uint64_t step;               /* completed steps, 0 to GG_STEP_MAX */
} gg_entry;
#define GG_ENTRY_INIT \
  { (uint32_t)sizeof(gg_entry), NULL, {{NULL, 0, GG_F32, 0, {0}, {0}}}, 0 }

typedef enum gg_update_mode {
  GG_OUT_OF_PLACE =
      0, /* a step writes to second buffers, which commit makes current; until then the old values are intact */
  GG_IN_PLACE = 1 /* a step overwrites parameters and state */
} gg_update_mode;

typedef struct gg_group_options {
  uint32_t size;
  gg_update_mode mode;
  bool amsgrad;
} gg_group_options;
#define GG_GROUP_OPTIONS_INIT \
  { (uint32_t)sizeof(gg_group_options), GG_OUT_OF_PLACE, false }

typedef struct gg_group gg_group;

/*
 * Validates `count` entries (of entries[0].size bytes each) and prepares them for any number of steps. The tensors are
 * neither read nor written. These are errors, and the message names the entry, the tensor and the reason: a missing or
 * unexpected tensor, a wrong dtype, different shapes within an entry, a non-contiguous layout, a tensor that extends
 * beyond its buffer, a misaligned offset, a buffer of another context, a step out of range, and memory that a step
 * writes and that overlaps any other tensor of the group. Out of place, wrapped memory is never written. `options` may
 * be NULL (the defaults). Entries with zero elements are valid: nothing is done for them and their step does not
 * advance.
 */
GG_API gg_status gg_group_create(gg_context* context, const gg_entry* entries, size_t count,
                                 const gg_group_options* options, gg_group** group);

/* Waits for a pending step and discards it, then frees the group and its second buffers. */
GG_API void gg_group_destroy(gg_group** group);

GG_API size_t gg_group_count(const gg_group* group);

/* Where the current values of a tensor are. Out of place this changes with each commit. The buffer still belongs to the
 * group or to the caller: do not destroy it through this view. */
GG_API gg_status gg_group_tensor(const gg_group* group, size_t entry, gg_role role, gg_tensor* tensor);

/* Completed, committed steps of an entry. */
GG_API gg_status gg_group_step(const gg_group* group, size_t entry, uint64_t* step);

/* ---- Steps ------------------------------------------------------------------------------------------------- */

/* AdamW: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019; AMSGrad: Reddi et al., 2018. */
typedef struct gg_adamw_options {
  uint32_t size;
  double learning_rate;  /* finite, >= 0 */
  double beta1, beta2;   /* in [0, 1) */
  double epsilon;        /* > 0 after rounding to FP32; added outside the bias-corrected square root */
  double weight_decay;   /* finite, >= 0; decoupled, applied to the old parameter */
  double gradient_scale; /* loss scale: > 0, finite, and its FP32 reciprocal finite and not zero */
  bool maximize;         /* negate the unscaled gradient */
  bool skip_update;      /* skip this step: nothing is checked, allocated or advanced */
} gg_adamw_options;
#define GG_ADAMW_OPTIONS_INIT \
  { (uint32_t)sizeof(gg_adamw_options), 1e-3, 0.9, 0.999, 1e-8, 1e-2, 1.0, false, false }

typedef enum gg_nonfinite_policy {
  GG_NONFINITE_SKIP = 0, /* one non-finite value skips the whole group, which then keeps every bit */
  GG_NONFINITE_ERROR = 1 /* the step returns GG_ERROR_NONFINITE before any update is submitted */
} gg_nonfinite_policy;

/* What to do if a finite gradient is so large that exp_avg_sq would become infinite (GG_KIND_MOMENT). It would stay
 * infinite, and the parameter would no longer follow its gradient. */
typedef enum gg_moment_policy {
  GG_MOMENT_APPLY = 0, /* update, and report it */
  GG_MOMENT_SKIP = 1,  /* one such tensor skips the whole group, which then keeps every bit */
  GG_MOMENT_ERROR = 2  /* the step returns GG_ERROR_NONFINITE before any update is submitted */
} gg_moment_policy;

typedef struct gg_guard_options {
  uint32_t size;
  bool clip;           /* false: no clipping; non-finite values are still checked */
  double max_norm;     /* finite, >= 0; 0 makes every finite gradient zero; weight decay and moments still apply */
  double clip_epsilon; /* finite, >= 0; coefficient = min(1, max_norm / (norm + clip_epsilon)) */
  gg_nonfinite_policy on_nonfinite;
  uint32_t reserved; /* ignored */
  gg_moment_policy on_moment_overflow;
} gg_guard_options;
#define GG_GUARD_OPTIONS_INIT \
  { (uint32_t)sizeof(gg_guard_options), false, 1.0, 1e-6, GG_NONFINITE_SKIP, 0, GG_MOMENT_APPLY }

typedef enum gg_action { GG_ACTION_NONE = 0, GG_APPLIED = 1, GG_SKIPPED = 2, GG_REFUSED = 3 } gg_action;
typedef enum gg_reason {
  GG_REASON_NONE = 0,
  GG_REASON_REQUESTED = 1, /* skip_update */
  GG_REASON_EMPTY = 2,     /* the group has no elements */
  GG_REASON_NONFINITE = 3,
  GG_REASON_MOMENT_OVERFLOW = 4 /* a second moment would become infinite, and on_moment_overflow is skip or error */
} gg_reason;

/* Kinds of non-finite values, as bits. The first three describe values of the gradient. GG_KIND_MOMENT is reported only
 * for a guarded step whose gradients are all finite: exp_avg_sq would become infinite, since (1 - beta2) * (max_abs *
 * clip_coefficient)^2, computed in FP64, is above FLT_MAX. To fix it, check gradient_scale, clip, or scale the loss
 * itself down. */
#define GG_KIND_NAN      1u
#define GG_KIND_INF      2u
#define GG_KIND_OVERFLOW 4u /* the stored value is finite, the unscaled one is not */
#define GG_KIND_MOMENT   8u /* the gradient is finite, the resulting second moment is not */

/* Statistics of one tensor's unscaled gradient. */
typedef struct gg_tensor_report {
  uint64_t elements;
  double norm;        /* L2 norm; +Inf if a value is not finite */
  double max_abs;     /* largest finite magnitude */
  uint32_t nonfinite; /* GG_KIND_ bits */
  uint32_t reserved;
} gg_tensor_report;

/* What a step did. If nothing was measured (a plain step, a requested skip, an empty group), `measured` is false and
 * norm and max_abs are 0. */
typedef struct gg_report {
  uint32_t size;
  gg_action action; /* GG_REFUSED: an error policy applied, and the step returned GG_ERROR_NONFINITE */
  gg_reason reason;
  bool measured;
  double norm;             /* L2 norm of the whole group after unscaling; +Inf if a value is not finite */
  double max_abs;          /* largest finite magnitude after unscaling */
  double clip_coefficient; /* 1 when skipped or not clipped */
  double gradient_scale;
  uint32_t nonfinite; /* GG_KIND_ bits over all tensors */
  uint32_t reduction_launches;
  uint32_t update_launches;
  uint32_t reserved;
  uint64_t elements;                  /* in the whole group */
  uint64_t tensors;                   /* entries of the group */
  uint64_t readback_bytes;            /* 12 for each non-empty tensor */
  uint64_t scratch_bytes;             /* device memory of the group's tables, not counting second buffers */
  const gg_tensor_report* per_tensor; /* one for each entry (`tensors`); NULL if not measured. Owned by the group, valid
                                         until its next step */
} gg_report;
#define GG_REPORT_INIT \
  { (uint32_t)sizeof(gg_report), GG_ACTION_NONE, GG_REASON_NONE, false, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NULL }

/* The report of the group's last step, including one that returned GG_ERROR_NONFINITE. `report->size` must be set. */
GG_API gg_status gg_group_report(const gg_group* group, gg_report* report);

/*
 * A submitted step. A group has at most one: it must be committed or discarded before the next step. The new values may
 * be used only after the device has finished; gg_pending_wait and gg_pending_commit wait for that.
 */
typedef struct gg_pending gg_pending;

/* The plain AdamW step: no check, no clipping; skip_update and gradient_scale apply. It may return before the update is
 * done. `options` may be NULL (the defaults). On error *pending is NULL and nothing has changed. */
GG_API gg_status gg_adamw_step(gg_group* group, const gg_adamw_options* options, gg_pending** pending);

/*
 * The guarded step: measure, decide once for the whole group, update. When it returns, the statistics are on the host
 * and the update may still be running. With GG_NONFINITE_ERROR, non-finite values give GG_ERROR_NONFINITE, no pending
 * step, and a report; so do second moments that would become infinite with GG_MOMENT_ERROR. `options` and `guard` may
 * be NULL (the defaults: no clipping; skip if a gradient is not finite; apply and report if a second moment overflows).
 */
GG_API gg_status gg_guarded_adamw_step(gg_group* group, const gg_adamw_options* options, const gg_guard_options* guard,
                                       gg_pending** pending);

/* What the step decided; does not wait. The same as gg_group_report. */
GG_API gg_status gg_pending_report(const gg_pending* pending, gg_report* report);

/* Waits until the device has finished the step and says whether it succeeded. */
GG_API gg_status gg_pending_wait(gg_pending* pending);

/* Waits, then makes the new values current and advances the step of every non-empty entry. After a fault nothing is
 * committed: the status says why, the handle stays valid, and only gg_pending_discard is possible. Committing a skipped
 * step changes nothing. On success *pending is NULL. */
GG_API gg_status gg_pending_commit(gg_pending** pending);

/* Discards the new values. Out of place, the old ones stay current and intact. In place, an applied step cannot be
 * undone: GG_ERROR_STATE, and the handle stays valid; after a fault the step is discarded and the group allows no
 * further steps. */
GG_API gg_status gg_pending_discard(gg_pending** pending);

/*
 * One step in place, without a group to keep: creates a group, takes the step, waits, commits, and writes the new step
 * count to entries[i].step. `guard` NULL means the plain step. `report` may be NULL; its per_tensor, if not NULL, is an
 * array of `count` structs that the caller provides. `amsgrad` as in gg_group_options. On error nothing has changed,
 * except with GG_ERROR_DEVICE_LOST: then the update may be half done.
 */
GG_API gg_status gg_adamw_once(gg_context* context, gg_entry* entries, size_t count, bool amsgrad,
                               const gg_adamw_options* options, const gg_guard_options* guard, gg_report* report,
                               gg_tensor_report* per_tensor);

/* ---- Diagnostics ------------------------------------------------------------------------------------------- */

/* The statistics of `count` gradients, without parameters: norm, largest magnitude, kinds of non-finite values. Waits
 * for the device. `statistics->per_tensor` is set to `per_tensor`, an array of `count` structs that the caller
 * provides; it may be NULL. Only the fields that describe the gradients are filled in; action is GG_ACTION_NONE. */
GG_API gg_status gg_gradient_stats(gg_context* context, const gg_tensor* gradients, size_t count, double gradient_scale,
                                   gg_report* statistics, gg_tensor_report* per_tensor);

/* How many values of each kind a gradient has, and the index of the first in the tensor's elements. */
typedef struct gg_nonfinite_census {
  uint32_t size;
  uint64_t nan_count, inf_count, overflow_count;
  uint64_t first_nan, first_inf, first_overflow; /* UINT64_MAX where the count is 0 */
} gg_nonfinite_census;
#define GG_NONFINITE_CENSUS_INIT \
  { (uint32_t)sizeof(gg_nonfinite_census), 0, 0, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX }

/* Counts the non-finite values of one gradient. Copies the tensor to the host in pieces: a diagnostic for tensors that
 * the statistics have flagged, not part of a step. */
GG_API gg_status gg_gradient_census(gg_context* context, const gg_tensor* gradient, double gradient_scale,
                                    gg_nonfinite_census* census);

/* ---- The policy, without a device ---------------------------------------------------------------------------- */

/* The statistics of one tensor as the device computes them, 12 bytes. With 2^e, the largest power of two <= max_abs,
 * the sum of squares of its elements is ssq * 2^(2e). */
typedef struct gg_triple {
  float max_abs;
  float ssq;
  uint32_t flags; /* GG_KIND_ bits of the gradient's values; never GG_KIND_MOMENT, which gg_decide adds */
} gg_triple;

/* What to do with a group, decided from its statistics alone. */
typedef struct gg_decision {
  uint32_t size;
  gg_action action;
  gg_reason reason;
  uint32_t nonfinite;
  double norm;
  double max_abs;
  double clip_coefficient;
  float factor1, factor2; /* the coefficient as two FP32 factors, applied one after the other */
} gg_decision;
#define GG_DECISION_INIT \
  { (uint32_t)sizeof(gg_decision), GG_ACTION_NONE, GG_REASON_NONE, 0, 0, 0, 1, 1, 1 }

/* A pure function of its arguments: merges the triples in FP64, in order, and decides. Only beta2 of `options` is used,
 * for GG_KIND_MOMENT. `options` and `guard` may be NULL (the defaults). GG_ERROR_ARGUMENT if an option is out of range,
 * with the details in `error`, which may be NULL. Triples of several ranks may be concatenated. */
GG_API gg_status gg_decide(const gg_triple* triples, size_t count, const gg_adamw_options* options,
                           const gg_guard_options* guard, gg_decision* decision, gg_error* error);

#ifdef __cplusplus
}
#endif

#endif
