/* The types and constants of OpenCL that this backend uses, so that it builds without OpenCL headers. The names carry a
 * prefix and can stand beside <CL/cl.h>; tests compare the two where that header is installed. */
#ifndef GG_BACKENDS_OPENCL_CL_TYPES_H
#define GG_BACKENDS_OPENCL_CL_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t gg_cl_int;
typedef uint32_t gg_cl_uint;
typedef uint32_t gg_cl_bool;
typedef uint32_t gg_cl_enum; /* the ..._info parameter names */
typedef uint64_t gg_cl_bits; /* bit-fields */
typedef intptr_t gg_cl_property;

typedef struct _cl_platform_id* gg_cl_platform;
typedef struct _cl_device_id* gg_cl_device;
typedef struct _cl_context* gg_cl_context;
typedef struct _cl_command_queue* gg_cl_queue;
typedef struct _cl_mem* gg_cl_mem;
typedef struct _cl_program* gg_cl_program;
typedef struct _cl_kernel* gg_cl_kernel;
typedef struct _cl_event* gg_cl_event;

/* X(name without CL_, value) */
#define GG_CL_CONSTANTS(X)                       \
  X(DEVICE_TYPE_CPU, 1 << 1)                     \
  X(DEVICE_TYPE_GPU, 1 << 2)                     \
  X(PLATFORM_NAME, 0x0902)                       \
  X(DEVICE_TYPE, 0x1000)                         \
  X(DEVICE_MAX_COMPUTE_UNITS, 0x1002)            \
  X(DEVICE_MAX_WORK_GROUP_SIZE, 0x1004)          \
  X(DEVICE_MAX_WORK_ITEM_SIZES, 0x1005)          \
  X(DEVICE_ADDRESS_BITS, 0x100D)                 \
  X(DEVICE_MAX_MEM_ALLOC_SIZE, 0x1010)           \
  X(DEVICE_SINGLE_FP_CONFIG, 0x101B)             \
  X(DEVICE_GLOBAL_MEM_SIZE, 0x101F)              \
  X(DEVICE_LOCAL_MEM_SIZE, 0x1023)               \
  X(DEVICE_ENDIAN_LITTLE, 0x1026)                \
  X(DEVICE_AVAILABLE, 0x1027)                    \
  X(DEVICE_COMPILER_AVAILABLE, 0x1028)           \
  X(DEVICE_NAME, 0x102B)                         \
  X(DRIVER_VERSION, 0x102D)                      \
  X(DEVICE_PROFILE, 0x102E)                      \
  X(DEVICE_VERSION, 0x102F)                      \
  X(DEVICE_PLATFORM, 0x1031)                     \
  X(DEVICE_PARENT_DEVICE, 0x1042)                \
  X(DEVICE_SVM_CAPABILITIES, 0x1053)             \
  X(FP_DENORM, 1 << 0)                           \
  X(FP_INF_NAN, 1 << 1)                          \
  X(FP_ROUND_TO_NEAREST, 1 << 2)                 \
  X(FP_FMA, 1 << 5)                              \
  X(FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, 1 << 7)    \
  X(DEVICE_SVM_COARSE_GRAIN_BUFFER, 1 << 0)      \
  X(QUEUE_CONTEXT, 0x1090)                       \
  X(QUEUE_DEVICE, 0x1091)                        \
  X(QUEUE_PROPERTIES, 0x1093)                    \
  X(QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 1 << 0) \
  X(QUEUE_PROFILING_ENABLE, 1 << 1)              \
  X(QUEUE_ON_DEVICE, 1 << 2)                     \
  X(CONTEXT_PLATFORM, 0x1084)                    \
  X(MEM_READ_WRITE, 1 << 0)                      \
  X(MEM_WRITE_ONLY, 1 << 1)                      \
  X(MEM_READ_ONLY, 1 << 2)                       \
  X(MEM_USE_HOST_PTR, 1 << 3)                    \
  X(MEM_OBJECT_BUFFER, 0x10F0)                   \
  X(MEM_TYPE, 0x1100)                            \
  X(MEM_FLAGS, 0x1101)                           \
  X(MEM_SIZE, 0x1102)                            \
  X(MEM_HOST_PTR, 0x1103)                        \
  X(MEM_CONTEXT, 0x1106)                         \
  X(MEM_ASSOCIATED_MEMOBJECT, 0x1107)            \
  X(MEM_OFFSET, 0x1108)                          \
  X(PROGRAM_BUILD_LOG, 0x1183)                   \
  X(KERNEL_WORK_GROUP_SIZE, 0x11B0)              \
  X(KERNEL_EXEC_INFO_SVM_PTRS, 0x11B6)           \
  X(EVENT_COMMAND_EXECUTION_STATUS, 0x11D3)      \
  X(PROFILING_COMMAND_START, 0x1282)             \
  X(PROFILING_COMMAND_END, 0x1283)

