/* The device table of a group, and the launches that it needs. */
#ifndef GG_BACKENDS_OPENCL_TABLE_H
#define GG_BACKENDS_OPENCL_TABLE_H

#include "backends/opencl/memory.h"

typedef enum gg_opencl_kernel {
  GG_OPENCL_REDUCE = 0,
  GG_OPENCL_FINALIZE = 1,
  GG_OPENCL_UPDATE = 2,
  GG_OPENCL_UNFUSED_CLIP = 3
} gg_opencl_kernel;
#define GG_OPENCL_KERNELS 4

/* The memory objects of one row, in the order of the update kernel's arguments. */
#define GG_OPENCL_OBJECT_GRADIENT 0
#define GG_OPENCL_OBJECT_IN       1
#define GG_OPENCL_OBJECT_OUT      (GG_OPENCL_OBJECT_IN + GG_STATES)
#define GG_OPENCL_OBJECT_MODEL    (GG_OPENCL_OBJECT_OUT + GG_STATES)
#define GG_OPENCL_OBJECTS         (GG_OPENCL_OBJECT_MODEL + 1)

/* Rows [begin, end) of the device's order that one launch covers. */
typedef struct gg_opencl_batch {
  gg_opencl_variant variant; /* which variant of the kernels: rows entirely in shared virtual memory use `svm` */
  uint32_t begin, end;
  uint32_t blocks;
  gg_opencl_object objects[GG_OPENCL_OBJECTS]; /* `arena`: what the offsets are in */
} gg_opencl_batch;

/* Consecutive rows with more than one reduction block, which one finalize launch covers. Sorting by objects can
 * separate such rows. */
typedef struct gg_opencl_run {
  uint32_t begin, count;
} gg_opencl_run;

typedef struct gg_opencl_table {
  gg_table base;
  uint32_t* order; /* the caller's row for each row of the table, which is sorted by launch; NULL: the same order */
  gg_cl_kernel kernels[GG_OPENCL_VARIANTS]
                      [GG_OPENCL_KERNELS]; /* of this table only: they have its list of SVM allocations */
  void** allocations;                      /* SVM that kernels access through addresses in the table */
  uint32_t allocation_count;
  gg_opencl_memory* rows;

  gg_opencl_batch* reductions; /* reduce.c */
  uint32_t reduction_count;
  gg_opencl_run* finalized;
  uint32_t finalized_count;
  gg_opencl_memory* first_block;
  gg_opencl_memory* partials;
  gg_opencl_memory* summaries;

  gg_opencl_batch* updates; /* update.c */
  uint32_t update_count;
  bool in_place;
  gg_opencl_memory* first_update_block;
  gg_opencl_memory* bias;
  gg_bias* host_bias;      /* in the device's order; being copied until bias_copied */
  gg_cl_event bias_copied; /* NULL: not being copied */
  gg_cl_event update_done; /* of the last update's last launch; NULL before the first update */
} gg_opencl_table;

static inline gg_opencl_table* gg_opencl_table_of(gg_table* table) { return (gg_opencl_table*)table; }

/* A row in the device's order. */
typedef struct gg_opencl_placed {
  uint32_t row;              /* the caller's */
  gg_opencl_variant variant; /* `svm`: everything has an address; `objects` are then all zero */
  gg_opencl_object objects[GG_OPENCL_OBJECTS];
} gg_opencl_placed;

/* A table that is being created. */
typedef struct gg_opencl_plan {
  const gg_row* rows;             /* the caller's, in the caller's order */
  const gg_opencl_placed* placed; /* in the device's order */
  uint32_t count;
} gg_opencl_plan;

gg_status gg_opencl_table_create(gg_device* device, const gg_row* rows, uint32_t count, bool amsgrad, bool updates,
                                 gg_table** table, gg_error* error);
void gg_opencl_table_free(gg_device* device, gg_table* table);

/* Splits the plan into launches: a new one where the first `compared` objects of a row differ from those of the
 * previous row. `first` has the prefix sums of blocks, rows + 1 items. */
gg_status gg_opencl_batches(const gg_opencl_plan* plan, uint32_t compared, const uint32_t* first,
                            gg_opencl_batch** batches, uint32_t* count, gg_error* error);

/* Device memory of the table, filled with `contents`; NULL: undefined. Counted in scratch_bytes. */
gg_status gg_opencl_table_memory(gg_opencl_device* device, gg_opencl_table* table, const void* contents, uint64_t bytes,
                                 gg_opencl_memory** memory, gg_error* error);

/* The table's own kernel, created when first needed. */
gg_status gg_opencl_table_kernel(gg_opencl_device* device, gg_opencl_table* table, gg_opencl_variant variant,
                                 gg_opencl_kernel which, gg_cl_kernel* kernel, gg_error* error);
const char* gg_opencl_kernel_name(gg_opencl_kernel which);

/* The table's parts for reducing (a build with the guard) and updating; freed by gg_opencl_table_free. */
gg_status gg_opencl_reduce_prepare(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_plan* plan,
                                   gg_error* error);
gg_status gg_opencl_update_prepare(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_plan* plan,
                                   gg_error* error);

gg_status gg_opencl_reduce(gg_device* device, gg_table* table, float inverse_scale, gg_error* error);
gg_status gg_opencl_update(gg_device* device, gg_table* table, const gg_update* update, gg_error* error);
gg_status gg_opencl_wait_update(gg_device* device, gg_table* table, gg_error* error);
gg_status gg_opencl_unfused_clip(gg_device* device, gg_table* table, const gg_update_constants* constants,
                                 gg_error* error);

#endif
