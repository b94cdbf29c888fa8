/* The reduction of a group: every block of every row, then a merge for rows with several blocks. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/parallel.h"

/* Merging a row takes about as long as reducing a few thousand elements. */
#define GG_MERGE_BATCH 16

typedef struct gg_reduction {
  const gg_cpu_kernels* kernels;
  const gg_cpu_table* table;
  gg_triple* summaries;
  float inverse_scale;
} gg_reduction;

/* One reduction block: where its gradients are and where its triple goes. */
typedef struct gg_block {
  const char* gradient;
  uint64_t elements;
  uint64_t bytes;
  gg_u32 type;
  gg_triple* triple;
} gg_block;

/* On entry `*row` is the row of an earlier block, on return the row of this one. */
static gg_block block_at(const gg_reduction* reduction, uint64_t index, uint32_t* row) {
  const gg_cpu_table* table = reduction->table;
  while (index >= table->first_block[*row + 1]) ++*row;
  const gg_device_row* from = &table->rows[*row];
  bool alone = table->first_block[*row + 1] - table->first_block[*row] == 1;
  uint64_t range = (uint64_t)GG_LANES * GG_TILE * from->tiles_per_lane;
  uint64_t first = (index - table->first_block[*row]) * range, left = from->elements - first;
  uint64_t element_bytes = from->gradient_type == GG_TYPE_F32 ? 4 : 2;
  uint64_t elements = left < range ? left : range;
  return (gg_block){.gradient = (const char*)(uintptr_t)from->gradient + first * element_bytes,
                    .elements = elements,
                    .bytes = elements * element_bytes,
                    .type = from->gradient_type,
                    .triple = alone ? &reduction->summaries[*row] : &table->partials[index]};
}

static void reduce_blocks(void* context, uint64_t begin, uint64_t end) {
  const gg_reduction* reduction = context;
  uint32_t row = gg_cpu_row_of(reduction->table->first_block, reduction->table->base.rows, begin);
  gg_block block = block_at(reduction, begin, &row);
  for (uint64_t index = begin; index < end; index++) {
    gg_block next = index + 1 < end ? block_at(reduction, index + 1, &row) : (gg_block){0};
    /* The kernel prefetches within a block; the start of the block is prefetched here, which matters for small tensors.
     */
    for (uint64_t line = 0; line < next.bytes && line < GG_CPU_PREFETCH; line += 64)
      __builtin_prefetch(next.gradient + line);
    reduction->kernels->reduce_block(block.gradient, block.type, block.elements, reduction->inverse_scale,
                                     block.triple);
    block = next;
  }
}

static void merge_rows(void* context, uint64_t begin, uint64_t end) {
  const gg_reduction* reduction = context;
  const gg_cpu_table* table = reduction->table;
  for (uint64_t row = begin; row < end; row++)
    reduction->kernels->merge_blocks(table->partials + table->first_block[row],
                                     (gg_u32)(table->first_block[row + 1] - table->first_block[row]),
                                     &reduction->summaries[row]);
}

gg_status gg_cpu_reduce(gg_device* device, gg_table* table, float inverse_scale, gg_error* error) {
  (void)error;
  const gg_cpu_device* cpu = (const gg_cpu_device*)device;
  const gg_cpu_table* own = (const gg_cpu_table*)table;
  gg_reduction reduction = {cpu->kernels, own, table->host_summaries, inverse_scale};
  uint64_t blocks = own->first_block[table->rows];
  gg_cpu_parallel(cpu->threads, blocks, own->blocks_of_batch, reduce_blocks, &reduction);
  gg_cpu_parallel(cpu->threads, own->rows_to_merge, GG_MERGE_BATCH, merge_rows, &reduction);
  return GG_OK;
}
