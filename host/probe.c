#include "host/probe.h"

#include <stdlib.h>

#include "host/prefix.h"
#include "host/status.h"

bool gg_probe(const gg_backend* backend, gg_device_info** infos, size_t* count) {
  size_t capacity = 8; /* a second call initialises the driver again, which is slow */
  for (;;) {
    *infos = calloc(capacity, sizeof **infos);
    if (*infos == NULL) return false;
    *count = backend->probe(*infos, capacity);
    if (*count <= capacity) return true;
    capacity = *count;
    free(*infos);
  }
}

gg_status gg_devices(gg_device_info* infos, size_t capacity, size_t* count, gg_error* error) {
  if (count == NULL || (infos == NULL && capacity > 0))
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_devices", "%s is NULL",
                   count == NULL ? "`count`" : "`infos`, which should have room for `capacity` devices,");
  *count = 0;
  uint32_t stride = capacity > 0 ? infos[0].size : 0;
  if (capacity > 0) {
    gg_status status = gg_check_size(stride, sizeof *infos, "gg_device_info", "gg_devices", error);
    if (status != GG_OK) return status;
  }
  for (const gg_backend* const* backend = gg_backends; *backend != NULL; backend++) {
    gg_device_info* found;
    size_t more;
    if (!gg_probe(*backend, &found, &more))
      return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_devices", "out of host memory listing the devices");
    for (size_t i = 0; i < more; i++, ++*count) {
      if (*count >= capacity) continue;
      gg_device_info* to = (gg_device_info*)(void*)((char*)infos + *count * stride);
      to->size = stride;
      gg_copy_prefix(to, &found[i], sizeof *to);
    }
    free(found);
  }
  return GG_OK;
}
