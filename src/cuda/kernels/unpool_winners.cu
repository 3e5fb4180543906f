/* SPDX-License-Identifier: Apache-2.0 */
/* Unpooling large planes: the workspace has a word for each cell, in which the last of the outputs
 * that name the cell is found as a maximum, in any order.  Then each cell is written once. */
#include "cuda/kernels/unpool.cuh"

enum {
  THREADS = 256,
  PLANES = 4096, /* with so many planes each may have a warp of its own, which `planes` does */
  OUTPUTS = 1024 /* of a plane: fewer take a warp no time */
};

/* The word of a cell becomes the number of its output, counted from 1. */
static __global__ void __launch_bounds__(THREADS)
    find_winners(const __grid_constant__ unpool_job j) {
  __shared__ bad_indices bad;
  if (threadIdx.x == 0) clear(&bad);
  __syncthreads();
  const int64_t count = j.a.planes * j.a.outputs;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
       i += (int64_t)gridDim.x * THREADS) {
    const int64_t index = index_at(j, i), plane = i / j.a.outputs;
    if (index < 0 || index >= j.a.cells)
      note_bad(&bad, i);
    else
      atomicMax(j.a.winners + plane * j.a.cells + index, (int)(i - plane * j.a.outputs) + 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) report(j, bad);
}

static __global__ void __launch_bounds__(THREADS)
    write_cells(const __grid_constant__ unpool_job j) {
  const int64_t count = j.a.planes * j.a.cells;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
       i += (int64_t)gridDim.x * THREADS) {
    const int32_t winner = j.a.winners[i];
    const int64_t from = i / j.a.cells * j.a.outputs + winner - 1;
    with_bits(j.a.out, j.a.in, j.bytes,
              [&](auto *out, auto *in) { out[i] = winner > 0 ? in[from] : 0; });
  }
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_unpool &a = problem->args.unpool;
  if (a.planes >= PLANES || a.outputs < OUTPUTS || a.outputs >= INT32_MAX || a.cells == 0 ||
      a.cells > INT64_MAX / 8 / PLANES)
    return false;
  *tiling = tile_items(a.planes);
  return true;
}

static int64_t workspace(const pg_problem *problem, const pg_tiling *) {
  const pg_unpool &a = problem->args.unpool;
  return a.planes * a.cells * (int64_t)sizeof *a.winners;
}

static cudaError_t run(const pg_cuda_call *call) {
  const unpool_job j = unpool_job_of(call);
  const int64_t outputs = j.a.planes * j.a.outputs, cells = j.a.planes * j.a.cells;
  const cudaError_t status =
      launch(call, find_winners, blocks_for(outputs, THREADS), THREADS, 0, j);
  if (status != cudaSuccess) return status;
  return launch(call, write_cells, blocks_for(cells, THREADS), THREADS, 0, j);
}

PG_CUDA_METHOD(unpool_winners) = {"winners", fits, workspace, run, nullptr};
