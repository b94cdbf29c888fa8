/* Device side: the statistics of the gradients (docs/numerics.md). A work-item is a lane. */
#ifndef GG_KERNELS_REDUCE_H
#define GG_KERNELS_REDUCE_H

#include "kernels/block.h"

#define GG_MIDDLE_LEAST 0x2b800000u /* bits of 2^-40 */
#define GG_MIDDLE_MOST  0x53800000u /* and of 2^40: tiles with a largest magnitude between these are in the middle bin \
                                     */
#define GG_BIN_SHIFT 84             /* big and small tiles are scaled by 2^-84 and 2^84 */

/* A lane's sums of squares, and what it has met. */
typedef struct gg_lane {
  gg_sum big, middle, small;
  gg_u32 most, flags;
} gg_lane;

GG_FN void gg_add_square_sum(gg_sum* bin, gg_f32 sum) {
  gg_f32 error;
  bin->high = gg_two_sum(bin->high, sum, &error);
  bin->low = gg_add(bin->low, error);
}

GG_FN gg_f32 gg_tile_sum(const gg_f32* x) {
  gg_f32 q0 = gg_fma(x[0], x[0], gg_mul(x[4], x[4])), q1 = gg_fma(x[1], x[1], gg_mul(x[5], x[5]));
  gg_f32 q2 = gg_fma(x[2], x[2], gg_mul(x[6], x[6])), q3 = gg_fma(x[3], x[3], gg_mul(x[7], x[7]));
  return gg_add(gg_add(q0, q2), gg_add(q1, q3));
}

/* A tile with non-finite values, with magnitudes outside the middle bin, or incomplete. */
GG_FN void gg_add_unusual_tile(gg_lane* lane, gg_pointer tile, gg_u32 type, gg_u32 count, gg_f32 inverse_scale) {
  gg_f32 x[GG_TILE];
  gg_u32 most = 0;
#pragma unroll
  for (int i = 0; i < GG_TILE; i++) {
    gg_f32 raw = (gg_u32)i < count ? gg_load_value(tile, type, (gg_u64)i) : 0.0f;
    x[i] = gg_mul(raw, inverse_scale);
    gg_u32 magnitude = gg_bits(x[i]) & GG_MAGNITUDE;
    if (magnitude >= GG_INFINITY_BITS) {
      lane->flags |= magnitude > GG_INFINITY_BITS                        ? GG_KIND_NAN
                     : (gg_bits(raw) & GG_MAGNITUDE) == GG_INFINITY_BITS ? GG_KIND_INF
                                                                         : GG_KIND_OVERFLOW;
      x[i] = 0.0f;
      magnitude = 0;
    }
    most = magnitude > most ? magnitude : most;
  }
  if (most == 0) return; /* adding 0 changes no bit */
  lane->most = most > lane->most ? most : lane->most;
  int big = most > GG_MIDDLE_MOST, small = most < GG_MIDDLE_LEAST;
  gg_f32 scale = gg_power_of_two(big ? -GG_BIN_SHIFT : small ? GG_BIN_SHIFT : 0);
#pragma unroll
  for (int i = 0; i < GG_TILE; i++) x[i] = gg_mul(x[i], scale);
  gg_f32 sum = gg_tile_sum(x);
  if (big)
    gg_add_square_sum(&lane->big, sum);
  else if (small)
    gg_add_square_sum(&lane->small, sum);
  else
    gg_add_square_sum(&lane->middle, sum);
}

/* A whole tile from an aligned address. Its magnitudes need not be compared to see that it is in the middle bin: above
 * 2^40 its sum is above 2^80 or not a number, below 2^-40 the sum is at most 2^-77. */
