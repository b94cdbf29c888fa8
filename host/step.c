#include "host/step.h"

#include <inttypes.h>

#include "host/constants.h"
#include "host/environment.h"
#include "host/report.h"
#include "host/status.h"
#include "host/validate.h"

/* The largest step is known; the entry that has it is searched for only if it is too large. */
static gg_status check_maximum(const gg_group* group, const char* function) {
  if (group->rows == 0 || group->farthest < (uint64_t)GG_STEP_MAX) return GG_OK;
  uint32_t row = 0;
  while (group->members[group->entry_of_row[row]].step < (uint64_t)GG_STEP_MAX) row++;
  const gg_member* member = &group->members[group->entry_of_row[row]];
  gg_subject subject = {group->context, function, group->entry_of_row[row], member->name};
  char who[256];
  gg_subject_text(&subject, who, sizeof who);
  return gg_fail(&group->context->error, GG_ERROR_ARGUMENT, function,
                 "%s: its step is %" PRIu64 ", the maximum, and cannot advance", who, member->step);
}

static gg_status check_state(const gg_group* group, const char* function) {
  if (group->pending.active)
    return gg_fail(&group->context->error, GG_ERROR_STATE, function,
                   "the group's previous step is pending: commit or discard it first");
  if (group->broken)
    return gg_fail(&group->context->error, GG_ERROR_STATE, function,
                   "a step in place failed while it ran, so what parameters and state hold is unknown: restore them "
                   "and make a new group");
  return GG_OK;
}

gg_status gg_step_check(gg_group* group, const gg_adamw_options** options, gg_pending** pending, const char* function) {
  static const gg_adamw_options defaults = GG_ADAMW_OPTIONS_INIT;
  if (*options == NULL) *options = &defaults;
  if (pending != NULL) *pending = NULL;
  if (group == NULL) return GG_ERROR_ARGUMENT;
  if (pending == NULL) return gg_fail(&group->context->error, GG_ERROR_ARGUMENT, function, "`pending` is NULL");
  gg_status status = gg_context_usable(group->context, function);
  if (status == GG_OK) status = check_state(group, function);
  if (status == GG_OK) status = gg_check_adamw_options(*options, &group->context->error);
  if (status == GG_OK) status = check_maximum(group, function);
  return status;
}

static void set_pending(gg_group* group, bool submitted, gg_pending** pending) {
  group->pending = (gg_pending){.group = group, .active = true, .submitted = submitted};
  group->pending.fault.status = GG_OK;
  *pending = &group->pending;
}

void gg_step_skip(gg_group* group, gg_reason reason, gg_pending** pending) {
  group->report.action = GG_SKIPPED;
  group->report.reason = reason;
  set_pending(group, false, pending);
}

bool gg_step_is_idle(gg_group* group, const gg_adamw_options* options, gg_pending** pending) {
  gg_report_begin(group, options->gradient_scale);
  if (!options->skip_update && group->rows > 0) return false;
  gg_step_skip(group, options->skip_update ? GG_REASON_REQUESTED : GG_REASON_EMPTY, pending);
  return true;
}

/* Consecutive rows usually have the same step. */
static void fill_bias(gg_group* group, const gg_adamw_options* options) {
  uint64_t last = 0;
  for (uint32_t row = 0; row < group->rows; row++) {
    uint64_t step = group->members[group->entry_of_row[row]].step + 1;
    group->bias[row] = step == last ? group->bias[row - 1] : gg_bias_of_step(options, step);
    last = step;
  }
}

gg_status gg_step_submit(gg_group* group, const gg_adamw_options* options, float factor1, float factor2,
                         gg_pending** pending) {
  gg_device* device = group->context->device;
  gg_table* table = group->tables[group->phase];
  gg_update update = {.uniform = group->uniform, .bias = group->bias};
  gg_fill_constants(options, factor1, factor2, &update.constants);
  if (group->uniform)
    update.constants.bias = gg_bias_of_step(options, group->farthest + 1);
  else
    fill_bias(group, options);
  gg_status status = device->backend->update(device, table, &update, &group->context->error);
  if (status != GG_OK) return gg_context_settle(group->context, status);
  group->report.action = GG_APPLIED;
  group->report.update_launches = table->update_launches;
  group->report.scratch_bytes = gg_group_scratch(group);
  set_pending(group, true, pending);
  return GG_OK;
}

static gg_status take_step(gg_group* group, const gg_adamw_options* options, gg_pending** pending) {
  gg_status status = gg_step_check(group, &options, pending, "gg_adamw_step");
  if (status != GG_OK || gg_step_is_idle(group, options, pending)) return status;
  status = gg_group_prepare(group, "gg_adamw_step");
  return status != GG_OK ? status : gg_step_submit(group, options, 1, 1, pending);
}

gg_status gg_adamw_step(gg_group* group, const gg_adamw_options* options, gg_pending** pending) {
  gg_environment saved = gg_environment_enter();
  gg_status status = take_step(group, options, pending);
  gg_environment_leave(saved);
  return status;
}
