/* The kernels as the build puts them into the library; generated C files define these (site_scons/kernel_images.py). */
#ifndef GG_KERNELS_EMBEDDED_H
#define GG_KERNELS_EMBEDDED_H

#include <stddef.h>

/* The kernel source, NUL-terminated, for OpenCL C compilers and NVRTC: the headers joined, so it includes nothing. */
extern const char gg_kernel_source[];

/* Machine code for several GPUs and PTX for the newest of them, from nvcc, for cuModuleLoadData. Without nvcc the size
 * is 0. */
extern const unsigned char gg_kernel_fatbin[];
extern const size_t gg_kernel_fatbin_bytes;

/* PTX for the oldest GPU, NUL-terminated, for the driver's own compiler. Without nvcc it is the empty string. */
extern const char gg_kernel_ptx[];

#endif
