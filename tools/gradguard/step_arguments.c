#include "tools/gradguard/step_arguments.h"

#include <getopt.h>
#include <string.h>

const char gg_step_help[] =
    "usage: gradguard step --params FILE --grads FILE [--state FILE]\n"
    "                      --out-params FILE --out-state FILE [OPTIONS]\n"
    "\n"
    "One guarded AdamW step: measures the gradients, decides once for all of them (apply, skip or error), clips and\n"
    "updates, and writes new parameters and state. Files are safetensors; tensors match by name.\n"
    "\n"
    "Input and output:\n"
    "  --params FILE         parameters, F32; those without a gradient are copied unchanged, with their state\n"
    "  --grads FILE          gradients of the same shapes, F32, F16 or BF16\n"
    "  --state FILE          NAME.exp_avg, NAME.exp_avg_sq, NAME.max_exp_avg_sq (F32), NAME.step (I64 []);\n"
    "                        missing state is taken as zero\n"
    "  --out-params FILE     output file for the parameters; may be the file of --params\n"
    "  --out-state FILE      output file for the state; may be the file of --state\n"
    "\n"
    "AdamW:\n"
    "  --lr X                learning rate, >= 0 (0.001)\n"
    "  --beta1 X, --beta2 X  decay of the moments, in [0, 1) (0.9, 0.999)\n"
    "  --eps X               added to the denominator, > 0 (1e-8)\n"
    "  --weight-decay X      decoupled weight decay, >= 0 (0.01)\n"
    "  --amsgrad             keep and use the running maximum of the second moment\n"
    "  --maximize            negate the gradients\n"
    "\n"
    "Guard:\n"
    "  --grad-scale X        loss scale that the gradients are divided by, > 0 (1)\n"
    "  --max-norm X          clip to this global norm, >= 0 (no clipping)\n"
    "  --clip-epsilon X      coefficient = min(1, max-norm / (norm + X)), >= 0 (1e-6)\n"
    "  --on-nonfinite WHAT   NaN or Inf: skip: change nothing, exit 3; error: write nothing, exit 4 (skip)\n"
    "  --on-moment-overflow WHAT\n"
    "                        finite gradients so large that exp_avg_sq becomes infinite: apply: update and report\n"
    "                        it; skip, error: as above (apply)\n"
    "  --skip-update         do not check the gradients; change nothing, exit 3\n"
    "\n"
    "Run:\n"
    "  --device D            auto, cpu, opencl, cuda, or an id of `gradguard devices` (GRADGUARD_DEVICE, auto)\n"
    "  --kernel VARIANT      kernel variant of the device, as listed by `gradguard devices` (the best)\n"
    "  --in-place            update without second copies on the device; the results do not change\n"
    "  --report text|json    form of the report on stdout (text)\n"
    "  --help                this text\n"
    "\n"
    "Exit status: 0 applied, 3 skipped, 4 error under an error policy, 2 bad arguments or input,\n"
    "5 no such device, 1 any other failure. After 1, 2, 4 and 5 no output file was created or changed.\n";

/* Options that hold a number or a text are kept apart by range, so that one line reads each kind. */
enum option_code {
  OPTION_LR = 256,
  OPTION_BETA1,
  OPTION_BETA2,
  OPTION_EPS,
  OPTION_WEIGHT_DECAY,
  OPTION_GRAD_SCALE,
  OPTION_MAX_NORM,
  OPTION_CLIP_EPSILON,
  NUMBERS_END,
  OPTION_PARAMS,
  OPTION_GRADS,
  OPTION_STATE,
  OPTION_OUT_PARAMS,
  OPTION_OUT_STATE,
  OPTION_DEVICE,
  OPTION_KERNEL,
  TEXTS_END,
  OPTION_ON_NONFINITE,
  OPTION_ON_MOMENT_OVERFLOW,
  OPTION_REPORT,
  OPTION_AMSGRAD,
  OPTION_MAXIMIZE,
  OPTION_SKIP_UPDATE,
  OPTION_IN_PLACE,
  OPTION_HELP
};

