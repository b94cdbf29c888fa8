#include "backends/opencl/plan.h"

#include <stdlib.h>
#include <string.h>

#include "host/status.h"
#include "kernels/geometry.h"

/* The spans of a row in the order of its objects. */
static const gg_span* span_of(const gg_row* row, uint32_t object) {
  if (object == GG_OPENCL_OBJECT_GRADIENT) return &row->gradient;
  if (object == GG_OPENCL_OBJECT_MODEL) return &row->model_out;
  if (object < GG_OPENCL_OBJECT_OUT) return &row->in[object - GG_OPENCL_OBJECT_IN];
  return &row->out[object - GG_OPENCL_OBJECT_OUT];
}

static const gg_opencl_memory* memory_of(const gg_span* span) { return gg_opencl_memory_of(span->memory); }

static void place_row(const gg_row* row, uint32_t index, gg_opencl_placed* placed) {
  memset(placed, 0, sizeof *placed);
  placed->row = index;
  placed->variant = GG_OPENCL_SVM;
  for (uint32_t i = 0; i < GG_OPENCL_OBJECTS; i++) {
    const gg_span* span = span_of(row, i);
    if (span->memory != NULL && memory_of(span)->object.mem != NULL) placed->variant = GG_OPENCL_ARENA;
  }
  if (placed->variant == GG_OPENCL_SVM) return;
  /* An absent tensor gets the object of one that exists: an argument is required, and it must not split a launch. */
  const gg_span* substitute = &row->gradient;
  if (row->out[GG_STATE_PARAMETER].memory != NULL) substitute = &row->out[GG_STATE_PARAMETER];
  if (row->in[GG_STATE_PARAMETER].memory != NULL) substitute = &row->in[GG_STATE_PARAMETER];
  for (uint32_t i = 0; i < GG_OPENCL_OBJECTS; i++) {
    const gg_span* span = span_of(row, i);
    placed->objects[i] = memory_of(span->memory != NULL ? span : substitute)->object;
  }
}

static int compare_objects(const gg_opencl_object* a, const gg_opencl_object* b) {
  uintptr_t keys[2] = {(uintptr_t)a->mem, (uintptr_t)b->mem};
  if (keys[0] == keys[1]) {
    keys[0] = (uintptr_t)a->svm;
    keys[1] = (uintptr_t)b->svm;
  }
  return (keys[0] > keys[1]) - (keys[0] < keys[1]);
}

/* Sorts by variant, then by objects. The gradient is the first object, so that reductions, which use only the gradient,
 * need the fewest launches. Rows with the same objects stay in order. */
static int compare_placed(const void* left, const void* right) {
  const gg_opencl_placed *a = left, *b = right;
  if (a->variant != b->variant) return a->variant < b->variant ? -1 : 1;
  for (uint32_t i = 0; i < GG_OPENCL_OBJECTS; i++) {
    int order = compare_objects(&a->objects[i], &b->objects[i]);
    if (order != 0) return order;
  }
  return (a->row > b->row) - (a->row < b->row);
}

void gg_opencl_place_rows(const gg_row* rows, uint32_t count, gg_opencl_placed* placed) {
  for (uint32_t i = 0; i < count; i++) place_row(&rows[i], i, &placed[i]);
  qsort(placed, count, sizeof *placed, compare_placed);
}

static gg_u64 address_of(const gg_span* span, gg_opencl_variant variant) {
  if (span->memory == NULL) return 0;
  const gg_opencl_memory* memory = memory_of(span);
  gg_u64 offset = memory->origin + span->offset;
  return variant == GG_OPENCL_SVM ? (gg_u64)(uintptr_t)memory->object.svm + offset : offset;
}

/* The driver aligns objects; if one is not aligned, `skew` says so. */
static bool aligned(const gg_span* span, uint64_t alignment) {
  if (span->memory == NULL) return true;
  const gg_opencl_memory* memory = memory_of(span);
  return (memory->skew + memory->origin + span->offset) % alignment == 0;
}