GG_FN void gg_add_tile(gg_lane* lane, gg_pointer tile, const gg_u32 type, gg_f32 inverse_scale) {
  gg_f32 x[GG_TILE];
  if (type == GG_TYPE_F32) {
    gg_f32x4 a = ((GG_GLOBAL const gg_f32x4*)tile)[0], b = ((GG_GLOBAL const gg_f32x4*)tile)[1];
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
    x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
  } else {
    gg_u32x4 words = *(GG_GLOBAL const gg_u32x4*)tile;
    gg_widen_word(type, words.x, &x[0], &x[1]);
    gg_widen_word(type, words.y, &x[2], &x[3]);
    gg_widen_word(type, words.z, &x[4], &x[5]);
    gg_widen_word(type, words.w, &x[6], &x[7]);
  }
#pragma unroll
  for (int i = 0; i < GG_TILE; i++) x[i] = gg_mul(x[i], inverse_scale);
  gg_f32 sum = gg_tile_sum(x);
  if (sum >= 0x1p-76f && sum <= 0x1p80f) {
    gg_add_square_sum(&lane->middle, sum);
    gg_f32 largest = gg_largest(gg_largest(gg_largest(x[0], x[1]), gg_largest(x[2], x[3])),
                                gg_largest(gg_largest(x[4], x[5]), gg_largest(x[6], x[7])));
    gg_u32 most = gg_bits(largest);
    lane->most = most > lane->most ? most : lane->most;
  } else {
    gg_add_unusual_tile(lane, tile, type, GG_TILE, inverse_scale);
  }
}

/* A lane's whole tiles, 256 apart. */
GG_FN void gg_add_tiles(gg_lane* lane, gg_pointer tile, const gg_u32 type, gg_u32 aligned, gg_u32 count,
                        gg_f32 inverse_scale) {
  const gg_u32 stride = GG_LANES * GG_TILE * (type == GG_TYPE_F32 ? 4 : 2);
  if (aligned) {
#pragma unroll 4
    for (gg_u32 i = 0; i < count; i++) gg_add_tile(lane, tile + (gg_u64)i * stride, type, inverse_scale);
  } else {
    for (gg_u32 i = 0; i < count; i++)
      gg_add_unusual_tile(lane, tile + (gg_u64)i * stride, type, GG_TILE, inverse_scale);
  }
}

/* All tiles of a lane in block `block` of a row. */
GG_FN void gg_reduce_lane(gg_lane* lane, GG_GLOBAL const gg_device_row* row, gg_pointer gradient, gg_u32 block,
                          gg_f32 inverse_scale) {
  const gg_u64 whole = row->elements / GG_TILE, range = (gg_u64)GG_LANES * row->tiles_per_lane;
  const gg_u64 begin = block * range, end = begin + range < whole ? begin + range : whole;
  const gg_u64 own = begin + gg_item();
  const gg_u32 type = row->gradient_type, aligned = row->flags & GG_ROW_ALIGNED_GRADIENT;
  const gg_u32 tile_bytes = type == GG_TYPE_F32 ? 4 * GG_TILE : 2 * GG_TILE;
  const gg_u32 count = own < end ? (gg_u32)((end - own + GG_LANES - 1) / GG_LANES) : 0;
  gg_pointer tile = gradient + own * tile_bytes;
  if (type == GG_TYPE_F32)
    gg_add_tiles(lane, tile, GG_TYPE_F32, aligned, count, inverse_scale);
  else if (type == GG_TYPE_F16)
    gg_add_tiles(lane, tile, GG_TYPE_F16, aligned, count, inverse_scale);
  else
    gg_add_tiles(lane, tile, GG_TYPE_BF16, aligned, count, inverse_scale);
  const gg_u32 rest = (gg_u32)(row->elements % GG_TILE);
  if (rest && whole >= begin && whole < begin + range && (whole - begin) % GG_LANES == gg_item())
    gg_add_unusual_tile(lane, gradient + whole * tile_bytes, type, rest, inverse_scale);
}

GG_FN gg_sum gg_scale_sum(gg_sum sum, gg_i32 exponent) {
  gg_f32 factor = gg_power_of_two(exponent);
  sum.high = gg_mul(gg_mul(sum.high, factor), factor);
  sum.low = gg_mul(gg_mul(sum.low, factor), factor);
  return sum;
}

