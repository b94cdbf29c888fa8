/* The objects of the cpu backend. All work is complete when its functions return. */
#ifndef GG_BACKENDS_CPU_CPU_H
#define GG_BACKENDS_CPU_CPU_H

#include "backends/backend.h"
#include "backends/cpu/kernels.h"

typedef struct gg_cpu_device {
  gg_device base;
  const gg_cpu_kernels* kernels;
  uint32_t threads; /* 0: OpenMP's own choice */
} gg_cpu_device;

typedef struct gg_cpu_memory {
  gg_memory base;
  unsigned char* bytes;
} gg_cpu_memory;

typedef struct gg_cpu_table {
  gg_table base;
  gg_device_row* rows;      /* with absolute addresses */
  uint64_t* first_block;    /* reduction blocks of the rows before; rows + 1 entries */
  uint64_t* first_chunk;    /* update chunks of the rows before; rows + 1 entries */
  gg_triple* partials;      /* one for each reduction block */
  uint32_t rows_to_merge;   /* the first rows, which have several blocks */
  uint64_t blocks_of_batch; /* batch size of a thread */
  uint64_t chunks_of_batch;
  bool stream; /* outputs are too large for the caches: use non-temporal stores */
} gg_cpu_table;

/* Elements in one update chunk of a thread. */
#define GG_CPU_CHUNK 16384u

/* The row that `item` belongs to: the last one with first[row] <= item. */
uint32_t gg_cpu_row_of(const uint64_t* first, uint32_t rows, uint64_t item);

/* device.c */
size_t gg_cpu_probe(gg_device_info* infos, size_t capacity);
gg_status gg_cpu_open(const gg_open_request* request, gg_device** device, gg_error* error);
void gg_cpu_close(gg_device* device);
gg_status gg_cpu_done(gg_device* device, gg_error* error);

/* memory.c */
gg_status gg_cpu_alloc(gg_device* device, uint64_t bytes, gg_memory** memory, gg_error* error);
gg_status gg_cpu_wrap(gg_device* device, gg_handle_kind kind, uint64_t handle, uint64_t bytes, gg_memory** memory,
                      gg_error* error);
void gg_cpu_release(gg_device* device, gg_memory* memory);
gg_status gg_cpu_upload(gg_device* device, gg_memory* memory, uint64_t offset, const void* source, uint64_t bytes,
                        gg_error* error);
gg_status gg_cpu_fill(gg_device* device, gg_memory* memory, uint64_t offset, uint64_t bytes, uint8_t value,
                      gg_error* error);
gg_status gg_cpu_copy(gg_device* device, gg_memory* to, uint64_t to_offset, const gg_memory* from, uint64_t from_offset,
                      uint64_t bytes, gg_error* error);
gg_status gg_cpu_readback(gg_device* device, const gg_readback* pieces, size_t count, gg_error* error);

/* table.c */
gg_status gg_cpu_table_make(gg_device* device, const gg_row* rows, uint32_t count, bool amsgrad, bool updates,
                            gg_table** table, gg_error* error);
void gg_cpu_table_free(gg_device* device, gg_table* table);

/* reduce.c, update.c */
gg_status gg_cpu_reduce(gg_device* device, gg_table* table, float inverse_scale, gg_error* error);
gg_status gg_cpu_update(gg_device* device, gg_table* table, const gg_update* update, gg_error* error);
gg_status gg_cpu_wait_update(gg_device* device, gg_table* table, gg_error* error);
gg_status gg_cpu_unfused_clip(gg_device* device, gg_table* table, const gg_update_constants* constants,
                              gg_error* error);

#endif
