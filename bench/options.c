#include "bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/formulas.h"
#include "tools/gradguard/arguments.h"

/* "staged" is the name of the unfused path. */
const char* const gg_bench_path_names[GG_BENCH_PATHS] = {"fused", "staged", "plain", "stats"};

static const char help[] =
    "usage: gradguard-bench [OPTION...]\n"
    "\n"
    "Times whole steps, including host decision and synchronisation, and compares them with a plain copy of the same\n"
    "number of bytes on the same device in the same run. Compares the results of paths and devices bit by bit.\n"
    "\n"
    "  --device D        a device as listed by `gradguard devices`; repeatable (default: all available ones)\n"
    "  --kernel K        a kernel variant of the preceding device, or \"all\"; repeatable (default: the best)\n"
    "  --shapes S        llama-1.2b, gpt2-124m, small-5000x1000, tiny-4x65536, or TxN: T tensors of N elements\n"
    "                    (default 16x1000000)\n"
    "  --dtype T         of the gradients: f32, f16 or bf16 (default f32)\n"
    "  --amsgrad         keep the maximum of the second moment\n"
    "  --mode M          in-place or out-of-place (default in-place)\n"
    "  --path P          fused: the guarded step; staged: the same with a separate unscale-and-clip kernel that\n"
    "                    writes an FP32 temporary; plain: no checks and no clipping; stats: statistics only. "
    "Repeatable\n"
    "                    (default fused and staged)\n"
    "  --samples N       timed steps in a batch (default 5)\n"
    "  --batches N       batches of each path, alternating (default 3)\n"
    "  --warmup N        steps before the timed ones in each batch (default 2)\n"
    "  --grad-scale S    loss scale of the gradients (default 1024)\n"
    "  --max-norm X      clipping limit (default 1)\n"
    "  --seed N          of the random data (default: from the clock; it is printed)\n"
    "  --json FILE       write all measurements, including raw samples\n"
    "  --list-shapes     print the named sets of tensors as JSON and exit\n"
    "  --quick           few samples, for a first look\n"
    "  --help\n"
    "\n"
    "Exit status: 0; 1 if results differ or something failed; 2 for bad arguments; 5 if there is no such device.\n";

enum {
  OPT_DEVICE = 256,
  OPT_KERNEL,
  OPT_SHAPES,
  OPT_DTYPE,
  OPT_AMSGRAD,
  OPT_MODE,
  OPT_PATH,
  OPT_SAMPLES,
  OPT_BATCHES,
  OPT_WARMUP,
  OPT_SCALE,
  OPT_NORM,
  OPT_SEED,
  OPT_JSON,
  OPT_LIST,
  OPT_QUICK,
  OPT_HELP
};

static const struct option long_options[] = {{"device", required_argument, NULL, OPT_DEVICE},
                                             {"kernel", required_argument, NULL, OPT_KERNEL},
                                             {"shapes", required_argument, NULL, OPT_SHAPES},
                                             {"dtype", required_argument, NULL, OPT_DTYPE},
                                             {"amsgrad", no_argument, NULL, OPT_AMSGRAD},
                                             {"mode", required_argument, NULL, OPT_MODE},
                                             {"path", required_argument, NULL, OPT_PATH},
                                             {"samples", required_argument, NULL, OPT_SAMPLES},
                                             {"batches", required_argument, NULL, OPT_BATCHES},
                                             {"warmup", required_argument, NULL, OPT_WARMUP},
                                             {"grad-scale", required_argument, NULL, OPT_SCALE},
                                             {"max-norm", required_argument, NULL, OPT_NORM},
                                             {"seed", required_argument, NULL, OPT_SEED},
                                             {"json", required_argument, NULL, OPT_JSON},
                                             {"list-shapes", no_argument, NULL, OPT_LIST},
                                             {"quick", no_argument, NULL, OPT_QUICK},
                                             {"help", no_argument, NULL, OPT_HELP},
                                             {NULL, 0, NULL, 0}};

static bool parse_count(const char* option, const char* text, double least, double most, double* value,
                        gg_problem* problem) {
  if (!gg_parse_number(option, text, value, problem)) return false;
  if (*value >= least && *value <= most && *value == (double)(uint64_t)*value) return true;
  return gg_refuse(problem, GG_EXIT_INPUT, "%s: %s is not a whole number from %.0f to %.0f", option, text, least, most);
}

static bool parse_small(const char* option, const char* text, uint32_t least, uint32_t* value, gg_problem* problem) {
  double number;
  if (!parse_count(option, text, least, 1e6, &number, problem)) return false;
  *value = (uint32_t)number;
  return true;
}

/* The place of `text` in a list of words, or -1 with a problem. */
static int parse_word(const char* option, const char* text, const char* const* words, size_t count,
                      gg_problem* problem) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(text, words[i]) == 0) return (int)i;
  gg_quoted quoted;
  gg_refuse(problem, GG_EXIT_INPUT, "%s: there is no %s", option, gg_quote(&quoted, text));
  return -1;
}

