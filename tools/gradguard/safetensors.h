/*
 * Safetensors files: an 8-byte little-endian header length, a JSON header, the data of all tensors.
 * The reader maps the file read-only and believes nothing: after gg_safetensors_open every tensor lies inside the
 * file, no two share a byte, and no byte of the data belongs to no tensor.
 */
#ifndef GG_TOOL_SAFETENSORS_H
#define GG_TOOL_SAFETENSORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/gradguard/problem.h"

/* The dtypes that a step needs; every other dtype of the format is checked for size and carried along as OTHER. */
typedef enum gg_stored {
  GG_STORED_OTHER = 0,
  GG_STORED_F32 = 1,
  GG_STORED_F16 = 2,
  GG_STORED_BF16 = 3,
  GG_STORED_I64 = 4
} gg_stored;

typedef struct gg_stored_tensor {
  const char* name;  /* UTF-8 without NUL */
  const char* dtype; /* as the file spells it: "F32" */
  gg_stored stored;
  size_t rank;
  const int64_t* shape; /* `rank` numbers, none negative */
  uint64_t elements;
  uint64_t offset; /* from the start of the data */
  uint64_t bytes;
  const unsigned char* data; /* may have any alignment */
} gg_stored_tensor;

typedef struct gg_safetensors {
  const char* path;
  gg_stored_tensor* tensors; /* in the order of their data */
  size_t count;
  const unsigned char* head; /* the length and the header, `head_bytes` together, as they are in the file */
  uint64_t head_bytes;
  const json_t* metadata; /* the __metadata__ object; NULL if there is none */
  /* owned, for the functions below only */
  json_t* header;
  int64_t* shapes;
  const gg_stored_tensor** by_name;
  void* map;
  size_t map_bytes;
} gg_safetensors;

/* The reference implementation's own limit of a header. */
#define GG_SAFETENSORS_HEADER_MAX 100000000u

/* Maps and checks a file. `path` must outlive `file`. On failure `file` is empty and `problem` says why. */
bool gg_safetensors_open(const char* path, gg_safetensors* file, gg_problem* problem);

/* The same over bytes in memory, which must outlive `file`; `path` is used in messages. */
bool gg_safetensors_parse(const char* path, const unsigned char* bytes, uint64_t size, gg_safetensors* file,
                          gg_problem* problem);

/* Frees and empties; an empty `file` is allowed. */
void gg_safetensors_close(gg_safetensors* file);

/* The tensor of that name; NULL if there is none. */
const gg_stored_tensor* gg_safetensors_find(const gg_safetensors* file, const char* name);

bool gg_stored_same_shape(const gg_stored_tensor* left, const gg_stored_tensor* right);

/* "[3, 4]" into `text`; shortened with "..." where it does not fit. */
typedef struct gg_shape_text {
  char text[128];
} gg_shape_text;
const char* gg_stored_shape_text(gg_shape_text* text, const gg_stored_tensor* tensor);

/* The head (length and header) of a new file whose tensors lie one after the other in the order added. */
typedef struct gg_safetensors_head {
  json_t* header;
  uint64_t next_offset;
} gg_safetensors_head;

/* `metadata` may be NULL. False if memory ran out. */
bool gg_safetensors_head_begin(gg_safetensors_head* head, const json_t* metadata);
bool gg_safetensors_head_add(gg_safetensors_head* head, const char* name, const char* dtype, const int64_t* shape,
                             size_t rank, uint64_t bytes);
/* The bytes to write before the data, to be freed by the caller; NULL if memory ran out. Ends `head`. */
unsigned char* gg_safetensors_head_end(gg_safetensors_head* head, size_t* bytes);

#endif
