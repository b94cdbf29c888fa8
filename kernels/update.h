/* Device code: the fused update, 1024 elements per block and 4 consecutive elements per work-item. */
#ifndef GG_KERNELS_UPDATE_H
#define GG_KERNELS_UPDATE_H

#include "kernels/memory.h"

#define GG_ELEMENTS_OF_ITEM (GG_UPDATE_ELEMENTS / GG_LANES)

/* What a work-item needs for its elements. */
typedef struct gg_work {
  GG_SHARED_POINTER const gg_device_row* row;
  gg_objects objects;
  gg_bias bias;
} gg_work;

#define GG_STREAM(work, type, field) ((GG_GLOBAL type*)GG_AT(&(work)->objects, (work)->row, field))

GG_FN void gg_update_element(const gg_work* work, const gg_update_constants* constants, gg_u64 i) {
  const gg_u32 amsgrad = work->row->flags & GG_ROW_AMSGRAD, model_type = work->row->model_type;
  gg_element e;
  e.parameter = GG_STREAM(work, const gg_f32, in[0])[i];
  e.exp_avg = GG_STREAM(work, const gg_f32, in[1])[i];
  e.exp_avg_sq = GG_STREAM(work, const gg_f32, in[2])[i];
  e.max_exp_avg_sq = amsgrad ? GG_STREAM(work, const gg_f32, in[3])[i] : 0.0f;
  gg_f32 raw = gg_load_value(GG_STREAM(work, gg_u8, gradient), work->row->gradient_type, i);
  gg_adamw_element(constants, work->bias, amsgrad, raw, &e);
  GG_STREAM(work, gg_f32, out[0])[i] = e.parameter;
  GG_STREAM(work, gg_f32, out[1])[i] = e.exp_avg;
  GG_STREAM(work, gg_f32, out[2])[i] = e.exp_avg_sq;
  if (amsgrad) GG_STREAM(work, gg_f32, out[3])[i] = e.max_exp_avg_sq;
  if (model_type) gg_store_value(GG_STREAM(work, gg_u8, model), model_type, i, e.parameter);
}

GG_FN void gg_load_four(GG_GLOBAL const gg_f32* p, gg_f32* x) {
  gg_f32x4 values = gg_read_once((GG_GLOBAL const gg_f32x4*)p);
  x[0] = values.x, x[1] = values.y, x[2] = values.z, x[3] = values.w;
}

GG_FN void gg_store_four(GG_GLOBAL gg_f32* p, const gg_f32* x) {
  gg_f32x4 values;
  values.x = x[0], values.y = x[1], values.z = x[2], values.w = x[3];
  gg_write_once((GG_GLOBAL gg_f32x4*)p, values);
}

GG_FN void gg_load_four_gradients(gg_pointer p, gg_u32 type, gg_u64 i, gg_f32* x) {
  if (type == GG_TYPE_F32) {
    gg_load_four((GG_GLOBAL const gg_f32*)p + i, x);
  } else {
    gg_u32x2 words = gg_read_once((GG_GLOBAL const gg_u32x2*)(p + 2 * i));
    gg_widen_word(type, words.x, &x[0], &x[1]);
    gg_widen_word(type, words.y, &x[2], &x[3]);
  }
}

/* Four consecutive elements, all addresses aligned. All loads are issued before the first value is used. `amsgrad` is a
 * compile-time constant in each call. */
