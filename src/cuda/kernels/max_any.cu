/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools of any windows, strides and sizes, also those that need 64 bits: the last method, which
 * computes what no other fits.  max_any.cuh explains it.
 *
 * This file also has the mending of items whose channels are neighbours, for all methods that have
 * such items. */
#include "cuda/kernels/max_any.cuh"

enum {
  THREADS = 128,
  PART_CELLS = 80, /* the sums of a block are 40 KiB then, which every device has */
  BLOCKS_OF_PROCESSOR = 4
};

static __global__ void __launch_bounds__(THREADS) max_any(const __grid_constant__ max_job j) {
  __shared__ bad_indices bad;
  if (threadIdx.x == 0) clear(&bad);
  __syncthreads();
  compute_item(j, blockIdx.x, PART_CELLS, &bad);
  __syncthreads();
  if (threadIdx.x == 0) report(j, &bad);
}

/* Most often there is no flag: a block checks THREADS of them at a time. */
static __global__ void __launch_bounds__(THREADS) mend_channels(const __grid_constant__ max_job j) {
  for (int64_t first = (int64_t)blockIdx.x * THREADS; first < j.items;
       first += (int64_t)gridDim.x * THREADS) {
    const int64_t own = first + threadIdx.x;
    if (!__syncthreads_or(own < j.items && j.flags[own] != 0)) continue;
    for (int64_t i = first; i < least(first + THREADS, j.items); i++)
      if (j.flags[i] != 0) compute_item(j, i, PART_CELLS, nullptr);
  }
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  *tiling = f.channels_last ? tile_max_channels(f) : tile_max_planes(f);
  return true;
}

static cudaError_t run(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  return launch(call, max_any, j.items, THREADS, scratch_bytes(THREADS, PART_CELLS), j);
}

cudaError_t pg_cuda_mend_channels(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const int64_t most = (int64_t)BLOCKS_OF_PROCESSOR * pg_cuda_least_limits()->processors;
  const int64_t blocks = (j.items - 1) / THREADS + 1;
  return launch(call, mend_channels, least(blocks, most), THREADS,
                scratch_bytes(THREADS, PART_CELLS), j);
}

PG_CUDA_METHOD(max_any) = {"any", fits, flag_bytes, run, pg_cuda_mend_channels};
