/* A submitted step: wait, commit, discard. */
#include "host/group.h"
#include "host/status.h"

static gg_status check_active(const gg_pending* pending, const char* function) {
  if (pending->active) return GG_OK;
  return gg_fail(&pending->group->context->error, GG_ERROR_STATE, function,
                 "the step is no longer pending: it has been committed or discarded");
}

/* An error is kept, because later calls to the device may succeed. */
static gg_status repeat_fault(const gg_pending* pending) {
  pending->group->context->error = pending->fault;
  return pending->fault.status;
}

static gg_status finish(gg_pending* pending, const char* function) {
  gg_context* context = pending->group->context;
  gg_status status = check_active(pending, function);
  if (status != GG_OK) return status;
  if (pending->fault.status != GG_OK) return repeat_fault(pending);
  status = gg_context_usable(context, function);
  if (status != GG_OK || !pending->submitted || pending->finished) return status;
  status = context->device->backend->wait_update(context->device, pending->group->tables[pending->group->phase],
                                                 &context->error);
  if (status == GG_OK)
    pending->finished = true;
  else
    pending->fault = context->error;
  return status;
}

static void end(gg_pending** pending) {
  (*pending)->active = false;
  *pending = NULL;
}

gg_status gg_pending_report(const gg_pending* pending, gg_report* report) {
  return pending != NULL ? gg_group_report(pending->group, report) : GG_ERROR_ARGUMENT;
}

gg_status gg_pending_wait(gg_pending* pending) {
  return pending != NULL ? finish(pending, "gg_pending_wait") : GG_ERROR_ARGUMENT;
}

static void advance(gg_group* group) {
  group->phase = gg_phase_after(group, group->phase);
  group->farthest++;
  for (uint32_t row = 0; row < group->rows; row++) group->members[group->entry_of_row[row]].step++;
}

gg_status gg_pending_commit(gg_pending** pending) {
  if (pending == NULL || *pending == NULL) return GG_ERROR_ARGUMENT;
  gg_status status = finish(*pending, "gg_pending_commit");
  if (status != GG_OK) return status;
  if ((*pending)->submitted) advance((*pending)->group);
  end(pending);
  return GG_OK;
}

/* In place, the old values are lost once the update has been queued. If it failed, the contents are unknown anyway. */
static gg_status discard_in_place(gg_pending** pending, gg_status status) {
  gg_group* group = (*pending)->group;
  if (status == GG_OK)
    return gg_fail(&group->context->error, GG_ERROR_STATE, "gg_pending_discard",
                   "a step applied in place cannot be undone: commit it, or use GG_OUT_OF_PLACE");
  group->broken = true;
  end(pending);
  return status == GG_ERROR_DEVICE_LOST ? status : GG_OK;
}

gg_status gg_pending_discard(gg_pending** pending) {
  if (pending == NULL || *pending == NULL) return GG_ERROR_ARGUMENT;
  gg_group* group = (*pending)->group;
  gg_status status = check_active(*pending, "gg_pending_discard");
  if (status != GG_OK) return status;
  /* Waits, so that the caller may free gradients, and the next step may write the same second buffers. */
  status = finish(*pending, "gg_pending_discard");
  if (group->mode == GG_IN_PLACE && (*pending)->submitted) return discard_in_place(pending, status);
  end(pending);
  return status == GG_ERROR_DEVICE_LOST ? status : GG_OK;
}
