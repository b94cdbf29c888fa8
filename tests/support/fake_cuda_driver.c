/* The functions of the fake driver, in the order of backends/cuda/symbols.h. */
#include <stdio.h>
#include <string.h>

#include "tests/support/fake_cuda_state.h"

#define DECLARE(plain, name, parameters) static gg_cu_result fake_##name parameters;
GG_CUDA_SYMBOLS(DECLARE)
#undef DECLARE

static gg_cu_result fake_cuInit(unsigned int flags) {
  GG_FAKE_BEGIN;
  if (flags) gg_fake_violate("cuInit", "flags are 0");
  return 0;
}

static gg_cu_result fake_cuDriverGetVersion(int* version) {
  GG_FAKE_BEGIN;
  *version = gg_fake_cuda.driver_version;
  return 0;
}

static gg_cu_result fake_cuGetErrorName(gg_cu_result code, const char** name) {
#define NAME(constant, value) {#constant, value},
  static const struct {
    const char* name;
    unsigned value;
  } known[] = {{"CUDA_ERROR_INVALID_VALUE", GG_FAKE_INVALID_VALUE}, GG_CUDA_CONSTANTS(NAME)};
#undef NAME
  *name = NULL;
  if (gg_fake_cuda.nameless) return GG_FAKE_INVALID_VALUE;
  for (size_t i = 0; i < sizeof known / sizeof *known && !*name; i++)
    if (known[i].value == code && strncmp(known[i].name, "CUDA_", 5) == 0) *name = known[i].name;
  return *name ? 0 : GG_FAKE_INVALID_VALUE;
}

static gg_cu_result fake_cuGetErrorString(gg_cu_result code, const char** text) {
  (void)code;
  *text = gg_fake_cuda.nameless ? NULL : "as the driver puts it";
  return *text ? 0 : GG_FAKE_INVALID_VALUE;
}

static gg_cu_result fake_cuDeviceGetCount(int* count) {
  GG_FAKE_BEGIN;
  *count = gg_fake_cuda.devices;
  return 0;
}

static gg_cu_result fake_cuDeviceGet(gg_cu_device* device, int ordinal) {
  GG_FAKE_BEGIN;
  if (ordinal < 0 || ordinal >= gg_fake_cuda.devices) return GG_CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return 0;
}

static gg_cu_result fake_cuDeviceGetName(char* name, int bytes, gg_cu_device device) {
  GG_FAKE_BEGIN;
  snprintf(name, (size_t)bytes, "Fake GPU %d", device);
  return 0;
}

static gg_cu_result fake_cuDeviceTotalMem_v2(size_t* bytes, gg_cu_device device) {
  (void)device;
  GG_FAKE_BEGIN;
  *bytes = (size_t)1 << 30;
  return 0;
}

static gg_cu_result fake_cuDeviceGetAttribute(int* value, gg_cu_enum attribute, gg_cu_device device) {
  (void)device;
  GG_FAKE_BEGIN;
  switch (attribute) {
    case GG_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      return 0;
    case GG_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
      *value = gg_fake_cuda.maps_host;
      return 0;
    case GG_CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = gg_fake_cuda.compute_mode;
      return 0;
    case GG_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = gg_fake_cuda.capability / 10;
      return 0;
    case GG_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = gg_fake_cuda.capability % 10;
      return 0;
    default:
      gg_fake_violate("cuDeviceGetAttribute", "an attribute that the fake does not know");
      return GG_FAKE_INVALID_VALUE;
  }
}

static gg_cu_result fake_cuDevicePrimaryCtxRetain(gg_cu_context* context, gg_cu_device device) {
  GG_FAKE_BEGIN;
  gg_fake_make(GG_FAKE_CONTEXT, (size_t)device);
  *context = gg_fake_primary(device);
  return 0;
}

