/* What the tool prints on stdout: for people, or as JSON. Both forms are made in memory, so that a result is shown
 * whole or not at all. */
#ifndef GG_TOOL_REPORT_H
#define GG_TOOL_REPORT_H

#include <stdio.h>

#include "tools/gradguard/arguments.h"
#include "tools/gradguard/safetensors.h"

/* Everything a report is made of. Tensors are those of the group, by entry. */
typedef struct gg_result {
  const gg_report* report;
  size_t count;
  const gg_stored_tensor* const* gradients;
  const char* gradients_path;
  const gg_device_info* device;
  const char* kernel;
  const gg_nonfinite_census* census; /* inspect: `count` of them, filled for flagged tensors; step: NULL */
  size_t passed_through;             /* step: parameters without a gradient */
} gg_result;

/* Text to be freed by the caller, ending with a newline; NULL if memory ran out. */
char* gg_step_text(const gg_result* result);
char* gg_inspect_text(const gg_result* result);
char* gg_step_json(const gg_result* result);
char* gg_inspect_json(const gg_result* result);

/* Writes `text` to stdout and flushes; false if stdout did not take it (`problem` says why). */
bool gg_print_report(const char* text, gg_problem* problem);

/* The kinds by name, sorted as reports list them. First those of a gradient's values, which a census counts; "moment"
 * stands alone wherever it stands. */
typedef struct gg_kind_name {
  uint32_t kind;
  const char* name;
} gg_kind_name;
#define GG_VALUE_KINDS 3
#define GG_KIND_NAMES  4
extern const gg_kind_name gg_kind_names[GG_KIND_NAMES];

/* How many values of a kind and where the first is. */
uint64_t gg_census_count(const gg_nonfinite_census* census, uint32_t kind);
uint64_t gg_census_first(const gg_nonfinite_census* census, uint32_t kind);

/* "applied", "skipped", "error"; NULL reason for GG_REASON_NONE. */
const char* gg_action_text(gg_action action);
const char* gg_reason_text(gg_reason reason);

#endif