GG_FN gg_sum gg_join(gg_sum a, gg_sum b) {
  gg_f32 error;
  a.high = gg_two_sum(a.high, b.high, &error);
  a.low = gg_add(a.low, gg_add(b.low, error));
  return a;
}

/* A lane's bins in units of the square of 2^exponent, the power of two just below the block's largest magnitude. A bin
 * above that magnitude is empty, and its factor might be out of range. */
GG_FN gg_sum gg_join_bins(const gg_lane* lane, gg_i32 exponent) {
  gg_sum sum;
  sum.high = sum.low = 0.0f;
  if (exponent >= 40) sum = gg_scale_sum(lane->big, GG_BIN_SHIFT - exponent);
  if (exponent >= -40) sum = gg_join(sum, gg_scale_sum(lane->middle, -exponent));
  return gg_join(sum, gg_scale_sum(lane->small, -GG_BIN_SHIFT - exponent));
}

/* Each block reduces one range of a row to a triple. */
GG_KERNEL void gg_reduce(GG_GLOBAL const gg_device_row* rows, GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin,
                         gg_u32 row_end, gg_f32 inverse_scale, GG_GLOBAL gg_triple* partials,
                         GG_GLOBAL gg_triple* summaries GG_OBJECT(gradient)) {
  GG_SHARED gg_shared shared;
  const gg_u32 block = first_block[row_begin] + gg_group();
  const gg_u32 index = gg_find_row(first_block, row_begin, row_end, block, gg_groups());
  GG_GLOBAL const gg_device_row* row = rows + index;
  gg_lane lane;
  lane.big.high = lane.big.low = lane.middle.high = lane.middle.low = lane.small.high = lane.small.low = 0.0f;
  lane.most = lane.flags = 0;
  gg_reduce_lane(&lane, row, GG_ADDRESS(gradient, row->gradient), block - first_block[index], inverse_scale);
  gg_u32 most = lane.most, flags = lane.flags;
  gg_block_most(&shared, &most, &flags);
  gg_sum sum = gg_join_bins(&lane, most ? gg_exponent(most) : 0);
  sum = gg_block_sum(&shared, sum);
  if (gg_item() != 0) return;
  gg_triple triple;
  triple.max_abs = gg_float(most);
  triple.ssq = most ? gg_add(sum.high, sum.low) : 0.0f;
  triple.flags = flags;
  if (first_block[index + 1] - first_block[index] == 1)
    summaries[index] = triple;
  else
    partials[block] = triple;
}

/* Each block merges the partial triples of one row. */
GG_KERNEL void gg_finalize(GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin, GG_GLOBAL const gg_triple* partials,
                           GG_GLOBAL gg_triple* summaries) {
  GG_SHARED gg_shared shared;
  const gg_u32 row = row_begin + gg_group(), begin = first_block[row] + gg_item(), end = first_block[row + 1];
  gg_u32 most = 0, flags = 0;
  for (gg_u32 i = begin; i < end; i += GG_LANES) {
    gg_u32 bits = gg_bits(partials[i].max_abs);
    most = bits > most ? bits : most;
    flags |= partials[i].flags;
  }
  gg_block_most(&shared, &most, &flags);
  gg_sum sum;
  sum.high = sum.low = 0.0f;
  for (gg_u32 i = begin; i < end; i += GG_LANES) {
    gg_u32 bits = gg_bits(partials[i].max_abs);
    if (bits == 0) continue;
    gg_f32 factor = gg_power_of_two(gg_exponent(bits) - gg_exponent(most));
    gg_add_square_sum(&sum, gg_mul(gg_mul(partials[i].ssq, factor), factor));
  }
  sum = gg_block_sum(&shared, sum);
  if (gg_item() != 0) return;
  gg_triple triple;
  triple.max_abs = gg_float(most);
  triple.ssq = most ? gg_add(sum.high, sum.low) : 0.0f;
  triple.flags = flags;
  summaries[row] = triple;
}

#endif
