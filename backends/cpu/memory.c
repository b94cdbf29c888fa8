/* Memory of the cpu backend: the library's own, and the caller's wrapped pointers. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cpu/cpu.h"
#include "host/status.h"

#define GG_ALIGNMENT      256
#define GG_HUGE_PAGE      ((uint64_t)2 << 20)
#define GG_HUGE_PAGE_FROM ((uint64_t)8 << 20) /* smaller memories would waste too much of a page */

static gg_memory* describe(unsigned char* bytes, uint64_t count, bool wrapped) {
  gg_cpu_memory* memory = malloc(sizeof *memory);
  if (memory == NULL) return NULL;
  memory->base = (gg_memory){.bytes = count, .space = 0, .base = (uint64_t)(uintptr_t)bytes, .wrapped = wrapped};
  memory->bytes = bytes;
  return &memory->base;
}

gg_status gg_cpu_alloc(gg_device* device, uint64_t bytes, gg_memory** memory, gg_error* error) {
  (void)device;
  bool huge = bytes >= GG_HUGE_PAGE_FROM;
  void* taken = NULL;
  if (bytes > PTRDIFF_MAX - GG_HUGE_PAGE ||
      posix_memalign(&taken, huge ? GG_HUGE_PAGE : GG_ALIGNMENT, bytes > 0 ? (size_t)bytes : GG_ALIGNMENT) != 0)
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_buffer_create", "the host has no %llu bytes of memory",
                   (unsigned long long)bytes);
  /* A hint: huge pages avoid most TLB misses; if they are not available, nothing is lost. */
  if (huge) (void)madvise(taken, (size_t)bytes, MADV_HUGEPAGE);
  *memory = describe(taken, bytes, false);
  if (*memory != NULL) return GG_OK;
  free(taken);
  return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_buffer_create", "out of host memory describing a buffer");
}

gg_status gg_cpu_wrap(gg_device* device, gg_handle_kind kind, uint64_t handle, uint64_t bytes, gg_memory** memory,
                      gg_error* error) {
  (void)device;
  if (kind != GG_HANDLE_HOST)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_buffer_wrap",
                   "the cpu backend wraps host memory only: use gg_buffer_wrap_host");
  if (handle == 0 && bytes > 0)
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_buffer_wrap_host", "the memory to wrap is NULL");
  if (bytes > UINTPTR_MAX - handle)
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_buffer_wrap_host",
                   "%llu bytes from this address reach past the end of the address space", (unsigned long long)bytes);
  *memory = describe((unsigned char*)(uintptr_t)handle, bytes, true);
  if (*memory != NULL) return GG_OK;
  return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_buffer_wrap_host", "out of host memory describing a buffer");
}

void gg_cpu_release(gg_device* device, gg_memory* memory) {
  (void)device;
  if (memory == NULL) return;
  if (!memory->wrapped) free(((gg_cpu_memory*)memory)->bytes);
  free(memory);
}

gg_status gg_cpu_upload(gg_device* device, gg_memory* memory, uint64_t offset, const void* source, uint64_t bytes,
                        gg_error* error) {
  (void)device, (void)error;
  if (bytes > 0) memmove(((gg_cpu_memory*)memory)->bytes + offset, source, (size_t)bytes);
  return GG_OK;
}

gg_status gg_cpu_fill(gg_device* device, gg_memory* memory, uint64_t offset, uint64_t bytes, uint8_t value,
                      gg_error* error) {
  (void)device, (void)error;
  if (bytes > 0) memset(((gg_cpu_memory*)memory)->bytes + offset, value, (size_t)bytes);
  return GG_OK;
}

/* memmove, because the destination may be the memory itself (a table's summaries) or wrapped memory. */
gg_status gg_cpu_readback(gg_device* device, const gg_readback* pieces, size_t count, gg_error* error) {
  (void)device, (void)error;
  for (size_t i = 0; i < count; i++) {
    const unsigned char* from = ((const gg_cpu_memory*)pieces[i].memory)->bytes + pieces[i].offset;
    if (pieces[i].bytes > 0 && pieces[i].destination != (const void*)from)
      memmove(pieces[i].destination, from, (size_t)pieces[i].bytes);
  }
  return GG_OK;
}
