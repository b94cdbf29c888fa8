/*
 * A trial: a group made from plain host arrays, with what each array is expected to hold. Every tensor lies in a buffer
 * of its own between canaries, so that a write out of bounds is seen. The life of one:
 *
 *   gg_trial* trial = gg_trial_create(specs, count, mode, amsgrad);  arrays: gradient 0, p 1, m 0, v 0
 *   gg_trial_fill(trial, &random, GG_ORDINARY);                       or set trial->entries[i] by hand
 *   gg_trial_open(trial, context);                                    uploads, makes the group
 *   gg_trial_expect(trial, &adamw, &guard, &decision);                the scalar model steps the arrays
 *   gg_guarded_adamw_step(trial->group, ...), commit
 *   gg_trial_check(trial);                                            every bit on the device, and the canaries
 *   gg_trial_destroy(&trial);
 */
#ifndef GG_TESTS_SUPPORT_TRIAL_H
#define GG_TESTS_SUPPORT_TRIAL_H

#include "api/gradguard.h"
#include "tests/support/model.h"
#include "tests/support/random.h"

typedef struct gg_trial_spec {
  uint64_t elements;
  gg_dtype gradient; /* 0 means GG_F32 */
  gg_dtype model;    /* 0: no model copy */
  uint32_t shift;    /* elements by which every tensor starts behind an aligned address */
  uint64_t step;     /* completed steps */
} gg_trial_spec;

typedef struct gg_trial_entry {
  gg_trial_spec spec;
  void* gradient;
  float* states[4]; /* what p, m, v and vmax are expected to be; vmax only for AMSGrad */
  uint16_t* copy;   /* the same for the model copy */
  uint64_t step;    /* and for the counter */
  gg_buffer* buffers[GG_ROLES];
  gg_triple triple; /* the model's statistics of the gradient in the last gg_trial_expect */
} gg_trial_entry;

/* Gives a buffer of memory that a test has made itself. */
typedef gg_buffer* (*gg_trial_allocate)(gg_context* context, uint64_t bytes, void* user);

typedef struct gg_trial {
  gg_trial_allocate allocate; /* NULL: gg_buffer_create */
  void* allocate_user;
  gg_context* context;
  gg_group* group;
  gg_update_mode mode;
  bool amsgrad;
  size_t count;
  gg_trial_entry* entries;
} gg_trial;

gg_trial* gg_trial_create(const gg_trial_spec* specs, size_t count, gg_update_mode mode, bool amsgrad);
void gg_trial_destroy(gg_trial** trial);

/* Random gradients of a kind and ordinary parameters and moments; before opening. */
void gg_trial_fill(gg_trial* trial, gg_random* random, gg_magnitudes gradients);

/* New random gradients, uploaded if the trial is open. */
void gg_trial_fill_gradients(gg_trial* trial, gg_random* random, gg_magnitudes gradients);

/* Makes the buffers and the group. The second form makes the buffers and gives the entries instead of a group; the
 * array belongs to the caller (free). */
void gg_trial_open(gg_trial* trial, gg_context* context);
gg_entry* gg_trial_open_entries(gg_trial* trial, gg_context* context);

/* Uploads the gradients again after a change. */
void gg_trial_upload_gradients(gg_trial* trial);

/* What a step must do, by the scalar model; `guard` NULL is the plain step. `decision` may be NULL. A step that is
 * refused or skipped changes nothing. */
void gg_trial_expect(gg_trial* trial, const gg_adamw_options* options, const gg_guard_options* guard,
                     gg_decision* decision);

/* Steps the group, commits, and checks the report against the model. `guard` NULL is the plain step. */
void gg_trial_step(gg_trial* trial, const gg_adamw_options* options, const gg_guard_options* guard);

/* Reads all tensors back: parameters, states, model copies and steps are as expected to the bit, gradients unchanged,
 * canaries whole. */
void gg_trial_check(const gg_trial* trial);

/* The current values of one tensor of the group, as raw bytes; `values` holds the tensor's elements. */
void gg_trial_read(const gg_trial* trial, size_t entry, gg_role role, void* values);

#endif
