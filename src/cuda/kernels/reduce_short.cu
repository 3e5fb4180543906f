/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of at most 32 elements for each output: a thread has an output.  Each of the 32
 * partial sums of its only block has one element or none. */
#include "cuda/kernels/reduce.cuh"

enum { THREADS = 128, K = 8 };

/* Adds the upper half of the sums to the lower one, and so on down to one. */
template <int HALF, typename T>
static __device__ __forceinline__ void halve(T *sums) {
#pragma unroll
  for (int i = 0; i < HALF; i++) sums[i] = plus(sums[i], sums[i + HALF]);
  if constexpr (HALF > 1) halve<HALF / 2>(sums);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) sum_short(const __grid_constant__ reduce_job j) {
  const int count = (int)j.inner.count;
  for (int64_t output = (int64_t)blockIdx.x * THREADS + threadIdx.x; output < j.outer.count;
       output += (int64_t)gridDim.x * THREADS) {
    const int64_t offset = offset_at(j.outer, j.a.in.strides, output);
    T sums[PG_REDUCE_PARTIAL] = {};
#pragma unroll
    for (int first = 0; first < PG_REDUCE_PARTIAL; first += K) {
      T x[K];
      if (first < count) load_elements(j, offset, first, 1, x);
#pragma unroll
      for (int k = 0; k < K; k++)
        if (first + k < count) sums[first + k] = plus(sums[first + k], x[k]);
    }
    halve<PG_REDUCE_PARTIAL / 2>(sums);
    store_sum(j, output, sums[0]);
  }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) best_short(const __grid_constant__ reduce_job j) {
  const int count = (int)j.inner.count;
  for (int64_t output = (int64_t)blockIdx.x * THREADS + threadIdx.x; output < j.outer.count;
       output += (int64_t)gridDim.x * THREADS) {
    const int64_t offset = offset_at(j.outer, j.a.in.strides, output);
    extremum<T> best = {0, -1};
    for (int first = 0; first < count; first += K) {
      T x[K];
      load_elements(j, offset, first, 1, x);
#pragma unroll
      for (int k = 0; k < K; k++)
        if (first + k < count) take(j, &best, x[k], first + k);
    }
    store_best(j, output, best);
  }
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_reduce &a = problem->args.reduce;
  *tiling = tile_items(a.grid.count);
  return a.inner.count <= PG_REDUCE_PARTIAL;
}

static cudaError_t run(const pg_cuda_call *call) {
  const reduce_job j = reduce_job_of(call);
  const int64_t blocks = blocks_for(j.outer.count, THREADS);
  return with_class(j.a.class_of, [&](auto t) {
    typedef decltype(t) T;
    const auto kernel = j.a.function == PG_REDUCE_SUM ? sum_short<T> : best_short<T>;
    return launch(call, kernel, blocks, THREADS, 0, j);
  });
}

PG_CUDA_METHOD(reduce_short) = {"short", fits, nullptr, run, nullptr};
