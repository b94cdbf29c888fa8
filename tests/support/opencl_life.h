/*
 * The life of an open OpenCL device on the fake driver (fake_opencl.h), from opening to closing, through the functions
 * of the backend's table: memory of every kind, copies, groups whose rows need every form of every kernel, statistics,
 * updates. What the driver was told is checked on the way; the first call that fails ends it.
 */
#ifndef GG_TESTS_SUPPORT_OPENCL_LIFE_H
#define GG_TESTS_SUPPORT_OPENCL_LIFE_H

#include "backends/opencl/table.h"
#include "tests/support/fake_opencl.h"

typedef struct gg_opencl_machine {
  const char* variant;
  bool adopted; /* on a queue of the caller's, of a sub-device */
  bool logs;    /* and so keeps times */
  bool apart;   /* out of place */
  bool no_svm;
} gg_opencl_machine;

/* What a life is at. */
typedef enum gg_opencl_life_part {
  GG_LIFE_OPENING,
  GG_LIFE_ALLOCATING,
  GG_LIFE_MOVING,
  GG_LIFE_TABLES,
  GG_LIFE_MEASURING,
  GG_LIFE_UPDATING,
  GG_LIFE_ENDING
} gg_opencl_life_part;

#define GG_LIFE_MEMORIES 7

typedef struct gg_opencl_life {
  gg_opencl_machine on;
  gg_opencl_life_part at; /* of the call that failed by plan, if one has */
  unsigned lines;         /* of the log */
  gg_device* device;
  gg_memory* memory[GG_LIFE_MEMORIES];
  gg_table *updating, *measuring;
  bool half_done; /* an update in place failed after its first launch */
  gg_cl_mem object, part;
  void* shared;
} gg_opencl_life;

/* The functions of the driver: gg_fake_opencl_start gives them. */
extern gg_opencl_api gg_opencl_life_api;

gg_status gg_opencl_life_open(gg_opencl_life* life, gg_error* error);

/* All that there is to do with it. It can be done again after gg_opencl_life_put_away. */
gg_status gg_opencl_life_use(gg_opencl_life* life, gg_error* error);
void gg_opencl_life_put_away(gg_opencl_life* life);
void gg_opencl_life_close(gg_opencl_life* life);

/* Fails the test if the library has left something behind or misused the driver. */
void gg_opencl_life_check_end(void);

/* A queue of the caller's on a sub-device of opencl:0.0. */
gg_cl_queue gg_opencl_life_queue(gg_cl_bits properties);

#endif
