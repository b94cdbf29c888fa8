#include "tools/gradguard/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "tools/gradguard/device.h"

const char* const gg_moment_suffix[GG_MOMENTS] = {".exp_avg", ".exp_avg_sq", ".max_exp_avg_sq", ".step"};

static int64_t stored_step(const gg_stored_tensor* tensor) {
  int64_t step = 0;
  memcpy(&step, tensor->data, sizeof step);
  return step;
}

uint64_t gg_slot_step(const gg_slot* slot) {
  return slot->moments[GG_MOMENT_STEP] == NULL ? 0 : (uint64_t)stored_step(slot->moments[GG_MOMENT_STEP]);
}

/* ---- Slots ---- */

static bool make_slots(gg_checkpoint* checkpoint, gg_problem* problem) {
  checkpoint->count = checkpoint->parameters.count;
  checkpoint->slots = calloc(checkpoint->count + 1, sizeof *checkpoint->slots);
  if (checkpoint->slots == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory");
  for (size_t i = 0; i < checkpoint->count; ++i) checkpoint->slots[i].parameter = &checkpoint->parameters.tensors[i];
  return true;
}

static gg_slot* find_slot(gg_checkpoint* checkpoint, const char* name) {
  const gg_stored_tensor* parameter = gg_safetensors_find(&checkpoint->parameters, name);
  return parameter == NULL ? NULL : &checkpoint->slots[parameter - checkpoint->parameters.tensors];
}

static bool refuse_shape(const gg_checkpoint* checkpoint, const gg_safetensors* file, const gg_stored_tensor* tensor,
                         const gg_stored_tensor* parameter, gg_problem* problem) {
  gg_quoted name;
  gg_shape_text shape, expected;
  return gg_refuse(problem, GG_EXIT_INPUT, "%s: tensor %s has shape %s, but its parameter in %s has %s", file->path,
                   gg_quote(&name, tensor->name), gg_stored_shape_text(&shape, tensor), checkpoint->parameters.path,
                   gg_stored_shape_text(&expected, parameter));
}

/* ---- Gradients ---- */

static bool add_gradient(gg_checkpoint* checkpoint, const gg_stored_tensor* gradient, gg_problem* problem) {
  const gg_safetensors* file = &checkpoint->gradients;
  gg_quoted name;
  gg_slot* slot = find_slot(checkpoint, gradient->name);
  if (slot == NULL) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: gradient %s has no parameter in %s", file->path,
                     gg_quote(&name, gradient->name), checkpoint->parameters.path);
  }
  if (!gg_check_storable(file, gradient, "gradient", problem)) return false;
  if (slot->parameter->stored != GG_STORED_F32) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: parameter %s has dtype %s; one with a gradient must be F32",
                     checkpoint->parameters.path, gg_quote(&name, gradient->name), slot->parameter->dtype);
  }
  if (!gg_stored_same_shape(gradient, slot->parameter)) {
    return refuse_shape(checkpoint, file, gradient, slot->parameter, problem);
  }
  slot->gradient = gradient;
  return true;
}

/* ---- State ---- */

/* Splits "NAME.exp_avg" at its last dot; GG_MOMENTS if the rest is no moment. */
static size_t split_state_name(const char* name, size_t* owner_length) {
  const char* dot = strrchr(name, '.');
  if (dot == NULL) return GG_MOMENTS;
  *owner_length = (size_t)(dot - name);
  for (size_t moment = 0; moment < GG_MOMENTS; ++moment) {
    if (strcmp(dot, gg_moment_suffix[moment]) == 0) return moment;
  }
  return GG_MOMENTS;
}

static bool check_step(const gg_safetensors* file, const gg_stored_tensor* tensor, gg_problem* problem) {
  gg_quoted name;
  if (tensor->stored != GG_STORED_I64 || tensor->rank != 0) {
    gg_shape_text shape;
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s is %s %s; a step counter must be I64 []", file->path,
                     gg_quote(&name, tensor->name), tensor->dtype, gg_stored_shape_text(&shape, tensor));
  }
  if (stored_step(tensor) < 0) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s is %lld; a step counter cannot be negative", file->path,
                     gg_quote(&name, tensor->name), (long long)stored_step(tensor));
  }
  return true;
}

