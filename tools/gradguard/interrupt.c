#include "tools/gradguard/interrupt.h"

#include <signal.h>
#include <unistd.h>

/* A handler can reach nothing but globals; these are the only ones of the tool. */
static const char* volatile unfinished[GG_INTERRUPT_PATHS];
static volatile sig_atomic_t holding, postponed;

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
#define ENDING (sizeof ending / sizeof ending[0])

/* A mask would hold signals back from one thread only, and backends have threads of their own: hence the flag. */
static void remove_and_end(int number) {
  if (holding) {
    postponed = number;
    return;
  }
  for (size_t i = 0; i < GG_INTERRUPT_PATHS; ++i) {
    if (unfinished[i] != NULL) unlink(unfinished[i]);
  }
  signal(number, SIG_DFL);
  raise(number);
}

void gg_interrupt_remember(size_t slot, const char* path) {
  unfinished[slot] = path;
  for (size_t i = 0; i < ENDING; ++i) {
    struct sigaction action;
    sigaction(ending[i], NULL, &action);
    if (action.sa_handler != SIG_DFL) continue; /* ignored by whoever started us (nohup), or already ours */
    action = (struct sigaction){.sa_handler = remove_and_end};
    sigemptyset(&action.sa_mask);
    sigaction(ending[i], &action, NULL);
  }
}

void gg_interrupt_forget(size_t slot) { unfinished[slot] = NULL; }

void gg_interrupt_hold(void) { holding = 1; }

void gg_interrupt_release(void) {
  holding = 0;
  if (postponed != 0) raise(postponed);
}
