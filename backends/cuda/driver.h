/* The CUDA driver as a struct of function pointers. Types and constants are declared here: no vendor header is needed.
 */
#ifndef GG_BACKENDS_CUDA_DRIVER_H
#define GG_BACKENDS_CUDA_DRIVER_H

#include <stddef.h>

#include "api/gradguard.h"
#include "backends/cuda/symbols.h"

/* The handles are pointers to the same tags as in <cuda.h>, so the types are compatible; so is an enumeration with
 * unsigned int, for gcc and clang, when no value is negative. */
typedef unsigned int gg_cu_result;
typedef unsigned int gg_cu_enum;
typedef int gg_cu_device;
typedef unsigned long long gg_cu_pointer;
typedef struct CUctx_st* gg_cu_context;
typedef struct CUmod_st* gg_cu_module;
typedef struct CUfunc_st* gg_cu_function;
typedef struct CUevent_st* gg_cu_event;
typedef struct CUstream_st* gg_cu_stream;
typedef struct CUgraph_st* gg_cu_graph;
typedef struct CUgraphExec_st* gg_cu_graph_exec;

#define GG_CUDA_CONSTANT(name, value) GG_##name = value,
enum { GG_CUDA_CONSTANTS(GG_CUDA_CONSTANT) };
#undef GG_CUDA_CONSTANT

#define GG_CUDA_MEMBER(plain, name, parameters) gg_cu_result(*name) parameters;
typedef struct gg_cuda_driver {
  GG_CUDA_SYMBOLS(GG_CUDA_MEMBER)
} gg_cuda_driver;
#undef GG_CUDA_MEMBER

/* Finds a symbol of a library, NULL if it does not exist: dlsym, or a replacement in tests. */
typedef void* (*gg_cuda_find)(void* library, const char* name);

/* Fills the struct from `library`. GG_ERROR_NO_DRIVER names the first missing function. */
gg_status gg_cuda_driver_load(gg_cuda_driver* driver, gg_cuda_find find, void* library, gg_error* error);

/* The same from the system's driver library, opened by this call and never closed. */
gg_status gg_cuda_driver_open(gg_cuda_driver* driver, gg_error* error);

#endif
