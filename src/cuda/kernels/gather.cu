/* SPDX-License-Identifier: Apache-2.0 */
/* PG_GATHER: each position has the element that its index names along one axis.
 *
 * A thread has four positions, which are 256 apart: the loads of four indices, and then of four
 * elements, are on their way at once.  A block notes bad indices in shared memory and adds them to
 * the report when it is done. */
#include "cuda/kernels/bad_indices.cuh"
#include "cuda/kernels/tensor_grid.cuh"

enum { THREADS = 256, K = 4 };

struct gather_job {
  grid_walk grid;
  pg_gather a;
  pg_cuda_report *report;
};

static __global__ void __launch_bounds__(THREADS) gather(const __grid_constant__ gather_job j) {
  __shared__ bad_indices bad;
  if (threadIdx.x == 0) clear(&bad);
  __syncthreads();
  const int64_t *const strides[3] = {j.a.out.strides, j.a.in.strides, j.a.index.strides};
  const int64_t step = (int64_t)gridDim.x * (THREADS * K);
  for (int64_t first = (int64_t)blockIdx.x * (THREADS * K) + threadIdx.x; first < j.grid.count;
       first += step) {
    int64_t out[K], in[K], at_index[K], index[K], x[K];
    int count = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int64_t at[3];
      offsets_at(j.grid, strides, least(first + k * THREADS, j.grid.count - 1), at);
      out[k] = at[0];
      in[k] = at[1];
      at_index[k] = at[2];
      if (first + k * THREADS < j.grid.count) count++;
    }
    load_some(index, j.a.index.address, j.a.index.dtype, at_index);
    bool good[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
      good[k] = index[k] >= 0 && index[k] < j.a.length;
      if (!good[k] && k < count) note_bad(&bad, first + k * THREADS);
      in[k] += good[k] ? index[k] * j.a.axis_stride : 0;
    }
    if (j.a.length > 0) load_some(x, j.a.in.address, j.a.in.dtype, in);
#pragma unroll
    for (int k = 0; k < K; k++)
      if (!good[k]) x[k] = 0;
    store_some(j.a.out.address, j.a.out.dtype, out, x, count);
  }
  __syncthreads();
  if (threadIdx.x != 0 || bad.count == 0 || j.report == nullptr) return;
  const int64_t at = offset_at(j.grid, j.a.index.strides, (int64_t)bad.position);
  add_to_report(j.report, bad, load_one<int64_t>(j.a.index.address, j.a.index.dtype, at));
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  *tiling = tile_items(problem->args.gather.grid.count);
  return true;
}

static cudaError_t run(const pg_cuda_call *call) {
  gather_job j = {};
  j.a = call->task->problem.args.gather;
  j.grid = walk_of(j.a.grid);
  j.report = call->report;
  j.a.in.dtype = j.a.out.dtype = bits_of(j.a.in.dtype); /* elements are moved, not converted */
  return launch(call, gather, blocks_for(j.grid.count, THREADS * K), THREADS, 0, j);
}

PG_CUDA_METHOD(gather) = {"gather", fits, nullptr, run, nullptr};
