/* SPDX-License-Identifier: Apache-2.0 */
/* Division by a whole number, as a product: docs/numerics.md says why the bits are a division's. */
#ifndef PG_CUDA_QUOTIENT_CUH_
#define PG_CUDA_QUOTIENT_CUH_

#include <math.h>
#include <type_traits>

#include "cuda/kernels/element.cuh"

enum { MOST_DIVISOR = 1 << 20 /* and the least is 1 */ };

/* A divisor and one over it. */
struct pg_divisor {
  float by, one_over;
};

static inline pg_divisor divisor_of(float by) { return {by, 1.0f / by}; }

/* What gradients were seen: the product's way is not for tiny ones (no fp16 is) and infinities.  A
 * NaN is one either way. */
template <typename E>
struct pg_seen {
  uint32_t least = ~0u; /* twice the bits, less one: of a zero most */
  float most = 0;

  __device__ __forceinline__ void note(float g) {
    most = fmaxf(most, fabsf(g));
    const uint32_t size = 2 * __float_as_uint(g) - 1;
    if (!std::is_same<E, pg_f16>::value) least = size < least ? size : least;
  }
  __device__ __forceinline__ bool odd() const {
    return most == INFINITY || least < 2 * 0x0d800000u - 1; /* 2^-100 */
  }
};

/* Quotients are never -0, so that sums may begin with them. */
static __device__ __forceinline__ float quotient(float g, const pg_divisor &d) {
  const float guess = __fmul_rn(g, d.one_over);
  return __fmaf_rn(__fmaf_rn(-guess, d.by, g), d.one_over, guess);
}
static __device__ __forceinline__ float true_quotient(float g, const pg_divisor &d) {
  return 0.0f + __fdiv_rn(g, d.by);
}

#endif
