/* Copies between the host and device memory, fills, and the one batched read-back of a step. */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/failure.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/profile.h"
#include "host/status.h"

gg_status gg_opencl_write(gg_opencl_device* device, const gg_opencl_memory* memory, uint64_t offset, const void* source,
                          uint64_t bytes, gg_cl_event* done, gg_error* error) {
  if (bytes == 0) return GG_OK;
  const gg_opencl_api* api = &device->api;
  bool svm = memory->object.mem == NULL;
  gg_cl_bool blocking = done == NULL;
  uint64_t at = memory->origin + offset;
  gg_cl_int code =
      svm ? api->clEnqueueSVMMemcpy(device->queue, blocking, memory->object.svm + at, source, bytes, 0, NULL, done)
          : api->clEnqueueWriteBuffer(device->queue, memory->object.mem, blocking, at, bytes, source, 0, NULL, done);
  if (code == GG_CL_SUCCESS) return GG_OK;
  return gg_opencl_fail(device, error, code, svm ? "clEnqueueSVMMemcpy" : "clEnqueueWriteBuffer",
                        "copying %llu bytes to the device", (unsigned long long)bytes);
}

gg_status gg_opencl_upload(gg_device* device, gg_memory* memory, uint64_t offset, const void* source, uint64_t bytes,
                           gg_error* error) {
  return gg_opencl_write(gg_opencl_of(device), gg_opencl_memory_of(memory), offset, source, bytes, NULL, error);
}

gg_status gg_opencl_fill(gg_device* owner, gg_memory* filled, uint64_t offset, uint64_t bytes, uint8_t value,
                         gg_error* error) {
  if (bytes == 0) return GG_OK;
  gg_opencl_device* device = gg_opencl_of(owner);
  const gg_opencl_memory* memory = gg_opencl_memory_of(filled);
  bool svm = memory->object.mem == NULL;
  uint64_t at = memory->origin + offset;
  unsigned char pattern[16];
  memset(pattern, value, sizeof pattern);
  /* Drivers are fast with long patterns; the length must divide the range, and the address with SVM. */
  uint64_t position = svm ? (uint64_t)(uintptr_t)memory->object.svm + at : at;
  size_t unit = position % sizeof pattern == 0 && bytes % sizeof pattern == 0 ? sizeof pattern : 1;
  const gg_opencl_api* api = &device->api;
  gg_cl_int code =
      svm ? api->clEnqueueSVMMemFill(device->queue, memory->object.svm + at, pattern, unit, bytes, 0, NULL, NULL)
          : api->clEnqueueFillBuffer(device->queue, memory->object.mem, pattern, unit, at, bytes, 0, NULL, NULL);
  if (code == GG_CL_SUCCESS) return GG_OK;
  return gg_opencl_fail(device, error, code, svm ? "clEnqueueSVMMemFill" : "clEnqueueFillBuffer",
                        "filling %llu bytes on the device", (unsigned long long)bytes);
}

static gg_status read_piece(gg_opencl_device* device, const gg_opencl_memory* memory, uint64_t offset,
                            void* destination, uint64_t bytes, gg_cl_event* done, gg_error* error) {
  const gg_opencl_api* api = &device->api;
  bool svm = memory->object.mem == NULL;
  uint64_t at = memory->origin + offset;
  gg_cl_int code =
      svm ? api->clEnqueueSVMMemcpy(device->queue, 0, destination, memory->object.svm + at, bytes, 0, NULL, done)
          : api->clEnqueueReadBuffer(device->queue, memory->object.mem, 0, at, bytes, destination, 0, NULL, done);
  if (code == GG_CL_SUCCESS) return GG_OK;
  return gg_opencl_fail(device, error, code, svm ? "clEnqueueSVMMemcpy" : "clEnqueueReadBuffer",
                        "copying %llu bytes from the device", (unsigned long long)bytes);
}

/* Where a piece is copied to: its destination or, if its items must be reordered, a temporary until wait sorts them.
 * Summaries are only read as a whole, so the offset is ignored here. */
