/* `gradguard inspect`: the non-finite values in a gradient dump, and the norms. */
#include <getopt.h>
#include <stdlib.h>

#include "tools/gradguard/command.h"
#include "tools/gradguard/device.h"
#include "tools/gradguard/report.h"

#define COMMAND "gradguard inspect"

static const char help[] =
    "usage: gradguard inspect --grads FILE [OPTIONS]\n"
    "\n"
    "Measures the gradients of a safetensors file (F32, F16, BF16): the norm of all tensors together and, for each\n"
    "tensor, its norm, its largest magnitude, and the kinds of non-finite values in it, with count and first index.\n"
    "\n"
    "  --grads FILE          the gradients\n"
    "  --grad-scale X        loss scale that they are divided by first, > 0 (1)\n"
    "  --device D            auto, cpu, opencl, cuda, or an id of `gradguard devices` (GRADGUARD_DEVICE, auto)\n"
    "  --kernel VARIANT      kernel variant of the device, as listed by `gradguard devices` (the best)\n"
    "  --report text|json    form of the report on stdout (text)\n"
    "  --help                this text\n"
    "\n"
    "Kinds: nan; inf (infinite as stored); overflow (finite as stored, but not after division by the scale).\n"
    "\n"
    "Exit status: 0 measured, whatever was found; 2 bad arguments or input; 5 no such device; 1 any other failure.\n";

typedef struct inspect_arguments {
  const char* gradients;
  const char* device;
  const char* kernel;
  double scale;
  gg_form form;
  bool help;
} inspect_arguments;

static const struct option options[] = {
    {"grads", required_argument, NULL, 'g'},
    {"grad-scale", required_argument, NULL, 's'},
    {"device", required_argument, NULL, 'd'},
    {"kernel", required_argument, NULL, 'k'},
    {"report", required_argument, NULL, 'r'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool read_option(inspect_arguments* arguments, int code, gg_problem* problem) {
  switch (code) {
    case 'g':
      arguments->gradients = optarg;
      return true;
    case 's':
      return gg_parse_number("--grad-scale", optarg, &arguments->scale, problem);
    case 'd':
      arguments->device = optarg;
      return true;
    case 'k':
      arguments->kernel = optarg;
      return true;
    case 'r':
      return gg_parse_form("--report", optarg, &arguments->form, problem);
    case 'h':
      arguments->help = true;
      return true;
    default: /* getopt has said what is wrong */
      return gg_refuse(problem, GG_EXIT_INPUT, "%s", "");
  }
}

static bool read_arguments(int argc, char** argv, inspect_arguments* arguments, gg_problem* problem) {
  *arguments = (inspect_arguments){.scale = 1.0};
  for (int code; (code = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (!read_option(arguments, code, problem)) return false;
    if (arguments->help) return true;
  }
  return gg_refuse_rest(argc, argv, optind, problem) && gg_require("--grads", arguments->gradients, problem);
}

/* ---- The work ---- */

/* Everything that has to be given back. */
typedef struct inspection {
  const inspect_arguments* arguments;
  gg_safetensors file;
  gg_context* context;
  gg_device_memory memory;
  gg_tensor* tensors;
  gg_report report;
  gg_tensor_report* measured;
  gg_nonfinite_census* census;
  const gg_stored_tensor** gradients;
} inspection;

static bool open_gradients(inspection* run, gg_problem* problem) {
  if (!gg_safetensors_open(run->arguments->gradients, &run->file, problem)) return false;
  for (size_t i = 0; i < run->file.count; ++i) {
    if (!gg_check_storable(&run->file, &run->file.tensors[i], "gradient", problem)) return false;
  }
  const size_t room = run->file.count + 1;
  run->tensors = calloc(room, sizeof *run->tensors);
  run->measured = calloc(room, sizeof *run->measured);
  run->census = calloc(room, sizeof *run->census);
  run->gradients = calloc(room, sizeof(gg_stored_tensor*));
  if (run->tensors == NULL || run->measured == NULL || run->census == NULL || run->gradients == NULL) {
    return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory");
  }
  for (size_t i = 0; i < run->file.count; ++i) run->gradients[i] = &run->file.tensors[i];
  return true;
}

static bool load(inspection* run, gg_problem* problem) {
  gg_content* contents = calloc(run->file.count + 1, sizeof *contents);
  if (contents == NULL) return gg_refuse(problem, GG_EXIT_FAILURE, "not enough memory");
  for (size_t i = 0; i < run->file.count; ++i) contents[i] = (gg_content){run->gradients[i], run->gradients[i]};
  const bool good = gg_device_load(run->context, contents, run->file.count, &run->memory, run->tensors, problem);
  free(contents);
  return good;
}

/* One pass over all; then only the tensors that it flagged are read back and counted. */
static bool measure(inspection* run, gg_problem* problem) {
  run->report = (gg_report)GG_REPORT_INIT;
  gg_status status = gg_gradient_stats(run->context, run->tensors, run->file.count, run->arguments->scale, &run->report,
                                       run->measured);
  if (status != GG_OK) return gg_refuse_context(problem, status, run->context, "measuring the gradients");
  run->report.per_tensor = run->report.measured ? run->measured : NULL;
  for (size_t i = 0; i < run->file.count; ++i) {
    run->census[i] = (gg_nonfinite_census)GG_NONFINITE_CENSUS_INIT;
    if (!run->report.measured || run->measured[i].nonfinite == 0) continue;
    status = gg_gradient_census(run->context, &run->tensors[i], run->arguments->scale, &run->census[i]);
    if (status != GG_OK) return gg_refuse_context(problem, status, run->context, "counting non-finite values");
  }
  return true;
}

static bool show(const inspection* run, gg_problem* problem) {
  gg_device_info device = {.size = (uint32_t)sizeof device};
  const gg_status status = gg_context_device(run->context, &device);
  if (status != GG_OK) return gg_refuse_context(problem, status, run->context, "describing the device");
  const gg_result result = {.report = &run->report,
                            .count = run->file.count,
                            .gradients = run->gradients,
                            .gradients_path = run->arguments->gradients,
                            .device = &device,
                            .kernel = gg_context_kernel(run->context),
                            .census = run->census};
  char* text = run->arguments->form == GG_FORM_JSON ? gg_inspect_json(&result) : gg_inspect_text(&result);
  const bool good = gg_print_report(text, problem);
  free(text);
  return good;
}

int gg_command_inspect(int argc, char** argv) {
  inspect_arguments arguments;
  gg_problem problem = {.exit_code = GG_EXIT_OK};
  if (!read_arguments(argc, argv, &arguments, &problem)) return gg_end_with_usage(COMMAND, &problem);
  if (arguments.help) return gg_print_report(help, &problem) ? GG_EXIT_OK : gg_end_with(COMMAND, &problem);
  inspection run = {.arguments = &arguments};
  const bool good = open_gradients(&run, &problem) &&
                    gg_open_device(arguments.device, arguments.kernel, &run.context, &problem) &&
                    load(&run, &problem) && measure(&run, &problem) && show(&run, &problem);
  gg_device_release(&run.memory);
  gg_context_destroy(&run.context);
  free(run.tensors);
  free(run.measured);
  free(run.census);
  free(run.gradients);
  gg_safetensors_close(&run.file);
  return good ? GG_EXIT_OK : gg_end_with(COMMAND, &problem);
}
