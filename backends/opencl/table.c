#include "backends/opencl/table.h"

#include <stdlib.h>
#include <string.h>

#include "backends/opencl/failure.h"
#include "backends/opencl/plan.h"
#include "backends/opencl/program.h"
#include "host/status.h"

#define GG_MAX_WORK_GROUPS INT32_MAX /* of one launch, the limit of drivers */

static gg_status out_of_host_memory(gg_error* error) {
  return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_group_create", "out of host memory making a group's table");
}

const char* gg_opencl_kernel_name(gg_opencl_kernel which) {
  static const char* const names[GG_OPENCL_KERNELS] = {"gg_reduce", "gg_finalize", "gg_update", "gg_unfused_clip"};
  return names[which];
}

/* Names the SVM that the kernel reaches through addresses. It stays named: the list belongs to the kernel object. */
static gg_status name_allocations(gg_opencl_device* device, const gg_opencl_table* table, gg_cl_kernel kernel,
                                  gg_error* error) {
  if (table->allocation_count == 0) return GG_OK;
  gg_cl_int code =
      device->api.clSetKernelExecInfo(kernel, GG_CL_KERNEL_EXEC_INFO_SVM_PTRS,
                                      table->allocation_count * sizeof *table->allocations, table->allocations);
  if (code == GG_CL_SUCCESS) return GG_OK;
  return gg_opencl_fail(device, error, code, "clSetKernelExecInfo",
                        "naming the %u allocations of shared virtual memory that a group uses",
                        table->allocation_count);
}

gg_status gg_opencl_table_kernel(gg_opencl_device* device, gg_opencl_table* table, gg_opencl_variant variant,
                                 gg_opencl_kernel which, gg_cl_kernel* kernel, gg_error* error) {
  gg_cl_kernel* kept = &table->kernels[variant][which];
  *kernel = *kept;
  if (*kept != NULL) return GG_OK;
  gg_status status = gg_opencl_program(device, variant, error);
  if (status != GG_OK) return status;

  const char* name = gg_opencl_kernel_name(which);
  gg_cl_int code = GG_CL_SUCCESS;
  gg_cl_kernel made = device->api.clCreateKernel(device->programs[variant], name, &code);
  if (made == NULL || code != GG_CL_SUCCESS)
    return gg_opencl_fail(device, error, code, "clCreateKernel", "making kernel %s", name);
  size_t limit = 0;
  code =
      device->api.clGetKernelWorkGroupInfo(made, device->id, GG_CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit, NULL);
  if (code != GG_CL_SUCCESS)
    status = gg_opencl_fail(device, error, code, "clGetKernelWorkGroupInfo", "querying kernel %s", name);
  else if (limit < GG_LANES)
    status = gg_fail(error, GG_ERROR_UNSUPPORTED, "clGetKernelWorkGroupInfo",
                     "%s (%s) can run kernel %s with at most %zu work-items in a group, %d are needed",
                     device->base.info.id, device->base.info.name, name, limit, GG_LANES);
  else if (variant == GG_OPENCL_SVM)
    status = name_allocations(device, table, made, error);
  if (status != GG_OK) {
    device->api.clReleaseKernel(made);
    return status;
  }
  *kernel = *kept = made;
  return GG_OK;
}

gg_status gg_opencl_table_memory(gg_opencl_device* device, gg_opencl_table* table, const void* contents, uint64_t bytes,
                                 gg_opencl_memory** memory, gg_error* error) {
  gg_status status = gg_opencl_scratch(device, bytes, memory, error);
  if (status != GG_OK) return status;
  table->base.scratch_bytes += bytes;
  return contents != NULL ? gg_opencl_write(device, *memory, 0, contents, bytes, NULL, error) : GG_OK;
}

static bool same_launch(const gg_opencl_placed* a, const gg_opencl_placed* b, uint32_t compared) {
  if (a->variant != b->variant) return false;
  for (uint32_t i = 0; i < compared; i++)
    if (a->objects[i].mem != b->objects[i].mem || a->objects[i].svm != b->objects[i].svm) return false;
  return true;
}

gg_status gg_opencl_batches(const gg_opencl_plan* plan, uint32_t compared, const uint32_t* first,
                            gg_opencl_batch** batches, uint32_t* count, gg_error* error) {
  const gg_opencl_placed* placed = plan->placed;
  uint32_t needed = 1;
  for (uint32_t i = 1; i < plan->count; i++) needed += !same_launch(&placed[i - 1], &placed[i], compared);
  gg_opencl_batch* made = calloc(needed, sizeof *made);
  if (made == NULL) return out_of_host_memory(error);
  *batches = made;
  *count = needed;
  uint32_t at = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    if (i == 0 || !same_launch(&placed[i - 1], &placed[i], compared)) {
      gg_opencl_batch* batch = &made[at++];
      batch->variant = placed[i].variant;
      batch->begin = i;
      memcpy(batch->objects, placed[i].objects, sizeof batch->objects);
    }
    made[at - 1].end = i + 1;
    made[at - 1].blocks = first[i + 1] - first[made[at - 1].begin];
  }
  return GG_OK;
}

