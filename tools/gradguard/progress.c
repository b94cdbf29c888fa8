#include "tools/gradguard/progress.h"

#include <stdio.h>
#include <unistd.h>

#define LARGE_BYTES     (UINT64_C(64) << 20)
#define INTERVAL_MILLIS 100

static void show(const gg_progress* progress) {
  fprintf(stderr, "\r%s %3d %% of %.1f MiB ", progress->doing,
          (int)(100.0 * ((double)progress->done / (double)progress->total)), (double)progress->total / 1048576.0);
  fflush(stderr);
}

void gg_progress_begin(gg_progress* progress, const char* doing, uint64_t total) {
  *progress = (gg_progress){.doing = doing, .total = total};
  progress->shown = total >= LARGE_BYTES && isatty(STDERR_FILENO);
  if (!progress->shown) return;
  clock_gettime(CLOCK_MONOTONIC, &progress->last);
  show(progress);
}

void gg_progress_add(gg_progress* progress, uint64_t bytes) {
  progress->done += bytes;
  if (!progress->shown) return;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t millis =
      (now.tv_sec - progress->last.tv_sec) * INT64_C(1000) + (now.tv_nsec - progress->last.tv_nsec) / 1000000;
  if (millis < INTERVAL_MILLIS) return;
  progress->last = now;
  show(progress);
}

void gg_progress_end(gg_progress* progress) {
  if (progress->shown) fputs("\r\033[K", stderr);
  progress->shown = false;
}
