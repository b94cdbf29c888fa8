/* `gradguard bench`: the benchmark is a program of its own, beside this one or in PATH. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/gradguard/command.h"

#define PROGRAM "gradguard-bench"

int gg_command_bench(int argc, char** argv) {
  (void)argc;
  char path[PATH_MAX + sizeof PROGRAM];
  const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  argv[0] = PROGRAM;
  if (length > 0) {
    path[length] = '\0';
    char* slash = strrchr(path, '/');
    if (slash != NULL) {
      memcpy(slash + 1, PROGRAM, sizeof PROGRAM);
      execv(path, argv);
    }
  }
  execvp(PROGRAM, argv);
  gg_problem problem;
  gg_refuse(&problem, GG_EXIT_FAILURE,
            "the program " PROGRAM " was not found beside gradguard or in PATH (%s); `scons bench` builds it",
            strerror(errno));
  return gg_end_with("gradguard bench", &problem);
}
