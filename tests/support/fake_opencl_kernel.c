/* The functions of the fake OpenCL about programs and kernels, with the check of every launch. */
#include "kernels/embedded.h"
#include "tests/support/fake_opencl_state.h"

enum { REDUCE, FINALIZE, UPDATE, UNFUSED_CLIP };

/* The parameters of kernels/reduce.h, update.h and unfused.h: bytes of a value, PLACE for a pointer. With GG_ARENA come
 * the memory objects that tensors are in. */
#define PLACE 0
static const struct {
  const char* name;
  size_t parameters, objects;
  size_t bytes[7];
} kernels[GG_FAKE_CL_KERNELS] = {
    [REDUCE] = {"gg_reduce", 7, 1, {PLACE, PLACE, 4, 4, 4, PLACE, PLACE}},
    [FINALIZE] = {"gg_finalize", 4, 0, {PLACE, 4, PLACE, PLACE}},
    [UPDATE] = {"gg_update", 7, 10, {PLACE, PLACE, 4, 4, sizeof(gg_update_constants), PLACE, 4}},
    [UNFUSED_CLIP] = {"gg_unfused_clip", 5, 2, {PLACE, PLACE, 4, 4, sizeof(gg_update_constants)}},
};

static size_t count_of(const gg_fake_cl_object* kernel) {
  return kernels[kernel->which].parameters + (kernel->owner->arena ? kernels[kernel->which].objects : 0);
}

static void* handle_of(gg_fake_cl_object* object) { return object; }

/* ---- Programs ---- */

gg_cl_program gg_fake_clCreateProgramWithSource(gg_cl_context context, gg_cl_uint count, const char** text,
                                                const size_t* lengths, gg_cl_int* code) {
  GG_FAKE_CL_BEGIN_MAKING;
  gg_fake_cl_object* in = gg_fake_cl_use(GG_FAKE_CL_CONTEXT, context, "clCreateProgramWithSource");
  if (count != 1 || text[0] != gg_kernel_source || lengths)
    gg_fake_cl_violate("clCreateProgramWithSource", "not the kernels of the library");
  return handle_of(gg_fake_cl_make(GG_FAKE_CL_PROGRAM, in));
}

gg_cl_int gg_fake_clBuildProgram(gg_cl_program id, gg_cl_uint count, const gg_cl_device* devices, const char* options,
                                 void (*tell)(gg_cl_program, void*), void* user) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_object* program = gg_fake_cl_use(GG_FAKE_CL_PROGRAM, id, "clBuildProgram");
  if (!program) return GG_CL_INVALID_PROGRAM;
  const gg_fake_cl_object* device = gg_fake_cl_use(GG_FAKE_CL_DEVICE, devices[0], "clBuildProgram");
  if (count != 1 || device != program->owner->device || tell || user || program->built)
    gg_fake_cl_violate("clBuildProgram", "another device, something to call, or built already");
  const gg_fake_opencl_machine* is = gg_fake_cl_machine(device);
  bool rounded = strstr(options, "-cl-fp32-correctly-rounded-divide-sqrt") != NULL;
  if (strncmp(options, "-cl-std=CL1.2 ", 14) != 0) gg_fake_cl_violate("clBuildProgram", "not the dialect OpenCL C 1.2");
  if (rounded != ((is->arithmetic & GG_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0))
    gg_fake_cl_violate("clBuildProgram", "divisions are not asked for as the device can have them");
  if ((strstr(options, "-DGG_PROCESSOR=1") != NULL) != ((is->type & GG_CL_DEVICE_TYPE_CPU) != 0))
    gg_fake_cl_violate("clBuildProgram", "kernels of a processor and a GPU are not the same");
  strncpy(gg_fake_cl.options, options, sizeof gg_fake_cl.options - 1);
  program->arena = strstr(options, "-DGG_ARENA=1") != NULL;
  program->guard = strstr(options, "-DGG_WITH_GUARD=1") != NULL;
  program->built = is->build == GG_CL_SUCCESS;
  return is->build;
}

