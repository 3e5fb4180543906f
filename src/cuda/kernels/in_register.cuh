/* SPDX-License-Identifier: Apache-2.0 */
/* A value that stays in its register.  The compiler would rather compute some values again from the
 * arguments of the kernel wherever they are used, which costs instructions in inner loops.  It
 * knows nothing about what these functions return and so has to keep it. */
#ifndef PG_CUDA_IN_REGISTER_CUH_
#define PG_CUDA_IN_REGISTER_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

template <typename T>
static __device__ __forceinline__ T in_register(T value) {
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(value));
  else
    asm volatile("" : "+r"(value));
  return value;
}

/* The same for a pointer of which the compiler shall still know that it points to global memory:
 * plain loads and stores need that, __ldg and __stcs do not. */
template <typename T>
static __device__ __forceinline__ T *global_in_register(T *global) {
  return (T *)__cvta_global_to_generic(in_register(__cvta_generic_to_global(global)));
}

#endif
