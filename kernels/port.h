/*
 * The portability layer: one source for CUDA C, OpenCL C and C. Kernels use only these names. Every operation rounds
 * once, to nearest even; a fused multiply-add is used only where gg_fma is written.
 */
#ifndef GG_KERNELS_PORT_H
#define GG_KERNELS_PORT_H

#if defined(__OPENCL_VERSION__)

#pragma OPENCL FP_CONTRACT OFF
typedef uchar gg_u8;
typedef ushort gg_u16;
typedef uint gg_u32;
typedef int gg_i32;
typedef ulong gg_u64;
typedef float gg_f32;
#define GG_FN             static inline __attribute__((always_inline))
#define GG_KERNEL(blocks) __kernel __attribute__((reqd_work_group_size(256, 1, 1)))
#define GG_GLOBAL         __global
#define GG_SHARED         __local /* a local variable of a kernel */
#define GG_SHARED_POINTER __local /* a pointer to one */
#define gg_bits(x)        as_uint(x)
#define gg_float(u)       as_float(u)
#define gg_fma(a, b, c)   fma((a), (b), (c))
#define gg_mul(a, b)      ((a) * (b))
#define gg_add(a, b)      ((a) + (b))
#define gg_sub(a, b)      ((a) - (b))
#define gg_div(a, b)      ((a) / (b))
#define gg_sqrt(a)        sqrt(a)
#define gg_largest(a, b)  fmax(fabs(a), fabs(b)) /* of two values that are not NaN */
#define gg_leading(u)     ((gg_i32)clz(u))       /* leading zeros of a gg_u32 that is not 0 */
#define gg_item()         ((gg_u32)get_local_id(0))
#define gg_block_index()  ((gg_u32)get_group_id(0))
#define gg_block_count()  ((gg_u32)get_num_groups(0))
#define gg_barrier()      barrier(CLK_LOCAL_MEM_FENCE)

#define GG_ROLLED

#elif defined(__CUDACC__)

typedef unsigned char gg_u8;
typedef unsigned short gg_u16;
typedef unsigned int gg_u32;
typedef int gg_i32;
typedef unsigned long long gg_u64;
typedef float gg_f32;
#define GG_FN             static __device__ __forceinline__
#define GG_KERNEL(blocks) extern "C" __global__ __launch_bounds__(256, GG_RESIDENT(blocks))
#if __CUDA_ARCH__ < 800
#define GG_RESIDENT(blocks) \
  ((blocks) < 4 ? (blocks) : 4) /* blocks per multiprocessor: on Turing it holds 1024 work-items */
#else
#define GG_RESIDENT(blocks) (blocks)
#endif
#define GG_GLOBAL
#define GG_SHARED __shared__
#define GG_SHARED_POINTER
#define gg_bits(x)       __float_as_uint(x)
#define gg_float(u)      __uint_as_float(u)
#define gg_fma(a, b, c)  __fmaf_rn((a), (b), (c))
#define gg_mul(a, b)     __fmul_rn((a), (b))
#define gg_add(a, b)     __fadd_rn((a), (b))
#define gg_sub(a, b)     __fsub_rn((a), (b))
#define gg_div(a, b)     __fdiv_rn((a), (b))
#define gg_sqrt(a)       __fsqrt_rn(a)
#define gg_largest(a, b) fmaxf(fabsf(a), fabsf(b))
#define gg_leading(u)    __clz((int)(u))
#define gg_item()        (threadIdx.x)
#define gg_block_index() (blockIdx.x)
#define gg_block_count() (gridDim.x)
#define gg_barrier()     __syncthreads()
/* Prevents unrolling: rarely executed code should not be duplicated. */
#define GG_ROLLED        _Pragma("unroll 1")

#else /* C on the host; compiled with -ffp-contract=off */

#include <math.h>
#include <stdint.h>
typedef uint8_t gg_u8;
typedef uint16_t gg_u16;
typedef uint32_t gg_u32;
typedef int32_t gg_i32;
typedef uint64_t gg_u64;
typedef float gg_f32;
#define GG_FN static inline __attribute__((always_inline, unused))
GG_FN gg_u32 gg_bits(gg_f32 x) {
  union {
    gg_f32 f;
    gg_u32 u;
  } both = {x};
  return both.u;
}
GG_FN gg_f32 gg_float(gg_u32 u) {
  union {
    gg_u32 u;
    gg_f32 f;
  } both = {u};
  return both.f;
}
#if defined(__FMA__) || defined(__FP_FAST_FMAF)
#define gg_fma(a, b, c) __builtin_fmaf((a), (b), (c))
#else
/* The product of two floats is exact in a double. The sum is rounded to odd in double, so that the second rounding, to
 * float, gives the same as a single rounding (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
 */
GG_FN gg_f32 gg_fma(gg_f32 a, gg_f32 b, gg_f32 c) {
  double product = (double)a * (double)b, addend = (double)c;
  union {
    double d;
    uint64_t u;
  } sum = {product + addend};
  double part = sum.d - product;
  double error = (product - (sum.d - part)) + (addend - part);
  uint64_t inexact = error > 0.0 || error < 0.0;
  uint64_t even = !(sum.u & 1u);
  /* The other neighbour on the error's side is the odd one. */
  uint64_t outward = (error > 0.0) == (sum.d > 0.0);
  sum.u += (inexact & even) ? (outward ? (uint64_t)1 : ~(uint64_t)0) : 0;
  return (gg_f32)sum.d;
}
#endif
#define gg_mul(a, b)  ((a) * (b))
#define gg_add(a, b)  ((a) + (b))
#define gg_sub(a, b)  ((a) - (b))
#define gg_div(a, b)  ((a) / (b))
#define gg_sqrt(a)    __builtin_sqrtf(a)
#define gg_leading(u) __builtin_clz(u)

#endif

#endif