gg_cl_int gg_fake_clGetProgramBuildInfo(gg_cl_program id, gg_cl_device device, gg_cl_enum what, size_t bytes,
                                        void* value, size_t* told) {
  GG_FAKE_CL_BEGIN;
  gg_fake_cl_use(GG_FAKE_CL_PROGRAM, id, "clGetProgramBuildInfo");
  const gg_fake_cl_object* on = gg_fake_cl_use(GG_FAKE_CL_DEVICE, device, "clGetProgramBuildInfo");
  if (!on || what != GG_CL_PROGRAM_BUILD_LOG) {
    gg_fake_cl_violate("clGetProgramBuildInfo", "a property that the fake does not know");
    return GG_CL_INVALID_VALUE;
  }
  const char* log = gg_fake_cl_machine(on)->build_log;
  return gg_fake_cl_answer(log, strlen(log) + 1, false, bytes, value, told);
}

gg_cl_int gg_fake_clReleaseProgram(gg_cl_program program) {
  return gg_fake_cl_release(GG_FAKE_CL_PROGRAM, program, "clReleaseProgram");
}

/* ---- Kernels ---- */

gg_cl_kernel gg_fake_clCreateKernel(gg_cl_program id, const char* name, gg_cl_int* code) {
  GG_FAKE_CL_BEGIN_MAKING;
  gg_fake_cl_object* program = gg_fake_cl_use(GG_FAKE_CL_PROGRAM, id, "clCreateKernel");
  int which = 0;
  while (which < GG_FAKE_CL_KERNELS && strcmp(kernels[which].name, name) != 0) which++;
  *code = !program || !program->built ? GG_CL_INVALID_PROGRAM_EXECUTABLE : GG_CL_INVALID_KERNEL_NAME;
  if (!program || !program->built || which == GG_FAKE_CL_KERNELS) return NULL;
  if (!program->guard && which <= FINALIZE) return NULL;
  *code = GG_CL_SUCCESS;
  gg_fake_cl_object* made = gg_fake_cl_make(GG_FAKE_CL_KERNEL, program);
  made->which = which;
  return handle_of(made);
}

gg_cl_int gg_fake_clGetKernelWorkGroupInfo(gg_cl_kernel id, gg_cl_device device, gg_cl_enum what, size_t bytes,
                                           void* value, size_t* told) {
  GG_FAKE_CL_BEGIN;
  const gg_fake_cl_object* kernel = gg_fake_cl_use(GG_FAKE_CL_KERNEL, id, "clGetKernelWorkGroupInfo");
  const gg_fake_cl_object* on = gg_fake_cl_use(GG_FAKE_CL_DEVICE, device, "clGetKernelWorkGroupInfo");
  if (!kernel || !on || what != GG_CL_KERNEL_WORK_GROUP_SIZE) {
    gg_fake_cl_violate("clGetKernelWorkGroupInfo", "a property that the fake does not know");
    return GG_CL_INVALID_VALUE;
  }
  const gg_fake_opencl_machine* is = gg_fake_cl_machine(on);
  bool meant = !is->kernel || strcmp(is->kernel, kernels[kernel->which].name) == 0;
  const size_t most = meant ? is->kernel_group : 256;
  return gg_fake_cl_answer(&most, sizeof most, true, bytes, value, told);
}

gg_cl_int gg_fake_clReleaseKernel(gg_cl_kernel kernel) {
  return gg_fake_cl_release(GG_FAKE_CL_KERNEL, kernel, "clReleaseKernel");
}

/* The argument at `index`, which has to be a pointer, or a value of so many bytes; NULL: it is not. */
static gg_fake_cl_argument* argument_at(gg_cl_kernel id, gg_cl_uint index, bool pointer, size_t bytes,
                                        const char* function) {
  gg_fake_cl_object* kernel = gg_fake_cl_use(GG_FAKE_CL_KERNEL, id, function);
  if (!kernel) return NULL;
  size_t parameters = kernels[kernel->which].parameters;
  if (index >= count_of(kernel)) {
    gg_fake_cl_violate(function, "there is no argument with this number");
    return NULL;
  }
  size_t wanted = index < parameters ? kernels[kernel->which].bytes[index] : PLACE;
  if ((wanted == PLACE) != pointer || (!pointer && bytes != wanted)) {
    gg_fake_cl_violate(function, "the argument has another size");
    return NULL;
  }
  return &kernel->arguments[index];
}