static gg_cu_result fake_cuDevicePrimaryCtxRelease_v2(gg_cu_device device) {
  unsigned code = gg_fake_begin("cuDevicePrimaryCtxRelease_v2");
  for (size_t i = 0; i < GG_FAKE_OBJECTS; i++)
    if (gg_fake.objects[i].handle && gg_fake.objects[i].kind == GG_FAKE_CONTEXT &&
        gg_fake.objects[i].bytes == (size_t)device) {
      gg_fake_unmake(GG_FAKE_CONTEXT, gg_fake.objects[i].handle, "cuDevicePrimaryCtxRelease_v2");
      return code;
    }
  gg_fake_violate("cuDevicePrimaryCtxRelease_v2", "it was not retained");
  return code;
}

static gg_cu_result fake_cuCtxPushCurrent_v2(gg_cu_context context) {
  unsigned code = gg_fake_begin("cuCtxPushCurrent_v2");
  if (code) gg_fake.push_failed = true;
  if (code) return code;
  if (gg_fake.depth == GG_FAKE_DEPTH) gg_fake_violate("cuCtxPushCurrent_v2", "pushed and never popped");
  if (gg_fake.depth < GG_FAKE_DEPTH) gg_fake.stack[gg_fake.depth++] = context;
  return 0;
}

/* It pops also when it fails: drivers report the failures of earlier work there. */
static gg_cu_result fake_cuCtxPopCurrent_v2(gg_cu_context* context) {
  unsigned code = gg_fake_begin("cuCtxPopCurrent_v2");
  if (gg_fake.depth == 0) {
    gg_fake_violate("cuCtxPopCurrent_v2", "popped and never pushed");
    return code ? code : GG_CUDA_ERROR_INVALID_CONTEXT;
  }
  *context = gg_fake.stack[--gg_fake.depth];
  return code;
}

static gg_cu_result fake_cuCtxGetDevice(gg_cu_device* device) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  *device = 0;
  for (int i = 0; i < gg_fake_cuda.devices; i++)
    if (gg_fake.depth && gg_fake.stack[gg_fake.depth - 1] == gg_fake_primary(i)) *device = i;
  return 0;
}

static gg_cu_result fake_cuStreamGetCtx(gg_cu_stream stream, gg_cu_context* context) {
  GG_FAKE_BEGIN;
  if (stream != (gg_cu_stream)(void*)&gg_fake_caller_stream)
    gg_fake_violate("cuStreamGetCtx", "not the caller's stream");
  *context = (gg_cu_context)(void*)&gg_fake_caller_context;
  return 0;
}

static gg_cu_result fake_cuStreamCreate(gg_cu_stream* stream, unsigned int flags) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  if (flags != GG_CU_STREAM_NON_BLOCKING) gg_fake_violate("cuStreamCreate", "it would wait for the legacy stream");
  *stream = gg_fake_make(GG_FAKE_STREAM, 0);
  return 0;
}

static gg_cu_result fake_cuStreamDestroy_v2(gg_cu_stream stream) {
  unsigned code = gg_fake_begin_in_context("cuStreamDestroy_v2");
  if (stream == (gg_cu_stream)(void*)&gg_fake_caller_stream) {
    gg_fake_caller_stream_lives = false;
    return code;
  }
  if (gg_fake.capturing == stream) gg_fake_violate("cuStreamDestroy_v2", "the stream still captures");
  gg_fake_unmake(GG_FAKE_STREAM, stream, "cuStreamDestroy_v2");
  return code;
}

static gg_cu_result fake_cuStreamSynchronize(gg_cu_stream stream) {
  (void)stream;
  return gg_fake_wait_in_context("cuStreamSynchronize");
}

static gg_cu_result fake_cuEventCreate(gg_cu_event* event, unsigned int flags) {
  (void)flags;
  GG_FAKE_BEGIN_IN_CONTEXT;
  *event = gg_fake_make(GG_FAKE_EVENT, 0);
  return 0;
}

static gg_cu_result fake_cuEventDestroy_v2(gg_cu_event event) {
  unsigned code = gg_fake_begin_in_context("cuEventDestroy_v2");
  gg_fake_unmake(GG_FAKE_EVENT, event, "cuEventDestroy_v2");
  return code;
}

