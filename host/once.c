/* One step on entries, with a temporary group. */
#include <string.h>

#include "backends/backend.h"
#include "host/context.h"
#include "host/group.h"
#include "host/prefix.h"
#include "host/status.h"

static gg_status take_step(gg_group* group, const gg_adamw_options* options, const gg_guard_options* guard,
                           gg_pending** pending, gg_error* error) {
#if GG_WITH_GUARD
  (void)error;
  return guard != NULL ? gg_guarded_adamw_step(group, options, guard, pending) : gg_adamw_step(group, options, pending);
#else
  if (guard != NULL)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_adamw_once",
                   "this build is without the guard: build it with guard=full");
  return gg_adamw_step(group, options, pending);
#endif
}

/* The group's report. The tensors' reports are copied to the caller's array, since the group is about to be destroyed.
 */
static gg_status hand_over_report(const gg_group* group, size_t count, gg_report* report,
                                  gg_tensor_report* per_tensor) {
  gg_report made = GG_REPORT_INIT;
  gg_status status = gg_group_report(group, &made);
  if (status != GG_OK) return status;
  if (made.per_tensor != NULL && per_tensor != NULL) memcpy(per_tensor, made.per_tensor, count * sizeof *per_tensor);
  made.per_tensor = made.per_tensor != NULL ? per_tensor : NULL;
  if (report != NULL) gg_copy_prefix(report, &made, sizeof made);
  return GG_OK;
}

static void hand_over_steps(const gg_group* group, gg_entry* entries, size_t count) {
  uint32_t stride = count > 0 ? entries->size : 0;
  for (size_t i = 0; i < count; i++) gg_group_step(group, i, &((gg_entry*)(void*)((char*)entries + i * stride))->step);
}

/* Whatever the cause, the update may be half done, and a retry would apply it twice. A persistent group would refuse
 * further steps; here there is no group, so the device is marked lost. */
static gg_status commit(gg_context* context, gg_pending** pending) {
  gg_status status = gg_pending_commit(pending);
  if (status == GG_OK || status == GG_ERROR_DEVICE_LOST) return status;
  const gg_error cause = context->error;
  context->device->lost = true;
  return gg_fail_native(&context->error, GG_ERROR_DEVICE_LOST, cause.native_code, cause.native_name, cause.function,
                        "the update in place may be half done (%.300s): destroy the context and restore parameters and "
                        "state from the last checkpoint",
                        cause.message);
}

gg_status gg_adamw_once(gg_context* context, gg_entry* entries, size_t count, bool amsgrad,
                        const gg_adamw_options* options, const gg_guard_options* guard, gg_report* report,
                        gg_tensor_report* per_tensor) {
  if (context == NULL) return GG_ERROR_ARGUMENT;
  if (report != NULL && report->size < sizeof(uint32_t))
    return gg_fail(&context->error, GG_ERROR_ARGUMENT, "gg_adamw_once",
                   "the report's size is not set: initialise it with GG_REPORT_INIT");
  gg_group_options in_place = GG_GROUP_OPTIONS_INIT;
  in_place.mode = GG_IN_PLACE;
  in_place.amsgrad = amsgrad;
  gg_group* group = NULL;
  gg_status status = gg_group_make(context, entries, count, &in_place, false, &group);
  if (status != GG_OK) return status;
  gg_pending* pending = NULL;
  status = take_step(group, options, guard, &pending, &context->error);
  if (status == GG_OK) status = commit(context, &pending);
  if (status == GG_OK) hand_over_steps(group, entries, count);
  if (status == GG_OK || status == GG_ERROR_NONFINITE) hand_over_report(group, count, report, per_tensor);
  gg_group_destroy(&group); /* also discards a step that could not be committed */
  return status;
}
