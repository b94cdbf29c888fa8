/* Device code: access to the tensors of a row, and loads and stores of several elements. */
#ifndef GG_KERNELS_MEMORY_H
#define GG_KERNELS_MEMORY_H

#include "kernels/formulas.h"

/* A row has absolute addresses or, in an arena (OpenCL without shared virtual memory), offsets into memory objects,
 * which are additional kernel arguments. GG_AT(objects, row, in[0]) is the address of in[0] in both cases. */
typedef GG_GLOBAL gg_u8* gg_pointer;
#ifdef GG_ARENA
typedef struct gg_objects {
  gg_pointer gradient, in[GG_STATES], out[GG_STATES], model;
} gg_objects;
#define GG_OBJECT(name)            , gg_pointer name
#define GG_SET_OBJECT(field, name) objects.field = name
#define GG_AT(objects, row, field) ((objects)->field + (row)->field)
#else
typedef struct gg_objects {
  gg_u32 none;
} gg_objects;
#define GG_OBJECT(name)
#define GG_SET_OBJECT(field, name) objects.none = 0
#define GG_AT(objects, row, field) ((void)(objects), (gg_pointer)(row)->field)
#endif

#if defined(__OPENCL_VERSION__)

#define gg_f16_at(p, i)     vload_half((i), (GG_GLOBAL const half*)(p))
#define gg_put_f16(p, i, x) vstore_half_rte((x), (i), (GG_GLOBAL half*)(p))
GG_FN gg_f32 gg_widen_f16(gg_u16 bits) { return vload_half(0, (const half*)&bits); }
GG_FN gg_u16 gg_narrow_f16(gg_f32 x) {
  gg_u16 bits;
  vstore_half_rte(x, 0, (half*)&bits);
  return bits;
}
typedef float4 gg_f32x4;
typedef uint4 gg_u32x4;
typedef uint2 gg_u32x2;
#define gg_read_once(p)     (*(p))
#define gg_write_once(p, x) (*(p) = (x))

#else