static gg_cu_result fake_cuEventRecord(gg_cu_event event, gg_cu_stream stream) {
  (void)stream;
  GG_FAKE_BEGIN_IN_CONTEXT;
  if (!gg_fake_find(GG_FAKE_EVENT, event)) gg_fake_violate("cuEventRecord", "no such event");
  return 0;
}

static gg_cu_result fake_cuEventSynchronize(gg_cu_event event) {
  if (!gg_fake_find(GG_FAKE_EVENT, event)) gg_fake_violate("cuEventSynchronize", "no such event");
  return gg_fake_wait_in_context("cuEventSynchronize");
}

static gg_cu_result fake_cuMemAlloc_v2(gg_cu_pointer* pointer, size_t bytes) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  if (bytes == 0) return GG_FAKE_INVALID_VALUE;
  *pointer = (gg_cu_pointer)(uintptr_t)gg_fake_make(GG_FAKE_MEMORY, bytes);
  return 0;
}

static gg_cu_result fake_cuMemFree_v2(gg_cu_pointer pointer) {
  unsigned code = gg_fake_wait_in_context("cuMemFree_v2"); /* as the driver does */
  gg_fake_unmake(GG_FAKE_MEMORY, (void*)(uintptr_t)pointer, "cuMemFree_v2");
  return code;
}

static gg_cu_result fake_cuMemHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  (void)flags;
  GG_FAKE_BEGIN_IN_CONTEXT;
  *memory = gg_fake_make(GG_FAKE_PINNED, bytes);
  return 0;
}

static gg_cu_result fake_cuMemHostGetDevicePointer_v2(gg_cu_pointer* pointer, void* memory, unsigned int flags) {
  (void)flags;
  GG_FAKE_BEGIN_IN_CONTEXT;
  if (!gg_fake_find(GG_FAKE_PINNED, memory)) gg_fake_violate("cuMemHostGetDevicePointer_v2", "no such memory");
  *pointer = (gg_cu_pointer)(uintptr_t)memory;
  return 0;
}

/* It does not wait: work on that memory has to be done by then. */
static gg_cu_result fake_cuMemFreeHost(void* memory) {
  unsigned code = gg_fake_begin_in_context("cuMemFreeHost");
  const gg_fake_object* found = gg_fake_find(GG_FAKE_PINNED, memory);
  if (found && gg_fake_cuda_will_touch(memory, found->bytes))
    gg_fake_violate("cuMemFreeHost", "a copy is still to be made there");
  gg_fake_unmake(GG_FAKE_PINNED, memory, "cuMemFreeHost");
  return code;
}

static gg_cu_result fake_cuMemcpyHtoDAsync_v2(gg_cu_pointer destination, const void* source, size_t bytes,
                                              gg_cu_stream stream) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  gg_fake_queue("cuMemcpyHtoDAsync_v2", stream,
                (gg_fake_copy){
                    .destination = (void*)(uintptr_t)destination, .source = source, .bytes = bytes, .from_host = true});
  return 0;
}

static gg_cu_result fake_cuMemcpyDtoHAsync_v2(void* destination, gg_cu_pointer source, size_t bytes,
                                              gg_cu_stream stream) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  gg_fake_queue("cuMemcpyDtoHAsync_v2", stream,
                (gg_fake_copy){.destination = destination, .source = (void*)(uintptr_t)source, .bytes = bytes});
  return 0;
}

static gg_cu_result fake_cuMemcpyDtoDAsync_v2(gg_cu_pointer destination, gg_cu_pointer source, size_t bytes,
                                              gg_cu_stream stream) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  gg_fake_copy copied = {
      .destination = (void*)(uintptr_t)destination, .source = (void*)(uintptr_t)source, .bytes = bytes};
  gg_fake_queue("cuMemcpyDtoDAsync_v2", stream, copied);
  return 0;
}

