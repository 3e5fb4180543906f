/* SPDX-License-Identifier: Apache-2.0 */
/* The scratch of a block: dynamic shared memory for the tables and sums of its item.  The host lays
 * it out: the plan of a method has, for each table, the number of the word where it begins. */
#ifndef PG_CUDA_SCRATCH_LAYOUT_CUH_
#define PG_CUDA_SCRATCH_LAYOUT_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

extern __shared__ uint4 pg_block_scratch[]; /* uint4, so that it is aligned to 16 bytes */

/* The table of T that begins at this word. */
template <typename T>
static __device__ __forceinline__ T *scratch_at(int32_t word) {
  return (T *)((uint32_t *)pg_block_scratch + word);
}

/* Reserves words behind *end, which stays a multiple of 16 bytes, and returns the first. */
static inline int32_t reserve_words(int64_t words, int64_t *end) {
  const int64_t begin = *end;
  *end += (words + 3) / 4 * 4;
  return (int32_t)begin;
}

#endif
