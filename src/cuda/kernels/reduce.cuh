/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods of PG_REDUCE share: the problem as kernels see it, and two ways to reduce.
 *
 * summing     adds elements up, each block in the order that kernels/tensor_kernels.h states
 * extremum    keeps the greatest element, or the least, and its position; ALL and ANY are the least
 *             and the greatest of elements that are made 0 and 1 first
 *
 * A thread first takes elements of its own.  Then the lanes of a warp, or the sums of a thread, are
 * put together. */
#ifndef PG_CUDA_REDUCE_CUH_
#define PG_CUDA_REDUCE_CUH_

#include "cuda/kernels/tensor_grid.cuh"

struct reduce_job {
  grid_walk outer, inner; /* the outputs; the elements of each */
  pg_reduce a;
};

static inline reduce_job reduce_job_of(const pg_cuda_call *call) {
  reduce_job j = {};
  j.a = call->task->problem.args.reduce;
  j.outer = walk_of(j.a.grid);
  j.inner = walk_of(j.a.inner);
  return j;
}

static __device__ __forceinline__ bool is_logic(const reduce_job &j) {
  return j.a.function == PG_REDUCE_ALL || j.a.function == PG_REDUCE_ANY;
}

/* K elements of an output, from the offset of its first one: those numbered first, first + step and
 * so on.  Behind the end the last one stands in. */
template <typename T, int K>
static __device__ __forceinline__ void load_elements(const reduce_job &j, int64_t offset,
                                                     int64_t first, int64_t step, T (&x)[K]) {
  int64_t at[K];
#pragma unroll
  for (int k = 0; k < K; k++) {
    const int64_t number = least(first + k * step, j.inner.count - 1);
    at[k] = offset + offset_at(j.inner, j.a.inner_strides, number);
  }
  load_some(x, j.a.in.address, j.a.in.dtype, at);
}

/* --- Sums --- */

static __device__ __forceinline__ float plus(float a, float b) { return a + b; }
static __device__ __forceinline__ double plus(double a, double b) { return a + b; }
static __device__ __forceinline__ int64_t plus(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* The sum of a block from its partial sums, of which each lane has one; for every lane. */
template <typename T>
static __device__ __forceinline__ T sum_of_lanes(T partial) {
  for (int distance = PG_REDUCE_PARTIAL / 2; distance > 0; distance /= 2)
    partial = plus(partial, __shfl_down_sync(EVERY_LANE, partial, distance));
  return __shfl_sync(EVERY_LANE, partial, 0);
}

/* Divides and stores a sum; of integers there are sums alone. */
template <typename T>
static __device__ __forceinline__ void store_sum(const reduce_job &j, int64_t output, T sum) {
  if (j.a.divisor != 1) sum = sum / (T)j.a.divisor;
  store_one(j.a.out.address, j.a.out.dtype, offset_at(j.outer, j.a.out.strides, output), sum);
}

/* --- Extrema --- */

template <typename T>
struct extremum {
  T value;
  int64_t position; /* -1: none yet */
};

template <typename T>
static __device__ __forceinline__ bool is_beyond(const reduce_job &j, T a, T b) {
  return j.a.function == PG_REDUCE_MAX || j.a.function == PG_REDUCE_ANY ? a > b : a < b;
}

/* Takes an element behind all others so far.  A NaN replaces everything, and only a NaN a NaN. */
template <typename T>
static __device__ __forceinline__ void take(const reduce_job &j, extremum<T> *best, T x,
                                            int64_t position) {
  if (is_logic(j)) x = x != 0 ? 1 : 0;
  if (best->position >= 0 && x == x && !is_beyond(j, x, best->value)) return;
  best->value = x;
  best->position = position;
}

/* The same for what is anywhere: the last NaN, or the first of equal elements. */
template <typename T>
static __device__ __forceinline__ void merge(const reduce_job &j, extremum<T> *best,
                                             const extremum<T> &other) {
  const bool is_nan = best->value != best->value, other_is_nan = other.value != other.value;
  if (other.position < 0) return;
  bool replaces = best->position < 0 || is_beyond(j, other.value, best->value);
  if (best->position >= 0 && (is_nan || other_is_nan))
    replaces = other_is_nan && (!is_nan || other.position > best->position);
  else if (other.value == best->value)
    replaces = replaces || other.position < best->position;
  if (replaces) *best = other;
}

/* The best of all lanes; for lane 0. */
template <typename T>
static __device__ __forceinline__ extremum<T> best_of_lanes(const reduce_job &j, extremum<T> best) {
  for (int distance = 16; distance > 0; distance /= 2) {
    extremum<T> other;
    other.value = __shfl_down_sync(EVERY_LANE, best.value, distance);
    other.position = __shfl_down_sync(EVERY_LANE, best.position, distance);
    merge(j, &best, other);
  }
  return best;
}

/* Of nothing, all are set and none is any. */
template <typename T>
static __device__ __forceinline__ void store_best(const reduce_job &j, int64_t output,
                                                  const extremum<T> &best) {
  const T value = best.position >= 0 ? best.value : j.a.function == PG_REDUCE_ALL ? (T)1 : (T)0;
  store_one(j.a.out.address, j.a.out.dtype, offset_at(j.outer, j.a.out.strides, output), value);
  if (j.a.index.address == nullptr || is_logic(j)) return;
  store_one(j.a.index.address, j.a.index.dtype, offset_at(j.outer, j.a.index.strides, output),
            best.position);
}

#endif
