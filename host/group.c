#include "host/group.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/prefix.h"
#include "host/status.h"
#include "host/validate.h"

#define FUNCTION "gg_group_create"

static gg_status out_of_memory(gg_context* context) {
  return gg_fail(&context->error, GG_ERROR_NO_MEMORY, FUNCTION, "out of host memory making a group");
}

static gg_status check_arguments(gg_context* context, const gg_entry* entries, size_t count,
                                 const gg_group_options* options) {
  gg_error* error = &context->error;
  if (entries == NULL && count > 0) return gg_fail(error, GG_ERROR_ARGUMENT, FUNCTION, "`entries` is NULL");
  gg_status status = count > 0 ? gg_check_size(entries->size, sizeof *entries, "gg_entry", FUNCTION, error) : GG_OK;
  if (status == GG_OK) status = gg_check_size(options->size, sizeof *options, "gg_group_options", FUNCTION, error);
  if (status != GG_OK) return status;
  if (count > 0 && entries->size % _Alignof(gg_entry) != 0)
    return gg_fail(error, GG_ERROR_ARGUMENT, FUNCTION,
                   "the size in gg_entry is %u, no multiple of %zu: initialise it with GG_ENTRY_INIT", entries->size,
                   _Alignof(gg_entry));
  if (options->mode != GG_IN_PLACE && options->mode != GG_OUT_OF_PLACE)
    return gg_fail(error, GG_ERROR_ARGUMENT, FUNCTION, "mode %d is neither GG_OUT_OF_PLACE nor GG_IN_PLACE",
                   (int)options->mode);
  return GG_OK;
}

/* Copies a validated entry. */
static gg_status admit(gg_group* group, gg_member* member, const gg_entry* entry, uint64_t elements) {
  if (entry->name != NULL && (member->name = strdup(entry->name)) == NULL) return out_of_memory(group->context);
  member->elements = elements;
  member->step = entry->step;
  for (gg_role role = 0; role < GG_ROLES; role++) {
    if (entry->tensors[role].buffer == NULL) continue;
    member->tensors[role] = entry->tensors[role];
    gg_buffer_retain(entry->tensors[role].buffer);
  }
  for (unsigned written = 0; written < GG_WRITTEN; written++) {
    const gg_tensor* tensor = &member->tensors[gg_role_of(written)];
    member->places[written][0] = (gg_place){.buffer = tensor->buffer, .offset = tensor->offset};
  }
  return GG_OK;
}

static gg_status admit_all(gg_group* group, const gg_entry* entries) {
  for (size_t i = 0; i < group->count; i++) {
    const gg_entry* entry = (const gg_entry*)(const void*)((const char*)entries + i * entries->size);
    gg_subject subject = {group->context, FUNCTION, i, entry->name};
    if (entry->size != entries->size) {
      return gg_fail(&group->context->error, GG_ERROR_ARGUMENT, FUNCTION,
                     "entry %zu: its size is %u, that of the first entry is %u: initialise all with GG_ENTRY_INIT", i,
                     entry->size, entries->size);
    }
    uint64_t elements;
    gg_status status = gg_check_entry(&subject, entry, group->amsgrad, &elements);
    if (status == GG_OK) status = admit(group, &group->members[i], entry, elements);
    if (status != GG_OK) return status;
  }
  return gg_check_overlap(group, FUNCTION);
}

/* An entry and its size, for sorting. */
typedef struct gg_rank {
  uint64_t elements;
  size_t entry;
} gg_rank;

static int largest_first(const void* a, const void* b) {
  const gg_rank *x = a, *y = b;
  if (x->elements != y->elements) return x->elements > y->elements ? -1 : 1;
  return (x->entry > y->entry) - (x->entry < y->entry);
}

static gg_status sort_rows(gg_group* group) {
  gg_rank* ranks = calloc(group->count + 1, sizeof *ranks);
  if (ranks == NULL) return out_of_memory(group->context);
  size_t rows = 0;
  for (size_t i = 0; i < group->count; i++) {
    if (group->members[i].elements == 0) continue;
    ranks[rows++] = (gg_rank){group->members[i].elements, i};
    group->elements += group->members[i].elements;
  }
  qsort(ranks, rows, sizeof *ranks, largest_first);
  for (size_t i = 0; i < rows; i++) group->entry_of_row[i] = ranks[i].entry;
  group->rows = (uint32_t)rows;
  free(ranks);
  return GG_OK;
}

/* What is the same in every step. */
static void characterise(gg_group* group) {
  group->uniform = true;
  group->in_order = group->rows == group->count;
  for (uint32_t row = 0; row < group->rows; row++) {
    const gg_member* member = &group->members[group->entry_of_row[row]];
    group->uniform = group->uniform && member->step == group->members[group->entry_of_row[0]].step;
    group->in_order = group->in_order && group->entry_of_row[row] == row;
    group->farthest = member->step > group->farthest ? member->step : group->farthest;
    for (unsigned written = 0; written < GG_WRITTEN; written++)
      group->wrapped = group->wrapped || gg_member_is_wrapped(member, written);
  }
}

static gg_status allocate(gg_group* group) {
  size_t count = group->count + 1; /* never 0, for which calloc may return NULL */
  group->members = calloc(count, sizeof *group->members);
  group->entry_of_row = calloc(count, sizeof *group->entry_of_row);
  group->bias = calloc(count, sizeof *group->bias);
  group->per_tensor = calloc(count, sizeof *group->per_tensor);
  group->triples = calloc(count, sizeof *group->triples);
  bool good = group->members != NULL && group->entry_of_row != NULL && group->bias != NULL &&
              group->per_tensor != NULL && group->triples != NULL;
  return good ? GG_OK : out_of_memory(group->context);
}

