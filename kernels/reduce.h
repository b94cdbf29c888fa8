/* Device code: the statistics of the gradients (docs/numerics.md). Each work-item is one lane. */
#ifndef GG_KERNELS_REDUCE_H
#define GG_KERNELS_REDUCE_H

#include "kernels/block.h"

#define GG_MIDDLE_LEAST 0x2b800000u /* bits of 2^-40 */
#define GG_MIDDLE_MOST                                                                                        \
  0x53800000u              /* and of 2^40: tiles with a largest magnitude between these are in the middle bin \
                            */
#define GG_BIN_SHIFT    84 /* big and small tiles are scaled by 2^-84 and 2^84 */
#define GG_MOST_BATCHED 4  /* tiles that a lane loads at a time */

/* A lane's sums of squares, largest magnitude and kinds. */
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

/* The raw words of a whole tile at an aligned address: eight floats or eight halves. */
typedef struct gg_raw_tile {
  gg_u32x4 a, b;
} gg_raw_tile;

GG_FN void gg_load_tile(gg_pointer tile, const gg_u32 type, gg_raw_tile* raw) {
  raw->a = ((GG_GLOBAL const gg_u32x4*)tile)[0];
  if (type == GG_TYPE_F32) raw->b = ((GG_GLOBAL const gg_u32x4*)tile)[1];
}

/* Unscales a tile to `x` and returns the largest magnitude, which is unspecified if there is a NaN. */
GG_FN gg_f32 gg_unscale_tile(const gg_raw_tile* raw, const gg_u32 type, gg_f32 inverse_scale, gg_f32* x) {
  if (type == GG_TYPE_F32) {
    x[0] = gg_float(raw->a.x), x[1] = gg_float(raw->a.y), x[2] = gg_float(raw->a.z), x[3] = gg_float(raw->a.w);
    x[4] = gg_float(raw->b.x), x[5] = gg_float(raw->b.y), x[6] = gg_float(raw->b.z), x[7] = gg_float(raw->b.w);
  } else {
    gg_widen_word(type, raw->a.x, &x[0], &x[1]);
    gg_widen_word(type, raw->a.y, &x[2], &x[3]);
    gg_widen_word(type, raw->a.z, &x[4], &x[5]);
    gg_widen_word(type, raw->a.w, &x[6], &x[7]);
  }
#pragma unroll
  for (int i = 0; i < GG_TILE; i++) x[i] = gg_mul(x[i], inverse_scale);
  return gg_largest(gg_largest(gg_largest(x[0], x[1]), gg_largest(x[2], x[3])),
                    gg_largest(gg_largest(x[4], x[5]), gg_largest(x[6], x[7])));
}

/* True for sums from 2^-76 to 2^80. Such a tile is in the middle bin: above 2^40 a tile's sum is above 2^80 or not a
 * number, below 2^-40 it is at most 2^-77. */
GG_FN int gg_is_usual(gg_f32 sum) { return gg_bits(sum) - 0x19800000u <= 0x67800000u - 0x19800000u; }

GG_FN void gg_note_largest(gg_lane* lane, gg_f32 largest) {
  lane->most = gg_bits(largest) > lane->most ? gg_bits(largest) : lane->most;
}

/* One whole tile from an aligned address. */
GG_FN void gg_add_tile(gg_lane* lane, gg_pointer tile, const gg_u32 type, gg_f32 inverse_scale) {
  gg_raw_tile raw;
  gg_f32 x[GG_TILE];
  gg_load_tile(tile, type, &raw);
  gg_f32 largest = gg_unscale_tile(&raw, type, inverse_scale, x), sum = gg_tile_sum(x);
  if (gg_is_usual(sum)) {
    gg_add_square_sum(&lane->middle, sum);
    gg_note_largest(lane, largest);
  } else if (!(sum == 0.0f && largest == 0.0f)) { /* adding zeros changes no bit; a NaN always shows in the sum */
    gg_add_unusual_tile(lane, tile, type, GG_TILE, inverse_scale);
  }
}

