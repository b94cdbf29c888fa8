/* The table of a group: rows with absolute addresses, and prefix sums of blocks and chunks. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "host/status.h"
#include "kernels/geometry.h"

/* If a group's outputs are larger than this, they are no longer in a cache when they are next read. */
#define GG_STREAM_FROM ((uint64_t)32 << 20)

/* A batch has about this many elements, so that small groups stay on the calling thread. */
#define GG_REDUCE_BATCH 65536u
#define GG_UPDATE_BATCH 16384u

/* The table, its summaries and its arrays are one allocation. */
typedef struct gg_cpu_table_block {
  gg_cpu_table table;
  gg_cpu_memory summaries;
} gg_cpu_table_block;

/* A build without the guard reduces nothing. */
static uint32_t blocks_of(uint64_t elements) { return GG_WITH_GUARD ? gg_reduce_blocks(elements) : 0; }

static uint64_t chunks_of(uint64_t elements) { return (elements + GG_CPU_CHUNK - 1) / GG_CPU_CHUNK; }

uint32_t gg_cpu_row_of(const uint64_t* first, uint32_t rows, uint64_t item) {
  uint32_t low = 0, high = rows;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (first[middle] <= item)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static uint64_t address_of(gg_span span) {
  return span.memory != NULL ? (uint64_t)(uintptr_t)(((gg_cpu_memory*)span.memory)->bytes + span.offset) : 0;
}

static void fill_row(gg_device_row* row, const gg_row* from, bool amsgrad) {
  *row = (gg_device_row){.elements = from->elements,
                         .gradient = address_of(from->gradient),
                         .model = address_of(from->model_out),
                         .gradient_type = (gg_u32)from->gradient_dtype,
                         .model_type = from->model_out.memory != NULL ? (gg_u32)from->model_dtype : 0,
                         .tiles_per_lane = gg_tiles_per_lane(from->elements),
                         .flags = amsgrad ? GG_ROW_AMSGRAD : 0};
  gg_u64 states = 0;
  for (int state = 0; state < GG_STATES; state++) {
    row->in[state] = address_of(from->in[state]);
    row->out[state] = address_of(from->out[state]);
    states |= row->in[state] | row->out[state];
  }
  if (row->gradient % 16 == 0) row->flags |= GG_ROW_ALIGNED_GRADIENT;
  if (states % 16 == 0 && row->model % 8 == 0) row->flags |= GG_ROW_ALIGNED_STATES;
}

/* Wrapped memory may start at any address, but elements must be aligned. */
static gg_status check_alignment(const gg_device_row* row, uint32_t index, gg_error* error) {
  gg_u64 states = 0;
  for (int state = 0; state < GG_STATES; state++) states |= row->in[state] | row->out[state];
  bool gradient = row->gradient % (row->gradient_type == GG_TYPE_F32 ? 4 : 2) == 0;
  if (gradient && states % 4 == 0 && row->model % 2 == 0) return GG_OK;
  return gg_fail(error, GG_ERROR_ARGUMENT, "gg_group_create",
                 "%s of tensor %u (the largest being 0) is not on a multiple of its element size: wrap memory that is "
                 "aligned to its elements",
                 !gradient ? "the gradient" : "a state or model copy", index);
}

static bool writes_elsewhere(const gg_device_row* row) {
  return row->out[GG_STATE_PARAMETER] != row->in[GG_STATE_PARAMETER];
}

static uint64_t batch_of(uint64_t items, uint64_t elements, uint64_t batch_elements) {
  uint64_t average = items > 0 ? elements / items : 1;
  return average > 0 && average < batch_elements ? batch_elements / average : 1;
}

static gg_status fill_table(gg_cpu_table* table, const gg_row* rows, gg_error* error) {
  uint64_t written = 0, elements = 0;
  table->first_block[0] = table->first_chunk[0] = 0;
  for (uint32_t i = 0; i < table->base.rows; i++) {
    gg_device_row* row = &table->rows[i];
    fill_row(row, &rows[i], table->base.amsgrad);
    gg_status status = check_alignment(row, i, error);
    if (status != GG_OK) return status;
    uint32_t blocks = blocks_of(row->elements);
    table->first_block[i + 1] = table->first_block[i] + blocks;
    table->first_chunk[i + 1] = table->first_chunk[i] + chunks_of(row->elements);
    elements += row->elements;
    if (blocks > 1) table->rows_to_merge = i + 1;
    uint64_t state_bytes = writes_elsewhere(row) ? 4 * (table->base.amsgrad ? 4 : 3) : 0;
    written += row->elements * (state_bytes + (row->model_type != 0 ? 2 : 0));
  }
  table->blocks_of_batch = batch_of(table->first_block[table->base.rows], elements, GG_REDUCE_BATCH);
  table->chunks_of_batch = batch_of(table->first_chunk[table->base.rows], elements, GG_UPDATE_BATCH);
  table->stream = written >= GG_STREAM_FROM;
  return GG_OK;
}

gg_status gg_cpu_table_make(gg_device* device, const gg_row* rows, uint32_t count, bool amsgrad, bool updates,
                            gg_table** table, gg_error* error) {
  (void)device;
  uint64_t blocks = 0;
  for (uint32_t i = 0; i < count; i++) blocks += blocks_of(rows[i].elements);
  size_t row_bytes = count * sizeof(gg_device_row), prefix_bytes = ((size_t)count + 1) * sizeof(uint64_t);
  size_t partial_bytes = (size_t)blocks * sizeof(gg_triple), summary_bytes = count * sizeof(gg_triple);
  size_t scratch = row_bytes + 2 * prefix_bytes + partial_bytes + summary_bytes;
  gg_cpu_table_block* made = calloc(1, sizeof *made + scratch);
  if (made == NULL)
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_group_create", "out of host memory making a table of %u tensors",
                   count);

  unsigned char* place = (unsigned char*)(made + 1);
  gg_cpu_table* cpu = &made->table;
  cpu->rows = (gg_device_row*)(void*)place;
  cpu->first_block = (uint64_t*)(void*)(place += row_bytes);
  cpu->first_chunk = (uint64_t*)(void*)(place += prefix_bytes);
  cpu->partials = (gg_triple*)(void*)(place += prefix_bytes);
  made->summaries.bytes = place += partial_bytes;
  made->summaries.base = (gg_memory){.bytes = summary_bytes, .base = (uint64_t)(uintptr_t)place};
  cpu->base = (gg_table){.rows = count,
                         .amsgrad = amsgrad,
                         .updates = updates,
                         .summaries = &made->summaries.base,
                         .host_summaries = (gg_triple*)(void*)place,
                         .scratch_bytes = scratch};
  gg_status status = fill_table(cpu, rows, error);
  if (status != GG_OK) {
    free(made);
    return status;
  }
  cpu->base.reduction_launches = (blocks > 0) + (cpu->rows_to_merge > 0);
  cpu->base.update_launches = updates && count > 0;
  *table = &cpu->base;
  return GG_OK;
}

void gg_cpu_table_free(gg_device* device, gg_table* table) {
  (void)device;
  free(table);
}
