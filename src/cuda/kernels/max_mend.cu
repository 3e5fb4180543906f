/* SPDX-License-Identifier: Apache-2.0 */
/* The mending of max pools whose planes are cut into items: computes the items again that have a
 * flag, because an index points into them from outside their windows; see max_job.cuh. */
#include "cuda/kernels/max_recompute.cuh"

enum { THREADS = 128, CELLS = 2048 /* of a warp: an item has no more than four times as many */ };
enum { BLOCKS_OF_PROCESSOR = 6 };

/* Most often there is no flag: a block looks at THREADS of them at a time. */
static __global__ void __launch_bounds__(THREADS) mend_planes(const __grid_constant__ max_job j) {
  __shared__ float sums[THREADS / 32][CELLS];
  for (int64_t first = (int64_t)blockIdx.x * THREADS; first < j.items;
       first += (int64_t)gridDim.x * THREADS) {
    const int64_t own = first + threadIdx.x;
    if (!__syncthreads_or(own < j.items && j.flags[own] != 0)) continue;
    for (int64_t i = first; i < least(first + THREADS, j.items); i++)
      if (j.flags[i] != 0) recompute_item(j, (uint32_t)i, {sums[threadIdx.x / 32], CELLS}, nullptr);
  }
}

cudaError_t pg_cuda_mend_planes(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const int64_t most = (int64_t)BLOCKS_OF_PROCESSOR * pg_cuda_least_limits()->processors;
  const int64_t blocks = (j.items - 1) / THREADS + 1;
  return launch(call, mend_planes, least(blocks, most), THREADS, 0, j);
}