gg_cl_int gg_fake_clSetKernelArg(gg_cl_kernel id, gg_cl_uint index, size_t bytes, const void* value) {
  GG_FAKE_CL_BEGIN;
  gg_fake_cl_object* kernel = gg_fake_cl_use(GG_FAKE_CL_KERNEL, id, "clSetKernelArg");
  if (!kernel) return GG_CL_INVALID_KERNEL;
  size_t parameters = kernels[kernel->which].parameters;
  bool pointer = index >= parameters || kernels[kernel->which].bytes[index] == PLACE;
  gg_fake_cl_argument* at = argument_at(id, index, pointer, bytes, "clSetKernelArg");
  if (!at) return GG_CL_INVALID_ARG_SIZE;
  *at = (gg_fake_cl_argument){.set = true};
  if (!pointer) {
    memcpy(at->value, value, bytes);
    return GG_CL_SUCCESS;
  }
  gg_cl_mem memory = NULL;
  if (bytes != sizeof(gg_cl_mem)) gg_fake_cl_violate("clSetKernelArg", "the argument has another size");
  memcpy(&memory, value, sizeof(gg_cl_mem));
  at->object = gg_fake_cl_use(GG_FAKE_CL_MEMORY, memory, "clSetKernelArg");
  if (!at->object) return GG_CL_INVALID_MEM_OBJECT;
  at->place = at->object->bytes;
  return GG_CL_SUCCESS;
}

gg_cl_int gg_fake_clSetKernelArgSVMPointer(gg_cl_kernel id, gg_cl_uint index, const void* value) {
  GG_FAKE_CL_BEGIN;
  gg_fake_cl_argument* at = argument_at(id, index, true, 0, "clSetKernelArgSVMPointer");
  if (!at) return GG_CL_INVALID_ARG_INDEX;
  *at = (gg_fake_cl_argument){.set = true, .object = gg_fake_cl_svm_at(value, 1)};
  if (!at->object) gg_fake_cl_violate("clSetKernelArgSVMPointer", "there is no such memory");
  if (at->object) at->place = at->object->bytes + ((const unsigned char*)value - at->object->bytes);
  return at->object ? GG_CL_SUCCESS : GG_CL_INVALID_ARG_VALUE;
}

gg_cl_int gg_fake_clSetKernelExecInfo(gg_cl_kernel id, gg_cl_enum what, size_t bytes, const void* value) {
  GG_FAKE_CL_BEGIN;
  gg_fake_cl_object* kernel = gg_fake_cl_use(GG_FAKE_CL_KERNEL, id, "clSetKernelExecInfo");
  void* const* list = value;
  size_t count = bytes / sizeof *list;
  if (!kernel || what != GG_CL_KERNEL_EXEC_INFO_SVM_PTRS || !value || count == 0 || count > GG_FAKE_CL_NAMED) {
    gg_fake_cl_violate("clSetKernelExecInfo", "not a list of shared virtual memory");
    return GG_CL_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; i++) {
    kernel->named[i] = gg_fake_cl_svm_at(list[i], 1);
    if (!kernel->named[i]) gg_fake_cl_violate("clSetKernelExecInfo", "there is no such memory");
    if (!kernel->named[i]) return GG_CL_INVALID_VALUE;
  }
  kernel->named_count = count;
  return GG_CL_SUCCESS;
}

/* ---- Launches ---- */

static gg_u32 number(const gg_fake_cl_object* kernel, size_t argument) {
  gg_u32 value;
  memcpy(&value, kernel->arguments[argument].value, sizeof value);
  return value;
}

/* The place of a pointer, behind which there have to be so many items. */
static void* items(const gg_fake_cl_object* kernel, size_t argument, size_t count, size_t bytes) {
  const gg_fake_cl_argument* at = &kernel->arguments[argument];
  size_t before = (size_t)(at->place - at->object->bytes);
  if (count * bytes > at->object->size - before)
    gg_fake_cl_violate(kernels[kernel->which].name, "an argument is shorter than what is read or written there");
  return at->place;
}

