/* The separate unscale-and-clip pass of the unfused baseline that the benchmark compares with. */
#include "backends/opencl/launch.h"
#include "backends/opencl/table.h"
#include "host/status.h"

gg_status gg_opencl_unfused_clip(gg_device* owner, gg_table* unfused, const gg_update_constants* constants,
                                 gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  gg_opencl_table* table = gg_opencl_table_of(unfused);
  if (!table->base.updates)
    return gg_fail(error, GG_ERROR_STATE, "gg_opencl_unfused_clip", "a table for statistics only has no output");
  for (uint32_t b = 0; b < table->update_count; b++) {
    const gg_opencl_batch* batch = &table->updates[b];
    gg_cl_kernel kernel;
    gg_status status = gg_opencl_table_kernel(device, table, batch->variant, GG_OPENCL_UNFUSED_CLIP, &kernel, error);
    if (status != GG_OK) return status;
    gg_opencl_call call = gg_opencl_call_begin(device, kernel, gg_opencl_kernel_name(GG_OPENCL_UNFUSED_CLIP));
    gg_opencl_arg_scratch(&call, table->rows);
    gg_opencl_arg_scratch(&call, table->first_update_block);
    gg_opencl_arg(&call, &batch->begin, sizeof batch->begin);
    gg_opencl_arg(&call, &batch->end, sizeof batch->end);
    gg_opencl_arg(&call, constants, sizeof *constants);
    if (batch->variant == GG_OPENCL_ARENA) {
      gg_opencl_arg_object(&call, &batch->objects[GG_OPENCL_OBJECT_GRADIENT]);
      gg_opencl_arg_object(&call, &batch->objects[GG_OPENCL_OBJECT_OUT + GG_STATE_PARAMETER]);
    }
    status = gg_opencl_launch(&call, batch->blocks, NULL, error);
    if (status != GG_OK) return status;
  }
  return GG_OK;
}
