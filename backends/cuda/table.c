#include "backends/cuda/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/status.h"
#include "kernels/geometry.h"

#define GG_MAX_GRID 2147483647u /* blocks of one launch */

/* The layout of a table in its device allocation, and the part that is uploaded when it is created. */
typedef struct gg_cuda_layout {
  size_t first_block, first_update_block, uploaded; /* the rows are at 0; `uploaded` bytes from there */
  size_t bias, partials, summaries, bytes;
} gg_cuda_layout;

static size_t aligned(size_t bytes) { return (bytes + 255) & ~(size_t)255; }

static gg_cuda_layout lay_out(const gg_cuda_table* t, bool mapped) {
  size_t rows = t->table.rows;
  gg_cuda_layout at = {0};
  at.first_block = aligned(rows * sizeof(gg_device_row));
  at.first_update_block = at.first_block + aligned((rows + 1) * sizeof(uint32_t));
  at.uploaded = at.first_update_block + (t->table.updates ? aligned((rows + 1) * sizeof(uint32_t)) : 0);
  at.bias = at.uploaded;
  at.partials = at.bias + (t->table.updates ? aligned(rows * sizeof(gg_bias)) : 0);
  at.summaries = at.partials + (GG_WITH_GUARD ? aligned(t->reduce_blocks * sizeof(gg_triple)) : 0);
  at.bytes = at.summaries + (mapped ? 0 : aligned(rows * sizeof(gg_triple)));
  return at;
}

static uint64_t address_of(gg_span span) {
  return span.memory ? gg_cuda_memory_of(span.memory)->address + span.offset : 0;
}

static uint64_t element_bytes(gg_dtype dtype) { return dtype == GG_F32 ? 4 : 2; }

static gg_status fill_row(const gg_row* row, bool amsgrad, bool updates, gg_device_row* out, gg_error* error) {
  *out = (gg_device_row){.elements = row->elements,
                         .gradient = address_of(row->gradient),
                         .gradient_type = (uint32_t)row->gradient_dtype,
                         .tiles_per_lane = gg_tiles_per_lane(row->elements),
                         .flags = amsgrad ? GG_ROW_AMSGRAD : 0};
  uint64_t misplaced = out->gradient % element_bytes(row->gradient_dtype);
  uint64_t bits16 = 0; /* low bits that prevent 16-byte accesses to the states */
  for (int s = 0; updates && s < GG_STATES; s++) {
    if (s == GG_STATE_MAX_EXP_AVG_SQ && !amsgrad) continue;
    out->in[s] = address_of(row->in[s]);
    out->out[s] = address_of(row->out[s]);
    misplaced |= (out->in[s] | out->out[s]) % sizeof(float);
    bits16 |= (out->in[s] | out->out[s]) % 16;
  }
  if (updates && row->model_out.memory) {
    out->model = address_of(row->model_out);
    out->model_type = (uint32_t)row->model_dtype;
    misplaced |= out->model % element_bytes(row->model_dtype);
    bits16 |= out->model % 8;
  }
  if (misplaced)
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_cuda_table",
                   "a tensor of %" PRIu64
                   " elements starts at a device address that is no multiple of its element's "
                   "size: wrap memory that is aligned for its dtype",
                   row->elements);
  if (out->gradient % 16 == 0) out->flags |= GG_ROW_ALIGNED_GRADIENT;
  if (updates && bits16 == 0) out->flags |= GG_ROW_ALIGNED_STATES;
  return GG_OK;
}

/* Counts reduction and update blocks, before anything is allocated for them. */
static gg_status count_blocks(gg_cuda_table* t, const gg_row* rows, gg_error* error) {
  uint64_t reduce = 0, update = 0;
  for (uint32_t i = 0; i < t->table.rows; i++) {
    uint32_t blocks = gg_reduce_blocks(rows[i].elements);
    reduce += blocks;
    if (blocks > 1) {
      if (t->finalize_rows != i)
        return gg_fail(error, GG_ERROR_ARGUMENT, "gg_cuda_table", "the rows of a table come largest first");
      t->finalize_rows++;
    }
    if (t->table.updates) update += gg_update_blocks(rows[i].elements);
  }
  if (reduce > GG_MAX_GRID || update > GG_MAX_GRID)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_cuda_table",
                   "the group needs %" PRIu64 " blocks in one launch, CUDA allows %u: split it into several groups",
                   reduce > update ? reduce : update, GG_MAX_GRID);
  t->reduce_blocks = (uint32_t)reduce;
  t->update_blocks = (uint32_t)update;
  return GG_OK;
}

