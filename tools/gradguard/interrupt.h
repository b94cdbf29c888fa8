/* Removes unfinished files when a signal, or a library that calls exit, ends the program. */
#ifndef GG_TOOL_INTERRUPT_H
#define GG_TOOL_INTERRUPT_H

#include <stddef.h>

#define GG_INTERRUPT_PATHS 2

/* `path` must stay valid until gg_interrupt_forget(slot). */
void gg_interrupt_remember(size_t slot, const char* path);
void gg_interrupt_forget(size_t slot);

/* Signals that would end the program wait between these two. */
void gg_interrupt_hold(void);
void gg_interrupt_release(void);

#endif
