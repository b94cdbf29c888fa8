/* The standard streams that a program was started with. */
#ifndef GG_TOOL_STREAMS_H
#define GG_TOOL_STREAMS_H

/* To be called first. A program may be started with standard input, output or error closed. The next file that it opens
 * would then get that number, and what the program or a driver prints would end up inside it. This occupies the
 * numbers; reading or writing there still fails. */
void gg_streams_occupy(void);

#endif