GG_FN void gg_update_four(const gg_work* work, const gg_update_constants* constants, const gg_u32 amsgrad, gg_u64 i) {
  const gg_u32 model_type = work->row->model_type;
  gg_f32 g[4], p[4], m[4], v[4], w[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  gg_load_four(GG_STREAM(work, const gg_f32, in[0]) + i, p);
  gg_load_four(GG_STREAM(work, const gg_f32, in[1]) + i, m);
  gg_load_four(GG_STREAM(work, const gg_f32, in[2]) + i, v);
  if (amsgrad) gg_load_four(GG_STREAM(work, const gg_f32, in[3]) + i, w);
  gg_load_four_gradients(GG_STREAM(work, gg_u8, gradient), work->row->gradient_type, i, g);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    gg_element e;
    e.parameter = p[k], e.exp_avg = m[k], e.exp_avg_sq = v[k], e.max_exp_avg_sq = w[k];
    gg_adamw_element(constants, work->bias, amsgrad, g[k], &e);
    p[k] = e.parameter, m[k] = e.exp_avg, v[k] = e.exp_avg_sq, w[k] = e.max_exp_avg_sq;
  }
  gg_store_four(GG_STREAM(work, gg_f32, out[0]) + i, p);
  gg_store_four(GG_STREAM(work, gg_f32, out[1]) + i, m);
  gg_store_four(GG_STREAM(work, gg_f32, out[2]) + i, v);
  if (amsgrad) gg_store_four(GG_STREAM(work, gg_f32, out[3]) + i, w);
  if (model_type) {
    gg_u32x2 words;
    words.x = gg_narrow_word(model_type, p[0], p[1]);
    words.y = gg_narrow_word(model_type, p[2], p[3]);
    gg_write_once((GG_GLOBAL gg_u32x2*)(GG_STREAM(work, gg_u16, model) + i), words);
  }
}

/* From the last block to the first: the gradients that the reduction read last are still in the cache. */
GG_FN void gg_find_spot_from_the_end(GG_SHARED_POINTER gg_spot* spot, GG_GLOBAL const gg_device_row* rows,
                                     GG_GLOBAL const gg_u32* first, gg_u32 row_begin, gg_u32 row_end) {
  gg_find_spot(spot, rows, first, row_begin, row_end, gg_block_count() - 1 - gg_block_index(), gg_block_count());
}

/* The end of a work-item's elements, which begin at `i`. */
GG_FN gg_u64 gg_end_of_item(GG_SHARED_POINTER const gg_device_row* row, gg_u64 i) {
  return i + GG_ELEMENTS_OF_ITEM < row->elements ? i + GG_ELEMENTS_OF_ITEM : row->elements;
}

GG_FN int gg_is_aligned(GG_SHARED_POINTER const gg_device_row* row) {
  const gg_u32 both = GG_ROW_ALIGNED_GRADIENT | GG_ROW_ALIGNED_STATES;
  return (row->flags & both) == both;
}

GG_KERNEL(5)
void gg_update(GG_GLOBAL const gg_device_row* rows, GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin,
               gg_u32 row_end, gg_update_constants constants, GG_GLOBAL const gg_bias* biases,
               gg_u32 uniform GG_OBJECT(gradient) GG_OBJECT(in0) GG_OBJECT(in1) GG_OBJECT(in2) GG_OBJECT(in3)
                   GG_OBJECT(out0) GG_OBJECT(out1) GG_OBJECT(out2) GG_OBJECT(out3) GG_OBJECT(model)) {
  GG_SHARED gg_spot spot;
  gg_find_spot_from_the_end(&spot, rows, first_block, row_begin, row_end);
  gg_objects objects;
  GG_SET_OBJECT(gradient, gradient);
  GG_SET_OBJECT(in[0], in0), GG_SET_OBJECT(in[1], in1), GG_SET_OBJECT(in[2], in2), GG_SET_OBJECT(in[3], in3);
  GG_SET_OBJECT(out[0], out0), GG_SET_OBJECT(out[1], out1), GG_SET_OBJECT(out[2], out2), GG_SET_OBJECT(out[3], out3);
  GG_SET_OBJECT(model, model);
  gg_work work;
  work.row = &spot.row;
  work.objects = objects;
  work.bias = constants.bias;
  if (!uniform) work.bias = biases[spot.index];
  gg_u64 i = (gg_u64)spot.block * GG_UPDATE_ELEMENTS + GG_ELEMENTS_OF_ITEM * gg_item();
  const gg_u64 end = gg_end_of_item(&spot.row, i);
  if (!gg_is_aligned(&spot.row) || i + GG_ELEMENTS_OF_ITEM > end) {
    for (; i < end; i++) gg_update_element(&work, &constants, i);
  } else if (spot.row.flags & GG_ROW_AMSGRAD) {
    gg_update_four(&work, &constants, 1, i);
  } else {
    gg_update_four(&work, &constants, 0, i);
  }
}

#endif
