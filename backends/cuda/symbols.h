/*
 * The driver functions that the backend calls, each once: X(name in <cuda.h>, name in libcuda.so.1, parameters).
 *
 * <cuda.h> maps many of the plain names to versioned ones by macro; the names of older interfaces, with other types,
 * stay in the library. So both are written down, and tests/cuda/test_cuda_symbols.c compares them and every signature
 * with <cuda.h> where there is one. All return a gg_cu_result.
 */
#ifndef GG_BACKENDS_CUDA_SYMBOLS_H
#define GG_BACKENDS_CUDA_SYMBOLS_H

#define GG_CUDA_SYMBOLS(X)                                                                                          \
  X(cuInit, cuInit, (unsigned int flags))                                                                           \
  X(cuDriverGetVersion, cuDriverGetVersion, (int* version))                                                         \
  X(cuGetErrorName, cuGetErrorName, (gg_cu_result code, const char** name))                                         \
  X(cuGetErrorString, cuGetErrorString, (gg_cu_result code, const char** text))                                     \
  X(cuDeviceGetCount, cuDeviceGetCount, (int* count))                                                               \
  X(cuDeviceGet, cuDeviceGet, (gg_cu_device * device, int ordinal))                                                 \
  X(cuDeviceGetName, cuDeviceGetName, (char* name, int bytes, gg_cu_device device))                                 \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, gg_cu_device device))                                   \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int* value, gg_cu_enum attribute, gg_cu_device device))            \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (gg_cu_context * context, gg_cu_device device))             \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (gg_cu_device device))                                 \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, (gg_cu_context context))                                                 \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (gg_cu_context * context))                                                 \
  X(cuCtxGetDevice, cuCtxGetDevice, (gg_cu_device * device))                                                        \
  X(cuStreamGetCtx, cuStreamGetCtx, (gg_cu_stream stream, gg_cu_context * context))                                 \
  X(cuStreamCreate, cuStreamCreate, (gg_cu_stream * stream, unsigned int flags))                                    \
  X(cuStreamDestroy, cuStreamDestroy_v2, (gg_cu_stream stream))                                                     \
  X(cuStreamSynchronize, cuStreamSynchronize, (gg_cu_stream stream))                                                \
  X(cuEventCreate, cuEventCreate, (gg_cu_event * event, unsigned int flags))                                        \
  X(cuEventDestroy, cuEventDestroy_v2, (gg_cu_event event))                                                         \
  X(cuEventRecord, cuEventRecord, (gg_cu_event event, gg_cu_stream stream))                                         \
  X(cuEventSynchronize, cuEventSynchronize, (gg_cu_event event))                                                    \
  X(cuMemAlloc, cuMemAlloc_v2, (gg_cu_pointer * pointer, size_t bytes))                                             \
  X(cuMemFree, cuMemFree_v2, (gg_cu_pointer pointer))                                                               \
  X(cuMemHostAlloc, cuMemHostAlloc, (void** memory, size_t bytes, unsigned int flags))                              \
  X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                                        \
    (gg_cu_pointer * pointer, void* memory, unsigned int flags))                                                    \
  X(cuMemFreeHost, cuMemFreeHost, (void* memory))                                                                   \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                                        \
    (gg_cu_pointer destination, const void* source, size_t bytes, gg_cu_stream stream))                             \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                                        \
    (void* destination, gg_cu_pointer source, size_t bytes, gg_cu_stream stream))                                   \
  X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                                        \
    (gg_cu_pointer destination, gg_cu_pointer source, size_t bytes, gg_cu_stream stream))                           \
  X(cuMemsetD8Async, cuMemsetD8Async,                                                                               \
    (gg_cu_pointer destination, unsigned char value, size_t bytes, gg_cu_stream stream))                            \
  X(cuPointerGetAttributes, cuPointerGetAttributes,                                                                 \
    (unsigned int count, gg_cu_enum* attributes, void** values, gg_cu_pointer pointer))                             \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx,                                                                         \
    (gg_cu_module * module, const void* image, unsigned int options, gg_cu_enum* names, void** values))             \
  X(cuModuleUnload, cuModuleUnload, (gg_cu_module module))                                                          \
  X(cuModuleGetFunction, cuModuleGetFunction, (gg_cu_function * function, gg_cu_module module, const char* name))   \
  X(cuLaunchKernel, cuLaunchKernel,                                                                                 \
    (gg_cu_function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,  \
     unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, gg_cu_stream stream, void** parameters, \
     void** extra))                                                                                                 \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (gg_cu_stream stream, gg_cu_enum mode))                          \
  X(cuStreamEndCapture, cuStreamEndCapture, (gg_cu_stream stream, gg_cu_graph * graph))                             \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                                                \
    (gg_cu_graph_exec * exec, gg_cu_graph graph, unsigned long long flags))                                         \
  X(cuGraphDestroy, cuGraphDestroy, (gg_cu_graph graph))                                                            \
  X(cuGraphLaunch, cuGraphLaunch, (gg_cu_graph_exec exec, gg_cu_stream stream))                                     \
  X(cuGraphExecDestroy, cuGraphExecDestroy, (gg_cu_graph_exec exec))