GG_FN gg_f32 gg_widen_f16(gg_u16 bits) {
  gg_f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
GG_FN gg_u16 gg_narrow_f16(gg_f32 x) {
  gg_u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
#define gg_f16_at(p, i)     gg_widen_f16(((const gg_u16*)(p))[i])
#define gg_put_f16(p, i, x) (((gg_u16*)(p))[i] = gg_narrow_f16(x))
typedef float4 gg_f32x4;
typedef uint4 gg_u32x4;
typedef uint2 gg_u32x2;
/* Data that a step reads or writes only once should not evict gradients from the cache. */
#define gg_read_once(p)     __ldcs(p)
#define gg_write_once(p, x) __stcs((p), (x))

#endif

/* One gradient value in FP32. */
GG_FN gg_f32 gg_load_value(gg_pointer p, gg_u32 type, gg_u64 index) {
  if (type == GG_TYPE_F32) return ((GG_GLOBAL const gg_f32*)p)[index];
  if (type == GG_TYPE_F16) return gg_f16_at(p, index);
  return gg_bf16_to_float(((GG_GLOBAL const gg_u16*)p)[index]);
}

GG_FN void gg_store_value(gg_pointer p, gg_u32 type, gg_u64 index, gg_f32 x) {
  if (type == GG_TYPE_F16)
    gg_put_f16(p, index, x);
  else
    ((GG_GLOBAL gg_u16*)p)[index] = gg_float_to_bf16(x);
}

/* The two halves of a word. */
GG_FN void gg_widen_word(gg_u32 type, gg_u32 word, gg_f32* first, gg_f32* second) {
  if (type == GG_TYPE_F16) {
    *first = gg_widen_f16((gg_u16)word);
    *second = gg_widen_f16((gg_u16)(word >> 16));
  } else {
    *first = gg_float(word << 16);
    *second = gg_float(word & 0xffff0000u);
  }
}

GG_FN gg_u32 gg_narrow_word(gg_u32 type, gg_f32 first, gg_f32 second) {
  if (type == GG_TYPE_F16) return gg_narrow_f16(first) | (gg_u32)gg_narrow_f16(second) << 16;
  return gg_float_to_bf16(first) | (gg_u32)gg_float_to_bf16(second) << 16;
}

/* What a block works on. It is in shared memory and read from there when needed: in registers it would reduce occupancy
 * by a third. */
typedef struct gg_spot {
  gg_device_row row;
  gg_u32 index;      /* of the row */
  gg_u32 block;      /* within the row */
  gg_u32 row_blocks; /* blocks of the row */
  gg_u32 row_first;  /* the first of them in the table */
} gg_spot;

GG_FN void gg_fetch_row(GG_SHARED_POINTER gg_spot* spot, GG_GLOBAL const gg_device_row* row) {
  const gg_u32 word = gg_item();
  if (word < sizeof(gg_device_row) / sizeof(gg_u32))
    ((GG_SHARED_POINTER gg_u32*)&spot->row)[word] = ((GG_GLOBAL const gg_u32*)row)[word];
}

#ifdef GG_PROCESSOR

/* Finds the row of the `number`th of `blocks` blocks in the prefix array, and loads it. On a CPU the work-items run one
 * after the other, so one of them does a binary search. No barrier is inside a branch: some CPU compilers (PoCL 5) fail
 * there, even if all work-items take the same branch. */
GG_FN void gg_find_spot(GG_SHARED_POINTER gg_spot* spot, GG_GLOBAL const gg_device_row* rows,
                        GG_GLOBAL const gg_u32* first, gg_u32 row_begin, gg_u32 row_end, gg_u32 number, gg_u32 blocks) {
  (void)blocks;
  if (gg_item() == 0) {
    const gg_u32 block = (row_begin ? first[row_begin] : 0) + number;
    gg_u32 low = row_begin, high = row_end;
    while (high - low > 1) {
      const gg_u32 middle = low + (high - low) / 2;
      if (first[middle] <= block)
        low = middle;
      else
        high = middle;
    }
    spot->index = low;
    spot->block = block - first[low];
    spot->row_blocks = first[low + 1] - first[low];
    spot->row_first = first[low];
  }
  gg_barrier();
  gg_fetch_row(spot, rows + spot->index);
  gg_barrier();
}

#else

/* Each work-item compares `block` with the first blocks of two rows that are `step` apart; the one that finds it
 * between them stores the first of the two rows. */
GG_FN void gg_search(GG_SHARED_POINTER gg_spot* spot, GG_GLOBAL const gg_u32* first, gg_u32 low, gg_u32 high,
                     gg_u32 step, gg_u32 block) {
  GG_ROLLED
  for (gg_u32 row = low + step * gg_item(); row < high; row += step * GG_LANES) {
    const gg_u32 next = high - row < step ? high : row + step, begin = first[row], end = first[next];
    if (block < begin || block >= end) continue;
    spot->index = row;
    spot->block = block - begin;
    spot->row_blocks = end - begin;
    spot->row_first = begin;
  }
  gg_barrier();
}

/* Finds the row of the `number`th of `blocks` blocks in the prefix array, and loads it. All work-items search in
 * parallel, because memory latency dominates and a binary search would wait for it ten times. With more than 256 rows,
 * the row that would be right if all rows had the same size is loaded before it is known to be right; if it is not,
 * every `step`th row is searched first, and then the rows from there. */
GG_FN void gg_find_spot(GG_SHARED_POINTER gg_spot* spot, GG_GLOBAL const gg_device_row* rows,
                        GG_GLOBAL const gg_u32* first, gg_u32 row_begin, gg_u32 row_end, gg_u32 number, gg_u32 blocks) {
  const gg_u32 count = row_end - row_begin, block = (row_begin ? first[row_begin] : 0) + number;
  if (count > GG_LANES) {
    const gg_u32 alike = number / (blocks / count);
    const gg_u32 guess = row_begin + (alike < count ? alike : count - 1);
    const gg_u32 begin = first[guess], end = first[guess + 1];
    gg_fetch_row(spot, rows + guess);
    if (block >= begin && block < end) {
      if (gg_item() == 0) {
        spot->index = guess;
        spot->block = block - begin;
        spot->row_blocks = end - begin;
        spot->row_first = begin;
      }
      gg_barrier();
      return;
    }
    gg_barrier();
    const gg_u32 step = (count + GG_LANES - 1) / GG_LANES;
    gg_search(spot, first, row_begin, row_end, step, block);
    const gg_u32 mark = spot->index;
    gg_barrier();
    gg_search(spot, first, mark, row_end - mark < step ? row_end : mark + step, 1, block);
  } else {
    gg_search(spot, first, row_begin, row_end, 1, block);
  }
  gg_fetch_row(spot, rows + spot->index);
  gg_barrier();
}

#endif

#endif
