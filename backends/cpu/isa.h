/* Names that differ for each instruction set a file is compiled for: GG_ISA_NAME(gg_cpu_update) is gg_cpu_update_avx2.
 */
#ifndef GG_BACKENDS_CPU_ISA_H
#define GG_BACKENDS_CPU_ISA_H

#include <assert.h>
#include <float.h>

#ifndef GG_ISA
#define GG_ISA portable
#endif

#define GG_ISA_PASTE(a, b) a##b
#define GG_ISA_JOIN(a, b)  GG_ISA_PASTE(a, b)
#define GG_ISA_NAME(name)  GG_ISA_JOIN(name##_, GG_ISA)
#define GG_ISA_IS_portable 0
#define GG_ISA_IS_avx2     2
#define GG_ISA_IS_avx512   512
#define GG_ISA_LEVEL       GG_ISA_JOIN(GG_ISA_IS_, GG_ISA)

static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must round to float: on 32-bit x86 compile with -mfpmath=sse");

#endif
