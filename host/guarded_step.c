/* The guarded step: measure, read back once, decide once, update. */
#include <stdio.h>
#include <string.h>

#include "host/constants.h"
#include "host/environment.h"
#include "host/policy.h"
#include "host/report.h"
#include "host/status.h"
#include "host/step.h"
#include "host/validate.h"

#define FUNCTION "gg_guarded_adamw_step"

/* Reorders the statistics of the rows to the order of the entries, if it differs. */
static void sort_statistics(gg_group* group, const gg_triple* summaries) {
  group->statistics = group->in_order ? summaries : group->triples;
  for (uint32_t row = 0; row < group->rows && !group->in_order; row++)
    group->triples[group->entry_of_row[row]] = summaries[row];
}

/* Computes the statistics of every row and copies them to the host in one read-back. */
static gg_status measure(gg_group* group, const gg_adamw_options* options) {
  gg_device* device = group->context->device;
  gg_error* error = &group->context->error;
  gg_table* table = group->tables[group->phase];
  gg_status status = device->backend->reduce(device, table, gg_inverse_scale(options->gradient_scale), error);
  gg_readback piece = {.memory = table->summaries,
                       .destination = table->host_summaries,
                       .bytes = (uint64_t)table->rows * sizeof(gg_triple)};
  if (status == GG_OK) status = device->backend->readback(device, &piece, 1, error);
  if (status == GG_OK) status = device->backend->wait(device, error);
  if (status != GG_OK) return gg_context_settle(group->context, status);
  sort_statistics(group, table->host_summaries);
  group->report.reduction_launches = table->reduction_launches;
  group->report.readback_bytes = piece.bytes;
  return GG_OK;
}

static void report_decision(gg_group* group, const gg_adamw_options* options, const gg_guard_options* guard,
                            const gg_decision* decision) {
  group->report.action = decision->action;
  group->report.reason = decision->reason;
  group->report.measured = true;
  group->report.norm = decision->norm;
  group->report.max_abs = decision->max_abs;
  group->report.clip_coefficient = decision->clip_coefficient;
  group->report.nonfinite = decision->nonfinite;
  group->report.scratch_bytes = gg_group_scratch(group);
  if (decision->nonfinite == GG_KIND_MOMENT)
    gg_report_moments(group, gg_clip_coefficient(guard, decision->norm), options->beta2);
}

/* The first tensor of any kind, which errors name, and how many there are. */
typedef struct gg_culprits {
  size_t count;
  uint32_t kinds; /* of the first */
  double max_abs; /* of the first */
  char first[256];
} gg_culprits;

static void find_culprits(gg_group* group, gg_culprits* culprits) {
  *culprits = (gg_culprits){0};
  size_t first = 0;
  for (size_t i = group->count; i-- > 0;)
    if (group->per_tensor[i].nonfinite != 0) {
      culprits->count++;
      first = i;
    }
  culprits->kinds = group->per_tensor[first].nonfinite;
  culprits->max_abs = group->per_tensor[first].max_abs;
  gg_subject subject = {group->context, FUNCTION, first, group->members[first].name};
  gg_subject_text(&subject, culprits->first, sizeof culprits->first);
}

static gg_status refuse(gg_group* group) {
  gg_report_per_tensor(group);
  gg_culprits bad;
  find_culprits(group, &bad);
  if (bad.kinds == GG_KIND_MOMENT)
    return gg_fail(&group->context->error, GG_ERROR_NONFINITE, FUNCTION,
                   "the second moments of %zu of %zu tensors would become infinite, the first that of %s (largest "
                   "gradient %g): nothing was updated; check gradient_scale, or clip with max_norm",
                   bad.count, group->count, bad.first, bad.max_abs);
  return gg_fail(&group->context->error, GG_ERROR_NONFINITE, FUNCTION,
                 "the gradients of %zu of %zu tensors are not finite, the first those of %s (%s%s%s): nothing was "
                 "updated; the report has the kinds for each tensor",
                 bad.count, group->count, bad.first, (bad.kinds & GG_KIND_NAN) != 0 ? " NaN" : "",
                 (bad.kinds & GG_KIND_INF) != 0 ? " Inf" : "",
                 (bad.kinds & GG_KIND_OVERFLOW) != 0 ? " overflow in unscaling" : "");
}

static gg_status take_step(gg_group* group, const gg_adamw_options* options, const gg_guard_options* guard,
                           gg_pending** pending) {
  static const gg_guard_options defaults = GG_GUARD_OPTIONS_INIT;
  if (guard == NULL) guard = &defaults;
  gg_status status = gg_step_check(group, &options, pending, FUNCTION);
  if (status == GG_OK) status = gg_check_guard_options(guard, &group->context->error);
  if (status != GG_OK || gg_step_is_idle(group, options, pending)) return status;
  status = gg_group_prepare(group, FUNCTION);
  if (status == GG_OK) status = measure(group, options);
  if (status != GG_OK) return status;
  gg_decision decision;
  status = gg_decide_measured(group->statistics, group->count, options, guard, &decision, &group->context->error);
  if (status != GG_OK) return status;
  report_decision(group, options, guard, &decision);
  if (decision.action == GG_REFUSED) return refuse(group);
  if (decision.action == GG_SKIPPED) {
    gg_step_skip(group, decision.reason, pending);
    return GG_OK;
  }
  status = gg_step_submit(group, options, decision.factor1, decision.factor2, pending);
  if (status != GG_OK) group->report.action = GG_ACTION_NONE; /* the update was not submitted */
  return status;
}

gg_status gg_guarded_adamw_step(gg_group* group, const gg_adamw_options* options, const gg_guard_options* guard,
                                gg_pending** pending) {
  gg_environment saved = gg_environment_enter();
  gg_status status = take_step(group, options, guard, pending);
  gg_environment_leave(saved);
  return status;
}
