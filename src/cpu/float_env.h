/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic that results are promised in: round to nearest, subnormals kept.  A program may
 * have chosen otherwise for its own threads (fast-math start-up code does), and a thread of the
 * program that synchronises computes as well.  So kernels are computed between enter and leave. */
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

#elif defined(__aarch64__)

/* fesetenv would not do: it does not change the bits that say how halves are converted. */
typedef struct {
  uint64_t control, status;
} pg_float_env;

/* Writing the register can be slow, and it nearly always has the wanted value. */
static inline void pg_float_control_change(uint64_t from, uint64_t to) {
  if (from != to) __asm__ volatile("msr fpcr, %0" : : "r"(to) : "memory");
}

static inline pg_float_env pg_float_env_enter(void) {
  pg_float_env before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before.control) : : "memory");
  __asm__ volatile("mrs %0, fpsr" : "=r"(before.status) : : "memory");
  pg_float_control_change(before.control, 0); /* nearest, nothing flushed, IEEE halves, no traps */
  return before;
}

static inline void pg_float_env_leave(pg_float_env before) {
  pg_float_control_change(0, before.control);
  __asm__ volatile("msr fpsr, %0" : : "r"(before.status) : "memory");
}

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
