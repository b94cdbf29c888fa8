/* Device side: the fused update, 1024 elements a block and 4 neighbours an item. */
#ifndef GG_KERNELS_UPDATE_H
#define GG_KERNELS_UPDATE_H

#include "kernels/memory.h"

#define GG_ELEMENTS_OF_ITEM (GG_UPDATE_ELEMENTS / GG_LANES)

/* Where one row's tensors are. */
typedef struct gg_streams {
  gg_pointer gradient, in[GG_STATES], out[GG_STATES], model;
  gg_u32 gradient_type, model_type, amsgrad;
} gg_streams;

GG_FN void gg_update_element(const gg_streams* s, const gg_update_constants* constants, gg_bias bias, gg_u64 i) {
  gg_element e;
  e.parameter = ((GG_GLOBAL const gg_f32*)s->in[GG_STATE_PARAMETER])[i];
  e.exp_avg = ((GG_GLOBAL const gg_f32*)s->in[GG_STATE_EXP_AVG])[i];
  e.exp_avg_sq = ((GG_GLOBAL const gg_f32*)s->in[GG_STATE_EXP_AVG_SQ])[i];
  e.max_exp_avg_sq = s->amsgrad ? ((GG_GLOBAL const gg_f32*)s->in[GG_STATE_MAX_EXP_AVG_SQ])[i] : 0.0f;
  gg_adamw_element(constants, bias, s->amsgrad, gg_load_value(s->gradient, s->gradient_type, i), &e);
  ((GG_GLOBAL gg_f32*)s->out[GG_STATE_PARAMETER])[i] = e.parameter;
  ((GG_GLOBAL gg_f32*)s->out[GG_STATE_EXP_AVG])[i] = e.exp_avg;
  ((GG_GLOBAL gg_f32*)s->out[GG_STATE_EXP_AVG_SQ])[i] = e.exp_avg_sq;
  if (s->amsgrad) ((GG_GLOBAL gg_f32*)s->out[GG_STATE_MAX_EXP_AVG_SQ])[i] = e.max_exp_avg_sq;
  if (s->model_type) gg_store_value(s->model, s->model_type, i, e.parameter);
}

GG_FN void gg_load_four(gg_pointer p, gg_u64 i, gg_f32* x) {
  gg_f32x4 values = gg_read_once((GG_GLOBAL const gg_f32x4*)(p + 4 * i));
  x[0] = values.x, x[1] = values.y, x[2] = values.z, x[3] = values.w;
}

GG_FN void gg_store_four(gg_pointer p, gg_u64 i, const gg_f32* x) {
  gg_f32x4 values;
  values.x = x[0], values.y = x[1], values.z = x[2], values.w = x[3];
  gg_write_once((GG_GLOBAL gg_f32x4*)(p + 4 * i), values);
}

GG_FN void gg_load_four_gradients(gg_pointer p, gg_u32 type, gg_u64 i, gg_f32* x) {
  if (type == GG_TYPE_F32) {
    gg_load_four(p, i, x);
  } else {
    gg_u32x2 words = gg_read_once((GG_GLOBAL const gg_u32x2*)(p + 2 * i));
    gg_widen_word(type, words.x, &x[0], &x[1]);
    gg_widen_word(type, words.y, &x[2], &x[3]);
  }
}