static gg_status landing(gg_opencl_device* device, const gg_readback* piece, void** place, gg_error* error) {
  const gg_opencl_memory* memory = gg_opencl_memory_of(piece->memory);
  *place = piece->destination;
  if (memory->order == NULL) return GG_OK;
  if (piece->offset != 0 || piece->bytes != memory->base.bytes)
    return gg_fail(error, GG_ERROR_STATE, "gg_opencl_readback", "the summaries of this group can only be read whole");
  if (device->reorder_count == device->reorder_capacity) {
    size_t capacity = 2 * device->reorder_capacity + 4;
    gg_opencl_reorder* longer = realloc(device->reorders, capacity * sizeof *longer);
    if (longer == NULL)
      return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_opencl_readback", "out of host memory reading summaries back");
    device->reorders = longer;
    device->reorder_capacity = capacity;
  }
  unsigned char* arrived = malloc(piece->bytes);
  if (arrived == NULL)
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_opencl_readback", "out of host memory reading summaries back");
  device->reorders[device->reorder_count++] = (gg_opencl_reorder){memory, arrived, piece->destination};
  *place = arrived;
  return GG_OK;
}

/* Copies the items that have arrived to the places of their rows. */
static void sort_arrivals(gg_opencl_device* device, bool arrived) {
  const size_t item = sizeof(gg_triple);
  for (size_t r = 0; r < device->reorder_count; r++) {
    const gg_opencl_reorder* reorder = &device->reorders[r];
    size_t items = arrived ? reorder->memory->base.bytes / item : 0;
    for (size_t i = 0; i < items; i++)
      memcpy(reorder->destination + item * reorder->memory->order[i], reorder->arrived + item * i, item);
    free(reorder->arrived);
  }
  device->reorder_count = 0;
}

static gg_status queue_pieces(gg_opencl_device* device, const gg_readback* pieces, size_t count, gg_error* error) {
  size_t last = count; /* the last piece that has bytes; the queue is in order, so it completes them all */
  while (last > 0 && pieces[last - 1].bytes == 0) last--;
  for (size_t i = 0; i < last; i++) {
    if (pieces[i].bytes == 0) continue;
    void* place = NULL;
    gg_cl_event done = NULL;
    gg_status status = landing(device, &pieces[i], &place, error);
    if (status == GG_OK)
      status = read_piece(device, gg_opencl_memory_of(pieces[i].memory), pieces[i].offset, place, pieces[i].bytes,
                          i + 1 == last ? &done : NULL, error);
    if (status != GG_OK) return status;
    if (done == NULL) continue;
    if (device->readback != NULL) device->api.clReleaseEvent(device->readback);
    device->readback = done;
  }
  gg_cl_int code = device->api.clFlush(device->queue);
  if (code == GG_CL_SUCCESS) return GG_OK;
  return gg_opencl_fail(device, error, code, "clFlush", "submitting the read-back");
}

gg_status gg_opencl_readback(gg_device* owner, const gg_readback* pieces, size_t count, gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  gg_status status = queue_pieces(device, pieces, count, error);
  if (status == GG_OK) return GG_OK;
  /* Nobody will wait for the queued copies, and their destinations may be freed. */
  device->api.clFinish(device->queue);
  sort_arrivals(device, false);
  if (device->readback != NULL) device->api.clReleaseEvent(device->readback);
  device->readback = NULL;
  return status;
}

gg_status gg_opencl_wait(gg_device* owner, gg_error* error) {
  gg_opencl_device* device = gg_opencl_of(owner);
  if (device->readback == NULL) return GG_OK;
  gg_status status = gg_opencl_wait_event(device, device->readback, "the read-back", error);
  /* A wait that failed may not have waited, and the destinations of what is still queued may go away. */
  if (status != GG_OK) device->api.clFinish(device->queue);
  device->api.clReleaseEvent(device->readback);
  device->readback = NULL;
  sort_arrivals(device, status == GG_OK);
  gg_opencl_profile_tell(device);
  return status;
}
