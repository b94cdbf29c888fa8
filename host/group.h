/*
 * A group: entries, validated once, and their device form. The update reads each state at one place and writes it at
 * another; in place the two are the same. Out of place a state has up to three places: 0 the caller's own, 1 the
 * group's second buffer, 2 its third one, which only states in wrapped memory have, since those may not be written.
 */
#ifndef GG_HOST_GROUP_H
#define GG_HOST_GROUP_H

#include "host/buffer.h"

/* States, and then the model copy, which is written but never read. */
#define GG_WRITTEN_MODEL GG_STATES
#define GG_WRITTEN       (GG_STATES + 1)
#define GG_PLACES        3

typedef struct gg_place {
  gg_buffer* buffer; /* NULL: absent, or not made yet */
  uint64_t offset;
} gg_place;

typedef struct gg_member {
  char* name; /* may be NULL */
  uint64_t elements;
  uint64_t step;
  gg_tensor tensors[GG_ROLES]; /* as the caller gave them; buffers are retained */
  gg_place places[GG_WRITTEN][GG_PLACES];
} gg_member;

/* A submitted step. */
struct gg_pending {
  gg_group* group;
  bool active;
  bool submitted; /* an update has been queued */
  bool finished;  /* and the device has reported success */
  gg_error fault; /* what went wrong while it ran; status GG_OK if nothing has */
};

struct gg_group {
  gg_context* context;
  gg_update_mode mode;
  bool amsgrad;
  size_t count;
  gg_member* members;
  uint32_t rows;
  size_t* entry_of_row; /* non-empty entries, largest first */
  uint64_t elements;
  bool wrapped;      /* some state is in memory that the caller wrapped */
  bool uniform;      /* every row is at the same step, and stays so */
  uint64_t farthest; /* the largest step of any row */
  bool in_order;     /* each row is the entry of its number */

  /* Where the current values are: phase 0 is the caller's own places. A commit out of place moves on to the next. */
  unsigned phase;
  gg_table* tables[GG_PLACES]; /* what a step in that phase works on; NULL: not made yet */
  gg_buffer** slabs;           /* hold the second and third buffers */
  size_t slab_count;

  gg_bias* bias; /* one for each row */
  bool broken;   /* a fault in place: nobody knows what the memory holds */
  gg_pending pending;
  gg_report report;             /* of the last step; per_tensor is filled in when it is asked for */
  gg_tensor_report* per_tensor; /* one for each entry */
  gg_triple* triples;           /* where statistics are put in the entries' order */
  const gg_triple* statistics;  /* of the last step, by entry */
};

/* gg_group_create for arguments that are not NULL. Without `prepare` only the first real step calls the device. */
gg_status gg_group_make(gg_context* context, const gg_entry* entries, size_t count, const gg_group_options* options,
                        bool prepare, gg_group** group);

/* GG_PARAMETER and so on, of a state or GG_WRITTEN_MODEL. */
gg_role gg_role_of(unsigned written);

/* Whether a member has this tensor. */
bool gg_member_writes(const gg_member* member, unsigned written);

/* Whether its places 1 and 2 take turns, because its own memory was wrapped. */
bool gg_member_is_wrapped(const gg_member* member, unsigned written);

/* Which of the places is current in a phase, and what the phase after it is (places.c). */
unsigned gg_place_in_phase(const gg_member* member, unsigned written, unsigned phase);
unsigned gg_phase_after(const gg_group* group, unsigned phase);

/* Makes what a step in the present phase needs: second buffers and the table (places.c). */
gg_status gg_group_prepare(gg_group* group, const char* function);

/* Nothing that is written may appear anywhere else in the group (overlap.c). */
gg_status gg_check_overlap(const gg_group* group, const char* function);

/* Device memory of the tables made so far. */
uint64_t gg_group_scratch(const gg_group* group);

#endif