static gg_status fill(gg_group* group, const gg_entry* entries) {
  if (group->count >= UINT32_MAX)
    return gg_fail(&group->context->error, GG_ERROR_ARGUMENT, FUNCTION, "%zu entries are too many", group->count);
  gg_status status = allocate(group);
  if (status == GG_OK) status = admit_all(group, entries);
  if (status == GG_OK) status = sort_rows(group);
  if (status == GG_OK) characterise(group);
  return status;
}

gg_status gg_group_make(gg_context* context, const gg_entry* entries, size_t count, const gg_group_options* options,
                        bool prepare, gg_group** group) {
  gg_status status = gg_context_usable(context, FUNCTION);
  if (status == GG_OK) status = check_arguments(context, entries, count, options);
  if (status != GG_OK) return status;
  gg_group* made = calloc(1, sizeof *made);
  if (made == NULL) return out_of_memory(context);
  gg_context_retain(context);
  made->context = context;
  made->mode = options->mode;
  made->amsgrad = options->amsgrad;
  made->count = count;
  made->pending.group = made;
  made->report = (gg_report)GG_REPORT_INIT;
  status = fill(made, entries);
  if (status == GG_OK && prepare && made->mode == GG_IN_PLACE && made->rows > 0)
    status = gg_group_prepare(made, FUNCTION);
  if (status != GG_OK)
    gg_group_destroy(&made);
  else
    *group = made;
  return status;
}

gg_status gg_group_create(gg_context* context, const gg_entry* entries, size_t count, const gg_group_options* options,
                          gg_group** group) {
  static const gg_group_options defaults = GG_GROUP_OPTIONS_INIT;
  if (group != NULL) *group = NULL;
  if (context == NULL) return GG_ERROR_ARGUMENT;
  if (group == NULL) return gg_fail(&context->error, GG_ERROR_ARGUMENT, FUNCTION, "`group` is NULL");
  if (options == NULL) options = &defaults;
  /* In place everything is already known, so that a step need not allocate. */
  return gg_group_make(context, entries, count, options, true, group);
}

static void free_members(gg_group* group) {
  for (size_t i = 0; i < group->count && group->members != NULL; i++) {
    free(group->members[i].name);
    for (int role = 0; role < GG_ROLES; role++)
      if (group->members[i].tensors[role].buffer != NULL) gg_buffer_release(group->members[i].tensors[role].buffer);
  }
  free(group->members);
}

static void free_device_side(gg_group* group) {
  gg_device* device = group->context->device;
  bool ours = gg_context_is_ours(group->context);
  const gg_pending* pending = &group->pending;
  if (ours && !device->lost && pending->active && pending->submitted && !pending->finished)
    device->backend->wait_update(device, group->tables[group->phase], NULL);
  for (int i = 0; i < GG_PLACES && ours; i++)
    if (group->tables[i] != NULL) device->backend->table_free(device, group->tables[i]);
  for (size_t i = 0; i < group->slab_count; i++) gg_buffer_release(group->slabs[i]);
  free(group->slabs);
}

void gg_group_destroy(gg_group** group) {
  if (group == NULL || *group == NULL) return;
  gg_group* gone = *group;
  *group = NULL;
  free_device_side(gone);
  free_members(gone);
  free(gone->entry_of_row);
  free(gone->bias);
  free(gone->per_tensor);
  free(gone->triples);
  gg_context* context = gone->context;
  free(gone);
  gg_context_release(context);
}

size_t gg_group_count(const gg_group* group) { return group != NULL ? group->count : 0; }

static gg_status check_entry_index(const gg_group* group, size_t entry, const void* result, const char* function) {
  if (group == NULL) return GG_ERROR_ARGUMENT;
  if (result == NULL) return gg_fail(&group->context->error, GG_ERROR_ARGUMENT, function, "the result is NULL");
  if (entry < group->count) return GG_OK;
  return gg_fail(&group->context->error, GG_ERROR_ARGUMENT, function, "there is no entry %zu: the group has %zu", entry,
                 group->count);
}

gg_status gg_group_tensor(const gg_group* group, size_t entry, gg_role role, gg_tensor* tensor) {
  gg_status status = check_entry_index(group, entry, tensor, "gg_group_tensor");
  if (status != GG_OK) return status;
  if ((unsigned)role >= GG_ROLES)
    return gg_fail(&group->context->error, GG_ERROR_ARGUMENT, "gg_group_tensor", "there is no role %d", (int)role);
  const gg_member* member = &group->members[entry];
  *tensor = member->tensors[role];
  for (unsigned written = 0; written < GG_WRITTEN; written++) {
    /* An entry without elements never moves. */
    if (gg_role_of(written) != role || !gg_member_writes(member, written) || member->elements == 0) continue;
    const gg_place* place = &member->places[written][gg_place_in_phase(member, written, group->phase)];
    tensor->buffer = place->buffer;
    tensor->offset = place->offset;
  }
  return GG_OK;
}

gg_status gg_group_step(const gg_group* group, size_t entry, uint64_t* step) {
  gg_status status = check_entry_index(group, entry, step, "gg_group_step");
  if (status == GG_OK) *step = group->members[entry].step;
  return status;
}
