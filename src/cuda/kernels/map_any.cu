/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of any tensors and functions: the last method, and the one for powers and random numbers.
 *
 * A thread has four positions, which are 256 apart, so that neighbouring threads have neighbouring
 * positions and four loads are on their way at once.  Past the end it loads the last position again
 * and stores nothing. */
#include "cuda/kernels/map.cuh"

enum { THREADS = 256, K = 4 };

template <typename T>
static __device__ __forceinline__ T long_function(const map_job<T> &j, T a, int64_t i) {
  if (j.function == PG_MAP_POW_VALUE) return function_at(PG_MAP_POW_VALUE, a, a, j.scalars);
  const pg_philox random = pg_philox_at(j.seed, j.offset + (uint64_t)i);
  if (j.function == PG_MAP_UNIFORM) return converted<T>(pg_uniform_at(&j.uniform, random));
  if (j.function == PG_MAP_NORMAL) return converted<T>(pg_normal_at(j.s.real, j.t.real, random));
  return converted<T>(pg_random_integer(random, j.s.integer, j.t.integer));
}

template <typename T, bool IS_LONG>
static __global__ void __launch_bounds__(THREADS) map_any(const __grid_constant__ map_job<T> j) {
  const int64_t *const strides[3] = {j.out.strides, j.in[0].strides, j.in[1].strides};
  const int64_t parts = (j.grid.count + THREADS * K - 1) / (THREADS * K);
  for (int64_t part = blockIdx.x; part < parts; part += gridDim.x) {
    const int64_t first = part * (THREADS * K) + threadIdx.x;
    if (first >= j.grid.count) return;
    int64_t out[K], in[PG_MAP_INPUTS][K];
    T a[K] = {}, b[K] = {}, result[K];
    int count = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int64_t at[3];
      offsets_at(j.grid, strides, least(first + k * THREADS, j.grid.count - 1), at);
      out[k] = at[0];
      in[0][k] = at[1];
      in[1][k] = at[2];
      if (first + k * THREADS < j.grid.count) count++;
    }
    if (j.inputs > 0) load_some(a, j.in[0].address, j.in[0].dtype, in[0]);
    if (j.inputs > 1) load_some(b, j.in[1].address, j.in[1].dtype, in[1]);
    if constexpr (IS_LONG) {
#pragma unroll 1
      for (int k = 0; k < K; k++) result[k] = long_function(j, a[k], first + k * THREADS);
    } else {
      map_some(j, a, b, result);
    }
    store_some(j.out.address, j.out.dtype, out, result, count);
  }
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  *tiling = tile_items(problem->args.map.grid.count);
  return true;
}

static cudaError_t run(const pg_cuda_call *call) {
  const pg_map a = as_bits(call->task->problem.args.map);
  const int64_t blocks = blocks_for(a.grid.count, THREADS * K);
  return with_class(a.class_of, [&](auto t) {
    typedef decltype(t) T;
    return launch(call, is_long(a.function) ? map_any<T, true> : map_any<T, false>, blocks, THREADS,
                  0, map_job_of<T>(a));
  });
}

PG_CUDA_METHOD(map_any) = {"any", fits, nullptr, run, nullptr};
