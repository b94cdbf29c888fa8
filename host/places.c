/* Where a group's states are read and written: second buffers, and a table for each phase. */
#include <stdlib.h>

#include "host/group.h"
#include "host/status.h"

/* Second buffers share allocations of about this size, so that small tensors need few allocations and large ones no
 * huge one. */
#define GG_SLAB_BYTES ((uint64_t)1 << 30)
#define GG_SLAB_ALIGN 256

gg_role gg_role_of(unsigned written) {
  static const gg_role roles[GG_WRITTEN] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ, GG_MAX_EXP_AVG_SQ, GG_MODEL_COPY};
  return roles[written];
}

bool gg_member_writes(const gg_member* member, unsigned written) { return member->places[written][0].buffer != NULL; }

bool gg_member_is_wrapped(const gg_member* member, unsigned written) {
  return gg_member_writes(member, written) && member->places[written][0].buffer->memory->wrapped;
}

/* From the caller's memory (0) to the second buffers (1), and then alternating between those and the caller's memory
 * or, in a group with wrapped memory, phase 2, in which wrapped states use their third buffer. */
unsigned gg_phase_after(const gg_group* group, unsigned phase) {
  if (group->mode == GG_IN_PLACE) return 0;
  if (phase != 1) return 1;
  return group->wrapped ? 2 : 0;
}

unsigned gg_place_in_phase(const gg_member* member, unsigned written, unsigned phase) {
  return phase == 2 && !gg_member_is_wrapped(member, written) ? 0 : phase;
}

static uint64_t slab_bytes(const gg_member* member, unsigned written) {
  uint64_t bytes = member->elements * gg_dtype_bytes(member->tensors[gg_role_of(written)].dtype);
  return (bytes + GG_SLAB_ALIGN - 1) / GG_SLAB_ALIGN * GG_SLAB_ALIGN;
}

static gg_status add_slab(gg_group* group, uint64_t bytes) {
  gg_buffer** slabs = realloc(group->slabs, (group->slab_count + 1) * sizeof(gg_buffer*));
  if (slabs == NULL) return gg_fail(&group->context->error, GG_ERROR_NO_MEMORY, "gg_adamw_step", "out of host memory");
  group->slabs = slabs;
  gg_status status = gg_buffer_create(group->context, bytes, &slabs[group->slab_count]);
  if (status == GG_OK) group->slab_count++;
  return status;
}

/* Goes over the states without a place, in order: once to add up the size of a slab, and once to assign parts of it. */
typedef struct gg_slab_walk {
  unsigned place;
  uint32_t row;
  unsigned written;
} gg_slab_walk;

static gg_place* next_missing(gg_group* group, gg_slab_walk* walk, uint64_t* bytes) {
  for (; walk->row < group->rows; walk->row++, walk->written = 0)
    while (walk->written < GG_WRITTEN) {
      gg_member* member = &group->members[group->entry_of_row[walk->row]];
      unsigned written = walk->written++;
      gg_place* place = &member->places[written][walk->place];
      bool wanted = gg_member_writes(member, written) && (walk->place == 1 || gg_member_is_wrapped(member, written));
      if (!wanted || place->buffer != NULL) continue;
      *bytes = slab_bytes(member, written);
      return place;
    }
  return NULL;
}

/* Fills one slab with the next states; those that do not fit are left for the next slab. */
static gg_status make_slab(gg_group* group, unsigned place_index, bool* more) {
  gg_slab_walk first = {.place = place_index}, walk = first;
  uint64_t bytes = 0, total = 0;
  *more = false;
  while (next_missing(group, &walk, &bytes) != NULL) {
    *more = true;
    if (total > 0 && total + bytes > GG_SLAB_BYTES) break;
    total += bytes;
  }
  if (!*more) return GG_OK;
  gg_status status = add_slab(group, total);
  if (status != GG_OK) return status;
  uint64_t offset = 0;
  walk = first;
  for (gg_place* place; (place = next_missing(group, &walk, &bytes)) != NULL && offset + bytes <= total;
       offset += bytes)
    *place = (gg_place){.buffer = group->slabs[group->slab_count - 1], .offset = offset};
  return GG_OK;
}

static gg_status make_places(gg_group* group, unsigned place) {
  bool more = place > 0;
  while (more) {
    gg_status status = make_slab(group, place, &more);
    if (status != GG_OK) return status;
  }
  return GG_OK;
}

static gg_span span_of(const gg_place* place) {
  return (gg_span){.memory = place->buffer != NULL ? place->buffer->memory : NULL, .offset = place->offset};
}

static gg_row row_of(const gg_member* member, unsigned from, unsigned to) {
  const gg_tensor* gradient = &member->tensors[GG_GRADIENT];
  gg_row row = {.elements = member->elements,
                .gradient_dtype = gradient->dtype,
                .model_dtype = member->tensors[GG_MODEL_COPY].dtype,
                .gradient = {gradient->buffer->memory, gradient->offset}};
  for (unsigned state = 0; state < GG_STATES; state++) {
    if (!gg_member_writes(member, state)) continue;
    row.in[state] = span_of(&member->places[state][gg_place_in_phase(member, state, from)]);
    row.out[state] = span_of(&member->places[state][gg_place_in_phase(member, state, to)]);
  }
  if (gg_member_writes(member, GG_WRITTEN_MODEL))
    row.model_out = span_of(&member->places[GG_WRITTEN_MODEL][gg_place_in_phase(member, GG_WRITTEN_MODEL, to)]);
  return row;
}

static gg_status make_table(gg_group* group, unsigned to, const char* function) {
  gg_row* rows = calloc(group->rows, sizeof *rows);
  if (rows == NULL)
    return gg_fail(&group->context->error, GG_ERROR_NO_MEMORY, function, "out of host memory making a table");
  for (uint32_t i = 0; i < group->rows; i++)
    rows[i] = row_of(&group->members[group->entry_of_row[i]], group->phase, to);
  gg_device* device = group->context->device;
  gg_status status = device->backend->table(device, rows, group->rows, group->amsgrad, true,
                                            &group->tables[group->phase], &group->context->error);
  free(rows);
  return status;
}

gg_status gg_group_prepare(gg_group* group, const char* function) {
  if (group->tables[group->phase] != NULL) return GG_OK;
  unsigned to = gg_phase_after(group, group->phase);
  gg_status status = make_places(group, to);
  return status != GG_OK ? status : make_table(group, to, function);
}

uint64_t gg_group_scratch(const gg_group* group) {
  uint64_t bytes = 0;
  for (int i = 0; i < GG_PLACES; i++)
    if (group->tables[i] != NULL) bytes += group->tables[i]->scratch_bytes;
  return bytes;
}
