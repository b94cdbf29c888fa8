/* The floating-point environment that the kernels need: rounding to nearest, subnormals kept, nothing trapped. Callers
 * may have set another one, for a thread that is theirs or OpenMP's (PyTorch's set_flush_denormal does). */
#ifndef GG_BACKENDS_CPU_ENVIRONMENT_H
#define GG_BACKENDS_CPU_ENVIRONMENT_H

#if defined(__x86_64__)

/* All arithmetic is SSE's or AVX's, so its control word is enough; FE_DFL_ENV would touch the x87 unit as well. */
#include <xmmintrin.h>

typedef unsigned int gg_cpu_environment;

static inline gg_cpu_environment gg_cpu_environment_enter(void) {
  gg_cpu_environment saved = _mm_getcsr();
  _mm_setcsr(0x1f80);
  return saved;
}

static inline void gg_cpu_environment_leave(gg_cpu_environment saved) { _mm_setcsr(saved); }

#else

#include <fenv.h>

typedef fenv_t gg_cpu_environment;

static inline gg_cpu_environment gg_cpu_environment_enter(void) {
  gg_cpu_environment saved;
  fegetenv(&saved);
  fesetenv(FE_DFL_ENV);
  return saved;
}

static inline void gg_cpu_environment_leave(gg_cpu_environment saved) { fesetenv(&saved); }

#endif

#endif
