/* Structs that begin with their size, so that the caller and the library may have different versions. */
#ifndef GG_HOST_PREFIX_H
#define GG_HOST_PREFIX_H

#include "api/gradguard.h"

/* An option struct has at least the fields of the first version, `least` bytes; those of a newer one are ignored. */
gg_status gg_check_size(uint32_t size, size_t least, const char* type, const char* function, gg_error* error);

/* Copies a result of `bytes` bytes into the caller's struct as far as that reaches, and leaves its size as it is. */
void gg_copy_prefix(void* to, const void* from, size_t bytes);

#endif