/* Allocates the device and the pinned part, and sets the addresses in them. */
static gg_status place_table(gg_cuda_device* cuda, gg_cuda_table* t, const gg_cuda_layout* at, bool mapped,
                             gg_error* error) {
  size_t bias_bytes = t->table.updates ? aligned(t->table.rows * sizeof(gg_bias)) : 0;
  size_t summary_bytes = t->table.rows * sizeof(gg_triple);
  gg_status status = GG_CUDA_TRY(cuda, error, cuMemAlloc_v2, (&t->allocation, at->bytes),
                                 "allocating %zu bytes for the table of %" PRIu32 " tensors", at->bytes, t->table.rows);
  if (status) return status;
  status = GG_CUDA_TRY(cuda, error, cuMemHostAlloc,
                       (&t->pinned, bias_bytes + summary_bytes,
                        GG_CU_MEMHOSTALLOC_PORTABLE | (mapped ? GG_CU_MEMHOSTALLOC_DEVICEMAP : 0)),
                       "allocating %zu bytes of pinned host memory", bias_bytes + summary_bytes);
  if (status) return status;
  if (bias_bytes) t->host_bias = t->pinned;
  t->table.host_summaries = (gg_triple*)((char*)t->pinned + bias_bytes);
  memset(t->pinned, 0, bias_bytes + summary_bytes);

  t->rows = t->allocation;
  t->first_block = t->allocation + at->first_block;
  t->partials = t->allocation + at->partials;
  if (t->table.updates) {
    t->first_update_block = t->allocation + at->first_update_block;
    t->bias = t->allocation + at->bias;
  }
  t->summaries.address = t->allocation + at->summaries;
  if (mapped) {
    gg_cu_pointer pinned = 0;
    status = GG_CUDA_TRY(cuda, error, cuMemHostGetDevicePointer_v2, (&pinned, t->pinned, 0),
                         "querying the device's address of pinned memory");
    t->summaries.address = pinned + bias_bytes;
    t->summaries.host = t->table.host_summaries;
  }
  t->summaries.memory = (gg_memory){.bytes = summary_bytes, .base = t->summaries.address};
  t->table.summaries = &t->summaries.memory;
  t->table.scratch_bytes = at->bytes;
  return status;
}

static gg_status upload_table(gg_cuda_device* cuda, gg_cuda_table* t, const gg_cuda_layout* at, const gg_row* rows,
                              gg_error* error) {
  char* image = calloc(1, at->uploaded);
  if (!image) return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_cuda_table", "out of host memory while making a table");
  gg_device_row* device_rows = (gg_device_row*)image;
  uint32_t* first_block = (uint32_t*)(image + at->first_block);
  uint32_t* first_update_block = (uint32_t*)(image + at->first_update_block);
  gg_status status = GG_OK;
  for (uint32_t i = 0; !status && i < t->table.rows; i++) {
    status = fill_row(&rows[i], t->table.amsgrad, t->table.updates, &device_rows[i], error);
    first_block[i + 1] = first_block[i] + gg_reduce_blocks(rows[i].elements);
    if (t->table.updates)
      first_update_block[i + 1] = first_update_block[i] + (uint32_t)gg_update_blocks(rows[i].elements);
  }
  if (!status) {
    status = GG_CUDA_TRY(cuda, error, cuMemcpyHtoDAsync_v2, (t->allocation, image, at->uploaded, cuda->stream),
                         "uploading a table");
    if (!status) status = GG_CUDA_TRY(cuda, error, cuStreamSynchronize, (cuda->stream), "waiting for a table's upload");
    if (status) status = gg_cuda_settle(cuda, status, error);
  }
  free(image);
  return status;
}

gg_status gg_cuda_table_make(gg_device* device, const gg_row* rows, uint32_t count, bool amsgrad, bool updates,
                             gg_table** table, gg_error* error) {
  gg_cuda_device* cuda = gg_cuda_of(device);
  *table = NULL;
  gg_cuda_table* t = calloc(1, sizeof *t);
  if (!t) return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_cuda_table", "out of host memory while making a table");
  t->table = (gg_table){.rows = count, .amsgrad = amsgrad, .updates = updates, .update_launches = 1};
  gg_status status = count == 0 ? gg_fail(error, GG_ERROR_ARGUMENT, "gg_cuda_table", "a table has at least one row")
                                : count_blocks(t, rows, error);
  t->table.reduction_launches = t->finalize_rows > 0 ? 2 : 1;
  bool mapped = GG_CUDA_MAPPED_SUMMARIES && cuda->maps_host;
  gg_cuda_layout at = lay_out(t, mapped);
  if (!status) status = gg_cuda_enter(cuda, error);
  if (status) {
    free(t);
    return status;
  }
  status = place_table(cuda, t, &at, mapped, error);
  if (!status) status = upload_table(cuda, t, &at, rows, error);
  if (!status && updates)
    status = GG_CUDA_TRY(cuda, error, cuEventCreate, (&t->updated, GG_CU_EVENT_DISABLE_TIMING), "creating an event");
  status = gg_cuda_leave(cuda, status, error);
  if (status) {
    gg_cuda_table_free(device, &t->table);
    return status;
  }
  *table = &t->table;
  return GG_OK;
}

void gg_cuda_table_free(gg_device* device, gg_table* table) {
  if (!table) return;
  gg_cuda_device* cuda = gg_cuda_of(device);
  gg_cuda_table* t = gg_cuda_table_of(table);
  bool entered = gg_cuda_enter_release(cuda);
  /* A kernel may still write to the pinned memory. */
  if (!device->lost) cuda->driver.cuStreamSynchronize(cuda->stream);
  if (t->replay) cuda->driver.cuGraphExecDestroy(t->replay);
  if (t->updated) cuda->driver.cuEventDestroy_v2(t->updated);
  if (t->pinned) cuda->driver.cuMemFreeHost(t->pinned);
  if (t->allocation) cuda->driver.cuMemFree_v2(t->allocation);
  gg_cuda_leave_release(cuda, entered);
  free(t);
}