static size_t width_of(gg_u32 type) { return type == GG_TYPE_F32 ? 4 : 2; }

/* A tensor has to lie in the object that the launch has for it, or in SVM that the kernel was told of. */
static void check_tensor(const gg_fake_cl_object* kernel, gg_u64 address, gg_u64 bytes, size_t object) {
  const char* name = kernels[kernel->which].name;
  if (kernel->owner->arena) {
    const gg_fake_cl_argument* in = &kernel->arguments[kernels[kernel->which].parameters + object];
    size_t size = in->object->size - (size_t)(in->place - in->object->bytes);
    if (address > size || bytes > size - address) gg_fake_cl_violate(name, "a tensor ends beyond its object");
    return;
  }
  const gg_fake_cl_object* in = gg_fake_cl_svm_at((const void*)(uintptr_t)address, bytes);
  bool named = false;
  for (size_t i = 0; i < kernel->named_count; i++) named |= in && kernel->named[i] == in;
  if (!in || !named) gg_fake_cl_violate(name, "a tensor is in no shared virtual memory that the kernel was told of");
}

static void check_row(const gg_fake_cl_object* kernel, const gg_device_row* row) {
  bool update = kernel->which == UPDATE;
  gg_u64 bytes = row->elements * 4;
  check_tensor(kernel, row->gradient, row->elements * width_of(row->gradient_type), 0);
  if (kernel->which == UNFUSED_CLIP) check_tensor(kernel, row->out[GG_STATE_PARAMETER], bytes, 1);
  if (!update) return;
  size_t states = row->flags & GG_ROW_AMSGRAD ? GG_STATES : GG_STATE_MAX_EXP_AVG_SQ;
  for (size_t s = 0; s < states; s++) {
    check_tensor(kernel, row->in[s], bytes, 1 + s);
    check_tensor(kernel, row->out[s], bytes, 1 + GG_STATES + s);
  }
  if (row->model_type) check_tensor(kernel, row->model, row->elements * width_of(row->model_type), 1 + 2 * GG_STATES);
}

static void check_groups(const gg_fake_cl_object* kernel, const gg_fake_cl_launch* launch, size_t groups) {
  const char* name = kernels[kernel->which].name;
  gg_u64 blocks = 0;
  for (gg_u32 i = launch->begin; i < launch->end; i++) {
    const gg_device_row* row = &launch->rows[i];
    gg_u64 own = kernel->which == REDUCE ? gg_reduce_blocks(row->elements) : gg_update_blocks(row->elements);
    if (launch->first[i + 1] - launch->first[i] != own) gg_fake_cl_violate(name, "a row has another number of blocks");
    blocks += own;
    check_row(kernel, row);
  }
  if (launch->begin >= launch->end || blocks != groups)
    gg_fake_cl_violate(name, "the work-groups are not those of its rows");
  gg_fake_cl.rows[kernel->which] += launch->end - launch->begin;
}

static gg_fake_cl_launch examine(const gg_fake_cl_object* kernel, size_t groups) {
  gg_fake_cl_launch launch = {.which = kernel->which};
  if (kernel->which == FINALIZE) {
    launch.begin = number(kernel, 1);
    launch.end = launch.begin + (gg_u32)groups;
    launch.first = items(kernel, 0, launch.end + 1, sizeof(gg_u32));
    launch.partials = items(kernel, 2, launch.first[launch.end], sizeof(gg_triple));
    launch.summaries = items(kernel, 3, launch.end, sizeof(gg_triple));
    for (gg_u32 i = launch.begin; i < launch.end; i++)
      if (launch.first[i + 1] - launch.first[i] < 2) gg_fake_cl_violate("gg_finalize", "a row has one block alone");
    gg_fake_cl.rows[FINALIZE] += (unsigned)groups;
    return launch;
  }
  launch.begin = number(kernel, 2);
  launch.end = number(kernel, 3);
  launch.rows = items(kernel, 0, launch.end, sizeof(gg_device_row));
  launch.first = items(kernel, 1, launch.end + 1, sizeof(gg_u32));
  if (kernel->which == REDUCE) {
    launch.partials = items(kernel, 5, launch.first[launch.end], sizeof(gg_triple));
    launch.summaries = items(kernel, 6, launch.end, sizeof(gg_triple));
    memcpy(&gg_fake_cl.scale, kernel->arguments[4].value, sizeof gg_fake_cl.scale);
  }
  if (kernel->which == UPDATE && !number(kernel, 6)) launch.bias = items(kernel, 5, launch.end, sizeof(gg_bias));
  check_groups(kernel, &launch, groups);
  return launch;
}

