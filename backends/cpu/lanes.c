/*
 * The reduction of one block, and of a tensor's partial triples, on 256 lanes (docs/numerics.md). GG_WIDTH consecutive
 * lanes are one vector: a unit is the GG_WIDTH tiles that they take together. Compiled once for each instruction set.
 */
#include "backends/cpu/kernels.h"
#include "backends/cpu/vector.h"

#define GG_MIDDLE_LEAST     ((127 - 40) << 23) /* bits of 2^-40 */
#define GG_MIDDLE_MOST      ((127 + 40) << 23)
#define GG_MIDDLE_SUM_LEAST ((127 - 76) << 23)
#define GG_MIDDLE_SUM_MOST  ((127 + 80) << 23)
#define GG_BIN_SHIFT        84 /* big and small tiles are scaled by 2^-84 and 2^84 */

enum { GG_BIN_BIG, GG_BIN_MIDDLE, GG_BIN_SMALL, GG_BINS };

/* The lanes of a block: for each bin a sum in two floats. */
typedef struct gg_lanes {
  gg_f32 high[GG_BINS][GG_LANES];
  gg_f32 low[GG_BINS][GG_LANES];
  gg_u32 flags;
  int outer_bins; /* big and small are in use, and initialised */
} gg_lanes;

void GG_ISA_NAME(gg_cpu_reduce_block)(const void* gradient, gg_u32 gradient_type, uint64_t elements,
                                      gg_f32 inverse_scale, gg_triple* triple);
void GG_ISA_NAME(gg_cpu_merge_blocks)(const gg_triple* partials, gg_u32 count, gg_triple* summary);

GG_FN gg_vector gg_vector_two_sum(gg_vector a, gg_vector b, gg_vector* error) {
  gg_vector sum = a + b, part = sum - a;
  *error = (a - (sum - part)) + (b - part);
  return sum;
}

/* The sums of squares of a unit's tiles, from parts. */
GG_FN gg_vector gg_tile_sums(const gg_vector parts[GG_TILE]) {
  gg_vector q[4];
  for (int k = 0; k < 4; k++) q[k] = gg_vector_fma(parts[k], parts[k], parts[k + 4] * parts[k + 4]);
  return gg_sum_rows(q);
}

/* The largest magnitudes, as bits: of each tile if `x` are the columns of a unit, otherwise of some of its values. */
GG_FN gg_mask gg_magnitudes(const gg_vector x[GG_TILE]) {
  gg_mask magnitude = gg_vector_magnitude(x[0]);
  for (int i = 1; i < GG_TILE; i++) magnitude = gg_mask_max(magnitude, gg_vector_magnitude(x[i]));
  return magnitude;
}

GG_FN gg_mask gg_tile_magnitudes(const gg_vector parts[GG_TILE]) {
  gg_vector columns[GG_TILE];
  gg_transpose(parts, columns);
  gg_transpose(parts + 4, columns + 4);
  return gg_magnitudes(columns);
}

/* A loop, because compilers turn a memset this small into a slow `rep stos`. */
GG_FN void gg_clear_bin(gg_lanes* lanes, int bin) {
  for (int lane = 0; lane < GG_LANES; lane += GG_WIDTH) {
    gg_vector_store(lanes->high[bin] + lane, gg_vector_all(0.0f));
    gg_vector_store(lanes->low[bin] + lane, gg_vector_all(0.0f));
  }
}

GG_FN void gg_accumulate(gg_lanes* lanes, int bin, size_t lane, gg_vector sums) {
  gg_vector error, sum = gg_vector_two_sum(gg_vector_load(lanes->high[bin] + lane), sums, &error);
  gg_vector_store(lanes->high[bin] + lane, sum);
  gg_vector_store(lanes->low[bin] + lane, gg_vector_load(lanes->low[bin] + lane) + error);
}

/* Replaces non-finite values by zero and returns their kinds. `raw` are the values before unscaling. */
static gg_u32 gg_sanitise(const gg_vector raw[GG_TILE], gg_vector x[GG_TILE]) {
  gg_mask infinity = gg_mask_all((gg_i32)GG_INFINITY_BITS);
  gg_mask nans = gg_mask_all(0), infinities = nans, overflows = nans;
  for (int i = 0; i < GG_TILE; i++) {
    gg_mask magnitude = gg_vector_magnitude(x[i]), infinite = magnitude == infinity;
    gg_mask stored = gg_vector_magnitude(raw[i]) == infinity;
    nans |= magnitude > infinity;
    infinities |= infinite & stored;
    overflows |= infinite & ~stored;
    x[i] = gg_vector_where(magnitude < infinity, x[i]);
  }
  return (gg_mask_any(nans) ? GG_KIND_NAN : 0u) | (gg_mask_any(infinities) ? GG_KIND_INF : 0u) |
         (gg_mask_any(overflows) ? GG_KIND_OVERFLOW : 0u);
}

