/* The statistics of a group: one triple per row, without waiting for the host. Not part of a build without the guard.
 */
#include <stdlib.h>

#include "backends/opencl/launch.h"
#include "backends/opencl/table.h"
#include "host/status.h"
#include "kernels/geometry.h"

#if GG_WITH_GUARD

static gg_status out_of_host_memory(gg_error* error) {
  return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_group_create", "out of host memory preparing a reduction");
}

/* The prefix of reduction blocks in the device's order, to be freed. */
static uint32_t* prefix_of_blocks(const gg_opencl_plan* plan) {
  uint32_t* first = malloc(((size_t)plan->count + 1) * sizeof *first);
  if (first == NULL) return NULL;
  first[0] = 0;
  for (uint32_t i = 0; i < plan->count; i++)
    first[i + 1] = first[i] + gg_reduce_blocks(plan->rows[plan->placed[i].row].elements);
  return first;
}

static gg_status find_runs(gg_opencl_table* table, const uint32_t* first, uint32_t rows, gg_error* error) {
  table->finalized = calloc(rows, sizeof *table->finalized);
  if (table->finalized == NULL) return out_of_host_memory(error);
  for (uint32_t i = 0, end = UINT32_MAX; i < rows; i++) { /* the last run ends at row `end` */
    if (first[i + 1] - first[i] <= 1) continue;
    if (i != end) table->finalized[table->finalized_count++].begin = i;
    table->finalized[table->finalized_count - 1].count++;
    end = i + 1;
  }
  return GG_OK;
}

static gg_status make_kernels(gg_opencl_device* device, gg_opencl_table* table, gg_error* error) {
  gg_cl_kernel kernel;
  gg_status status = GG_OK;
  for (uint32_t b = 0; status == GG_OK && b < table->reduction_count; b++)
    status = gg_opencl_table_kernel(device, table, table->reductions[b].variant, GG_OPENCL_REDUCE, &kernel, error);
  if (status == GG_OK && table->finalized_count > 0)
    status = gg_opencl_table_kernel(device, table, device->variant, GG_OPENCL_FINALIZE, &kernel, error);
  return status;
}

static gg_status prepare(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_plan* plan,
                         const uint32_t* first, gg_error* error) {
  const uint64_t rows = plan->count;
  gg_status status =
      gg_opencl_batches(plan, GG_OPENCL_OBJECT_GRADIENT + 1, first, &table->reductions, &table->reduction_count, error);
  if (status == GG_OK) status = find_runs(table, first, plan->count, error);
  if (status == GG_OK) status = make_kernels(device, table, error);
  if (status == GG_OK)
    status = gg_opencl_table_memory(device, table, first, (rows + 1) * sizeof *first, &table->first_block, error);
  if (status == GG_OK)
    status = gg_opencl_table_memory(device, table, NULL, first[rows] * sizeof(gg_triple), &table->partials, error);
  if (status == GG_OK)
    status = gg_opencl_table_memory(device, table, NULL, rows * sizeof(gg_triple), &table->summaries, error);
  if (status != GG_OK) return status;
  table->summaries->order = table->order;
  table->base.summaries = &table->summaries->base;
  table->base.reduction_launches = table->reduction_count + table->finalized_count;
  return GG_OK;
}

gg_status gg_opencl_reduce_prepare(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_plan* plan,
                                   gg_error* error) {
  table->base.host_summaries = calloc(plan->count, sizeof(gg_triple));
  uint32_t* first = prefix_of_blocks(plan);
  gg_status status = table->base.host_summaries != NULL && first != NULL ? prepare(device, table, plan, first, error)
                                                                         : out_of_host_memory(error);
  free(first);
  return status;
}

static gg_status reduce_batch(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_batch* batch,
                              float inverse_scale, gg_error* error) {
  gg_cl_kernel kernel;
  gg_status status = gg_opencl_table_kernel(device, table, batch->variant, GG_OPENCL_REDUCE, &kernel, error);
  if (status != GG_OK) return status;
  gg_opencl_call call = gg_opencl_call_begin(device, kernel, gg_opencl_kernel_name(GG_OPENCL_REDUCE));
  gg_opencl_arg_scratch(&call, table->rows);
  gg_opencl_arg_scratch(&call, table->first_block);
  gg_opencl_arg(&call, &batch->begin, sizeof batch->begin);
  gg_opencl_arg(&call, &batch->end, sizeof batch->end);
  gg_opencl_arg(&call, &inverse_scale, sizeof inverse_scale);
  gg_opencl_arg_scratch(&call, table->partials);
  gg_opencl_arg_scratch(&call, table->summaries);
  if (batch->variant == GG_OPENCL_ARENA) gg_opencl_arg_object(&call, &batch->objects[GG_OPENCL_OBJECT_GRADIENT]);
  return gg_opencl_launch(&call, batch->blocks, NULL, error);
}

/* Uses no tensor, so either variant of the kernel works; the device's own is always built. */
static gg_status finalize_run(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_run* run,
                              gg_error* error) {
  gg_cl_kernel kernel;
  gg_status status = gg_opencl_table_kernel(device, table, device->variant, GG_OPENCL_FINALIZE, &kernel, error);
  if (status != GG_OK) return status;
  gg_opencl_call call = gg_opencl_call_begin(device, kernel, gg_opencl_kernel_name(GG_OPENCL_FINALIZE));
  gg_opencl_arg_scratch(&call, table->first_block);
  gg_opencl_arg(&call, &run->begin, sizeof run->begin);
  gg_opencl_arg_scratch(&call, table->partials);
  gg_opencl_arg_scratch(&call, table->summaries);
  return gg_opencl_launch(&call, run->count, NULL, error);
}

gg_status gg_opencl_reduce(gg_device* owner, gg_table* reduced, float inverse_scale, gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  gg_opencl_table* table = gg_opencl_table_of(reduced);
  gg_status status = GG_OK;
  for (uint32_t b = 0; status == GG_OK && b < table->reduction_count; b++)
    status = reduce_batch(device, table, &table->reductions[b], inverse_scale, error);
  for (uint32_t r = 0; status == GG_OK && r < table->finalized_count; r++)
    status = finalize_run(device, table, &table->finalized[r], error);
  return status;
}

#endif
