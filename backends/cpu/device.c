/* The one device of the cpu backend: this machine's processors. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/parallel.h"
#include "host/status.h"

/* The processor's name from Linux, or the name of the architecture. */
static void processor_name(char* name, size_t capacity) {
  snprintf(name, capacity, "%s",
#if defined(__x86_64__)
           "x86-64 processor"
#elif defined(__aarch64__)
           "AArch64 processor"
#else
           "processor"
#endif
  );
  FILE* file = fopen("/proc/cpuinfo", "re");
  if (file == NULL) return;
  char line[256];
  while (fgets(line, sizeof line, file) != NULL) {
    const char* text = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || text == NULL) continue;
    text += 1 + strspn(text + 1, " \t");
    size_t length = strcspn(text, "\n");
    if (length > 0) snprintf(name, capacity, "%.*s", (int)length, text);
    break;
  }
  fclose(file);
}

static uint64_t physical_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}

static void describe(gg_device_info* info) {
  *info = (gg_device_info){.size = (uint32_t)sizeof *info,
                           .kind = GG_DEVICE_CPU,
                           .available = true,
                           .exact = true,
                           .compute_units = (uint32_t)omp_get_num_procs(),
                           .memory_bytes = physical_memory(),
                           .backend = "cpu",
                           .id = "cpu"};
  processor_name(info->name, sizeof info->name);
  snprintf(info->driver, sizeof info->driver, "OpenMP %d", _OPENMP);
  gg_cpu_variants(info->kernels, sizeof info->kernels);
}

size_t gg_cpu_probe(gg_device_info* infos, size_t capacity) {
  if (capacity > 0) describe(&infos[0]);
  return 1;
}

gg_status gg_cpu_open(const gg_open_request* request, gg_device** device, gg_error* error) {
  if (request->queue != NULL)
    return gg_fail(error, GG_ERROR_UNSUPPORTED, "gg_context_create", "the cpu backend has no queue to adopt");
  if (request->id == NULL || strcmp(request->id, "cpu") != 0)
    return gg_fail(error, GG_ERROR_NO_DEVICE, "gg_context_create",
                   "there is no device \"%s\": the cpu backend has one, \"cpu\"",
                   request->id != NULL ? request->id : "");
  if (request->threads > GG_CPU_MOST_THREADS)
    return gg_fail(error, GG_ERROR_ARGUMENT, "gg_context_create",
                   "%u threads are too many: the maximum is %u; 0 means OpenMP's default", request->threads,
                   GG_CPU_MOST_THREADS);
  const gg_cpu_kernels* kernels;
  gg_status status = gg_cpu_select(request->kernel, &kernels, error);
  if (status != GG_OK) return status;
  gg_cpu_device* cpu = calloc(1, sizeof *cpu);
  if (cpu == NULL)
    return gg_fail(error, GG_ERROR_NO_MEMORY, "gg_context_create", "out of host memory opening the cpu device");
  cpu->base.backend = &gg_backend_cpu;
  describe(&cpu->base.info);
  cpu->base.kernel = kernels->variant;
  cpu->kernels = kernels;
  cpu->threads = request->threads;
  *device = &cpu->base;
  return GG_OK;
}

void gg_cpu_close(gg_device* device) { free(device); }

gg_status gg_cpu_done(gg_device* device, gg_error* error) {
  (void)device, (void)error;
  return GG_OK;
}
