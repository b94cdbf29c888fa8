/* Validation of entries and tensors. Does not call the device. */
#ifndef GG_HOST_VALIDATE_H
#define GG_HOST_VALIDATE_H

#include "host/buffer.h"

/* What is being checked, for messages. */
typedef struct gg_subject {
  gg_context* context;
  const char* function;
  size_t entry;
  const char* name; /* of the entry; may be NULL */
} gg_subject;

/* `entry 3 "layer.weight"` or `entry 3`. */
void gg_subject_text(const gg_subject* subject, char* text, size_t capacity);

/* Fills the context's error with "SUBJECT, ROLE: ..." and returns GG_ERROR_ARGUMENT. */
__attribute__((format(printf, 3, 4))) gg_status gg_refuse_tensor(const gg_subject* subject, gg_role role,
                                                                 const char* format, ...);

/* Checks one tensor by itself: buffer, dtype of its role, shape, layout and range. */
gg_status gg_check_tensor(const gg_subject* subject, gg_role role, const gg_tensor* tensor, uint64_t* elements);

/* Checks all tensors of one entry, and its step. */
gg_status gg_check_entry(const gg_subject* subject, const gg_entry* entry, bool amsgrad, uint64_t* elements);

#endif
