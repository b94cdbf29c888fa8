/* Random data for tests. The seed is fresh for each test process, or GG_TEST_SEED; every failure message names it. */
#ifndef GG_TESTS_SUPPORT_RANDOM_H
#define GG_TESTS_SUPPORT_RANDOM_H

#include "api/gradguard.h"

typedef struct gg_random {
  uint64_t state;
} gg_random;

/* The seed of this process. */
uint64_t gg_random_seed(void);

/* A stream of its own for each `salt`. */
gg_random gg_random_stream(uint64_t salt);

uint64_t gg_random_bits(gg_random* random);
uint64_t gg_random_below(gg_random* random, uint64_t limit); /* limit > 0 */
double gg_random_unit(gg_random* random);                    /* [0, 1) */
double gg_random_between(gg_random* random, double low, double high);

/* What kind of values a tensor holds. */
typedef enum gg_magnitudes {
  GG_ORDINARY,    /* around 1e-2, as gradients are */
  GG_WHOLE_RANGE, /* any finite bits */
  GG_HUGE,        /* above 2^40 where the dtype can */
  GG_TINY,        /* below 2^-40 where the dtype can, subnormals among them */
  GG_SPARSE,      /* zeros but for a few of any size */
  GG_ALTERNATING, /* tiles of different bins next to each other */
  GG_TIES,        /* sums of squares that end next to a tie, where the order of additions shows in the result */
  GG_NONFINITE    /* ordinary with a few NaN and Inf */
} gg_magnitudes;
#define GG_MAGNITUDES_FINITE 7 /* the first seven */

/* A float of that kind (NaN and Inf only for GG_NONFINITE). */
float gg_random_float(gg_random* random, gg_magnitudes kind);

/* Fills `count` elements of `dtype`. */
void gg_random_fill(gg_random* random, gg_magnitudes kind, gg_dtype dtype, void* values, uint64_t count);

#endif
