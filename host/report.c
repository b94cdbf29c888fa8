#include "host/report.h"

#include "host/environment.h"
#include "host/prefix.h"
#include "host/status.h"
#if GG_WITH_GUARD
#include "host/policy.h"
#endif

void gg_report_begin(gg_group* group, double gradient_scale) {
  group->report = (gg_report)GG_REPORT_INIT;
  group->report.gradient_scale = gradient_scale;
  group->report.elements = group->elements;
  group->report.tensors = group->count;
}

void gg_report_per_tensor(gg_group* group) {
#if GG_WITH_GUARD
  if (!group->report.measured || group->report.per_tensor != NULL) return;
  gg_environment saved = gg_environment_enter();
  for (size_t i = 0; i < group->count; i++)
    gg_report_tensor(&group->statistics[i], group->members[i].elements, &group->per_tensor[i]);
  gg_environment_leave(saved);
  group->report.per_tensor = group->per_tensor;
#else
  (void)group;
#endif
}

#if GG_WITH_GUARD
void gg_report_moments(gg_group* group, double coefficient, double beta2) {
  gg_report_per_tensor(group);
  for (size_t i = 0; i < group->count; i++)
    if (gg_overflows_moment(group->per_tensor[i].max_abs, coefficient, beta2))
      group->per_tensor[i].nonfinite = GG_KIND_MOMENT;
}
#endif

gg_status gg_group_report(const gg_group* group, gg_report* report) {
  if (group == NULL) return GG_ERROR_ARGUMENT;
  if (report == NULL || report->size < sizeof(uint32_t))
    return gg_fail(&group->context->error, GG_ERROR_ARGUMENT, "gg_group_report",
                   "`report` is NULL or its size is not set: initialise it with GG_REPORT_INIT");
  gg_report_per_tensor((gg_group*)group); /* a group is never a const object, and belongs to one thread */
  gg_copy_prefix(report, &group->report, sizeof *report);
  return GG_OK;
}
