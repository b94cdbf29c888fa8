#include "backends/static_program.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#include "host/status.h"

/* A dynamic program names its loader (PT_INTERP). A static one has none; the dlopen that is linked into it loads a
 * second libc, which was never initialised, and the library crashes there. */
static bool is_static(void) {
  unsigned long address = getauxval(AT_PHDR);
  const ElfW(Phdr) * headers;
  _Static_assert(sizeof(void*) == sizeof address, "the kernel gives the address as a number");
  memcpy(&headers, &address, sizeof address);
  if (headers == NULL) return false;
  for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
    if (headers[i].p_type == PT_INTERP) return false;
  return true;
}

gg_status gg_refuse_static_program(const char* library, gg_error* error) {
  if (!is_static()) return GG_OK;
  return gg_fail(error, GG_ERROR_NO_DRIVER, "dlopen",
                 "this program is linked statically (-static), and %s can only be opened by a dynamically linked one: "
                 "link the C library dynamically (libgradguard.a may stay), or use the device \"cpu\"",
                 library);
}
