/* Host code: how work is split into blocks, which depends only on element counts, and the sizes of the shared structs.
 */
#ifndef GG_KERNELS_GEOMETRY_H
#define GG_KERNELS_GEOMETRY_H

#include <assert.h>

#include "api/gradguard.h"
#include "kernels/types.h"

static_assert(sizeof(gg_triple) == 12, "a summary is 12 bytes");
static_assert(sizeof(gg_device_row) == 104, "gg_device_row has the same layout in every dialect");
static_assert(sizeof(gg_bias) == 8, "gg_bias has the same layout in every dialect");
static_assert(sizeof(gg_update_constants) == 48, "gg_update_constants has the same layout in every dialect");

/* Tiles are counted in 32 bits within a block, so a tensor has at most 2^44 elements. */
#define GG_MAX_ELEMENTS ((uint64_t)1 << 44)

static inline uint64_t gg_tiles(uint64_t elements) { return (elements + GG_TILE - 1) / GG_TILE; }

/* Tiles for each lane of a reduction block: 1 for small tensors, to spread them over the device; 4 above 65536
 * elements, to amortise the block's tree; more if 1024 blocks must cover the tensor. */
static inline uint32_t gg_tiles_per_lane(uint64_t elements) {
  uint64_t lanes_of_all_blocks = (uint64_t)GG_LANES * GG_MAX_BLOCKS;
  uint64_t needed = (gg_tiles(elements) + lanes_of_all_blocks - 1) / lanes_of_all_blocks;
  uint64_t least = elements > 65536 ? 4 : 1;
  return (uint32_t)(needed > least ? needed : least);
}

/* Reduction blocks (and partial triples) of one tensor: 0 if empty, 1 up to 2048 elements, 2 to 1024 above. So in a
 * table sorted largest first, the rows that need the finalize kernel (more than one block) come first. */
static inline uint32_t gg_reduce_blocks(uint64_t elements) {
  uint64_t range = (uint64_t)GG_LANES * gg_tiles_per_lane(elements);
  return (uint32_t)((gg_tiles(elements) + range - 1) / range);
}

static inline uint64_t gg_update_blocks(uint64_t elements) {
  return (elements + GG_UPDATE_ELEMENTS - 1) / GG_UPDATE_ELEMENTS;
}

#endif