/* The constants of <cuda.h> that the backend uses, compared in the same test: X(name, value). The library has them
 * with GG_ in front. */
#define GG_CUDA_CONSTANTS(X)                          \
  X(CUDA_SUCCESS, 0)                                  \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2)                      \
  X(CUDA_ERROR_NOT_INITIALIZED, 3)                    \
  X(CUDA_ERROR_DEINITIALIZED, 4)                      \
  X(CUDA_ERROR_STUB_LIBRARY, 34)                      \
  X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36)        \
  X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                \
  X(CUDA_ERROR_NO_DEVICE, 100)                        \
  X(CUDA_ERROR_INVALID_DEVICE, 101)                   \
  X(CUDA_ERROR_DEVICE_NOT_LICENSED, 102)              \
  X(CUDA_ERROR_INVALID_IMAGE, 200)                    \
  X(CUDA_ERROR_INVALID_CONTEXT, 201)                  \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                \
  X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                \
  X(CUDA_ERROR_INVALID_PTX, 218)                      \
  X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)             \
  X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)           \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)          \
  X(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)         \
  X(CUDA_ERROR_CONTAINED, 226)                        \
  X(CUDA_ERROR_INVALID_SOURCE, 300)                   \
  X(CUDA_ERROR_OPERATING_SYSTEM, 304)                 \
  X(CUDA_ERROR_NOT_FOUND, 500)                        \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                  \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)          \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                   \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)             \
  X(CUDA_ERROR_ASSERT, 710)                           \
  X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)             \
  X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)              \
  X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)               \
  X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)            \
  X(CUDA_ERROR_INVALID_PC, 718)                       \
  X(CUDA_ERROR_LAUNCH_FAILED, 719)                    \
  X(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)               \
  X(CUDA_ERROR_SYSTEM_NOT_READY, 802)                 \
  X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)           \
  X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)   \
  X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)            \
  X(CUDA_ERROR_UNKNOWN, 999)                          \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)     \
  X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)      \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20)             \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
  X(CU_COMPUTEMODE_PROHIBITED, 2)                     \
  X(CU_STREAM_NON_BLOCKING, 1)                        \
  X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)           \
  X(CU_EVENT_DISABLE_TIMING, 2)                       \
  X(CU_MEMHOSTALLOC_PORTABLE, 1)                      \
  X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                     \
  X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                  \
  X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)              \
  X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)           \
  X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)               \
  X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)           \
  X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)        \
  X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)              \
  X(CU_MEMORYTYPE_HOST, 1)                            \
  X(CU_MEMORYTYPE_DEVICE, 2)                          \
  X(CU_JIT_INFO_LOG_BUFFER, 3)                        \
  X(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4)             \
  X(CU_JIT_ERROR_LOG_BUFFER, 5)                       \
  X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)

#endif
