/* Device code: reductions over the 256 work-items of a block. */
#ifndef GG_KERNELS_BLOCK_H
#define GG_KERNELS_BLOCK_H

#include "kernels/memory.h"

/* A lane's sum in two floats. */
typedef struct gg_sum {
  gg_f32 high, low;
} gg_sum;

GG_FN gg_sum gg_combine(gg_sum a, gg_sum b) {
  gg_f32 error;
  gg_sum sum;
  sum.high = gg_two_sum(a.high, b.high, &error);
  sum.low = gg_add(gg_add(a.low, b.low), error);
  return sum;
}

/* gg_block_most gives each work-item the largest magnitude and the kinds over all, after gg_clear_shared and a barrier.
 */

/* gg_block_sum is a tree over the lanes: strides 16, 8, 4, 2, 1 within each 32, then strides 128, 64, 32 between the
 * first lanes of each 32. Lane 0 receives the sum; the values of the other lanes are unspecified. */

#if defined(__OPENCL_VERSION__)

typedef struct gg_shared {
  gg_f32 high[GG_LANES], low[GG_LANES];
  gg_u32 most, flags;
} gg_shared;

GG_FN void gg_block_most(GG_SHARED_POINTER gg_shared* shared, gg_u32* most, gg_u32* flags) {
  if (*most) atomic_max(&shared->most, *most);
  if (*flags) atomic_or(&shared->flags, *flags);
  gg_barrier();
  *most = shared->most;
  *flags = shared->flags;
}

GG_FN gg_sum gg_block_sum(GG_SHARED_POINTER gg_shared* shared, gg_sum own) {
  gg_u32 lane = gg_item();
  shared->high[lane] = own.high;
  shared->low[lane] = own.low;
  gg_barrier();
  for (gg_u32 level = 0; level < 8; level++) {
    gg_u32 stride = level < 5 ? 16u >> level : 128u >> (level - 5);
    if (level < 5 ? lane % 32 < stride : lane < stride && lane % 32 == 0) {
      gg_sum other;
      other.high = shared->high[lane + stride];
      other.low = shared->low[lane + stride];
      own = gg_combine(own, other);
      shared->high[lane] = own.high;
      shared->low[lane] = own.low;
    }
    gg_barrier();
  }
  return own;
}

#else

typedef struct gg_shared {
  gg_sum sums[GG_LANES / 32];
  gg_u32 most, flags;
} gg_shared;

GG_FN gg_u32 gg_warp_most(gg_u32 own) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, own);
#else
#pragma unroll
  for (int stride = 16; stride > 0; stride /= 2) own = max(own, __shfl_xor_sync(0xffffffffu, own, stride));
  return own;
#endif
}

GG_FN void gg_block_most(gg_shared* shared, gg_u32* most, gg_u32* flags) {
  const gg_u32 largest = gg_warp_most(*most);
  if (gg_item() % 32 == 0) atomicMax(&shared->most, largest);
  if (*flags) atomicOr(&shared->flags, *flags);
  gg_barrier();
  *most = shared->most;
  *flags = shared->flags;
}

/* Lanes that the tree no longer needs also combine; their values are not used. */
GG_FN gg_sum gg_warp_sum(gg_sum own, int first_stride) {
#pragma unroll
  for (int stride = first_stride; stride > 0; stride /= 2) {
    gg_sum other;
    other.high = __shfl_down_sync(0xffffffffu, own.high, stride);
    other.low = __shfl_down_sync(0xffffffffu, own.low, stride);
    own = gg_combine(own, other);
  }
  return own;
}

GG_FN gg_sum gg_block_sum(gg_shared* shared, gg_sum own) {
  own = gg_warp_sum(own, 16);
  if (gg_item() % 32 == 0) shared->sums[gg_item() / 32] = own;
  gg_barrier();
  if (gg_item() < 32) own = gg_warp_sum(shared->sums[gg_item() % (GG_LANES / 32)], 4);
  return own;
}

#endif

GG_FN void gg_clear_shared(GG_SHARED_POINTER gg_shared* shared) {
  if (gg_item() == 0) shared->most = shared->flags = 0;
}

#endif
