#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/gradguard/safetensors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors data is used as it lies in the file");

#define LENGTH_BYTES 8u

typedef struct dtype_row {
  const char* name;
  uint32_t bits;
  gg_stored stored;
} dtype_row;

static const dtype_row dtypes[] = {
    {"F32", 32, GG_STORED_F32},      {"F16", 16, GG_STORED_F16},      {"BF16", 16, GG_STORED_BF16},
    {"I64", 64, GG_STORED_I64},      {"F64", 64, GG_STORED_OTHER},    {"U64", 64, GG_STORED_OTHER},
    {"C64", 64, GG_STORED_OTHER},    {"I32", 32, GG_STORED_OTHER},    {"U32", 32, GG_STORED_OTHER},
    {"I16", 16, GG_STORED_OTHER},    {"U16", 16, GG_STORED_OTHER},    {"I8", 8, GG_STORED_OTHER},
    {"U8", 8, GG_STORED_OTHER},      {"BOOL", 8, GG_STORED_OTHER},    {"F8_E4M3", 8, GG_STORED_OTHER},
    {"F8_E5M2", 8, GG_STORED_OTHER}, {"F8_E8M0", 8, GG_STORED_OTHER}, {"F6_E2M3", 6, GG_STORED_OTHER},
    {"F6_E3M2", 6, GG_STORED_OTHER}, {"F4", 4, GG_STORED_OTHER},
};

static const dtype_row* find_dtype(const char* name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; ++i) {
    if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
  }
  return NULL;
}

/* ---- The header as a whole ---- */

static bool read_header(gg_safetensors* file, const unsigned char* bytes, uint64_t size, gg_problem* problem) {
  uint64_t length = 0;
  if (size < LENGTH_BYTES) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: not a safetensors file: %llu bytes are too few for the header length",
                     file->path, (unsigned long long)size);
  }
  memcpy(&length, bytes, LENGTH_BYTES);
  if (length > GG_SAFETENSORS_HEADER_MAX) {
    return gg_refuse(problem, GG_EXIT_INPUT,
                     "%s: not a safetensors file: it claims a header of %llu bytes, the limit is %u", file->path,
                     (unsigned long long)length, GG_SAFETENSORS_HEADER_MAX);
  }
  if (length > size - LENGTH_BYTES) {
    return gg_refuse(problem, GG_EXIT_INPUT,
                     "%s: the file is truncated: the header has %llu bytes, but only %llu follow its length",
                     file->path, (unsigned long long)length, (unsigned long long)(size - LENGTH_BYTES));
  }
  if (length == 0 || bytes[LENGTH_BYTES] != '{') {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: not a safetensors file: the header does not begin with '{'",
                     file->path);
  }
  json_error_t error;
  file->header = json_loadb((const char*)bytes + LENGTH_BYTES, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  if (file->header == NULL) {
    gg_quoted quoted;
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: the header is not valid JSON: %s at byte %d", file->path,
                     gg_quote(&quoted, error.text), error.position);
  }
  file->head = bytes;
  file->head_bytes = LENGTH_BYTES + length;
  return true;
}

static bool read_metadata(gg_safetensors* file, gg_problem* problem) {
  json_t* metadata = json_object_get(file->header, "__metadata__");
  if (metadata == NULL) return true;
  if (!json_is_object(metadata)) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: __metadata__ is not an object", file->path);
  }
  const char* key;
  json_t* value;
  json_object_foreach(metadata, key, value) {
    if (!json_is_string(value)) {
      gg_quoted quoted;
      return gg_refuse(problem, GG_EXIT_INPUT, "%s: __metadata__ entry %s is not a string", file->path,
                       gg_quote(&quoted, key));
    }
  }
  file->metadata = metadata;
  return true;
}

/* ---- One tensor ---- */

typedef struct description {
  const json_t* dtype;
  const json_t* shape;
  const json_t* offsets;
} description;

static bool describe(const gg_safetensors* file, const char* name, json_t* value, description* found,
                     gg_problem* problem) {
  gg_quoted quoted;
  if (!json_is_object(value)) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: tensor %s: its description is not an object", file->path,
                     gg_quote(&quoted, name));
  }
  found->dtype = json_object_get(value, "dtype");
  found->shape = json_object_get(value, "shape");
  found->offsets = json_object_get(value, "data_offsets");
  const char* bad = !json_is_string(found->dtype)    ? "dtype (a string)"
                    : !json_is_array(found->shape)   ? "shape (an array)"
                    : !json_is_array(found->offsets) ? "data_offsets (an array)"
                                                     : NULL;
  if (bad != NULL) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: tensor %s: %s is missing or of another kind", file->path,
                     gg_quote(&quoted, name), bad);
  }
  if (json_object_size(value) != 3) {
    return gg_refuse(problem, GG_EXIT_INPUT,
                     "%s: tensor %s: its description holds something besides dtype, shape and data_offsets", file->path,
                     gg_quote(&quoted, name));
  }
  return true;
}

