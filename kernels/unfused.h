/* Device code: the separate unscale-and-clip pass of the unfused baseline that bench/ compares with. */
#ifndef GG_KERNELS_UNFUSED_H
#define GG_KERNELS_UNFUSED_H

#include "kernels/update.h"

GG_KERNEL(1)
void gg_unfused_clip(GG_GLOBAL const gg_device_row* rows, GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin,
                     gg_u32 row_end, gg_update_constants constants GG_OBJECT(gradient) GG_OBJECT(out0)) {
  GG_SHARED gg_spot spot;
  gg_find_spot_from_the_end(&spot, rows, first_block, row_begin, row_end);
  gg_objects objects;
  GG_SET_OBJECT(gradient, gradient), GG_SET_OBJECT(out[0], out0);
  gg_pointer from = GG_AT(&objects, &spot.row, gradient);
  GG_GLOBAL gg_f32* to = (GG_GLOBAL gg_f32*)GG_AT(&objects, &spot.row, out[0]);
  gg_u64 i = (gg_u64)spot.block * GG_UPDATE_ELEMENTS + GG_ELEMENTS_OF_ITEM * gg_item();
  const gg_u64 end = gg_end_of_item(&spot.row, i);
  if (gg_is_aligned(&spot.row) && i + GG_ELEMENTS_OF_ITEM <= end) {
    gg_f32 x[GG_ELEMENTS_OF_ITEM];
    gg_load_four_gradients(from, spot.row.gradient_type, i, x);
#pragma unroll
    for (int k = 0; k < GG_ELEMENTS_OF_ITEM; k++)
      x[k] = gg_clip(gg_mul(x[k], constants.inverse_scale), constants.factor1, constants.factor2);
    gg_store_four(to + i, x);
  } else {
    for (; i < end; i++)
      to[i] = gg_clip(gg_mul(gg_load_value(from, spot.row.gradient_type, i), constants.inverse_scale),
                      constants.factor1, constants.factor2);
  }
}

#endif
