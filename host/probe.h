/* Lists the devices. */
#ifndef GG_HOST_PROBE_H
#define GG_HOST_PROBE_H

#include "backends/backend.h"

/* Everything a backend lists, at least one entry; free(infos). False if host memory ran out. */
bool gg_probe(const gg_backend* backend, gg_device_info** infos, size_t* count);

#endif
