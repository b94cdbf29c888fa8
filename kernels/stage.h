/* Device side: the separate unscale-and-clip pass of the staged baseline that bench/ compares with. */
#ifndef GG_KERNELS_STAGE_H
#define GG_KERNELS_STAGE_H

#include "kernels/update.h"

GG_KERNEL void gg_stage(GG_GLOBAL const gg_device_row* rows, GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin,
                        gg_u32 row_end, gg_update_constants constants GG_OBJECT(gradient) GG_OBJECT(out0)) {
  const gg_u32 block = gg_block_from_the_end(first_block, row_begin);
  const gg_u32 index = gg_find_row(first_block, row_begin, row_end, block, gg_groups());
  GG_GLOBAL const gg_device_row* row = rows + index;
  const gg_u32 both = GG_ROW_ALIGNED_GRADIENT | GG_ROW_ALIGNED_STATES, type = row->gradient_type;
  const gg_u64 elements = row->elements, begin = (gg_u64)(block - first_block[index]) * GG_UPDATE_ELEMENTS;
  const gg_u64 end = begin + GG_UPDATE_ELEMENTS < elements ? begin + GG_UPDATE_ELEMENTS : elements;
  gg_pointer from = GG_ADDRESS(gradient, row->gradient), to = GG_ADDRESS(out0, row->out[GG_STATE_PARAMETER]);
  gg_u64 i = begin + GG_ELEMENTS_OF_ITEM * gg_item();
  if ((row->flags & both) == both && i + GG_ELEMENTS_OF_ITEM <= end) {
    gg_f32 x[GG_ELEMENTS_OF_ITEM];
    gg_load_four_gradients(from, type, i, x);
#pragma unroll
    for (int k = 0; k < GG_ELEMENTS_OF_ITEM; k++)
      x[k] = gg_clip(gg_mul(x[k], constants.inverse_scale), constants.factor1, constants.factor2);
    gg_store_four(to, i, x);
  } else {
    const gg_u64 own_end = i + GG_ELEMENTS_OF_ITEM < end ? i + GG_ELEMENTS_OF_ITEM : end;
    for (; i < own_end; i++)
      ((GG_GLOBAL gg_f32*)to)[i] =
          gg_clip(gg_mul(gg_load_value(from, type, i), constants.inverse_scale), constants.factor1, constants.factor2);
  }
}

#endif
