/* Memory that a step writes must not overlap any other tensor. */
#include <stdlib.h>

#include "host/group.h"
#include "host/status.h"
#include "host/validate.h"

typedef struct gg_interval {
  uint64_t space, begin, end;
  size_t entry;
  gg_role role;
  bool written;
} gg_interval;

static int by_place(const void* a, const void* b) {
  const gg_interval *x = a, *y = b;
  if (x->space != y->space) return x->space < y->space ? -1 : 1;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->entry != y->entry) return x->entry < y->entry ? -1 : 1;
  return (x->role > y->role) - (x->role < y->role);
}

static bool is_written(const gg_group* group, const gg_tensor* tensor, gg_role role) {
  if (role == GG_GRADIENT) return false;
  return group->mode == GG_IN_PLACE || !tensor->buffer->memory->wrapped;
}

static size_t list_intervals(const gg_group* group, gg_interval* intervals) {
  size_t count = 0;
  for (size_t i = 0; i < group->count; i++)
    for (gg_role role = 0; role < GG_ROLES; role++) {
      const gg_tensor* tensor = &group->members[i].tensors[role];
      uint64_t bytes = group->members[i].elements * gg_dtype_bytes(tensor->dtype);
      if (tensor->buffer == NULL || bytes == 0) continue;
      const gg_memory* memory = tensor->buffer->memory;
      uint64_t begin = memory->base + tensor->offset;
      intervals[count++] = (gg_interval){.space = memory->space,
                                         .begin = begin,
                                         .end = begin + bytes,
                                         .entry = i,
                                         .role = role,
                                         .written = is_written(group, tensor, role)};
    }
  return count;
}

static gg_status refuse_pair(const gg_group* group, const char* function, const gg_interval* a, const gg_interval* b) {
  const gg_interval *first = a->entry <= b->entry ? a : b, *second = first == a ? b : a;
  gg_subject one = {group->context, function, first->entry, group->members[first->entry].name};
  gg_subject other = {group->context, function, second->entry, group->members[second->entry].name};
  char who[256];
  gg_subject_text(&one, who, sizeof who);
  return gg_refuse_tensor(
      &other, second->role,
      "its memory and that of %s, %s overlap, and a step writes there: pass each tensor once, and tied "
      "weights once in the whole group",
      who, gg_role_name(first->role));
}

/* With intervals sorted by start, an interval overlaps an earlier one if it starts before the largest end so far. */
static gg_status sweep(const gg_group* group, const char* function, const gg_interval* intervals, size_t count) {
  const gg_interval *furthest = NULL, *furthest_written = NULL;
  for (size_t i = 0; i < count; i++) {
    const gg_interval* at = &intervals[i];
    if (furthest != NULL && furthest->space != at->space) furthest = furthest_written = NULL;
    const gg_interval* before = at->written ? furthest : furthest_written;
    if (before != NULL && before->end > at->begin) return refuse_pair(group, function, before, at);
    if (furthest == NULL || at->end > furthest->end) furthest = at;
    if (at->written && (furthest_written == NULL || at->end > furthest_written->end)) furthest_written = at;
  }
  return GG_OK;
}

gg_status gg_check_overlap(const gg_group* group, const char* function) {
  gg_interval* intervals = calloc(group->count * GG_ROLES + 1, sizeof *intervals);
  if (intervals == NULL)
    return gg_fail(&group->context->error, GG_ERROR_NO_MEMORY, function, "out of host memory checking a group");
  size_t count = list_intervals(group, intervals);
  qsort(intervals, count, sizeof *intervals, by_place);
  gg_status status = sweep(group, function, intervals, count);
  free(intervals);
  return status;
}