gg_device_row gg_opencl_device_row(const gg_row* row, gg_opencl_variant variant, bool amsgrad) {
  gg_device_row made = {0};
  made.elements = row->elements;
  made.gradient = address_of(&row->gradient, variant);
  made.model = address_of(&row->model_out, variant);
  made.gradient_type = (gg_u32)row->gradient_dtype;
  made.model_type = row->model_out.memory != NULL ? (gg_u32)row->model_dtype : 0;
  made.tiles_per_lane = gg_tiles_per_lane(row->elements);
  bool states = aligned(&row->model_out, 8);
  for (int s = 0; s < GG_STATES; s++) {
    made.in[s] = address_of(&row->in[s], variant);
    made.out[s] = address_of(&row->out[s], variant);
    states = states && aligned(&row->in[s], 16) && aligned(&row->out[s], 16);
  }
  made.flags = (aligned(&row->gradient, 16) ? GG_ROW_ALIGNED_GRADIENT : 0) | (states ? GG_ROW_ALIGNED_STATES : 0) |
               (amsgrad ? GG_ROW_AMSGRAD : 0);
  return made;
}

static int compare_pointers(const void* left, const void* right) {
  uintptr_t a = (uintptr_t) * (void*const*)left, b = (uintptr_t) * (void*const*)right;
  return (a > b) - (a < b);
}

gg_status gg_opencl_list_allocations(const gg_opencl_plan* plan, void*** allocations, uint32_t* count,
                                     gg_error* error) {
  *count = 0;
  *allocations = NULL;
  uint32_t rows = 0; /* those with addresses come first */
  while (rows < plan->count && plan->placed[rows].variant == GG_OPENCL_SVM) rows++;
  if (rows == 0) return GG_OK;
  void** list = malloc((size_t)rows * GG_OPENCL_OBJECTS * sizeof *list);
  if (list == NULL)
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_group_create", "out of host memory listing shared virtual memory");
  size_t found = 0, distinct = 0;
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t o = 0; o < GG_OPENCL_OBJECTS; o++) {
      const gg_span* span = span_of(&plan->rows[plan->placed[i].row], o);
      void* allocation = span->memory != NULL ? memory_of(span)->svm_allocation : NULL;
      /* Consecutive rows are usually in the same slab. */
      if (allocation != NULL && (found == 0 || list[found - 1] != allocation)) list[found++] = allocation;
    }
  qsort(list, found, sizeof *list, compare_pointers);
  for (size_t i = 0; i < found; i++)
    if (distinct == 0 || list[distinct - 1] != list[i]) list[distinct++] = list[i];
  *allocations = list;
  *count = (uint32_t)distinct;
  return GG_OK;
}

gg_status gg_opencl_check_access(const gg_row* row, gg_error* error) {
  static const char* const names[GG_OPENCL_OBJECTS] = {
      "gradient",      "parameter",   "exp_avg",        "exp_avg_sq",         "max_exp_avg_sq",
      "new parameter", "new exp_avg", "new exp_avg_sq", "new max_exp_avg_sq", "model_copy"};
  for (uint32_t i = 0; i < GG_OPENCL_OBJECTS; i++) {
    const gg_span* span = span_of(row, i);
    if (span->memory == NULL) continue;
    bool written = i >= GG_OPENCL_OBJECT_OUT;
    if (written ? memory_of(span)->writable : memory_of(span)->readable) continue;
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_group_create",
                   "kernels must %s the %s of %llu elements, but its memory object was created with %s; create it with "
                   "CL_MEM_READ_WRITE",
                   written ? "write" : "read", names[i], (unsigned long long)row->elements,
                   written ? "CL_MEM_READ_ONLY" : "CL_MEM_WRITE_ONLY");
  }
  return GG_OK;
}