static bool add_target(gg_bench_options* options, const char* device, const char* kernel, gg_problem* problem) {
  if (options->target_count == GG_BENCH_TARGETS)
    return gg_refuse(problem, GG_EXIT_INPUT, "at most %d devices and variants can be measured at once",
                     GG_BENCH_TARGETS);
  gg_bench_target* target = &options->targets[options->target_count];
  if (strlen(device) >= sizeof target->device || strlen(kernel) >= sizeof target->kernel)
    return gg_refuse(problem, GG_EXIT_INPUT, "the name of a device has at most %zu characters, that of a variant %zu",
                     sizeof target->device - 1, sizeof target->kernel - 1);
  options->target_count++;
  snprintf(target->device, sizeof target->device, "%s", device);
  snprintf(target->kernel, sizeof target->kernel, "%s", kernel);
  return true;
}

/* Adds a target for each variant that the device's information lists. */
static bool add_all_variants(gg_bench_options* options, const char* device, gg_problem* problem) {
  gg_context* context = NULL;
  gg_error error = GG_ERROR_INIT;
  gg_status status = gg_context_create(device, NULL, &context, &error);
  if (status != GG_OK) return gg_refuse_error(problem, status, &error, device);
  gg_device_info info = {.size = sizeof info};
  gg_context_device(context, &info);
  gg_context_destroy(&context);
  bool good = true;
  char* rest = NULL;
  for (char* variant = strtok_r(info.kernels, " ", &rest); variant != NULL && good;
       variant = strtok_r(NULL, " ", &rest))
    good = add_target(options, info.id, variant, problem);
  return good;
}

/* A variant belongs to the device named last. The first one replaces "the best", further ones make further targets. */
static bool add_kernel(gg_bench_options* options, const char* kernel, gg_problem* problem) {
  if (options->target_count == 0)
    return gg_refuse(problem, GG_EXIT_INPUT, "--kernel must follow the --device that it belongs to");
  gg_bench_target last = options->targets[options->target_count - 1];
  if (last.kernel[0] == '\0') options->target_count--;
  if (strcmp(kernel, "all") == 0) return add_all_variants(options, last.device, problem);
  return add_target(options, last.device, kernel, problem);
}

static bool add_present_devices(gg_bench_options* options, gg_problem* problem) {
  gg_device_info infos[GG_BENCH_TARGETS];
  size_t count = 0;
  gg_error error = GG_ERROR_INIT;
  infos[0].size = sizeof infos[0];
  gg_status status = gg_devices(infos, GG_BENCH_TARGETS, &count, &error);
  if (status != GG_OK) return gg_refuse_error(problem, status, &error, "listing the devices");
  bool good = true;
  for (size_t i = 0; i < count && i < GG_BENCH_TARGETS && good; i++)
    if (infos[i].available) good = add_target(options, infos[i].id, "", problem);
  return good;
}

static bool take_shapes(gg_bench_options* options, const char* name, gg_problem* problem) {
  gg_bench_free_shapes(&options->shapes);
  if (gg_bench_find_shapes(name, &options->shapes)) return true;
  gg_quoted quoted;
  return gg_refuse(problem, GG_EXIT_INPUT, "--shapes: there is no set of tensors %s", gg_quote(&quoted, name));
}

static bool take_word(gg_bench_options* options, int option, const char* text, bool* any_path, gg_problem* problem) {
  static const char* const dtypes[] = {"f32", "f16", "bf16"};
  static const char* const modes[] = {"out-of-place", "in-place"};
  int word;
  if (option == OPT_DTYPE) {
    if ((word = parse_word("--dtype", text, dtypes, 3, problem)) >= 0) options->dtype = (gg_dtype)(word + 1);
  } else if (option == OPT_MODE) {
    if ((word = parse_word("--mode", text, modes, 2, problem)) >= 0) options->mode = (gg_update_mode)word;
  } else {
    word = parse_word("--path", text, gg_bench_path_names, GG_BENCH_PATHS, problem);
    if (word >= 0) options->paths[word] = *any_path = true;
  }
  return word >= 0;
}

static bool take_number(gg_bench_options* options, int option, const char* text, gg_problem* problem) {
  double seed;
  switch (option) {
    case OPT_SAMPLES:
      return parse_small("--samples", text, 1, &options->samples, problem);
    case OPT_BATCHES:
      return parse_small("--batches", text, 1, &options->batches, problem);
    case OPT_WARMUP:
      return parse_small("--warmup", text, 0, &options->warmup, problem);
    case OPT_SCALE:
      return gg_parse_number("--grad-scale", text, &options->gradient_scale, problem);
    case OPT_NORM:
      return gg_parse_number("--max-norm", text, &options->max_norm, problem);
    default:
      if (!parse_count("--seed", text, 0, 9007199254740992.0, &seed, problem)) return false;
      options->seed = (uint64_t)seed;
      return true;
  }
}