static const struct option options[] = {
    {"lr", required_argument, NULL, OPTION_LR},
    {"beta1", required_argument, NULL, OPTION_BETA1},
    {"beta2", required_argument, NULL, OPTION_BETA2},
    {"eps", required_argument, NULL, OPTION_EPS},
    {"weight-decay", required_argument, NULL, OPTION_WEIGHT_DECAY},
    {"grad-scale", required_argument, NULL, OPTION_GRAD_SCALE},
    {"max-norm", required_argument, NULL, OPTION_MAX_NORM},
    {"clip-epsilon", required_argument, NULL, OPTION_CLIP_EPSILON},
    {"params", required_argument, NULL, OPTION_PARAMS},
    {"grads", required_argument, NULL, OPTION_GRADS},
    {"state", required_argument, NULL, OPTION_STATE},
    {"out-params", required_argument, NULL, OPTION_OUT_PARAMS},
    {"out-state", required_argument, NULL, OPTION_OUT_STATE},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"kernel", required_argument, NULL, OPTION_KERNEL},
    {"on-nonfinite", required_argument, NULL, OPTION_ON_NONFINITE},
    {"on-moment-overflow", required_argument, NULL, OPTION_ON_MOMENT_OVERFLOW},
    {"report", required_argument, NULL, OPTION_REPORT},
    {"amsgrad", no_argument, NULL, OPTION_AMSGRAD},
    {"maximize", no_argument, NULL, OPTION_MAXIMIZE},
    {"skip-update", no_argument, NULL, OPTION_SKIP_UPDATE},
    {"in-place", no_argument, NULL, OPTION_IN_PLACE},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static double* number_of(gg_step_arguments* arguments, int code) {
  double* const numbers[] = {&arguments->adamw.learning_rate, &arguments->adamw.beta1,
                             &arguments->adamw.beta2,         &arguments->adamw.epsilon,
                             &arguments->adamw.weight_decay,  &arguments->adamw.gradient_scale,
                             &arguments->guard.max_norm,      &arguments->guard.clip_epsilon};
  return numbers[code - OPTION_LR];
}

static const char** text_of(gg_step_arguments* arguments, int code) {
  const char** const texts[] = {&arguments->parameters,     &arguments->gradients, &arguments->state,
                                &arguments->out_parameters, &arguments->out_state, &arguments->device,
                                &arguments->kernel};
  return texts[code - OPTION_PARAMS];
}

static bool parse_nonfinite(const char* text, gg_nonfinite_policy* policy, gg_problem* problem) {
  gg_quoted quoted;
  if (strcmp(text, "skip") == 0) {
    *policy = GG_NONFINITE_SKIP;
  } else if (strcmp(text, "error") == 0) {
    *policy = GG_NONFINITE_ERROR;
  } else {
    return gg_refuse(problem, GG_EXIT_INPUT, "--on-nonfinite: %s is neither skip nor error", gg_quote(&quoted, text));
  }
  return true;
}

static bool parse_moment(const char* text, gg_moment_policy* policy, gg_problem* problem) {
  gg_quoted quoted;
  if (strcmp(text, "apply") == 0) {
    *policy = GG_MOMENT_APPLY;
  } else if (strcmp(text, "skip") == 0) {
    *policy = GG_MOMENT_SKIP;
  } else if (strcmp(text, "error") == 0) {
    *policy = GG_MOMENT_ERROR;
  } else {
    return gg_refuse(problem, GG_EXIT_INPUT, "--on-moment-overflow: %s is none of apply, skip and error",
                     gg_quote(&quoted, text));
  }
  return true;
}

static bool read_option(gg_step_arguments* arguments, int code, const char* name, gg_problem* problem) {
  if (code < NUMBERS_END) {
    char option[32] = "--";
    strncat(option, name, sizeof option - 3);
    if (code == OPTION_MAX_NORM) arguments->guard.clip = true;
    return gg_parse_number(option, optarg, number_of(arguments, code), problem);
  }
  if (code < TEXTS_END) {
    *text_of(arguments, code) = optarg;
    return true;
  }
  switch (code) {
    case OPTION_ON_NONFINITE:
      return parse_nonfinite(optarg, &arguments->guard.on_nonfinite, problem);
    case OPTION_ON_MOMENT_OVERFLOW:
      return parse_moment(optarg, &arguments->guard.on_moment_overflow, problem);
    case OPTION_REPORT:
      return gg_parse_form("--report", optarg, &arguments->form, problem);
    case OPTION_AMSGRAD:
      arguments->amsgrad = true;
      return true;
    case OPTION_MAXIMIZE:
      arguments->adamw.maximize = true;
      return true;
    case OPTION_SKIP_UPDATE:
      arguments->adamw.skip_update = true;
      return true;
    case OPTION_IN_PLACE:
      arguments->in_place = true;
      return true;
    default:
      arguments->help = true;
      return true;
  }
}

bool gg_step_arguments_read(int argc, char** argv, gg_step_arguments* arguments, gg_problem* problem) {
  *arguments = (gg_step_arguments){.adamw = GG_ADAMW_OPTIONS_INIT, .guard = GG_GUARD_OPTIONS_INIT};
  for (;;) {
    int index = 0;
    const int code = getopt_long(argc, argv, "", options, &index);
    if (code == -1) break;
    if (code == '?') return gg_refuse(problem, GG_EXIT_INPUT, "%s", "");
    if (!read_option(arguments, code, options[index].name, problem)) return false;
    if (arguments->help) return true;
  }
  return gg_refuse_rest(argc, argv, optind, problem) && gg_require("--params", arguments->parameters, problem) &&
         gg_require("--grads", arguments->gradients, problem) &&
         gg_require("--out-params", arguments->out_parameters, problem) &&
         gg_require("--out-state", arguments->out_state, problem);
}
