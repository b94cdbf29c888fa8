#include "tools/gradguard/step_output.h"

#include <stdlib.h>

static bool refuse_memory(gg_problem* problem) { return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory"); }

static gg_piece host_piece(const void* bytes, uint64_t count) { return (gg_piece){.host = bytes, .bytes = count}; }

static bool device_piece(const gg_context* context, const gg_group* group, size_t entry, gg_role role, uint64_t bytes,
                         gg_piece* piece, gg_problem* problem) {
  gg_tensor tensor;
  const gg_status status = gg_group_tensor(group, entry, role, &tensor);
  if (status != GG_OK) return gg_refuse_error(problem, status, gg_context_error(context), "locating the results");
  *piece = (gg_piece){.buffer = tensor.buffer, .offset = tensor.offset, .bytes = bytes};
  return true;
}

static uint64_t total_bytes(const gg_piece* pieces, size_t count) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += pieces[i].bytes;
  return total;
}

static bool write_pieces(gg_output* output, gg_context* context, const char* doing, const gg_piece* pieces,
                         size_t count, gg_problem* problem) {
  gg_progress progress;
  gg_progress_begin(&progress, doing, total_bytes(pieces, count));
  const bool good = gg_output_write(output, context, pieces, count, &progress, problem);
  gg_progress_end(&progress);
  return good;
}

/* ---- Parameters: the head and the layout of the input file, byte for byte ---- */

static bool write_parameters(gg_output* output, gg_context* context, const gg_group* group,
                             const gg_checkpoint* checkpoint, gg_problem* problem) {
  gg_piece* pieces = calloc(checkpoint->count + 1, sizeof *pieces);
  if (pieces == NULL) return refuse_memory(problem);
  bool good = true;
  pieces[0] = host_piece(checkpoint->parameters.head, checkpoint->parameters.head_bytes);
  for (size_t i = 0; good && i < checkpoint->count; ++i) {
    const gg_slot* slot = &checkpoint->slots[i];
    pieces[i + 1] = host_piece(slot->parameter->data, slot->parameter->bytes);
    if (slot->gradient == NULL) continue;
    good = device_piece(context, group, slot->entry, GG_PARAMETER, slot->parameter->bytes, &pieces[i + 1], problem);
  }
  good = good && write_pieces(output, context, "writing parameters", pieces, checkpoint->count + 1, problem);
  free(pieces);
  return good;
}

/* ---- State: the step counters first, which keeps everything aligned, then the moments ---- */

typedef struct state_writer {
  gg_context* context;
  const gg_group* group;
  const gg_checkpoint* checkpoint;
  bool amsgrad;
  gg_safetensors_head head;
  gg_piece* pieces; /* the first is the head */
  size_t count;
  int64_t* steps; /* by slot */
} state_writer;

static bool add_tensor(state_writer* writer, const gg_slot* slot, gg_moment moment, gg_piece piece,
                       gg_problem* problem) {
  const bool counter = moment == GG_MOMENT_STEP;
  char* name = NULL;
  if (asprintf(&name, "%s%s", slot->parameter->name, gg_moment_suffix[moment]) < 0) return refuse_memory(problem);
  const bool good = gg_safetensors_head_add(&writer->head, name, counter ? "I64" : "F32", slot->parameter->shape,
                                            counter ? 0 : slot->parameter->rank, piece.bytes);
  free(name);
  if (!good) return refuse_memory(problem);
  writer->pieces[writer->count++] = piece;
  return true;
}

/* A parameter that passes through keeps the state it has, and gets none that it has not. */
static bool add_moment(state_writer* writer, const gg_slot* slot, gg_moment moment, gg_problem* problem) {
  if (slot->gradient == NULL) {
    const gg_stored_tensor* stored = slot->moments[moment];
    return stored == NULL || add_tensor(writer, slot, moment, host_piece(stored->data, stored->bytes), problem);
  }
  if (moment == GG_MOMENT_MAX_EXP_AVG_SQ && !writer->amsgrad) return true;
  gg_piece piece;
  if (moment != GG_MOMENT_STEP) {
    const gg_role role = (gg_role)(GG_EXP_AVG + (int)moment);
    return device_piece(writer->context, writer->group, slot->entry, role, slot->parameter->bytes, &piece, problem) &&
           add_tensor(writer, slot, moment, piece, problem);
  }
  uint64_t step = 0;
  const gg_status status = gg_group_step(writer->group, slot->entry, &step);
  if (status != GG_OK) {
    return gg_refuse_error(problem, status, gg_context_error(writer->context), "reading the step");
  }
  int64_t* stored = &writer->steps[slot - writer->checkpoint->slots];
  *stored = (int64_t)step;
  return add_tensor(writer, slot, moment, host_piece(stored, sizeof *stored), problem);
}

static bool add_all(state_writer* writer, gg_problem* problem) {
  static const gg_moment floats[] = {GG_MOMENT_EXP_AVG, GG_MOMENT_EXP_AVG_SQ, GG_MOMENT_MAX_EXP_AVG_SQ};
  const gg_checkpoint* checkpoint = writer->checkpoint;
  for (size_t i = 0; i < checkpoint->count; ++i) {
    if (!add_moment(writer, &checkpoint->slots[i], GG_MOMENT_STEP, problem)) return false;
  }
  for (size_t i = 0; i < checkpoint->count; ++i) {
    for (size_t j = 0; j < sizeof floats / sizeof floats[0]; ++j) {
      if (!add_moment(writer, &checkpoint->slots[i], floats[j], problem)) return false;
    }
  }
  return true;
}

static bool write_state(gg_output* output, state_writer* writer, gg_problem* problem) {
  writer->count = 1;
  bool good = gg_safetensors_head_begin(&writer->head, writer->checkpoint->state.metadata) || refuse_memory(problem);
  good = good && add_all(writer, problem);
  size_t head_bytes = 0;
  unsigned char* head = gg_safetensors_head_end(&writer->head, &head_bytes);
  if (good && head == NULL) good = refuse_memory(problem);
  if (good && head_bytes > GG_SAFETENSORS_HEADER_MAX) {
    good = gg_refuse(problem, GG_EXIT_FAILURE, "%s: its header would have %zu bytes, more than safetensors allows",
                     output->asked, head_bytes);
  }
  writer->pieces[0] = host_piece(head, head_bytes);
  good = good && write_pieces(output, writer->context, "writing state", writer->pieces, writer->count, problem);
  free(head);
  return good;
}

bool gg_step_write(gg_outputs* outputs, gg_context* context, const gg_group* group, const gg_checkpoint* checkpoint,
                   bool amsgrad, gg_problem* problem) {
  if (!write_parameters(&outputs->files[0], context, group, checkpoint, problem)) return false;
  state_writer writer = {.context = context, .group = group, .checkpoint = checkpoint, .amsgrad = amsgrad};
  writer.pieces = calloc(checkpoint->count * GG_MOMENTS + 1, sizeof *writer.pieces);
  writer.steps = calloc(checkpoint->count + 1, sizeof *writer.steps);
  const bool good = writer.pieces != NULL && writer.steps != NULL ? write_state(&outputs->files[1], &writer, problem)
                                                                  : refuse_memory(problem);
  free(writer.pieces);
  free(writer.steps);
  return good;
}