static void list_shapes(void) {
  printf("{");
  for (size_t n = 0; gg_bench_shape_names[n] != NULL; n++) {
    gg_bench_shapes shapes;
    if (!gg_bench_find_shapes(gg_bench_shape_names[n], &shapes)) continue;
    printf("%s\n  \"%s\": [", n > 0 ? "," : "", shapes.name);
    for (size_t i = 0; i < shapes.count; i++) {
      const gg_bench_shape* shape = &shapes.shapes[i];
      printf(shape->columns > 1 ? "%s[%lld, %lld]" : "%s[%lld]", i > 0 ? ", " : "", (long long)shape->rows,
             (long long)shape->columns);
    }
    printf("]");
    gg_bench_free_shapes(&shapes);
  }
  printf("\n}\n");
}

static bool vanishes(double value, gg_dtype dtype) {
  float rounded = (float)value;
  return dtype == GG_F16    ? gg_float_to_half(rounded) == 0
         : dtype == GG_BF16 ? gg_float_to_bf16(rounded) == 0
                            : rounded == 0;
}

/* Steps that are skipped, or on zeros, would measure something else. */
static bool check_scale(const gg_bench_options* options, gg_problem* problem) {
  static const double largest[] = {[GG_F32] = 0x1.fffffep127, [GG_F16] = 65504, [GG_BF16] = 0x1.fep127};
  double limit = GG_BENCH_GRADIENT * options->gradient_scale;
  if (!(limit > 0))
    return gg_refuse(problem, GG_EXIT_INPUT, "--grad-scale: %g is not above 0", options->gradient_scale);
  if (limit <= largest[options->dtype] && !vanishes(limit / 1024, options->dtype)) return true;
  return gg_refuse(problem, GG_EXIT_INPUT, "--grad-scale: gradients up to %g with a loss scale of %g %s %s",
                   GG_BENCH_GRADIENT, options->gradient_scale, limit > 1 ? "overflow" : "underflow in",
                   gg_dtype_name(options->dtype));
}

/* A file that cannot be written is better known before hours of measuring than after them. */
static bool check_json(const gg_bench_options* options, gg_problem* problem) {
  if (options->json == NULL) return true;
  FILE* file = fopen(options->json, "a");
  if (file == NULL)
    return gg_refuse(problem, GG_EXIT_FAILURE, "%s cannot be written: %s", options->json, strerror(errno));
  fclose(file);
  return true;
}

static int stop(const gg_problem* problem) {
  fprintf(stderr, "gradguard-bench: %s\n", problem->text);
  return (int)problem->exit_code;
}

static void set_defaults(gg_bench_options* options) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *options = (gg_bench_options){.dtype = GG_F32,
                                .mode = GG_IN_PLACE,
                                .samples = 5,
                                .batches = 3,
                                .warmup = 2,
                                .gradient_scale = 1024,
                                .max_norm = 1,
                                .seed = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000};
}

static bool take_option(gg_bench_options* options, int option, bool* any_path, gg_problem* problem) {
  switch (option) {
    case OPT_DEVICE:
      return add_target(options, optarg, "", problem);
    case OPT_KERNEL:
      return add_kernel(options, optarg, problem);
    case OPT_SHAPES:
      return take_shapes(options, optarg, problem);
    case OPT_DTYPE:
    case OPT_MODE:
    case OPT_PATH:
      return take_word(options, option, optarg, any_path, problem);
    case OPT_AMSGRAD:
      options->amsgrad = true;
      return true;
    case OPT_JSON:
      options->json = optarg;
      return true;
    case OPT_QUICK:
      options->samples = 3, options->batches = 2, options->warmup = 1;
      return true;
    default:
      return take_number(options, option, optarg, problem);
  }
}

int gg_bench_parse(int argc, char** argv, gg_bench_options* options) {
  gg_problem problem;
  bool any_path = false;
  set_defaults(options);
  for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
    if (option == '?') return GG_EXIT_INPUT; /* getopt_long has said why */
    if (option == OPT_HELP) return fputs(help, stdout), GG_EXIT_OK;
    if (option == OPT_LIST) return list_shapes(), GG_EXIT_OK;
    if (!take_option(options, option, &any_path, &problem)) return stop(&problem);
  }
  if (!gg_refuse_rest(argc, argv, optind, &problem)) return stop(&problem);
  if (options->shapes.shapes == NULL && !take_shapes(options, "16x1000000", &problem)) return stop(&problem);
  if (!any_path) options->paths[GG_BENCH_FUSED] = options->paths[GG_BENCH_UNFUSED] = true;
  if (!check_scale(options, &problem) || !check_json(options, &problem)) return stop(&problem);
  if (options->target_count == 0 && !add_present_devices(options, &problem)) return stop(&problem);
  return -1;
}
