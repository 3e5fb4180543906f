/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic that results are promised in: round to nearest, subnormals kept.  A program may
 * have chosen otherwise for its own threads (fast-math start-up code does), and a thread that
 * synchronises computes: so kernels run between enter and leave. */
#ifndef PG_FLOAT_ENV_H_
#define PG_FLOAT_ENV_H_

#include <fenv.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

typedef uint32_t pg_float_env;

static inline pg_float_env pg_float_env_enter(void) {
  const uint32_t before = _mm_getcsr();
  _mm_setcsr(0x1f80); /* all exceptions masked, nearest, no flush to zero, no denormals-are-zero */
  return before;
}

static inline void pg_float_env_leave(pg_float_env before) { _mm_setcsr(before); }

#else

typedef fenv_t pg_float_env;

static inline pg_float_env pg_float_env_enter(void) {
  fenv_t before;
  fegetenv(&before);
  fesetenv(FE_DFL_ENV);
  return before;
}

static inline void pg_float_env_leave(pg_float_env before) { fesetenv(&before); }

#endif

#endif