/* Copies the shape to `shape` and counts elements. Dimensions beside a zero must multiply without overflow too, since
 * strides are made from them. */
static bool read_shape(const json_t* array, int64_t* shape, uint64_t* elements) {
  uint64_t product = 1;
  bool empty = false;
  for (size_t i = 0; i < json_array_size(array); ++i) {
    const json_t* number = json_array_get(array, i);
    if (!json_is_integer(number) || json_integer_value(number) < 0) return false;
    shape[i] = json_integer_value(number);
    if (shape[i] == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, (uint64_t)shape[i], &product) || product > INT64_MAX) {
      return false;
    }
  }
  *elements = empty ? 0 : product;
  return true;
}

static bool read_offsets(const json_t* array, uint64_t* begin, uint64_t* end) {
  const json_t* first = json_array_get(array, 0);
  const json_t* second = json_array_get(array, 1);
  if (json_array_size(array) != 2 || !json_is_integer(first) || !json_is_integer(second)) return false;
  if (json_integer_value(first) < 0 || json_integer_value(second) < json_integer_value(first)) return false;
  *begin = (uint64_t)json_integer_value(first);
  *end = (uint64_t)json_integer_value(second);
  return true;
}

static bool read_tensor(gg_safetensors* file, json_t* value, uint64_t data_bytes, int64_t* shape,
                        gg_stored_tensor* tensor, gg_problem* problem) {
  gg_quoted name;
  description found = {NULL, NULL, NULL};
  if (!describe(file, tensor->name, value, &found, problem)) return false;
  gg_quote(&name, tensor->name);
  tensor->dtype = json_string_value(found.dtype);
  const dtype_row* dtype = find_dtype(tensor->dtype);
  if (dtype == NULL) {
    gg_quoted spelled;
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: tensor %s: unknown dtype %s", file->path, name.text,
                     gg_quote(&spelled, tensor->dtype));
  }
  tensor->stored = dtype->stored;
  tensor->rank = json_array_size(found.shape);
  tensor->shape = shape;
  if (!read_shape(found.shape, shape, &tensor->elements)) {
    return gg_refuse(problem, GG_EXIT_INPUT,
                     "%s: tensor %s: its shape holds something that is not a size, or has too many elements",
                     file->path, name.text);
  }
  uint64_t end = 0;
  if (!read_offsets(found.offsets, &tensor->offset, &end)) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: tensor %s: data_offsets must be two sizes, begin <= end", file->path,
                     name.text);
  }
  if (end > data_bytes) {
    return gg_refuse(problem, GG_EXIT_INPUT,
                     "%s: tensor %s: its data ends at byte %llu, but the file holds %llu bytes of data", file->path,
                     name.text, (unsigned long long)end, (unsigned long long)data_bytes);
  }
  tensor->bytes = end - tensor->offset;
  tensor->data = file->head + file->head_bytes + tensor->offset;
  uint64_t bits = 0;
  if (__builtin_mul_overflow(tensor->elements, (uint64_t)dtype->bits, &bits) || bits % 8 != 0 ||
      bits / 8 != tensor->bytes) {
    return gg_refuse(problem, GG_EXIT_INPUT,
                     "%s: tensor %s: %llu elements of dtype %s do not fit the %llu bytes of its data_offsets",
                     file->path, name.text, (unsigned long long)tensor->elements, tensor->dtype,
                     (unsigned long long)tensor->bytes);
  }
  return true;
}

/* ---- All tensors ---- */

static size_t total_rank(json_t* header) {
  size_t total = 0;
  const char* name;
  json_t* value;
  json_object_foreach(header, name, value) { total += json_array_size(json_object_get(value, "shape")); }
  return total;
}

static bool allocate(gg_safetensors* file, gg_problem* problem) {
  const size_t most = json_object_size(file->header);
  file->tensors = calloc(most + 1, sizeof *file->tensors);
  file->by_name = calloc(most + 1, sizeof(gg_stored_tensor*));
  file->shapes = calloc(total_rank(file->header) + 1, sizeof *file->shapes);
  if (file->tensors == NULL || file->by_name == NULL || file->shapes == NULL) {
    return gg_refuse(problem, GG_EXIT_FAILURE, "%s: not enough memory for its header", file->path);
  }
  return true;
}

static bool read_tensors(gg_safetensors* file, uint64_t data_bytes, gg_problem* problem) {
  int64_t* shape = file->shapes;
  const char* name;
  json_t* value;
  json_object_foreach(file->header, name, value) {
    if (value == file->metadata) continue;
    gg_stored_tensor* tensor = &file->tensors[file->count];
    tensor->name = name;
    if (!read_tensor(file, value, data_bytes, shape, tensor, problem)) return false;
    shape += tensor->rank;
    file->count += 1;
  }
  return true;
}