/* Blocks are counted in 32 bits within a table. */
static gg_status check_size(const gg_row* rows, uint32_t count, gg_error* error) {
  uint64_t blocks = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t more = rows[i].elements / GG_UPDATE_ELEMENTS + 1;
    if (more > GG_MAX_WORK_GROUPS || blocks + more > GG_MAX_WORK_GROUPS)
      return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_group_create",
                     "the group has more than 2^31 blocks of %d elements; split it into groups", GG_UPDATE_ELEMENTS);
    blocks += more;
  }
  return GG_OK;
}

/* The caller's row for each row, if the order differs. */
static gg_status keep_order(gg_opencl_table* table, const gg_opencl_plan* plan, gg_error* error) {
  bool moved = false;
  for (uint32_t i = 0; i < plan->count; i++) moved |= plan->placed[i].row != i;
  if (!moved) return GG_OK;
  table->order = malloc(plan->count * sizeof *table->order);
  if (table->order == NULL) return out_of_host_memory(error);
  for (uint32_t i = 0; i < plan->count; i++) table->order[i] = plan->placed[i].row;
  return GG_OK;
}

static gg_status upload_rows(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_plan* plan,
                             gg_error* error) {
  gg_device_row* rows = malloc(plan->count * sizeof *rows);
  if (rows == NULL) return out_of_host_memory(error);
  for (uint32_t i = 0; i < plan->count; i++) {
    const gg_opencl_placed* placed = &plan->placed[i];
    rows[i] = gg_opencl_device_row(&plan->rows[placed->row], placed->variant, table->base.amsgrad);
  }
  gg_status status = gg_opencl_table_memory(device, table, rows, plan->count * sizeof *rows, &table->rows, error);
  free(rows);
  return status;
}

static gg_status fill_table(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_plan* plan,
                            gg_error* error) {
  gg_status status = keep_order(table, plan, error);
  if (status == GG_OK) status = gg_opencl_list_allocations(plan, &table->allocations, &table->allocation_count, error);
  if (status == GG_OK) status = upload_rows(device, table, plan, error);
#if GG_WITH_GUARD
  if (status == GG_OK) status = gg_opencl_reduce_prepare(device, table, plan, error);
#endif
  if (status == GG_OK && table->base.updates) status = gg_opencl_update_prepare(device, table, plan, error);
  return status;
}

gg_status gg_opencl_table_create(gg_device* owner, const gg_row* rows, uint32_t count, bool amsgrad, bool updates,
                                 gg_table** created, gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  gg_status status = check_size(rows, count, error);
  for (uint32_t i = 0; i < count && status == GG_OK; i++) status = gg_opencl_check_access(&rows[i], error);
  if (status != GG_OK) return status;
  gg_opencl_table* table = calloc(1, sizeof *table);
  gg_opencl_placed* placed = malloc((count > 0 ? count : 1) * sizeof *placed);
  if (table == NULL || placed == NULL) {
    free(table);
    free(placed);
    return out_of_host_memory(error);
  }
  table->base.rows = count;
  table->base.amsgrad = amsgrad;
  table->base.updates = updates;
  gg_opencl_place_rows(rows, count, placed);
  const gg_opencl_plan plan = {rows, placed, count};
  if (count > 0) status = fill_table(device, table, &plan, error);
  free(placed);
  if (status != GG_OK) {
    gg_opencl_table_free(owner, &table->base);
    return status;
  }
  *created = &table->base;
  return GG_OK;
}

static void release(gg_opencl_device* device, gg_opencl_memory* memory) {
  if (memory != NULL) gg_opencl_release(&device->base, &memory->base);
}

void gg_opencl_table_free(gg_device* owner, gg_table* freed) {
  if (freed == NULL) return;
  gg_opencl_device* device = gg_opencl_of(owner);
  gg_opencl_table* table = gg_opencl_table_of(freed);
  const gg_opencl_api* api = &device->api;
  /* After a fault commands may still read and write the table's host memory, which is freed here. */
  api->clFinish(device->queue);
  if (table->bias_copied != NULL) api->clReleaseEvent(table->bias_copied);
  if (table->update_done != NULL) api->clReleaseEvent(table->update_done);
  for (int variant = 0; variant < GG_OPENCL_VARIANTS; variant++)
    for (int which = 0; which < GG_OPENCL_KERNELS; which++)
      if (table->kernels[variant][which] != NULL) api->clReleaseKernel(table->kernels[variant][which]);
  gg_opencl_memory* const memories[] = {table->rows,      table->first_block,        table->partials,
                                        table->summaries, table->first_update_block, table->bias};
  for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) release(device, memories[i]);
  free(table->base.host_summaries);
  free(table->order);
  free(table->allocations);
  free(table->reductions);
  free(table->finalized);
  free(table->updates);
  free(table->host_bias);
  free(table);
}
