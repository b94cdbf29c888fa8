#include "host/prefix.h"

#include <string.h>

#include "host/status.h"

gg_status gg_check_size(uint32_t size, size_t least, const char* type, const char* function, gg_error* error) {
  if (size >= least) return GG_OK;
  return gg_fail(
      error, GG_ERROR_ARGUMENT, function,
      "the size in %s is %u, at least %zu is expected: initialise it with its GG_..._INIT macro, or set size "
      "to sizeof(%s)",
      type, size, least, type);
}

void gg_copy_prefix(void* to, const void* from, size_t bytes) {
  uint32_t size;
  memcpy(&size, to, sizeof size);
  memcpy(to, from, size < bytes ? size : bytes);
  memcpy(to, &size, sizeof size);
}
