#include "bench/path.h"

#include <stdlib.h>

#include "bench/digest.h"
#include "bench/unfused.h"
#include "host/group.h"

bool gg_path_fail(const gg_path* path, gg_status status, const char* doing, gg_problem* problem) {
  return gg_refuse_error(problem, status, gg_context_error(path->rig->context), doing);
}

static const gg_role roles[GG_STATES] = {GG_PARAMETER, GG_EXP_AVG, GG_EXP_AVG_SQ, GG_MAX_EXP_AVG_SQ};

static bool make_group(gg_path* path, gg_problem* problem) {
  gg_rig* rig = path->rig;
  size_t count = rig->options->shapes.count;
  gg_entry* entries = calloc(count, sizeof *entries);
  if (entries == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  bool unfused = path->kind == GG_BENCH_UNFUSED;
  for (size_t i = 0; i < count; i++) {
    entries[i] = (gg_entry)GG_ENTRY_INIT;
    entries[i].tensors[GG_GRADIENT] =
        gg_rig_tensor(rig, unfused ? path->temporary : rig->gradient, unfused ? GG_F32 : rig->options->dtype, i);
    for (size_t s = 0; s < rig->states; s++)
      entries[i].tensors[roles[s]] = gg_rig_tensor(rig, rig->state[s], GG_F32, i);
  }
  gg_group_options options = GG_GROUP_OPTIONS_INIT;
  options.mode = rig->options->mode;
  options.amsgrad = rig->options->amsgrad;
  gg_status status = gg_group_create(rig->context, entries, count, &options, &path->group);
  free(entries);
  return status == GG_OK || gg_path_fail(path, status, "making a group", problem);
}

bool gg_path_open(gg_path* path, gg_rig* rig, gg_bench_path_kind kind, gg_problem* problem) {
  *path = (gg_path){.rig = rig, .kind = kind};
  bool good = true;
  if (kind == GG_BENCH_UNFUSED || kind == GG_BENCH_STATS) good = gg_unfused_open(path, problem);
  if (good && kind != GG_BENCH_STATS) good = make_group(path, problem);
  if (!good) gg_path_close(path);
  return good;
}

void gg_path_close(gg_path* path) {
  gg_group_destroy(&path->group);
  gg_unfused_close(path);
}

bool gg_path_reset(gg_path* path, gg_problem* problem) {
  if (path->group == NULL) return true;
  gg_rig* rig = path->rig;
  gg_device* device = rig->context->device;
  gg_status status = GG_OK;
  for (size_t i = 0; i < rig->options->shapes.count; i++)
    for (size_t s = 0; s < rig->states && status == GG_OK; s++) {
      gg_tensor current;
      status = gg_group_tensor(path->group, i, roles[s], &current);
      if (status != GG_OK) break;
      uint64_t bytes = gg_bench_elements(&rig->options->shapes.shapes[i]) * sizeof(float);
      status = device->backend->copy(device, current.buffer->memory, current.offset, rig->original[s]->memory,
                                     rig->places[i] * sizeof(float), bytes, &rig->context->error);
    }
  if (status == GG_OK) status = gg_context_synchronize(rig->context);
  return status == GG_OK || gg_path_fail(path, status, "restoring parameters and state", problem);
}

static gg_guard_options guard_of(const gg_rig* rig) {
  gg_guard_options guard = GG_GUARD_OPTIONS_INIT;
  guard.clip = true;
  guard.max_norm = rig->options->max_norm;
  return guard;
}

static gg_status step_group(gg_path* path) {
  gg_adamw_options adamw = GG_ADAMW_OPTIONS_INIT;
  gg_guard_options guard = guard_of(path->rig);
  gg_pending* pending = NULL;
  gg_status status;
  if (path->kind == GG_BENCH_FUSED) {
    adamw.gradient_scale = path->rig->options->gradient_scale;
    status = gg_guarded_adamw_step(path->group, &adamw, &guard, &pending);
  } else {
    if (path->kind == GG_BENCH_PLAIN) adamw.gradient_scale = path->rig->options->gradient_scale;
    status = gg_adamw_step(path->group, &adamw, &pending);
  }
  return status == GG_OK ? gg_pending_commit(&pending) : status;
}

bool gg_path_step(gg_path* path, gg_problem* problem) {
  gg_status status = GG_OK;
  gg_guard_options guard = guard_of(path->rig);
  gg_decision decision = GG_DECISION_INIT;
  if (path->table != NULL) status = gg_unfused_measure(path, &guard, &decision);
  if (status == GG_OK && path->table != NULL && decision.action != GG_APPLIED)
    return true; /* as a guarded step would */
  if (status == GG_OK && path->kind == GG_BENCH_UNFUSED) status = gg_unfused_queue_clip(path, &decision);
  if (status == GG_OK && path->group != NULL) status = step_group(path);
  return status == GG_OK || gg_path_fail(path, status, gg_bench_path_names[path->kind], problem);
}

bool gg_path_digest(const gg_path* path, uint64_t* digest, gg_problem* problem) {
  *digest = 0;
  if (path->group == NULL) return true;
  gg_digest sum;
  if (!gg_digest_begin(&sum)) return gg_refuse(problem, GG_EXIT_FAILURE, "out of host memory");
  gg_status status = GG_OK;
  for (size_t i = 0; i < path->rig->options->shapes.count && status == GG_OK; i++)
    for (size_t s = 0; s < path->rig->states && status == GG_OK; s++) {
      gg_tensor current;
      status = gg_group_tensor(path->group, i, roles[s], &current);
      if (status == GG_OK)
        status = gg_digest_buffer(&sum, current.buffer, current.offset,
                                  gg_bench_elements(&path->rig->options->shapes.shapes[i]) * sizeof(float));
    }
  *digest = gg_digest_end(&sum);
  return status == GG_OK || gg_path_fail(path, status, "reading results back", problem);
}

/* Of one element: reads of the gradient, and what an update reads and writes of parameter and state. */
static uint64_t gradient_bytes(const gg_path* path) { return gg_dtype_bytes(path->rig->options->dtype); }
static uint64_t state_bytes(const gg_path* path) { return 2 * sizeof(float) * path->rig->states; }

uint64_t gg_path_bytes(const gg_path* path) {
  uint64_t gradient = gradient_bytes(path);
  switch (path->kind) {
    case GG_BENCH_STATS:
      return path->rig->elements * gradient;
    case GG_BENCH_PLAIN:
      return path->rig->elements * (gradient + state_bytes(path));
    default:
      return path->rig->elements * (2 * gradient + state_bytes(path));
  }
}

uint64_t gg_path_traffic(const gg_path* path) {
  return gg_path_bytes(path) + (path->kind == GG_BENCH_UNFUSED ? path->rig->elements * 2 * sizeof(float) : 0);
}

void gg_path_costs(const gg_path* path, uint32_t* reductions, uint32_t* updates, uint64_t* scratch) {
  gg_report report = GG_REPORT_INIT;
  if (path->group != NULL) gg_group_report(path->group, &report);
  *reductions = report.reduction_launches;
  *updates = report.update_launches;
  *scratch = report.scratch_bytes;
  if (path->table == NULL) return;
  *reductions += path->table->reduction_launches;
  *updates += path->kind == GG_BENCH_UNFUSED ? path->table->update_launches : 0; /* the separate clip */
  *scratch += path->table->scratch_bytes + (path->temporary != NULL ? gg_buffer_bytes(path->temporary) : 0);
}
