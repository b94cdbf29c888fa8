#include "bench/unfused.h"

#include <stdlib.h>

#include "host/constants.h"
#include "host/policy.h"

static int largest_first(const void* a, const void* b, void* shapes) {
  const gg_bench_shape* all = shapes;
  size_t x = *(const size_t*)a, y = *(const size_t*)b;
  uint64_t of_x = gg_bench_elements(&all[x]), of_y = gg_bench_elements(&all[y]);
  if (of_x != of_y) return of_x > of_y ? -1 : 1;
  return (x > y) - (x < y);
}

/* Reads the gradient and, if unfused, writes the temporary where an update would write the parameter. */
static gg_row row_of(const gg_path* path, size_t index) {
  const gg_rig* rig = path->rig;
  uint64_t place = rig->places[index];
  gg_row row = {.elements = gg_bench_elements(&rig->options->shapes.shapes[index]),
                .gradient_dtype = rig->options->dtype,
                .gradient = {rig->gradient->memory, place * gg_dtype_bytes(rig->options->dtype)}};
  for (size_t s = 0; s < rig->states && path->kind == GG_BENCH_UNFUSED; s++)
    row.in[s] = row.out[s] = (gg_span){rig->state[s]->memory, place * sizeof(float)};
  if (path->kind == GG_BENCH_UNFUSED)
    row.out[GG_STATE_PARAMETER] = (gg_span){path->temporary->memory, place * sizeof(float)};
  return row;
}

static bool make_table(gg_path* path, gg_row* rows, gg_problem* problem) {
  const gg_rig* rig = path->rig;
  size_t count = rig->options->shapes.count;
  for (size_t i = 0; i < count; i++) path->tensor_of_row[i] = i;
  qsort_r(path->tensor_of_row, count, sizeof *path->tensor_of_row, largest_first, rig->options->shapes.shapes);
  for (size_t i = 0; i < count; i++) rows[i] = row_of(path, path->tensor_of_row[i]);
  gg_device* device = rig->context->device;
  bool updates = path->kind == GG_BENCH_UNFUSED;
  gg_status status = device->backend->table(device, rows, (uint32_t)count, rig->options->amsgrad && updates, updates,
                                            &path->table, &rig->context->error);
  return status == GG_OK || gg_path_fail(path, status, "making a table", problem);
}

bool gg_unfused_open(gg_path* path, gg_problem* problem) {
  gg_rig* rig = path->rig;
  if (path->kind == GG_BENCH_UNFUSED) {
    gg_status status = gg_buffer_create(rig->context, rig->room * sizeof(float), &path->temporary);
    if (status != GG_OK) return gg_path_fail(path, status, "allocating the temporary", problem);
  }
  size_t count = rig->options->shapes.count;
  path->triples = calloc(count, sizeof *path->triples);
  path->tensor_of_row = calloc(count, sizeof *path->tensor_of_row);
  gg_row* rows = calloc(count, sizeof *rows);
  bool good = path->triples != NULL && path->tensor_of_row != NULL && rows != NULL
                  ? make_table(path, rows, problem)
                  : gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  free(rows);
  return good;
}

void gg_unfused_close(gg_path* path) {
  if (path->table != NULL) path->rig->context->device->backend->table_free(path->rig->context->device, path->table);
  path->table = NULL;
  gg_buffer_destroy(&path->temporary);
  free(path->triples);
  free(path->tensor_of_row);
  path->triples = NULL;
  path->tensor_of_row = NULL;
}

gg_status gg_unfused_measure(gg_path* path, const gg_guard_options* guard, gg_decision* decision) {
  static const gg_adamw_options options = GG_ADAMW_OPTIONS_INIT;
  gg_context* context = path->rig->context;
  gg_device* device = context->device;
  const gg_backend* backend = device->backend;
  gg_table* table = path->table;
  gg_readback piece = {.memory = table->summaries,
                       .destination = table->host_summaries,
                       .bytes = (uint64_t)table->rows * sizeof(gg_triple)};
  gg_status status =
      backend->reduce(device, table, gg_inverse_scale(path->rig->options->gradient_scale), &context->error);
  if (status == GG_OK) status = backend->readback(device, &piece, 1, &context->error);
  if (status == GG_OK) status = backend->wait(device, &context->error);
  if (status != GG_OK) return status;
  for (uint32_t row = 0; row < table->rows; row++) path->triples[path->tensor_of_row[row]] = table->host_summaries[row];
  return gg_decide_measured(path->triples, table->rows, &options, guard, decision, &context->error);
}

gg_status gg_unfused_queue_clip(gg_path* path, const gg_decision* decision) {
  gg_context* context = path->rig->context;
  gg_update_constants constants = {.inverse_scale = gg_inverse_scale(path->rig->options->gradient_scale),
                                   .factor1 = decision->factor1,
                                   .factor2 = decision->factor2};
  return context->device->backend->unfused_clip(context->device, path->table, &constants, &context->error);
}