/* `batch` whole tiles from aligned addresses `stride` bytes apart: all are loaded before the first is used. */
GG_FN void gg_add_batch(gg_lane* lane, gg_pointer tile, gg_u32 stride, const gg_u32 type, const int batch,
                        gg_f32 inverse_scale) {
  gg_raw_tile raw[GG_MOST_BATCHED];
  gg_f32 sums[GG_MOST_BATCHED], largest = 0.0f;
  int usual = 1;
#pragma unroll
  for (int i = 0; i < batch; i++) gg_load_tile(tile + i * stride, type, &raw[i]);
#pragma unroll
  for (int i = 0; i < batch; i++) {
    gg_f32 x[GG_TILE];
    largest = gg_largest(largest, gg_unscale_tile(&raw[i], type, inverse_scale, x));
    sums[i] = gg_tile_sum(x);
    usual = usual && gg_is_usual(sums[i]);
  }
  if (usual) {
#pragma unroll
    for (int i = 0; i < batch; i++) gg_add_square_sum(&lane->middle, sums[i]);
    gg_note_largest(lane, largest);
  } else {
    GG_ROLLED
    for (int i = 0; i < batch; i++) gg_add_tile(lane, tile + i * stride, type, inverse_scale);
  }
}

/* A lane's whole tiles, 256 apart. */
GG_FN void gg_add_tiles(gg_lane* lane, gg_pointer tile, const gg_u32 type, const int batch, gg_u32 count,
                        gg_f32 inverse_scale) {
  const gg_u32 stride = GG_LANES * GG_TILE * (type == GG_TYPE_F32 ? 4 : 2);
  GG_ROLLED
  for (; count >= (gg_u32)batch; count -= batch, tile += batch * stride)
    gg_add_batch(lane, tile, stride, type, batch, inverse_scale);
  GG_ROLLED
  for (; count > 0; count--, tile += stride) gg_add_tile(lane, tile, type, inverse_scale);
}

GG_FN void gg_add_unaligned_tiles(gg_lane* lane, gg_pointer tile, gg_u32 type, gg_u32 count, gg_f32 inverse_scale) {
  const gg_u32 stride = GG_LANES * GG_TILE * (type == GG_TYPE_F32 ? 4 : 2);
  GG_ROLLED
  for (; count > 0; count--, tile += stride) gg_add_unusual_tile(lane, tile, type, GG_TILE, inverse_scale);
}

