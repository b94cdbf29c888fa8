/* The floating-point environment that kernels and host arithmetic need: round to nearest, no flushing of subnormals, no
 * traps. The caller may have changed it, for its own threads or OpenMP's (PyTorch's set_flush_denormal does, and so
 * does every program that gcc links with -ffast-math). Every public function that calculates sets it and then restores
 * the caller's. */
#ifndef GG_HOST_ENVIRONMENT_H
#define GG_HOST_ENVIRONMENT_H

#if defined(__x86_64__)

/* All arithmetic is SSE or AVX, so MXCSR is enough; FE_DFL_ENV would also change the x87 control word. */
#include <xmmintrin.h>

typedef unsigned int gg_environment;

static inline gg_environment gg_environment_enter(void) {
  gg_environment saved = _mm_getcsr();
  _mm_setcsr(0x1f80);
  return saved;
}

static inline void gg_environment_leave(gg_environment saved) { _mm_setcsr(saved); }

#else

#include <fenv.h>

typedef fenv_t gg_environment;

static inline gg_environment gg_environment_enter(void) {
  gg_environment saved;
  fegetenv(&saved);
  fesetenv(FE_DFL_ENV);
  return saved;
}

static inline void gg_environment_leave(gg_environment saved) { fesetenv(&saved); }

#endif

#endif
