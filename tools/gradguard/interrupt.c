#include "tools/gradguard/interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* A signal handler can only use globals; these are the only ones of the tool. */
static const char* volatile unfinished[GG_INTERRUPT_PATHS];
static volatile sig_atomic_t holding, postponed;
static bool registered;

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
#define ENDING (sizeof ending / sizeof ending[0])

static void remove_unfinished(void) {
  for (size_t i = 0; i < GG_INTERRUPT_PATHS; ++i) {
    if (unfinished[i] != NULL) unlink(unfinished[i]);
  }
}

/* A mask would hold signals back from one thread only, and backends have threads of their own: hence the flag. */
static void remove_and_end(int number) {
  if (holding) {
    postponed = number;
    return;
  }
  remove_unfinished();
  signal(number, SIG_DFL);
  raise(number);
}

void gg_interrupt_remember(size_t slot, const char* path) {
  unfinished[slot] = path;
  /* Others end the program too: OpenMP's library calls exit when the system refuses it a thread. */
  if (!registered) registered = atexit(remove_unfinished) == 0;
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
