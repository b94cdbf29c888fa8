/* A line of progress on stderr: only for a terminal, and only for work of a size that takes time. */
#ifndef GG_TOOL_PROGRESS_H
#define GG_TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct gg_progress {
  const char* doing;
  uint64_t total, done; /* bytes */
  bool shown;
  struct timespec last;
} gg_progress;

void gg_progress_begin(gg_progress* progress, const char* doing, uint64_t total);
void gg_progress_add(gg_progress* progress, uint64_t bytes);
/* Removes the line. */
void gg_progress_end(gg_progress* progress);

#endif
