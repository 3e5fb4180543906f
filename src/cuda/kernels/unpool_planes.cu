/* SPDX-License-Identifier: Apache-2.0 */
/* Unpooling any planes: everything is cleared, then each plane has a warp, which passes over its
 * outputs 32 at a time.  Of lanes that name the same cell the last one writes, and what one turn
 * has written the next one may write over, so the last output stays. */
#include "cuda/kernels/unpool.cuh"

enum { THREADS = 128, WARPS = THREADS / 32 };

static __global__ void __launch_bounds__(THREADS)
    unpool_planes(const __grid_constant__ unpool_job j) {
  __shared__ bad_indices bad;
  if (threadIdx.x == 0) clear(&bad);
  __syncthreads();
  for (int64_t plane = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; plane < j.a.planes;
       plane += (int64_t)gridDim.x * WARPS) {
    for (int64_t first = 0; first < j.a.outputs; first += 32) {
      const int64_t own = first + lane_number(), at = plane * j.a.outputs + own;
      const bool is_there = own < j.a.outputs;
      const int64_t index = is_there ? index_at(j, at) : -1;
      const bool good = index >= 0 && index < j.a.cells;
      if (is_there && !good) note_bad(&bad, at);
      const unsigned same = __match_any_sync(EVERY_LANE, good ? index : -1);
      if (good && same >> lane_number() == 1)
        with_bits(j.a.out, j.a.in, j.bytes,
                  [&](auto *out, auto *in) { out[plane * j.a.cells + index] = in[at]; });
      __syncwarp(); /* the next turn's stores come later */
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) report(j, bad);
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  *tiling = tile_items(problem->args.unpool.planes);
  return true;
}

static cudaError_t run(const pg_cuda_call *call) {
  const unpool_job j = unpool_job_of(call);
  const size_t bytes = (size_t)(j.a.planes * j.a.cells * j.bytes);
  const cudaError_t status =
      bytes == 0 ? cudaSuccess : cudaMemsetAsync(j.a.out, 0, bytes, call->stream);
  if (status != cudaSuccess || j.a.outputs == 0) return status;
  return launch(call, unpool_planes, blocks_for(j.a.planes, WARPS), THREADS, 0, j);
}

PG_CUDA_METHOD(unpool_planes) = {"planes", fits, nullptr, run, nullptr};
