/* Parameters, gradients and optimizer state from files, matched by name. */
#ifndef GG_TOOL_CHECKPOINT_H
#define GG_TOOL_CHECKPOINT_H

#include "tools/gradguard/safetensors.h"

/* The optimizer state of one parameter, in the files as NAME.exp_avg and so on. */
typedef enum gg_moment {
  GG_MOMENT_EXP_AVG = 0,
  GG_MOMENT_EXP_AVG_SQ = 1,
  GG_MOMENT_MAX_EXP_AVG_SQ = 2,
  GG_MOMENT_STEP = 3
} gg_moment;
#define GG_MOMENTS 4
extern const char* const gg_moment_suffix[GG_MOMENTS]; /* ".exp_avg" and so on */

/* One parameter with what belongs to it; absent things are NULL. */
typedef struct gg_slot {
  const gg_stored_tensor* parameter;
  const gg_stored_tensor* gradient;
  const gg_stored_tensor* moments[GG_MOMENTS];
  size_t entry; /* where the parameter has a gradient: its index in the group */
} gg_slot;

typedef struct gg_checkpoint {
  gg_safetensors parameters, gradients, state;
  gg_slot* slots; /* one for each parameter, in the order of the parameter file's data */
  size_t count;
  size_t entries; /* slots with a gradient */
} gg_checkpoint;

/* Opens the files (`state` may be NULL: no state yet) and matches them. Refuses a gradient or a state entry without a
 * parameter, and a dtype or shape that does not fit, naming it. */
bool gg_checkpoint_open(gg_checkpoint* checkpoint, const char* parameters, const char* gradients, const char* state,
                        bool amsgrad, gg_problem* problem);
void gg_checkpoint_close(gg_checkpoint* checkpoint);

/* Completed steps according to the state file; 0 if it says nothing. */
uint64_t gg_slot_step(const gg_slot* slot);

#endif