static gg_cu_result fake_cuMemsetD8Async(gg_cu_pointer destination, unsigned char value, size_t bytes,
                                         gg_cu_stream stream) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  gg_fake_queue("cuMemsetD8Async", stream,
                (gg_fake_copy){.destination = (void*)(uintptr_t)destination, .bytes = bytes, .value = value});
  return 0;
}

static gg_fake_cuda_range find_range(gg_cu_pointer pointer) {
  for (size_t i = 0; i < gg_fake.range_count; i++) {
    const gg_fake_cuda_range* range = &gg_fake.ranges[i];
    if (pointer >= range->start && pointer - range->start < (range->bytes ? range->bytes : 1)) return *range;
  }
  for (size_t i = 0; i < GG_FAKE_OBJECTS; i++) {
    const gg_fake_object* made = &gg_fake.objects[i];
    gg_cu_pointer start = (gg_cu_pointer)(uintptr_t)made->handle;
    if (start && made->kind == GG_FAKE_MEMORY && pointer >= start && pointer - start < made->bytes)
      return (gg_fake_cuda_range){start, made->bytes, gg_fake.stack[gg_fake.depth - 1], GG_CU_MEMORYTYPE_DEVICE, 0,
                                  0,     start};
  }
  return (gg_fake_cuda_range){.ordinal = -2};
}

static gg_cu_result fake_cuPointerGetAttributes(unsigned int count, gg_cu_enum* attributes, void** values,
                                                gg_cu_pointer pointer) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  gg_fake_cuda_range range = find_range(pointer);
  gg_cu_pointer address = range.address ? range.address + (pointer - range.start) : 0;
  for (unsigned i = 0; i < count; i++) switch (attributes[i]) {
      case GG_CU_POINTER_ATTRIBUTE_CONTEXT:
        *(gg_cu_context*)values[i] = range.context;
        break;
      case GG_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned*)values[i] = range.type;
        break;
      case GG_CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned*)values[i] = range.managed;
        break;
      case GG_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int*)values[i] = range.ordinal;
        break;
      case GG_CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(gg_cu_pointer*)values[i] = address;
        break;
      case GG_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(gg_cu_pointer*)values[i] = range.start;
        break;
      case GG_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t*)values[i] = range.bytes;
        break;
      default:
        gg_fake_violate("cuPointerGetAttributes", "an attribute that the fake does not know");
    }
  return 0;
}

static const char assembler_log[] = "what the assembler says";

static gg_cu_result fake_cuModuleLoadDataEx(gg_cu_module* module, const void* image, unsigned int options,
                                            gg_cu_enum* names, void** values) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  gg_fake.loaded = image;
  gg_cu_result code = image == gg_fake_fatbin ? gg_fake_cuda.fatbin
                      : image == gg_fake_ptx  ? gg_fake_cuda.ptx
                                              : gg_fake_cuda.compiled;
  for (unsigned i = 0; code && i < options; i++)
    if (names[i] == GG_CU_JIT_ERROR_LOG_BUFFER) memcpy(values[i], assembler_log, sizeof assembler_log);
  if (!code) *module = gg_fake_make(GG_FAKE_MODULE, 0);
  return code;
}

static gg_cu_result fake_cuModuleUnload(gg_cu_module module) {
  unsigned code = gg_fake_begin_in_context("cuModuleUnload");
  gg_fake_unmake(GG_FAKE_MODULE, module, "cuModuleUnload");
  return code;
}

static char functions[4];
static const char* const kernels[4] = {"gg_reduce", "gg_finalize", "gg_update", "gg_unfused_clip"};

static gg_cu_result fake_cuModuleGetFunction(gg_cu_function* function, gg_cu_module module, const char* name) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  if (!gg_fake_find(GG_FAKE_MODULE, module)) gg_fake_violate("cuModuleGetFunction", "no such module");
  for (int i = 0; i < 4; i++)
    if (strcmp(kernels[i], name) == 0) {
      *function = (gg_cu_function)(void*)&functions[i];
      return 0;
    }
  return GG_CUDA_ERROR_NOT_FOUND;
}

