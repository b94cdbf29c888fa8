/*
 * Output files of which either all appear, whole, or none: everything is written aside and synced, then renamed; a
 * rename that fails takes the earlier ones back.
 *
 *   prepare -> write (each) -> publish -> finish
 *
 * gg_outputs_abandon is allowed after any of the first three and leaves every path as it was before prepare.
 */
#ifndef GG_TOOL_OUTPUT_H
#define GG_TOOL_OUTPUT_H

#include <sys/types.h>

#include "tools/gradguard/problem.h"
#include "tools/gradguard/progress.h"

#define GG_OUTPUT_FILES 2

typedef struct gg_output {
  const char* asked; /* the path as the user gave it */
  char* path;        /* with symbolic links followed */
  char* aside;       /* the file that is being written; NULL once it is renamed */
  char* backup;      /* the file that was there before; NULL if there was none */
  int descriptor;
  bool existed;
  bool published;
} gg_output;

typedef struct gg_outputs {
  gg_output files[GG_OUTPUT_FILES];
} gg_outputs;

/* Bytes to write: from host memory or, where `buffer` is not NULL, from a device buffer. */
typedef struct gg_piece {
  const void* host;
  const gg_buffer* buffer;
  uint64_t offset;
  uint64_t bytes;
} gg_piece;

/* Creates the files aside; refuses a path that is not to be replaced by a file, and two names of one file. While they
 * exist SIGINT, SIGTERM and SIGHUP remove them before they end the program. */
bool gg_outputs_prepare(gg_outputs* outputs, const char* const paths[GG_OUTPUT_FILES], gg_problem* problem);

/* Writes a whole file aside and syncs it. `context` is where device pieces live. */
bool gg_output_write(gg_output* output, gg_context* context, const gg_piece* pieces, size_t count,
                     gg_progress* progress, gg_problem* problem);

/* Renames all. From here to finish or abandon the signals above wait. */
bool gg_outputs_publish(gg_outputs* outputs, gg_problem* problem);

void gg_outputs_finish(gg_outputs* outputs);
void gg_outputs_abandon(gg_outputs* outputs);

#endif
