/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction sets the library has methods for, and which of them this CPU can run. */
#ifndef PG_CPU_FEATURES_H_
#define PG_CPU_FEATURES_H_

#include <stdbool.h>

static inline bool pg_cpu_is_any(void) { return true; }

#if defined(__x86_64__)
#include <cpuid.h>

/* Not every compiler knows the word "f16c". */
static inline bool pg_cpu_has_f16c(void) {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

static inline bool pg_cpu_has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && pg_cpu_has_f16c();
}

static inline bool pg_cpu_has_avx512(void) {
  return pg_cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

/* Every instruction set that the library has here, best first, with the function that says whether
 * this CPU runs it. */
#define PG_EACH_ISA(row) row(avx512) row(avx2) row(scalar)
#define PG_EACH_ISA_WITH_TEST(row) \
  row(avx512, pg_cpu_has_avx512) row(avx2, pg_cpu_has_avx2) row(scalar, pg_cpu_is_any)

#elif defined(__AARCH64EL__)
#define PG_EACH_ISA(row) row(neon) row(scalar)
#define PG_EACH_ISA_WITH_TEST(row) row(neon, pg_cpu_is_any) row(scalar, pg_cpu_is_any)

#else
#define PG_EACH_ISA(row) row(scalar)
#define PG_EACH_ISA_WITH_TEST(row) row(scalar, pg_cpu_is_any)
#endif

#endif