static gg_cu_result fake_cuLaunchKernel(gg_cu_function function, unsigned int grid_x, unsigned int grid_y,
                                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                        unsigned int block_z, unsigned int shared_bytes, gg_cu_stream stream,
                                        void** parameters, void** extra) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  bool kernel = (char*)(void*)function >= functions && (char*)(void*)function < functions + 4;
  if (!kernel || !parameters || extra) gg_fake_violate("cuLaunchKernel", "no kernel, or no parameters");
  if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x != 256 || block_y != 1 || block_z != 1 || shared_bytes)
    gg_fake_violate("cuLaunchKernel", "a wrong grid or block");
  if ((char*)(void*)function == functions && parameters) { /* gg_reduce: its fifth argument */
    float* scale = gg_fake.capturing == stream ? &gg_fake.captured_scale : &gg_fake.scale;
    memcpy(scale, parameters[4], sizeof *scale);
  }
  return 0;
}

static gg_cu_result fake_cuStreamBeginCapture_v2(gg_cu_stream stream, gg_cu_enum mode) {
  GG_FAKE_BEGIN_IN_CONTEXT;
  if (mode != GG_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    gg_fake_violate("cuStreamBeginCapture_v2", "other threads would be disturbed");
  if (gg_fake.capturing || !gg_fake_find(GG_FAKE_STREAM, stream))
    gg_fake_violate("cuStreamBeginCapture_v2", "no such stream, or a second capture");
  gg_fake.capturing = stream;
  return 0;
}

static gg_cu_result fake_cuStreamEndCapture(gg_cu_stream stream, gg_cu_graph* graph) {
  unsigned code = gg_fake_begin_in_context("cuStreamEndCapture");
  if (gg_fake.capturing != stream) gg_fake_violate("cuStreamEndCapture", "this stream captures nothing");
  gg_fake.capturing = NULL;
  *graph = code ? NULL : gg_fake_make(GG_FAKE_GRAPH, 0);
  if (!code) gg_fake_find(GG_FAKE_GRAPH, *graph)->scale = gg_fake.captured_scale;
  return code;
}

static gg_cu_result fake_cuGraphInstantiateWithFlags(gg_cu_graph_exec* exec, gg_cu_graph graph,
                                                     unsigned long long flags) {
  (void)flags;
  GG_FAKE_BEGIN_IN_CONTEXT;
  const gg_fake_object* recorded = gg_fake_find(GG_FAKE_GRAPH, graph);
  if (!recorded) gg_fake_violate("cuGraphInstantiateWithFlags", "no such graph");
  *exec = gg_fake_make(GG_FAKE_GRAPH_EXEC, 0);
  if (recorded) gg_fake_find(GG_FAKE_GRAPH_EXEC, *exec)->scale = recorded->scale;
  return 0;
}

static gg_cu_result fake_cuGraphDestroy(gg_cu_graph graph) {
  unsigned code = gg_fake_begin_in_context("cuGraphDestroy");
  gg_fake_unmake(GG_FAKE_GRAPH, graph, "cuGraphDestroy");
  return code;
}

static gg_cu_result fake_cuGraphLaunch(gg_cu_graph_exec exec, gg_cu_stream stream) {
  (void)stream;
  GG_FAKE_BEGIN_IN_CONTEXT;
  const gg_fake_object* found = gg_fake_find(GG_FAKE_GRAPH_EXEC, exec);
  if (!found) gg_fake_violate("cuGraphLaunch", "no such graph");
  if (found) gg_fake.scale = found->scale;
  return 0;
}

static gg_cu_result fake_cuGraphExecDestroy(gg_cu_graph_exec exec) {
  unsigned code = gg_fake_begin_in_context("cuGraphExecDestroy");
  gg_fake_unmake(GG_FAKE_GRAPH_EXEC, exec, "cuGraphExecDestroy");
  return code;
}

void gg_fake_fill_driver(gg_cuda_driver* driver) {
#define FILL(plain, name, parameters) .name = fake_##name,
  *driver = (gg_cuda_driver){GG_CUDA_SYMBOLS(FILL)};
#undef FILL
}
