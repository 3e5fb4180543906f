/* SPDX-License-Identifier: Apache-2.0 */
/* Division by a whole number with products and FMAs, which are much cheaper than a division.
 *
 * docs/numerics.md proves that the bits are those of a division for divisors from 1 to MOST_DIVISOR
 * and gradients that are 0, or finite and at least 2^-100.  A kernel notes the gradients that it
 * divides in a pg_seen, and if one of them was infinite or smaller, it computes its cells again
 * with true_quotient. */
#ifndef PG_CUDA_QUOTIENT_CUH_
#define PG_CUDA_QUOTIENT_CUH_

#include <math.h>
#include <type_traits>

#include "cuda/kernels/element.cuh"

enum { MOST_DIVISOR = 1 << 20 /* the proof holds up to here */ };

struct pg_divisor {
  float by, one_over; /* one_over: 1 / by, rounded */
};

static inline pg_divisor divisor_of(float by) { return {by, 1.0f / by}; }

/* The extremes of the gradients that were noted.  NaNs are ignored: their quotient is a NaN either
 * way.  fp16 has no number other than 0 below 2^-100, so nothing is compared for it. */
template <typename E>
struct pg_seen {
  /* The least magnitude as bits without the sign.  Less one, so that 0 wraps to the largest. */
  uint32_t least = ~0u;
  float most = 0;

  __device__ __forceinline__ void note(float g) {
    most = fmaxf(most, fabsf(g));
    note_least(g);
  }
  /* For kernels that find infinite gradients otherwise: their quotients are NaNs, and so are the
   * sums of these. */
  __device__ __forceinline__ void note_least(float g) {
    const uint32_t magnitude = 2 * __float_as_uint(g) - 1;
    if (!std::is_same<E, pg_f16>::value) least = magnitude < least ? magnitude : least;
  }
  /* Does one of them need true_quotient? */
  __device__ __forceinline__ bool odd() const {
    return most == INFINITY || least < 2 * 0x0d800000u - 1; /* 2^-100 */
  }
};

/* Neither function returns -0, so that a sum may start with a quotient instead of +0. */
static __device__ __forceinline__ float quotient(float g, const pg_divisor &d) {
  const float guess = __fmul_rn(g, d.one_over);
  return __fmaf_rn(__fmaf_rn(-guess, d.by, g), d.one_over, guess);
}
static __device__ __forceinline__ float true_quotient(float g, const pg_divisor &d) {
  return 0.0f + __fdiv_rn(g, d.by);
}

/* Divides sums by the same divisor until another one comes.  Sums that need a division get one. */
struct averager {
  pg_divisor divisor = {0, 0};

  __device__ __forceinline__ void set(float by) {
    if (by != divisor.by) divisor = {by, __frcp_rn(by)};
  }
  __device__ __forceinline__ float average(float sum) const {
    const uint32_t size = 2 * __float_as_uint(sum) - 2 * 0x0d800000u; /* 0 for 2^-100 */
    if (size >= 2 * (0x7f800000u - 0x0d800000u) && sum != 0) return __fdiv_rn(sum, divisor.by);
    return quotient(sum, divisor);
  }
};

#endif
