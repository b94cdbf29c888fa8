/* The update of a group, and the unfused baseline's pass: every chunk of every row. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/parallel.h"
#include "host/status.h"

typedef struct gg_elementwise {
  const gg_cpu_kernels* kernels;
  const gg_cpu_table* table;
  const gg_update_constants* constants;
  const gg_bias* bias; /* one for each row; NULL: the constants' */
  bool staging;
} gg_elementwise;

/* From the last chunk to the first: the gradients that the reduction read last are still in a cache. */
static void do_chunks(void* context, uint64_t begin, uint64_t end) {
  const gg_elementwise* pass = context;
  const gg_cpu_table* table = pass->table;
  uint64_t chunks = table->first_chunk[table->base.rows];
  uint32_t index = gg_cpu_row_of(table->first_chunk, table->base.rows, chunks - 1 - begin);
  for (uint64_t item = begin; item < end; item++) {
    uint64_t chunk = chunks - 1 - item;
    while (chunk < table->first_chunk[index]) index--;
    const gg_device_row* row = &table->rows[index];
    uint64_t from = (chunk - table->first_chunk[index]) * GG_CPU_CHUNK, left = row->elements - from;
    uint64_t to = from + (left < GG_CPU_CHUNK ? left : GG_CPU_CHUNK);
    if (pass->staging)
      pass->kernels->unfused_clip(row, from, to, pass->constants, table->stream);
    else
      pass->kernels->update(row, from, to, pass->constants,
                            pass->bias != NULL ? pass->bias[index] : pass->constants->bias, table->stream);
  }
}

static void run(const gg_cpu_device* device, gg_elementwise* pass) {
  const gg_cpu_table* table = pass->table;
  gg_cpu_parallel(device->threads, table->first_chunk[table->base.rows], table->chunks_of_batch, do_chunks, pass);
}

gg_status gg_cpu_update(gg_device* device, gg_table* table, const gg_update* update, gg_error* error) {
  (void)error;
  const gg_cpu_device* cpu = (const gg_cpu_device*)device;
  gg_elementwise pass = {.kernels = cpu->kernels,
                         .table = (const gg_cpu_table*)table,
                         .constants = &update->constants,
                         .bias = update->uniform ? NULL : update->bias};
  run(cpu, &pass);
  return GG_OK;
}

gg_status gg_cpu_wait_update(gg_device* device, gg_table* table, gg_error* error) {
  (void)device, (void)table, (void)error;
  return GG_OK;
}

gg_status gg_cpu_unfused_clip(gg_device* device, gg_table* table, const gg_update_constants* constants,
                              gg_error* error) {
  if (!table->updates)
    return gg_fail(error, GG_ERROR_STATE, "gg_cpu_unfused_clip", "a table for statistics only has no output");
  const gg_cpu_device* cpu = (const gg_cpu_device*)device;
  gg_elementwise pass = {
      .kernels = cpu->kernels, .table = (const gg_cpu_table*)table, .constants = constants, .staging = true};
  run(cpu, &pass);
  return GG_OK;
}