static void gg_accumulate_outer(gg_lanes* lanes, int bin, size_t lane, gg_mask members, const gg_vector x[GG_TILE]) {
  gg_vector scale = gg_vector_all(bin == GG_BIN_BIG ? 0x1p-84f : 0x1p84f), scaled[GG_TILE];
  if (!lanes->outer_bins) {
    gg_clear_bin(lanes, GG_BIN_BIG);
    gg_clear_bin(lanes, GG_BIN_SMALL);
    lanes->outer_bins = 1;
  }
  for (int i = 0; i < GG_TILE; i++) scaled[i] = x[i] * scale;
  gg_accumulate(lanes, bin, lane, gg_vector_where(members, gg_tile_sums(scaled)));
}

/* A unit with a non-finite value or a tile outside the middle bin. Adding the zero sums of tiles that are not in a bin
 * changes no bit. Returns magnitudes without the non-finite values. */
static gg_mask gg_reduce_unusual(gg_lanes* lanes, const gg_vector raw[GG_TILE], gg_vector x[GG_TILE], size_t lane) {
  lanes->flags |= gg_sanitise(raw, x);
  gg_mask magnitudes = gg_tile_magnitudes(x);
  gg_mask big = magnitudes > gg_mask_all(GG_MIDDLE_MOST);
  gg_mask small = (magnitudes < gg_mask_all(GG_MIDDLE_LEAST)) & (magnitudes != gg_mask_all(0));
  gg_accumulate(lanes, GG_BIN_MIDDLE, lane, gg_vector_where(~(big | small), gg_tile_sums(x)));
  if (gg_mask_any(big)) gg_accumulate_outer(lanes, GG_BIN_BIG, lane, big, x);
  if (gg_mask_any(small)) gg_accumulate_outer(lanes, GG_BIN_SMALL, lane, small, x);
  return magnitudes;
}

/* A unit that may have tiles outside the middle bin; checks the tiles' magnitudes. Often it only has tiles of zeros, as
 * FP16 gradients do. */
static __attribute__((noinline)) gg_mask gg_reduce_by_magnitude(gg_lanes* lanes, gg_u32 type, const void* unit,
                                                                size_t lane, gg_f32 inverse_scale) {
  gg_vector raw[GG_TILE], x[GG_TILE];
  if (type == GG_TYPE_F32)
    gg_load_unit(GG_TYPE_F32, unit, raw);
  else if (type == GG_TYPE_F16)
    gg_load_unit(GG_TYPE_F16, unit, raw);
  else
    gg_load_unit(GG_TYPE_BF16, unit, raw);
  for (int i = 0; i < GG_TILE; i++) x[i] = raw[i] * gg_vector_all(inverse_scale);
  gg_mask magnitudes = gg_tile_magnitudes(x);
  gg_mask outside = (magnitudes > gg_mask_all(GG_MIDDLE_MOST)) |
                    ((magnitudes < gg_mask_all(GG_MIDDLE_LEAST)) & (magnitudes != gg_mask_all(0)));
  if (gg_mask_any(outside)) return gg_reduce_unusual(lanes, raw, x, lane);
  gg_accumulate(lanes, GG_BIN_MIDDLE, lane, gg_tile_sums(x));
  return magnitudes;
}

/* Returns magnitudes as bits; the largest of them is that of the unit. A tile's magnitude need not be known to see that
 * it is in the middle bin: above 2^40 its sum is above 2^80 (or not a number), and below 2^-40 its sum is at most
 * 2^-77. */
GG_FN gg_mask gg_reduce_unit(gg_lanes* lanes, gg_u32 type, const void* unit, size_t lane, gg_f32 inverse_scale) {
  gg_vector x[GG_TILE];
  gg_load_unit(type, unit, x);
  for (int i = 0; i < GG_TILE; i++) x[i] = x[i] * gg_vector_all(inverse_scale);
  gg_vector sums = gg_tile_sums(x);
  gg_mask unsure = (gg_vector_bits(sums) > gg_mask_all(GG_MIDDLE_SUM_MOST)) |
                   (gg_vector_bits(sums) < gg_mask_all(GG_MIDDLE_SUM_LEAST));
  if (__builtin_expect(gg_mask_any(unsure), 0)) return gg_reduce_by_magnitude(lanes, type, unit, lane, inverse_scale);
  gg_accumulate(lanes, GG_BIN_MIDDLE, lane, sums);
  return gg_magnitudes(x);
}