/* X(name without CL_, value): every code that a call of this backend can return. */
#define GG_CL_ERRORS(X)                             \
  X(DEVICE_NOT_FOUND, -1)                           \
  X(DEVICE_NOT_AVAILABLE, -2)                       \
  X(COMPILER_NOT_AVAILABLE, -3)                     \
  X(MEM_OBJECT_ALLOCATION_FAILURE, -4)              \
  X(OUT_OF_RESOURCES, -5)                           \
  X(OUT_OF_HOST_MEMORY, -6)                         \
  X(PROFILING_INFO_NOT_AVAILABLE, -7)               \
  X(MEM_COPY_OVERLAP, -8)                           \
  X(BUILD_PROGRAM_FAILURE, -11)                     \
  X(MAP_FAILURE, -12)                               \
  X(MISALIGNED_SUB_BUFFER_OFFSET, -13)              \
  X(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14) \
  X(COMPILE_PROGRAM_FAILURE, -15)                   \
  X(LINKER_NOT_AVAILABLE, -16)                      \
  X(LINK_PROGRAM_FAILURE, -17)                      \
  X(INVALID_VALUE, -30)                             \
  X(INVALID_DEVICE_TYPE, -31)                       \
  X(INVALID_PLATFORM, -32)                          \
  X(INVALID_DEVICE, -33)                            \
  X(INVALID_CONTEXT, -34)                           \
  X(INVALID_QUEUE_PROPERTIES, -35)                  \
  X(INVALID_COMMAND_QUEUE, -36)                     \
  X(INVALID_HOST_PTR, -37)                          \
  X(INVALID_MEM_OBJECT, -38)                        \
  X(INVALID_BINARY, -42)                            \
  X(INVALID_BUILD_OPTIONS, -43)                     \
  X(INVALID_PROGRAM, -44)                           \
  X(INVALID_PROGRAM_EXECUTABLE, -45)                \
  X(INVALID_KERNEL_NAME, -46)                       \
  X(INVALID_KERNEL_DEFINITION, -47)                 \
  X(INVALID_KERNEL, -48)                            \
  X(INVALID_ARG_INDEX, -49)                         \
  X(INVALID_ARG_VALUE, -50)                         \
  X(INVALID_ARG_SIZE, -51)                          \
  X(INVALID_KERNEL_ARGS, -52)                       \
  X(INVALID_WORK_DIMENSION, -53)                    \
  X(INVALID_WORK_GROUP_SIZE, -54)                   \
  X(INVALID_WORK_ITEM_SIZE, -55)                    \
  X(INVALID_GLOBAL_OFFSET, -56)                     \
  X(INVALID_EVENT_WAIT_LIST, -57)                   \
  X(INVALID_EVENT, -58)                             \
  X(INVALID_OPERATION, -59)                         \
  X(INVALID_BUFFER_SIZE, -61)                       \
  X(INVALID_GLOBAL_WORK_SIZE, -63)                  \
  X(INVALID_PROPERTY, -64)

#define GG_CL_ENUMERATE(name, value) GG_CL_##name = (value),
enum { GG_CL_CONSTANTS(GG_CL_ENUMERATE) GG_CL_CONSTANTS_END };
enum { GG_CL_ERRORS(GG_CL_ENUMERATE) GG_CL_SUCCESS = 0 };
#undef GG_CL_ENUMERATE

/* Not in the list: an enumerator is an int. */
#define GG_CL_DEVICE_TYPE_ALL 0xFFFFFFFFu

/* Of extensions: the loader found no platform; NVIDIA's code for an illegal access of a kernel. */
#define GG_CL_PLATFORM_NOT_FOUND_KHR (-1001)
#define GG_CL_ILLEGAL_ACCESS_NVIDIA  (-9999)

#endif
