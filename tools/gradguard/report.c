#include "tools/gradguard/report.h"

#include <errno.h>
#include <string.h>

const gg_kind_name gg_kind_names[GG_KIND_NAMES] = {
    {GG_KIND_INF, "inf"}, {GG_KIND_NAN, "nan"}, {GG_KIND_OVERFLOW, "overflow"}, {GG_KIND_MOMENT, "moment"}};

uint64_t gg_census_count(const gg_nonfinite_census* census, uint32_t kind) {
  return kind == GG_KIND_NAN ? census->nan_count : kind == GG_KIND_INF ? census->inf_count : census->overflow_count;
}

uint64_t gg_census_first(const gg_nonfinite_census* census, uint32_t kind) {
  return kind == GG_KIND_NAN ? census->first_nan : kind == GG_KIND_INF ? census->first_inf : census->first_overflow;
}

const char* gg_action_text(gg_action action) {
  switch (action) {
    case GG_APPLIED:
      return "applied";
    case GG_SKIPPED:
      return "skipped";
    case GG_REFUSED:
      return "error";
    default:
      return "none";
  }
}

const char* gg_reason_text(gg_reason reason) {
  switch (reason) {
    case GG_REASON_REQUESTED:
      return "requested";
    case GG_REASON_EMPTY:
      return "empty";
    case GG_REASON_NONFINITE:
      return "nonfinite";
    case GG_REASON_MOMENT_OVERFLOW:
      return "moment_overflow";
    default:
      return NULL;
  }
}

bool gg_print_report(const char* text, gg_problem* problem) {
  if (text == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory for the report");
  if (fputs(text, stdout) >= 0 && fflush(stdout) == 0) return true;
  return gg_refuse(problem, GG_EXIT_FAILURE, "the report could not be written to stdout: %s", strerror(errno));
}
