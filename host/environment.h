/* The floating-point environment that kernels and host arithmetic need: rounding to nearest, subnormals kept, nothing
 * trapped. Callers may have set another one, for a thread that is theirs or OpenMP's (PyTorch's set_flush_denormal
 * does, and every program that gcc links with -ffast-math). Every public function that calculates puts it aside. */
#ifndef GG_HOST_ENVIRONMENT_H
#define GG_HOST_ENVIRONMENT_H

#if defined(__x86_64__)

/* All arithmetic is SSE's or AVX's, so its control word is enough; FE_DFL_ENV would touch the x87 unit as well. */
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
