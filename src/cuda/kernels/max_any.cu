/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools of any windows, strides and sizes, see max_any.cuh; and the mending of items of
 * channels that lie next to each other. */
#include "cuda/kernels/max_any.cuh"

enum { LANES_THREADS = 128, LANES_BOX = 80 /* cells of a warp's box of sums */ };

static __global__ void __launch_bounds__(LANES_THREADS)
    scatter_lanes(const __grid_constant__ max_job j) {
  __shared__ bad_indices found;
  if (threadIdx.x == 0) clear(&found);
  __syncthreads();
  make_lanes(j, blockIdx.x, j.flags == nullptr, true, LANES_BOX, &found);
  __syncthreads();
  if (threadIdx.x == 0) report(j, &found);
}

/* The items that a stray points into, most often none: a block looks at many at a time. */
static __global__ void __launch_bounds__(LANES_THREADS)
    rescatter_lanes(const __grid_constant__ max_job j) {
  for (int64_t first = (int64_t)blockIdx.x * LANES_THREADS; first < j.items;
       first += (int64_t)gridDim.x * LANES_THREADS) {
    const int64_t mine = first + threadIdx.x;
    const bool strayed = mine < j.items && j.flags[mine] != 0;
    if (!__syncthreads_or(strayed)) continue;
    for (int64_t i = first; i < least(first + LANES_THREADS, j.items); i++)
      if (j.flags[i] != 0) make_lanes(j, i, true, false, LANES_BOX, nullptr);
  }
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  *tiling = f.channels_last ? tile_max_channels(f) : tile_max_planes(f);
  return true;
}

static int64_t room_bytes(void) {
  return (int64_t)LANES_BOX * LANES_THREADS * (int64_t)sizeof(float);
}

static cudaError_t run(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  return launch(call, scatter_lanes, j.items, LANES_THREADS, room_bytes(), j);
}

cudaError_t pg_cuda_mend_channels(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const int64_t most = 4 * (int64_t)pg_cuda_least_limits()->processors;
  const int64_t blocks = (j.items - 1) / LANES_THREADS + 1;
  return launch(call, rescatter_lanes, least(blocks, most), LANES_THREADS, room_bytes(), j);
}

PG_CUDA_METHOD(max_any) = {"any", fits, flag_bytes, run, pg_cuda_mend_channels};
