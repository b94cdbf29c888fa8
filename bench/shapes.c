#include "bench/shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char* const gg_bench_shape_names[] = {"llama-1.2b", "gpt2-124m", "small-5000x1000", "tiny-4x65536", NULL};

static void add(gg_bench_shapes* shapes, int64_t rows, int64_t columns) {
  shapes->shapes[shapes->count++] = (gg_bench_shape){rows, columns};
}

/* Llama 3.2 1B: 16 layers of width 2048 with 8 key-value heads of 64, feed-forward 8192, 128256 tokens, tied output. */
static void add_llama(gg_bench_shapes* shapes) {
  add(shapes, 128256, 2048);
  for (int layer = 0; layer < 16; layer++) {
    add(shapes, 2048, 2048);
    add(shapes, 512, 2048);
    add(shapes, 512, 2048);
    add(shapes, 2048, 2048);
    add(shapes, 8192, 2048);
    add(shapes, 8192, 2048);
    add(shapes, 2048, 8192);
    add(shapes, 2048, 1);
    add(shapes, 2048, 1);
  }
  add(shapes, 2048, 1);
}

/* GPT-2 small: 12 layers of width 768, 50257 tokens, 1024 positions, tied output. */
static void add_gpt2(gg_bench_shapes* shapes) {
  add(shapes, 50257, 768);
  add(shapes, 1024, 768);
  for (int layer = 0; layer < 12; layer++) {
    add(shapes, 768, 1);
    add(shapes, 768, 1);
    add(shapes, 768, 2304);
    add(shapes, 2304, 1);
    add(shapes, 768, 768);
    add(shapes, 768, 1);
    add(shapes, 768, 1);
    add(shapes, 768, 1);
    add(shapes, 768, 3072);
    add(shapes, 3072, 1);
    add(shapes, 3072, 768);
    add(shapes, 768, 1);
  }
  add(shapes, 768, 1);
  add(shapes, 768, 1);
}

static bool parse_grid(const char* text, long long* tensors, long long* elements) {
  int used = 0;
  if (sscanf(text, "%lldx%lld%n", tensors, elements, &used) != 2 || text[used] != '\0') return false;
  return *tensors >= 1 && *tensors <= 1000000 && *elements >= 1 && *elements <= (1LL << 40);
}

bool gg_bench_find_shapes(const char* name, gg_bench_shapes* shapes) {
  *shapes = (gg_bench_shapes){.name = name};
  long long tensors = 256, elements = 0;
  const char* grid = strrchr(name, '-');
  bool named = strcmp(name, "llama-1.2b") == 0 || strcmp(name, "gpt2-124m") == 0;
  bool gridded = strcmp(name, "small-5000x1000") == 0 || strcmp(name, "tiny-4x65536") == 0;
  if (!named && !parse_grid(gridded ? grid + 1 : name, &tensors, &elements)) return false;
  shapes->shapes = calloc((size_t)tensors, sizeof *shapes->shapes);
  if (shapes->shapes == NULL) return false;
  if (strcmp(name, "llama-1.2b") == 0)
    add_llama(shapes);
  else if (strcmp(name, "gpt2-124m") == 0)
    add_gpt2(shapes);
  else
    for (long long i = 0; i < tensors; i++) add(shapes, elements, 1);
  return true;
}

void gg_bench_free_shapes(gg_bench_shapes* shapes) {
  free(shapes->shapes);
  shapes->shapes = NULL;
}

uint64_t gg_bench_elements(const gg_bench_shape* shape) { return (uint64_t)shape->rows * (uint64_t)shape->columns; }
