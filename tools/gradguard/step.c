/* `gradguard step`: open and match the files, load, step, write, report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/gradguard/checkpoint.h"
#include "tools/gradguard/command.h"
#include "tools/gradguard/device.h"
#include "tools/gradguard/report.h"
#include "tools/gradguard/step_arguments.h"
#include "tools/gradguard/step_output.h"

#define COMMAND "gradguard step"

/* Everything that has to be given back. */
typedef struct step_run {
  const gg_step_arguments* arguments;
  gg_checkpoint checkpoint;
  gg_context* context;
  gg_device_memory memory;
  gg_group* group;
  gg_report report;
  gg_outputs outputs;
  bool outputs_open;
} step_run;

/* ---- Before the device ---- */

static bool same_file(const char* left, const char* right) {
  struct stat a, b;
  return left != NULL && stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The report would go to the old file, which nobody can see any more. */
static bool is_standard_output(const char* path) {
  struct stat a, b;
  return stat(path, &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
         S_ISREG(a.st_mode);
}

/* An output may replace the input of its own kind, never another. */
static bool check_paths(const gg_step_arguments* arguments, gg_problem* problem) {
  const struct {
    const char *input, *output, *names;
  } pairs[] = {{arguments->gradients, arguments->out_parameters, "--out-params and --grads"},
               {arguments->gradients, arguments->out_state, "--out-state and --grads"},
               {arguments->state, arguments->out_parameters, "--out-params and --state"},
               {arguments->parameters, arguments->out_state, "--out-state and --params"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
    if (!same_file(pairs[i].input, pairs[i].output)) continue;
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: named by both %s", pairs[i].output, pairs[i].names);
  }
  const char* const outputs[] = {arguments->out_parameters, arguments->out_state};
  for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; ++i) {
    if (!is_standard_output(outputs[i])) continue;
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: standard output, where the report goes, is the same file",
                     outputs[i]);
  }
  return true;
}

/* The library checks every option again; this says so before large files are loaded. */
static bool check_options(const gg_step_arguments* arguments, gg_problem* problem) {
  gg_decision decision = GG_DECISION_INIT;
  gg_error error = GG_ERROR_INIT;
  const gg_status status = gg_decide(NULL, 0, &arguments->adamw, &arguments->guard, &decision, &error);
  return status != GG_ERROR_ARGUMENT || gg_refuse_error(problem, status, &error, "checking the options");
}

static bool open_files(step_run* run, gg_problem* problem) {
  const gg_step_arguments* arguments = run->arguments;
  if (!check_options(arguments, problem) ||
      !gg_checkpoint_open(&run->checkpoint, arguments->parameters, arguments->gradients, arguments->state,
                          arguments->amsgrad, problem) ||
      !check_paths(arguments, problem)) {
    return false;
  }
  const char* const paths[GG_OUTPUT_FILES] = {arguments->out_parameters, arguments->out_state};
  run->outputs_open = true;
  return gg_outputs_prepare(&run->outputs, paths, problem);
}

/* ---- The group ---- */

static size_t roles_of(bool amsgrad) { return amsgrad ? GG_MAX_EXP_AVG_SQ + 1 : GG_EXP_AVG_SQ + 1; }

static gg_content content_of(const gg_slot* slot, size_t role) {
  if (role == GG_PARAMETER) return (gg_content){slot->parameter, slot->parameter};
  if (role == GG_GRADIENT) return (gg_content){slot->gradient, slot->gradient};
  return (gg_content){slot->parameter, slot->moments[role - GG_EXP_AVG + GG_MOMENT_EXP_AVG]};
}

static bool load(step_run* run, gg_tensor* tensors, gg_entry* entries, gg_content* contents, gg_problem* problem) {
  const size_t count = run->checkpoint.entries;
  const size_t roles = roles_of(run->arguments->amsgrad);
  for (size_t i = 0; i < run->checkpoint.count; ++i) {
    const gg_slot* slot = &run->checkpoint.slots[i];
    if (slot->gradient == NULL) continue;
    for (size_t role = 0; role < roles; ++role) contents[role * count + slot->entry] = content_of(slot, role);
    gg_entry* entry = &entries[slot->entry];
    *entry = (gg_entry)GG_ENTRY_INIT;
    entry->name = slot->parameter->name;
    entry->step = gg_slot_step(slot);
  }
  if (!gg_device_load(run->context, contents, roles * count, &run->memory, tensors, problem)) return false;
  for (size_t role = 0; role < roles; ++role) {
    for (size_t i = 0; i < count; ++i) entries[i].tensors[role] = tensors[role * count + i];
  }
  gg_group_options options = GG_GROUP_OPTIONS_INIT;
  options.mode = run->arguments->in_place ? GG_IN_PLACE : GG_OUT_OF_PLACE;
  options.amsgrad = run->arguments->amsgrad;
  const gg_status status = gg_group_create(run->context, entries, count, &options, &run->group);
  return status == GG_OK || gg_refuse_context(problem, status, run->context, "preparing the group");
}

static bool make_group(step_run* run, gg_problem* problem) {
  const size_t count = run->checkpoint.entries;
  const size_t tensors_count = roles_of(run->arguments->amsgrad) * count;
  gg_tensor* tensors = calloc(tensors_count + 1, sizeof *tensors);
  gg_content* contents = calloc(tensors_count + 1, sizeof *contents);
  gg_entry* entries = calloc(count + 1, sizeof *entries);
  const bool good = tensors != NULL && contents != NULL && entries != NULL
                        ? load(run, tensors, entries, contents, problem)
                        : gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory");
  free(tensors);
  free(contents);
  free(entries);
  return good;
}

/* ---- The step ---- */

/* A refusal under the error policy is a result with a report, not a failure of the tool. */
static bool take_step(step_run* run, gg_problem* problem) {
  gg_pending* pending = NULL;
  const gg_status status = gg_guarded_adamw_step(run->group, &run->arguments->adamw, &run->arguments->guard, &pending);
  if (status != GG_OK && status != GG_ERROR_NONFINITE) {
    return gg_refuse_context(problem, status, run->context, "the step");
  }
  run->report = (gg_report)GG_REPORT_INIT;
  const gg_status reported = gg_group_report(run->group, &run->report);
  const gg_status committed = pending == NULL ? GG_OK : gg_pending_commit(&pending);
  if (committed != GG_OK) {
    gg_refuse_context(problem, committed, run->context, "finishing the step");
    (void)gg_pending_discard(&pending);
    return false;
  }
  return reported == GG_OK || gg_refuse_context(problem, reported, run->context, "reading the report");
}

/* ---- The report ---- */

static bool make_report(const step_run* run, char** text, gg_problem* problem) {
  gg_device_info device = {.size = (uint32_t)sizeof device};
  const gg_status status = gg_context_device(run->context, &device);
  if (status != GG_OK) return gg_refuse_context(problem, status, run->context, "describing the device");
  const size_t count = run->checkpoint.entries;
  const gg_stored_tensor** gradients = calloc(count + 1, sizeof(gg_stored_tensor*));
  if (gradients == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory");
  for (size_t i = 0; i < run->checkpoint.count; ++i) {
    const gg_slot* slot = &run->checkpoint.slots[i];
    if (slot->gradient != NULL) gradients[slot->entry] = slot->gradient;
  }
  const gg_result result = {.report = &run->report,
                            .count = count,
                            .gradients = gradients,
                            .gradients_path = run->arguments->gradients,
                            .device = &device,
                            .kernel = gg_context_kernel(run->context),
                            .passed_through = run->checkpoint.count - count};
  *text = run->arguments->form == GG_FORM_JSON ? gg_step_json(&result) : gg_step_text(&result);
  free(gradients);
  return *text != NULL || gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory for the report");
}

/* Writes aside, renames, reports. A report that cannot be shown takes the files back. */
static bool deliver(step_run* run, gg_problem* problem) {
  const bool refused = run->report.action == GG_REFUSED;
  char* text = NULL;
  bool good = make_report(run, &text, problem);
  if (good && !refused) {
    good = gg_step_write(&run->outputs, run->context, run->group, &run->checkpoint, run->arguments->amsgrad, problem) &&
           gg_outputs_publish(&run->outputs, problem);
  }
  good = good && gg_print_report(text, problem);
  if (good && !refused) {
    gg_outputs_finish(&run->outputs);
    run->outputs_open = false;
  }
  free(text);
  if (good && refused) {
    return gg_refuse(problem, GG_EXIT_NONFINITE, "%s; nothing was written",
                     run->report.reason == GG_REASON_MOMENT_OVERFLOW
                         ? "a second moment would become infinite, under --on-moment-overflow error"
                         : "non-finite gradients under --on-nonfinite error");
  }
  return good;
}

int gg_command_step(int argc, char** argv) {
  gg_step_arguments arguments;
  gg_problem problem = {.exit_code = GG_EXIT_OK};
  if (!gg_step_arguments_read(argc, argv, &arguments, &problem)) return gg_end_with_usage(COMMAND, &problem);
  if (arguments.help) return gg_print_report(gg_step_help, &problem) ? GG_EXIT_OK : gg_end_with(COMMAND, &problem);
  step_run run = {.arguments = &arguments};
  const bool good = open_files(&run, &problem) &&
                    gg_open_device(arguments.device, arguments.kernel, &run.context, &problem) &&
                    make_group(&run, &problem) && take_step(&run, &problem) && deliver(&run, &problem);
  if (run.outputs_open) gg_outputs_abandon(&run.outputs);
  const int skipped = run.report.action == GG_SKIPPED ? GG_EXIT_SKIPPED : GG_EXIT_OK;
  gg_group_destroy(&run.group);
  gg_device_release(&run.memory);
  gg_context_destroy(&run.context);
  gg_checkpoint_close(&run.checkpoint);
  return good ? skipped : gg_end_with(COMMAND, &problem);
}
