/* The subcommands. Each takes its own words, argv[0] being its full name, and returns the exit code. */
#ifndef GG_TOOL_COMMAND_H
#define GG_TOOL_COMMAND_H

#include "tools/gradguard/problem.h"

int gg_command_devices(int argc, char** argv);
int gg_command_inspect(int argc, char** argv);
int gg_command_step(int argc, char** argv);
int gg_command_bench(int argc, char** argv);

/* Prints `problem` to stderr as "COMMAND: text" and returns its exit code. */
int gg_end_with(const char* command, const gg_problem* problem);

/* For wrong usage: the same, and where help is. */
int gg_end_with_usage(const char* command, const gg_problem* problem);

#endif