/* Empty tensors share their offset with others, so the name decides among equals and the order is always the same. */
static int compare_data(const void* left, const void* right) {
  const gg_stored_tensor* a = left;
  const gg_stored_tensor* b = right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
  return strcmp(a->name, b->name);
}

static int compare_names(const void* left, const void* right) {
  const gg_stored_tensor* const* a = left;
  const gg_stored_tensor* const* b = right;
  return strcmp((*a)->name, (*b)->name);
}

/* Sorted by offset, each tensor must begin where the one before ended, and the last must end the file. */
static bool check_coverage(const gg_safetensors* file, uint64_t data_bytes, gg_problem* problem) {
  uint64_t next = 0;
  gg_quoted name, other;
  for (size_t i = 0; i < file->count; ++i) {
    const gg_stored_tensor* tensor = &file->tensors[i];
    if (tensor->offset < next) {
      return gg_refuse(problem, GG_EXIT_INPUT, "%s: the data of tensors %s and %s overlap", file->path,
                       gg_quote(&other, file->tensors[i - 1].name), gg_quote(&name, tensor->name));
    }
    if (tensor->offset > next) {
      return gg_refuse(problem, GG_EXIT_INPUT, "%s: %llu bytes before tensor %s belong to no tensor", file->path,
                       (unsigned long long)(tensor->offset - next), gg_quote(&name, tensor->name));
    }
    next = tensor->offset + tensor->bytes;
  }
  if (next != data_bytes) {
    return gg_refuse(problem, GG_EXIT_INPUT, "%s: %llu bytes at the end belong to no tensor", file->path,
                     (unsigned long long)(data_bytes - next));
  }
  return true;
}

bool gg_safetensors_parse(const char* path, const unsigned char* bytes, uint64_t size, gg_safetensors* file,
                          gg_problem* problem) {
  memset(file, 0, sizeof *file);
  file->path = path;
  if (!read_header(file, bytes, size, problem) || !read_metadata(file, problem) || !allocate(file, problem) ||
      !read_tensors(file, size - file->head_bytes, problem)) {
    gg_safetensors_close(file);
    return false;
  }
  qsort(file->tensors, file->count, sizeof *file->tensors, compare_data);
  for (size_t i = 0; i < file->count; ++i) file->by_name[i] = &file->tensors[i];
  qsort(file->by_name, file->count, sizeof(gg_stored_tensor*), compare_names);
  if (!check_coverage(file, size - file->head_bytes, problem)) {
    gg_safetensors_close(file);
    return false;
  }
  return true;
}

/* ---- The file ---- */

/* NULL with a problem where it cannot be mapped. */
static void* map_file(int descriptor, const char* path, size_t* bytes, gg_problem* problem) {
  struct stat status;
  const char* bad = fstat(descriptor, &status) != 0 ? strerror(errno)
                    : !S_ISREG(status.st_mode)      ? "not a regular file"
                    : status.st_size == 0           ? "the file is empty"
                                                    : NULL;
  if (bad != NULL) {
    gg_refuse(problem, GG_EXIT_INPUT, "%s: %s", path, bad);
    return NULL;
  }
  *bytes = (size_t)status.st_size;
  void* map = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (map != MAP_FAILED) return map;
  gg_refuse(problem, GG_EXIT_FAILURE, "%s: cannot be mapped: %s", path, strerror(errno));
  return NULL;
}

bool gg_safetensors_open(const char* path, gg_safetensors* file, gg_problem* problem) {
  memset(file, 0, sizeof *file);
  /* O_NONBLOCK: a FIFO is to be refused, not waited for. */
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return gg_refuse(problem, GG_EXIT_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
  size_t bytes = 0;
  void* map = map_file(descriptor, path, &bytes, problem);
  close(descriptor);
  if (map == NULL) return false;
  if (!gg_safetensors_parse(path, map, bytes, file, problem)) {
    munmap(map, bytes);
    return false;
  }
  file->map = map;
  file->map_bytes = bytes;
  return true;
}

void gg_safetensors_close(gg_safetensors* file) {
  json_decref(file->header);
  free(file->tensors);
  free(file->by_name);
  free(file->shapes);
  if (file->map != NULL) munmap(file->map, file->map_bytes);
  memset(file, 0, sizeof *file);
}

/* ---- Looking things up ---- */

const gg_stored_tensor* gg_safetensors_find(const gg_safetensors* file, const char* name) {
  if (file->count == 0) return NULL;
  const gg_stored_tensor key = {.name = name};
  const gg_stored_tensor* wanted = &key;
  const gg_stored_tensor* const* found =
      bsearch(&wanted, file->by_name, file->count, sizeof(gg_stored_tensor*), compare_names);
  return found == NULL ? NULL : *found;
}
