/* Structs and constants that the host and the kernels share. Sizes are asserted on the host (kernels/geometry.h) and
 * are the same in CUDA C, OpenCL C and C: only 4- and 8-byte members, ordered so that no padding arises. */
#ifndef GG_KERNELS_TYPES_H
#define GG_KERNELS_TYPES_H

#include "kernels/port.h"

#define GG_TILE            8    /* elements: the unit of the reduction */
#define GG_LANES           256  /* work-items of a block */
#define GG_MAX_BLOCKS      1024 /* maximum number of partial triples of one tensor */
#define GG_UPDATE_ELEMENTS 1024 /* elements of one update block */

/* States that an update reads and writes. */
#define GG_STATE_PARAMETER      0
#define GG_STATE_EXP_AVG        1
#define GG_STATE_EXP_AVG_SQ     2
#define GG_STATE_MAX_EXP_AVG_SQ 3
#define GG_STATES               4

/* Element types for the kernels; the values of gg_dtype. */
#define GG_TYPE_F32  1
#define GG_TYPE_F16  2
#define GG_TYPE_BF16 3

/* Bits of gg_device_row.flags. */
#define GG_ROW_ALIGNED_GRADIENT 1u /* the gradient starts on a 16-byte boundary */
#define GG_ROW_ALIGNED_STATES   2u /* so does every state, read or written; and the model copy on an 8-byte boundary */
#define GG_ROW_AMSGRAD          4u

/* A non-empty tensor for the kernels. Addresses are absolute, or offsets into memory objects (OpenCL). */
typedef struct gg_device_row {
  gg_u64 elements;
  gg_u64 gradient;
  gg_u64 in[GG_STATES];
  gg_u64 out[GG_STATES];
  gg_u64 model;
  gg_u32 gradient_type;
  gg_u32 model_type;     /* 0: no model copy */
  gg_u32 tiles_per_lane; /* in a reduction block, whose range is 256 * tiles_per_lane tiles */
  gg_u32 flags;
} gg_device_row;

/* Bias corrections of a row's next step t: lr / (1 - beta1^t) and 1 / sqrt(1 - beta2^t). */
typedef struct gg_bias {
  gg_f32 step_size;
  gg_f32 inverse_bias_correction2_sqrt;
} gg_bias;

/* The constants of a step, computed in FP64 on the host and rounded once. */
typedef struct gg_update_constants {
  gg_f32 inverse_scale; /* of the loss scale */
  gg_f32 factor1;       /* the clip coefficient, as two factors */
  gg_f32 factor2;
  gg_f32 decay; /* 1 - lr * weight_decay */
  gg_f32 beta1;
  gg_f32 one_minus_beta1;
  gg_f32 beta2;
  gg_f32 one_minus_beta2;
  gg_f32 epsilon;
  gg_u32 maximize; /* 0 or 1 */
  gg_bias bias;    /* if all rows have the same */
} gg_update_constants;

#if defined(__OPENCL_VERSION__) || defined(__CUDACC__)
/* For the host, this is in api/gradguard.h. */
typedef struct gg_triple {
  gg_f32 max_abs;
  gg_f32 ssq;
  gg_u32 flags;
} gg_triple;
#define GG_KIND_NAN      1u
#define GG_KIND_INF      2u
#define GG_KIND_OVERFLOW 4u
#endif

#endif