static bool check_moment(const gg_checkpoint* checkpoint, const gg_slot* slot, const gg_stored_tensor* tensor,
                         gg_problem* problem) {
  gg_quoted name;
  if (tensor->stored != GG_STORED_F32) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s has dtype %s; optimizer state must be F32", checkpoint->state.path,
                     gg_quote(&name, tensor->name), tensor->dtype);
  }
  if (!gg_stored_same_shape(tensor, slot->parameter)) {
    return refuse_shape(checkpoint, &checkpoint->state, tensor, slot->parameter, problem);
  }
  return true;
}

static bool add_state(gg_checkpoint* checkpoint, const gg_stored_tensor* tensor, bool amsgrad, gg_problem* problem) {
  const gg_safetensors* file = &checkpoint->state;
  gg_quoted name;
  size_t length = 0;
  const size_t moment = split_state_name(tensor->name, &length);
  if (moment == GG_MOMENTS) {
    return gg_refuse(
        problem, GG_EXIT_INPUT,
        "%s: tensor %s is no optimizer state; names end in .exp_avg, .exp_avg_sq, .max_exp_avg_sq or .step", file->path,
        gg_quote(&name, tensor->name));
  }
  char* owner = strndup(tensor->name, length);
  if (owner == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory");
  gg_slot* slot = find_slot(checkpoint, owner);
  free(owner);
  if (slot == NULL) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: state %s has no parameter in %s", file->path,
                     gg_quote(&name, tensor->name), checkpoint->parameters.path);
  }
  if (moment == GG_MOMENT_STEP ? !check_step(file, tensor, problem)
                               : !check_moment(checkpoint, slot, tensor, problem)) {
    return false;
  }
  if (moment == GG_MOMENT_MAX_EXP_AVG_SQ && !amsgrad && slot->gradient != NULL) {
    return gg_refuse(problem, GG_EXIT_INPUT,
                     "%s: %s is AMSGrad state, which a step without --amsgrad would leave behind; give --amsgrad or "
                     "remove it",
                     file->path, gg_quote(&name, tensor->name));
  }
  slot->moments[moment] = tensor;
  return true;
}

/* ---- The whole ---- */

static bool match(gg_checkpoint* checkpoint, bool amsgrad, gg_problem* problem) {
  if (!make_slots(checkpoint, problem)) return false;
  for (size_t i = 0; i < checkpoint->gradients.count; ++i) {
    if (!add_gradient(checkpoint, &checkpoint->gradients.tensors[i], problem)) return false;
  }
  for (size_t i = 0; i < checkpoint->state.count; ++i) {
    if (!add_state(checkpoint, &checkpoint->state.tensors[i], amsgrad, problem)) return false;
  }
  for (size_t i = 0; i < checkpoint->count; ++i) {
    if (checkpoint->slots[i].gradient != NULL) checkpoint->slots[i].entry = checkpoint->entries++;
  }
  return true;
}

bool gg_checkpoint_open(gg_checkpoint* checkpoint, const char* parameters, const char* gradients, const char* state,
                        bool amsgrad, gg_problem* problem) {
  memset(checkpoint, 0, sizeof *checkpoint);
  if (gg_safetensors_open(parameters, &checkpoint->parameters, problem) &&
      gg_safetensors_open(gradients, &checkpoint->gradients, problem) &&
      (state == NULL || gg_safetensors_open(state, &checkpoint->state, problem)) &&
      match(checkpoint, amsgrad, problem)) {
    return true;
  }
  gg_checkpoint_close(checkpoint);
  return false;
}

void gg_checkpoint_close(gg_checkpoint* checkpoint) {
  free(checkpoint->slots);
  gg_safetensors_close(&checkpoint->parameters);
  gg_safetensors_close(&checkpoint->gradients);
  gg_safetensors_close(&checkpoint->state);
  memset(checkpoint, 0, sizeof *checkpoint);
}