/* All tiles of a lane in its block of a row. */
GG_FN void gg_reduce_lane(gg_lane* lane, GG_SHARED_POINTER const gg_spot* spot, gg_pointer gradient,
                          gg_f32 inverse_scale) {
  GG_SHARED_POINTER const gg_device_row* row = &spot->row;
  const gg_u64 whole = row->elements / GG_TILE, range = (gg_u64)GG_LANES * row->tiles_per_lane;
  const gg_u64 begin = spot->block * range, end = begin + range < whole ? begin + range : whole;
  const gg_u64 own = begin + gg_item();
  const gg_u32 type = row->gradient_type, tile_bytes = type == GG_TYPE_F32 ? 4 * GG_TILE : 2 * GG_TILE;
  const gg_u32 count = own < end ? ((gg_u32)(end - own) + GG_LANES - 1) / GG_LANES : 0;
  gg_pointer tile = gradient + own * tile_bytes;
  if (!(row->flags & GG_ROW_ALIGNED_GRADIENT))
    gg_add_unaligned_tiles(lane, tile, type, count, inverse_scale);
  else if (type == GG_TYPE_F32)
    gg_add_tiles(lane, tile, GG_TYPE_F32, 2, count, inverse_scale);
  else if (type == GG_TYPE_F16)
    gg_add_tiles(lane, tile, GG_TYPE_F16, 4, count, inverse_scale);
  else
    gg_add_tiles(lane, tile, GG_TYPE_BF16, 4, count, inverse_scale);
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

/* A lane's bins in units of the square of 2^exponent, the largest power of two <= the block's largest magnitude. A bin
 * above that magnitude is empty and is omitted, because its factor might be out of range. The small bin is usually
 * empty, and adding 0 changes nothing. */
GG_FN gg_sum gg_join_bins(const gg_lane* lane, gg_i32 exponent) {
  gg_sum sum;
  sum.high = sum.low = 0.0f;
  if (exponent >= 40) sum = gg_scale_sum(lane->big, GG_BIN_SHIFT - exponent);
  if (exponent >= -40) sum = gg_join(sum, gg_scale_sum(lane->middle, -exponent));
  if (lane->small.high != 0.0f) sum = gg_join(sum, gg_scale_sum(lane->small, -GG_BIN_SHIFT - exponent));
  return sum;
}

GG_FN gg_triple gg_make_triple(gg_u32 most, gg_u32 flags, gg_sum sum) {
  gg_triple triple;
  triple.max_abs = gg_float(most);
  triple.ssq = most ? gg_add(sum.high, sum.low) : 0.0f;
  triple.flags = flags;
  return triple;
}

#define GG_PARTIALS_OF_LANE (GG_MAX_BLOCKS / GG_LANES)

/* One block merges the partial triples of a row. `shared` has been cleared. */
GG_FN void gg_merge_partials(GG_SHARED_POINTER gg_shared* shared, GG_GLOBAL const gg_triple* partials, gg_u32 count,
                             GG_GLOBAL gg_triple* summary) {
  gg_u32 largest[GG_PARTIALS_OF_LANE], most = 0, flags = 0;
  gg_f32 sums[GG_PARTIALS_OF_LANE];
#pragma unroll
  for (int k = 0; k < GG_PARTIALS_OF_LANE; k++) {
    const gg_u32 i = gg_item() + GG_LANES * k;
    largest[k] = i < count ? gg_bits(partials[i].max_abs) : 0;
    sums[k] = i < count ? partials[i].ssq : 0.0f;
    flags |= i < count ? partials[i].flags : 0;
    most = largest[k] > most ? largest[k] : most;
  }
  gg_block_most(shared, &most, &flags);
  gg_sum sum;
  sum.high = sum.low = 0.0f;
#pragma unroll
  for (int k = 0; k < GG_PARTIALS_OF_LANE; k++) {
    if (largest[k] == 0) continue;
    gg_f32 factor = gg_power_of_two(gg_exponent(largest[k]) - gg_exponent(most));
    gg_add_square_sum(&sum, gg_mul(gg_mul(sums[k], factor), factor));
  }
  sum = gg_block_sum(shared, sum);
  if (gg_item() == 0) *summary = gg_make_triple(most, flags, sum);
}

/* One block for each row with several partials. This is a separate launch: if the last block of each row merged them,
 * all blocks would have to wait for the counter that says which is last, and that takes longer. */
GG_KERNEL(1)
void gg_finalize(GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin, GG_GLOBAL const gg_triple* partials,
                 GG_GLOBAL gg_triple* summaries) {
  GG_SHARED gg_shared shared;
  const gg_u32 row = row_begin + gg_block_index(), begin = first_block[row];
  gg_clear_shared(&shared);
  gg_barrier();
  gg_merge_partials(&shared, partials + begin, first_block[row + 1] - begin, summaries + row);
}

/* Each block reduces one range of a row to a triple: the summary of the row if it has one block, otherwise a partial.
 */
GG_KERNEL(5)
void gg_reduce(GG_GLOBAL const gg_device_row* rows, GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin,
               gg_u32 row_end, gg_f32 inverse_scale, GG_GLOBAL gg_triple* partials,
               GG_GLOBAL gg_triple* summaries GG_OBJECT(gradient)) {
  GG_SHARED gg_shared shared;
  GG_SHARED gg_spot spot;
  gg_objects objects;
  GG_SET_OBJECT(gradient, gradient);
  gg_clear_shared(&shared);
  gg_find_spot(&spot, rows, first_block, row_begin, row_end, gg_block_index(), gg_block_count());
  gg_lane lane;
  lane.big.high = lane.big.low = lane.middle.high = lane.middle.low = lane.small.high = lane.small.low = 0.0f;
  lane.most = lane.flags = 0;
  gg_reduce_lane(&lane, &spot, GG_AT(&objects, &spot.row, gradient), inverse_scale);
  gg_u32 most = lane.most, flags = lane.flags;
  gg_block_most(&shared, &most, &flags);
  gg_sum sum = gg_join_bins(&lane, most ? gg_exponent(most) : 0);
  sum = gg_block_sum(&shared, sum);
  if (gg_item() != 0) return;
  gg_triple triple = gg_make_triple(most, flags, sum);
  if (spot.row_blocks == 1)
    summaries[spot.index] = triple;
  else
    partials[spot.row_first + spot.block] = triple;
}

#endif