gg_cl_int gg_fake_clEnqueueNDRangeKernel(gg_cl_queue queue, gg_cl_kernel id, gg_cl_uint dimensions,
                                         const size_t* offset, const size_t* global, const size_t* local,
                                         gg_cl_uint count, const gg_cl_event* after, gg_cl_event* done) {
  GG_FAKE_CL_BEGIN_WORK;
  gg_fake_cl_object* kernel = gg_fake_cl_use(GG_FAKE_CL_KERNEL, id, "clEnqueueNDRangeKernel");
  if (!kernel) return GG_CL_INVALID_KERNEL;
  if (dimensions != 1 || offset || !global || !local || *local != GG_LANES || *global == 0 || *global % *local) {
    gg_fake_cl_violate("clEnqueueNDRangeKernel", "a wrong number of work-items");
    return GG_CL_INVALID_WORK_GROUP_SIZE;
  }
  gg_fake_cl_command command = {.to = NULL};
  for (size_t i = 0; i < count_of(kernel); i++) {
    gg_fake_cl_argument* at = &kernel->arguments[i];
    if (!at->set || (at->object && at->object->references + at->object->held <= 0)) {
      gg_fake_cl_violate(kernels[kernel->which].name, "an argument was not set, or its memory was released");
      return GG_CL_INVALID_KERNEL_ARGS;
    }
    gg_fake_cl_will_use(&command, at->object);
  }
  for (size_t i = 0; i < kernel->named_count; i++) {
    if (kernel->named[i]->references == 0)
      gg_fake_cl_violate(kernels[kernel->which].name, "memory that it was told of was released");
    gg_fake_cl_will_use(&command, kernel->named[i]);
  }
  command.launch = examine(kernel, *global / *local);
  if (*gg_fake_opencl_violation()) return GG_CL_INVALID_KERNEL_ARGS; /* the trace would go astray */
  return gg_fake_cl_queue("clEnqueueNDRangeKernel", queue, command, false, count, after, done);
}

unsigned gg_fake_opencl_rows(const char* kernel) {
  unsigned rows = 0;
  for (int i = 0; i < GG_FAKE_CL_KERNELS; i++)
    if (strcmp(kernels[i].name, kernel) == 0) rows = gg_fake_cl.rows[i];
  return rows;
}

static void trace_bias(const gg_device_row* row, gg_bias bias) {
  size_t at = 0;
  while (at < gg_fake_cl.traced_count && gg_fake_cl.traced[at].elements != row->elements) at++;
  if (at == GG_FAKE_CL_TRACED) return;
  if (at == gg_fake_cl.traced_count) gg_fake_cl.traced_count++;
  gg_fake_cl.traced[at].elements = row->elements;
  gg_fake_cl.traced[at].bias = bias;
}

void gg_fake_cl_trace(const gg_fake_cl_launch* launch) {
  for (gg_u32 i = launch->begin; i < launch->end; i++) {
    if (launch->which == FINALIZE) launch->summaries[i] = launch->partials[launch->first[i]];
    if (launch->which == UPDATE && launch->bias) trace_bias(&launch->rows[i], launch->bias[i]);
    if (launch->which != REDUCE) continue;
    bool only = launch->first[i + 1] - launch->first[i] == 1;
    gg_triple* to = only ? &launch->summaries[i] : &launch->partials[launch->first[i]];
    *to = (gg_triple){.max_abs = (float)launch->rows[i].elements};
  }
}