/* All tiles of a block, into its lanes; returns the largest magnitude as bits. The last unit is padded with zeros. */
GG_FN gg_u32 gg_reduce_tiles(gg_lanes* lanes, gg_u32 type, const void* gradient, uint64_t elements,
                             gg_f32 inverse_scale) {
  enum { unit_elements = GG_TILE * GG_WIDTH };
  size_t element_bytes = type == GG_TYPE_F32 ? 4 : 2;
  const char* bytes = gradient;
  uint64_t units = elements / unit_elements, rest = elements % unit_elements;
  uint64_t ahead = GG_CPU_PREFETCH / (unit_elements * element_bytes);
  /* A large block is usually followed in memory by the next block of its tensor, a small one by something else. */
  uint64_t fetching = elements > GG_LANES * GG_TILE ? units : units > ahead ? units - ahead : 0;
  gg_mask largest = gg_mask_all(0);
  for (uint64_t unit = 0; unit < units; unit++) {
    const char* at = bytes + unit * unit_elements * element_bytes;
    if (unit < fetching)
      for (size_t line = 0; line < unit_elements * element_bytes; line += 64)
        __builtin_prefetch(at + GG_CPU_PREFETCH + line);
    largest =
        gg_mask_max(largest, gg_reduce_unit(lanes, type, at, (size_t)(unit * GG_WIDTH % GG_LANES), inverse_scale));
  }
  if (rest) {
    _Alignas(64) gg_f32 last[unit_elements] = {0};
    memcpy(last, bytes + units * unit_elements * element_bytes, (size_t)rest * element_bytes);
    largest =
        gg_mask_max(largest, gg_reduce_unit(lanes, type, last, (size_t)(units * GG_WIDTH % GG_LANES), inverse_scale));
  }
  gg_i32 most = 0;
  for (int i = 0; i < GG_WIDTH; i++) most = largest[i] > most ? largest[i] : most;
  return (gg_u32)most;
}

/* The sums of four consecutive lanes, two floats each. */
typedef gg_f32 gg_quad __attribute__((vector_size(16)));
typedef struct gg_quads {
  gg_quad high, low;
} gg_quads;

GG_FN void gg_combine(gg_quads* a, const gg_quads* b) {
  gg_quad sum = a->high + b->high, part = sum - a->high;
  gg_quad error = (a->high - (sum - part)) + (b->high - part);
  a->low = (a->low + b->low) + error;
  a->high = sum;
}

/* Transposes lanes 0 to 3 of each 32 to one vector per lane, for groups 0 to 3 and 4 to 7. */
GG_FN void gg_transpose_groups(const gg_quads groups[8], gg_quads lanes[4][2]) {
  for (int lane = 0; lane < 4; lane++)
    for (int g = 0; g < 2; g++) {
      const gg_quads* from = groups + 4 * g;
      lanes[lane][g].high = (gg_quad){from[0].high[lane], from[1].high[lane], from[2].high[lane], from[3].high[lane]};
      lanes[lane][g].low = (gg_quad){from[0].low[lane], from[1].low[lane], from[2].low[lane], from[3].low[lane]};
    }
}

/* The last levels of the tree: the eight groups' sums, with the groups 4, 2 and 1 away. */
GG_FN gg_f32 gg_sum_groups(gg_quads groups[2]) {
  gg_combine(&groups[0], &groups[1]);
  gg_f32 error, rest[4];
  gg_f32 high[4] = {groups[0].high[0], groups[0].high[1], groups[0].high[2], groups[0].high[3]};
  for (int i = 0; i < 4; i++) rest[i] = groups[0].low[i];
  for (int stride = 2; stride > 0; stride--)
    for (int i = 0; i < stride; i++) {
      high[i] = gg_two_sum(high[i], high[i + stride], &error);
      rest[i] = (rest[i] + rest[i + stride]) + error;
    }
  return high[0] + rest[0];
}

