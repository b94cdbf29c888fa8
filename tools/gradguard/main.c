/* gradguard: the guarded AdamW step from the command line. Dispatches to the subcommand. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tools/gradguard/command.h"
#include "tools/gradguard/report.h"
#include "tools/gradguard/streams.h"

static const char help[] =
    "usage: gradguard COMMAND [OPTIONS]\n"
    "\n"
    "Looks at gradients before they do harm, and takes one AdamW step with them.\n"
    "\n"
    "  devices    list devices, what they can do, and why one is unavailable\n"
    "  inspect    find NaN, Inf and overflow in a gradient file, and measure the rest\n"
    "  step       one guarded AdamW step on parameters, gradients and state from safetensors files\n"
    "  bench      measure the step on all devices (the program gradguard-bench)\n"
    "\n"
    "  --help     this text; `gradguard COMMAND --help` explains a command\n"
    "  --version  version and build\n";

typedef struct command {
  const char* name;
  const char* full_name;
  int (*run)(int argc, char** argv);
} command;

static const command commands[] = {
    {"devices", "gradguard devices", gg_command_devices},
    {"inspect", "gradguard inspect", gg_command_inspect},
    {"step", "gradguard step", gg_command_step},
    {"bench", "gradguard bench", gg_command_bench},
};

int gg_end_with(const char* name, const gg_problem* problem) {
  fprintf(stderr, "%s: %s\n", name, problem->text);
  return problem->exit_code;
}

int gg_end_with_usage(const char* name, const gg_problem* problem) {
  if (problem->text[0] != '\0') fprintf(stderr, "%s: %s\n", name, problem->text);
  fprintf(stderr, "`%s --help` explains the options\n", name);
  return problem->exit_code;
}

static int print(const char* text) {
  gg_problem problem = {.exit_code = GG_EXIT_OK};
  return gg_print_report(text, &problem) ? GG_EXIT_OK : gg_end_with("gradguard", &problem);
}

static int print_version(void) {
  char text[512];
  snprintf(text, sizeof text, "gradguard %s\n%s\n", gg_version_string(), gg_build_description());
  return print(text);
}

int main(int argc, char** argv) {
  gg_streams_occupy();
  /* A closed pipe and a file size limit are errors to report and clean up after, not to die of. */
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  gg_problem problem;
  if (argc < 2) {
    gg_refuse(&problem, GG_EXIT_INPUT, "a command is required: devices, inspect, step or bench");
    return gg_end_with_usage("gradguard", &problem);
  }
  if (strcmp(argv[1], "--help") == 0) return print(help);
  if (strcmp(argv[1], "--version") == 0) return print_version();
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
    if (strcmp(argv[1], commands[i].name) != 0) continue;
    char full_name[32]; /* what getopt begins its messages with */
    snprintf(full_name, sizeof full_name, "%s", commands[i].full_name);
    argv[1] = full_name;
    return commands[i].run(argc - 1, argv + 1);
  }
  gg_quoted quoted;
  gg_refuse(&problem, GG_EXIT_INPUT, "%s is not a command; there are devices, inspect, step and bench",
            gg_quote(&quoted, argv[1]));
  return gg_end_with_usage("gradguard", &problem);
}