/* Four neighbours, all addresses aligned. Every load is on its way before the first value is used. */
GG_FN void gg_update_four(const gg_streams* s, const gg_update_constants* constants, gg_bias bias, gg_u64 i) {
  gg_f32 g[4], p[4], m[4], v[4], w[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  gg_load_four_gradients(s->gradient, s->gradient_type, i, g);
  gg_load_four(s->in[GG_STATE_PARAMETER], i, p);
  gg_load_four(s->in[GG_STATE_EXP_AVG], i, m);
  gg_load_four(s->in[GG_STATE_EXP_AVG_SQ], i, v);
  if (s->amsgrad) gg_load_four(s->in[GG_STATE_MAX_EXP_AVG_SQ], i, w);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    gg_element e;
    e.parameter = p[k], e.exp_avg = m[k], e.exp_avg_sq = v[k], e.max_exp_avg_sq = w[k];
    gg_adamw_element(constants, bias, s->amsgrad, g[k], &e);
    p[k] = e.parameter, m[k] = e.exp_avg, v[k] = e.exp_avg_sq, w[k] = e.max_exp_avg_sq;
  }
  gg_store_four(s->out[GG_STATE_PARAMETER], i, p);
  gg_store_four(s->out[GG_STATE_EXP_AVG], i, m);
  gg_store_four(s->out[GG_STATE_EXP_AVG_SQ], i, v);
  if (s->amsgrad) gg_store_four(s->out[GG_STATE_MAX_EXP_AVG_SQ], i, w);
  if (s->model_type) {
    gg_u32x2 words;
    words.x = gg_narrow_word(s->model_type, p[0], p[1]);
    words.y = gg_narrow_word(s->model_type, p[2], p[3]);
    gg_write_once((GG_GLOBAL gg_u32x2*)(s->model + 2 * i), words);
  }
}

/* From the last block to the first: the gradients that the reduction read last are still in the cache. */
GG_FN gg_u32 gg_block_from_the_end(GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin) {
  return first_block[row_begin] + (gg_groups() - 1 - gg_group());
}

GG_KERNEL void gg_update(GG_GLOBAL const gg_device_row* rows, GG_GLOBAL const gg_u32* first_block, gg_u32 row_begin,
                         gg_u32 row_end, gg_update_constants constants, GG_GLOBAL const gg_bias* biases,
                         gg_u32 uniform GG_OBJECT(gradient) GG_OBJECT(in0) GG_OBJECT(in1) GG_OBJECT(in2) GG_OBJECT(in3)
                             GG_OBJECT(out0) GG_OBJECT(out1) GG_OBJECT(out2) GG_OBJECT(out3) GG_OBJECT(model)) {
  const gg_u32 block = gg_block_from_the_end(first_block, row_begin);
  const gg_u32 index = gg_find_row(first_block, row_begin, row_end, block, gg_groups());
  GG_GLOBAL const gg_device_row* row = rows + index;
  const gg_bias bias = uniform ? constants.bias : biases[index];
  const gg_u32 both = GG_ROW_ALIGNED_GRADIENT | GG_ROW_ALIGNED_STATES, flags = row->flags;
  const gg_u64 elements = row->elements, begin = (gg_u64)(block - first_block[index]) * GG_UPDATE_ELEMENTS;
  const gg_u64 end = begin + GG_UPDATE_ELEMENTS < elements ? begin + GG_UPDATE_ELEMENTS : elements;
  gg_streams s;
  s.gradient = GG_ADDRESS(gradient, row->gradient);
  s.in[0] = GG_ADDRESS(in0, row->in[0]), s.out[0] = GG_ADDRESS(out0, row->out[0]);
  s.in[1] = GG_ADDRESS(in1, row->in[1]), s.out[1] = GG_ADDRESS(out1, row->out[1]);
  s.in[2] = GG_ADDRESS(in2, row->in[2]), s.out[2] = GG_ADDRESS(out2, row->out[2]);
  s.in[3] = GG_ADDRESS(in3, row->in[3]), s.out[3] = GG_ADDRESS(out3, row->out[3]);
  s.model = GG_ADDRESS(model, row->model);
  s.gradient_type = row->gradient_type;
  s.model_type = row->model_type;
  s.amsgrad = flags & GG_ROW_AMSGRAD;
  gg_u64 i = begin + GG_ELEMENTS_OF_ITEM * gg_item();
  if ((flags & both) == both && i + GG_ELEMENTS_OF_ITEM <= end) {
    gg_update_four(&s, &constants, bias, i);
  } else {
    const gg_u64 own_end = i + GG_ELEMENTS_OF_ITEM < end ? i + GG_ELEMENTS_OF_ITEM : end;
    for (; i < own_end; i++) gg_update_element(&s, &constants, bias, i);
  }
}

#endif
