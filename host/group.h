/*
 * A group: entries, validated once, and their device tables. The update reads each state from one place and writes it
 * to another; in place the two are the same. Out of place, a state has up to three places: 0 is the caller's own
 * memory, 1 the group's second buffer, and 2 a third buffer, only for states in wrapped memory, which must not be
 * written.
 */
#ifndef GG_HOST_GROUP_H
#define GG_HOST_GROUP_H

#include "host/buffer.h"

/* The states, followed by the model copy, which is written but never read. */
#define GG_WRITTEN_MODEL GG_STATES
#define GG_WRITTEN       (GG_STATES + 1)
#define GG_PLACES        3

typedef struct gg_place {
  gg_buffer* buffer; /* NULL: absent, or not created yet */
  uint64_t offset;
} gg_place;

typedef struct gg_member {
  char* name; /* may be NULL */
  uint64_t elements;
  uint64_t step;
  gg_tensor tensors[GG_ROLES]; /* as passed by the caller; buffers are retained */
  gg_place places[GG_WRITTEN][GG_PLACES];
} gg_member;

/* A submitted step. */
struct gg_pending {
  gg_group* group;
  bool active;
  bool submitted; /* an update has been queued */
  bool finished;  /* the device has completed it successfully */
  gg_error fault; /* the error while it was running; status GG_OK if none */
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
  bool uniform;      /* all rows are at the same step, and stay so */
  uint64_t farthest; /* the largest step of any row */
  bool in_order;     /* row i is entry i */

  /* Where the current values are: in phase 0, in the caller's memory. An out-of-place commit moves to the next phase.
   */
  unsigned phase;
  gg_table* tables[GG_PLACES]; /* the table of each phase; NULL: not created yet */
  gg_buffer** slabs;           /* contain the second and third buffers */
  size_t slab_count;

  gg_bias* bias; /* one for each row */
  bool broken;   /* a fault in place: the contents of the memory are unknown */
  gg_pending pending;
  gg_report report;             /* of the last step; per_tensor is filled in on request */
  gg_tensor_report* per_tensor; /* one for each entry */
  gg_triple* triples;           /* buffer for statistics in entry order */
  const gg_triple* statistics;  /* of the last step, by entry */
};

/* gg_group_create for arguments that are not NULL. Without `prepare`, the device is not called before the first real
 * step. */
gg_status gg_group_make(gg_context* context, const gg_entry* entries, size_t count, const gg_group_options* options,
                        bool prepare, gg_group** group);

/* The role of a state or of GG_WRITTEN_MODEL. */
gg_role gg_role_of(unsigned written);

/* Whether a member has this tensor. */
bool gg_member_writes(const gg_member* member, unsigned written);

/* Whether places 1 and 2 alternate, because the caller's memory is wrapped. */
bool gg_member_is_wrapped(const gg_member* member, unsigned written);

/* Which place is current in a phase, and which phase is next (places.c). */
unsigned gg_place_in_phase(const gg_member* member, unsigned written, unsigned phase);
unsigned gg_phase_after(const gg_group* group, unsigned phase);

/* Creates what a step in the current phase needs: second buffers and the table (places.c). */
gg_status gg_group_prepare(gg_group* group, const char* function);

/* Memory that is written must not overlap any other tensor of the group (overlap.c). */
gg_status gg_check_overlap(const gg_group* group, const char* function);

/* Device memory of the tables created so far. */
uint64_t gg_group_scratch(const gg_group* group);

#endif