/* The tree: strides 16, 8, 4, 2, 1 within groups of 32 lanes, then strides 4, 2, 1 between the groups. */
static gg_f32 gg_sum_lanes(const gg_f32 high[GG_LANES], const gg_f32 low[GG_LANES]) {
  gg_quads groups[8], lanes[4][2];
  for (int group = 0; group < 8; group++) {
    _Alignas(64) gg_f32 h[16], l[16];
    for (int i = 0; i < 16; i += GG_WIDTH) {
      int lane = group * 32 + i;
      gg_vector error, sum = gg_vector_two_sum(gg_vector_load(high + lane), gg_vector_load(high + lane + 16), &error);
      gg_vector_store(h + i, sum);
      gg_vector_store(l + i, (gg_vector_load(low + lane) + gg_vector_load(low + lane + 16)) + error);
    }
    gg_quads quads[4];
    for (int i = 0; i < 4; i++) {
      memcpy(&quads[i].high, h + 4 * i, sizeof quads[i].high);
      memcpy(&quads[i].low, l + 4 * i, sizeof quads[i].low);
    }
    gg_combine(&quads[0], &quads[2]);
    gg_combine(&quads[1], &quads[3]);
    gg_combine(&quads[0], &quads[1]);
    groups[group] = quads[0];
  }
  gg_transpose_groups(groups, lanes);
  for (int g = 0; g < 2; g++) {
    gg_combine(&lanes[0][g], &lanes[2][g]);
    gg_combine(&lanes[1][g], &lanes[3][g]);
    gg_combine(&lanes[0][g], &lanes[1][g]);
  }
  return gg_sum_groups(lanes[0]);
}

/* Adds the bins of each lane in units of the square of 2^exponent, the largest power of two <= the block's maximum. */
static gg_f32 gg_join_bins(const gg_lanes* lanes, int exponent) {
  static const int shifts[GG_BINS] = {GG_BIN_SHIFT, 0, -GG_BIN_SHIFT};
  const int present[GG_BINS] = {lanes->outer_bins && exponent >= 40, exponent >= -40, lanes->outer_bins};
  _Alignas(64) gg_f32 high[GG_LANES], low[GG_LANES];
  gg_vector factors[GG_BINS];
  for (int bin = 0; bin < GG_BINS; bin++)
    factors[bin] = gg_vector_all(present[bin] ? gg_power_of_two(shifts[bin] - exponent) : 0.0f);
  for (int lane = 0; lane < GG_LANES; lane += GG_WIDTH) {
    gg_vector sum = gg_vector_all(0.0f), rest = sum;
    for (int bin = 0; bin < GG_BINS; bin++) {
      if (!present[bin]) continue;
      gg_vector h = (gg_vector_load(lanes->high[bin] + lane) * factors[bin]) * factors[bin];
      gg_vector l = (gg_vector_load(lanes->low[bin] + lane) * factors[bin]) * factors[bin];
      gg_vector error, joined = gg_vector_two_sum(sum, h, &error);
      sum = joined;
      rest = rest + (l + error);
    }
    gg_vector_store(high + lane, sum);
    gg_vector_store(low + lane, rest);
  }
  return gg_sum_lanes(high, low);
}

void GG_ISA_NAME(gg_cpu_reduce_block)(const void* gradient, gg_u32 gradient_type, uint64_t elements,
                                      gg_f32 inverse_scale, gg_triple* triple) {
  _Alignas(64) gg_lanes lanes;
  gg_clear_bin(&lanes, GG_BIN_MIDDLE);
  lanes.flags = 0;
  lanes.outer_bins = 0;
  gg_u32 most;
  if (gradient_type == GG_TYPE_F32)
    most = gg_reduce_tiles(&lanes, GG_TYPE_F32, gradient, elements, inverse_scale);
  else if (gradient_type == GG_TYPE_F16)
    most = gg_reduce_tiles(&lanes, GG_TYPE_F16, gradient, elements, inverse_scale);
  else
    most = gg_reduce_tiles(&lanes, GG_TYPE_BF16, gradient, elements, inverse_scale);
  triple->max_abs = gg_float(most);
  triple->ssq = most ? gg_join_bins(&lanes, gg_exponent(most)) : 0.0f;
  triple->flags = lanes.flags;
}

void GG_ISA_NAME(gg_cpu_merge_blocks)(const gg_triple* partials, gg_u32 count, gg_triple* summary) {
  _Alignas(64) gg_f32 high[GG_LANES] = {0}, low[GG_LANES] = {0};
  gg_u32 most = 0, flags = 0;
  for (gg_u32 i = 0; i < count; i++) {
    most = gg_bits(partials[i].max_abs) > most ? gg_bits(partials[i].max_abs) : most;
    flags |= partials[i].flags;
  }
  for (gg_u32 i = 0; i < count; i++) {
    gg_u32 bits = gg_bits(partials[i].max_abs), lane = i % GG_LANES;
    if (bits == 0) continue;
    gg_f32 error, factor = gg_power_of_two(gg_exponent(bits) - gg_exponent(most));
    high[lane] = gg_two_sum(high[lane], (partials[i].ssq * factor) * factor, &error);
    low[lane] = low[lane] + error;
  }
  summary->max_abs = gg_float(most);
  summary->ssq = most ? gg_sum_lanes(high, low) : 0.0f;
  summary->flags = flags;
}
