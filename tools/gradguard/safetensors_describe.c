/* The parts of safetensors that need no file: shapes as text, and the head of a new file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gradguard/safetensors.h"

bool gg_stored_same_shape(const gg_stored_tensor* left, const gg_stored_tensor* right) {
  if (left->rank != right->rank) return false;
  return left->rank == 0 || memcmp(left->shape, right->shape, left->rank * sizeof *left->shape) == 0;
}

const char* gg_stored_shape_text(gg_shape_text* text, const gg_stored_tensor* tensor) {
  const size_t room = sizeof text->text - 6; /* ", ...]" */
  size_t used = 0;
  text->text[used++] = '[';
  for (size_t i = 0; i < tensor->rank; ++i) {
    char number[32];
    const size_t made =
        (size_t)snprintf(number, sizeof number, "%s%lld", i == 0 ? "" : ", ", (long long)tensor->shape[i]);
    if (used + made > room) {
      memcpy(text->text + used, "...", 3);
      used += 3;
      break;
    }
    memcpy(text->text + used, number, made);
    used += made;
  }
  text->text[used++] = ']';
  text->text[used] = '\0';
  return text->text;
}

bool gg_safetensors_head_begin(gg_safetensors_head* head, const json_t* metadata) {
  head->next_offset = 0;
  head->header = json_object();
  if (head->header == NULL) return false;
  if (metadata == NULL) return true;
  return json_object_set_new_nocheck(head->header, "__metadata__", json_deep_copy(metadata)) == 0;
}

bool gg_safetensors_head_add(gg_safetensors_head* head, const char* name, const char* dtype, const int64_t* shape,
                             size_t rank, uint64_t bytes) {
  json_t* sizes = json_array();
  for (size_t i = 0; i < rank; ++i) {
    if (json_array_append_new(sizes, json_integer(shape[i])) != 0) {
      json_decref(sizes);
      return false;
    }
  }
  const uint64_t end = head->next_offset + bytes;
  json_t* tensor = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", sizes, "data_offsets",
                             (json_int_t)head->next_offset, (json_int_t)end);
  head->next_offset = end;
  return tensor != NULL && json_object_set_new_nocheck(head->header, name, tensor) == 0;
}

unsigned char* gg_safetensors_head_end(gg_safetensors_head* head, size_t* bytes) {
  unsigned char* result = NULL;
  const size_t length = head->header == NULL ? 0 : json_dumpb(head->header, NULL, 0, JSON_COMPACT);
  if (length != 0) {
    const uint64_t padded = (length + 7) / 8 * 8; /* so that the data is aligned for 64-bit elements */
    *bytes = 8 + (size_t)padded;
    result = malloc(*bytes);
    if (result != NULL) {
      memcpy(result, &padded, 8);
      memset(result + 8, ' ', (size_t)padded);
      json_dumpb(head->header, (char*)result + 8, length, JSON_COMPACT);
    }
  }
  json_decref(head->header);
  head->header = NULL;
  return result;
}
