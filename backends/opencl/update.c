/* The fused AdamW update of a group. */
#include <stdlib.h>

#include "backends/opencl/failure.h"
#include "backends/opencl/launch.h"
#include "backends/opencl/profile.h"
#include "backends/opencl/table.h"
#include "host/status.h"
#include "kernels/geometry.h"

/* The prefix of update blocks in the device's order, to be freed. */
static uint32_t* prefix_of_blocks(const gg_opencl_plan* plan) {
  uint32_t* first = malloc(((size_t)plan->count + 1) * sizeof *first);
  if (first == NULL) return NULL;
  first[0] = 0;
  for (uint32_t i = 0; i < plan->count; i++)
    first[i + 1] = first[i] + (uint32_t)gg_update_blocks(plan->rows[plan->placed[i].row].elements);
  return first;
}

static gg_status prepare(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_plan* plan,
                         const uint32_t* first, gg_error* error) {
  const uint64_t rows = plan->count;
  gg_status status = gg_opencl_batches(plan, GG_OPENCL_OBJECTS, first, &table->updates, &table->update_count, error);
  gg_cl_kernel kernel;
  for (uint32_t b = 0; status == GG_OK && b < table->update_count; b++)
    status = gg_opencl_table_kernel(device, table, table->updates[b].variant, GG_OPENCL_UPDATE, &kernel, error);
  if (status == GG_OK)
    status =
        gg_opencl_table_memory(device, table, first, (rows + 1) * sizeof *first, &table->first_update_block, error);
  if (status == GG_OK)
    status = gg_opencl_table_memory(device, table, NULL, rows * sizeof(gg_bias), &table->bias, error);
  for (uint64_t i = 0; i < rows; i++)
    table->in_place |= plan->rows[i].in[GG_STATE_PARAMETER].memory == plan->rows[i].out[GG_STATE_PARAMETER].memory;
  table->base.update_launches = table->update_count;
  return status;
}

gg_status gg_opencl_update_prepare(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_plan* plan,
                                   gg_error* error) {
  table->host_bias = calloc(plan->count, sizeof *table->host_bias);
  uint32_t* first = prefix_of_blocks(plan);
  gg_status status = table->host_bias != NULL && first != NULL ? prepare(device, table, plan, first, error)
                                                               : gg_fail(error, GG_ERROR_NO_MEMORY, "gg_group_create",
                                                                         "out of host memory preparing an update");
  free(first);
  return status;
}

/* Queues the copy of the rows' bias corrections. The host's copy of the step before has long been read, as a rule. */
static gg_status send_bias(gg_opencl_device* device, gg_opencl_table* table, const gg_bias* bias, gg_error* error) {
  if (table->bias_copied != NULL) {
    gg_status status =
        gg_opencl_wait_event(device, table->bias_copied, "the bias corrections of the step before", error);
    if (status != GG_OK) return status; /* the copy may still be running: a retry waits again */
    device->api.clReleaseEvent(table->bias_copied);
    table->bias_copied = NULL;
  }
  for (uint32_t i = 0; i < table->base.rows; i++)
    table->host_bias[i] = bias[table->order != NULL ? table->order[i] : i];
  return gg_opencl_write(device, table->bias, 0, table->host_bias, table->base.rows * sizeof *bias, &table->bias_copied,
                         error);
}

static gg_status update_batch(gg_opencl_device* device, gg_opencl_table* table, const gg_opencl_batch* batch,
                              const gg_update* update, gg_cl_event* done, gg_error* error) {
  gg_cl_kernel kernel;
  gg_status status = gg_opencl_table_kernel(device, table, batch->variant, GG_OPENCL_UPDATE, &kernel, error);
  if (status != GG_OK) return status;
  const gg_u32 uniform = update->uniform;
  gg_opencl_call call = gg_opencl_call_begin(device, kernel, gg_opencl_kernel_name(GG_OPENCL_UPDATE));
  gg_opencl_arg_scratch(&call, table->rows);
  gg_opencl_arg_scratch(&call, table->first_update_block);
  gg_opencl_arg(&call, &batch->begin, sizeof batch->begin);
  gg_opencl_arg(&call, &batch->end, sizeof batch->end);
  gg_opencl_arg(&call, &update->constants, sizeof update->constants);
  gg_opencl_arg_scratch(&call, table->bias);
  gg_opencl_arg(&call, &uniform, sizeof uniform);
  if (batch->variant == GG_OPENCL_ARENA)
    for (uint32_t i = 0; i < GG_OPENCL_OBJECTS; i++) gg_opencl_arg_object(&call, &batch->objects[i]);
  return gg_opencl_launch(&call, batch->blocks, done, error);
}

/* If only some of the launches are queued, part of the group has been updated. The group can no longer be used. */
static gg_status half_updated(gg_opencl_device* device, const gg_opencl_table* table, uint32_t queued,
                              gg_error* error) {
  device->base.lost = true;
  /* A copy, because the error is about to be overwritten. */
  const gg_error cause = error != NULL ? *error : (gg_error)GG_ERROR_INIT;
  return gg_fail_native(error, GG_ERROR_DEVICE_LOST, cause.native_code, cause.native_name, cause.function,
                        "only %u of the %u launches of an update could be queued (%.300s), so the group is partly "
                        "updated in place: destroy the context and start again from saved state",
                        queued, table->update_count, cause.message);
}

gg_status gg_opencl_update(gg_device* owner, gg_table* updated, const gg_update* update, gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  gg_opencl_table* table = gg_opencl_table_of(updated);
  gg_status status = GG_OK;
  if (!update->uniform && table->base.rows > 0) status = send_bias(device, table, update->bias, error);
  gg_cl_event done = NULL;
  for (uint32_t b = 0; status == GG_OK && b < table->update_count; b++) {
    bool last = b + 1 == table->update_count;
    status = update_batch(device, table, &table->updates[b], update, last ? &done : NULL, error);
    if (status != GG_OK && b > 0 && table->in_place) status = half_updated(device, table, b, error);
  }
  if (status != GG_OK) return status;
  if (table->update_done != NULL) device->api.clReleaseEvent(table->update_done);
  table->update_done = done;
  /* The work is already queued: if this fails, waiting submits it too, and reports the error. */
  device->api.clFlush(device->queue);
  return GG_OK;
}

gg_status gg_opencl_wait_update(gg_device* owner, gg_table* updated, gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  const gg_opencl_table* table = gg_opencl_table_of(updated);
  if (table->update_done == NULL) return GG_OK;
  gg_status status = gg_opencl_wait_event(device, table->update_done, "an update", error);
  gg_opencl_profile_tell(device);
  return status;
}
