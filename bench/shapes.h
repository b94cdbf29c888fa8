/* The sets of tensors that are measured. */
#ifndef GG_BENCH_SHAPES_H
#define GG_BENCH_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gg_bench_shape {
  int64_t rows, columns; /* columns 1: a vector */
} gg_bench_shape;

typedef struct gg_bench_shapes {
  const char* name; /* as given by the user */
  size_t count;
  gg_bench_shape* shapes;
} gg_bench_shapes;

/* The names of the sets, NULL-terminated; also "TxN", T vectors of N elements. */
extern const char* const gg_bench_shape_names[];

/* False for an unknown name, numbers out of range or out of memory. */
bool gg_bench_find_shapes(const char* name, gg_bench_shapes* shapes);
void gg_bench_free_shapes(gg_bench_shapes* shapes);

uint64_t gg_bench_elements(const gg_bench_shape* shape);

#endif
