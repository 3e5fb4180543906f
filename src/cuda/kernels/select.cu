/* SPDX-License-Identifier: Apache-2.0 */
/* PG_SELECT: the elements whose mask is set, one behind the other.
 *
 * A part is 4096 positions, which a block passes over 256 at a time: a thread whose mask is set
 * counts those that are set before it, by the bits of its warp and the sums of the warps before it.
 * So it knows where its element goes, if it knows where those of the part begin.  Up to 16384
 * positions are one part.  Otherwise one kernel counts what is set in each part, the next adds the
 * counts up, and the third moves the elements. */
#include "cuda/kernels/tensor_grid.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, PART = 4096, ONE_PART = 16384, ADDERS = 1024 };

struct select_job {
  grid_walk grid;
  pg_select a;
  pg_cuda_report *report;
  int64_t part, parts; /* positions of a part; the number of parts */
};

static __device__ __forceinline__ bool is_set(const select_job &j, int64_t i) {
  const pg_tensor_view &mask = j.a.mask;
  return load_one<double>(mask.address, mask.dtype, offset_at(j.grid, mask.strides, i)) != 0;
}

static __device__ __forceinline__ void tell_count(const select_job &j, int64_t count) {
  if (j.report == nullptr) return;
  j.report->found.count = 1;
  j.report->found.position = 0;
  j.report->found.value = count;
}

static __global__ void __launch_bounds__(THREADS) count_set(const __grid_constant__ select_job j) {
  for (int64_t part = blockIdx.x; part < j.parts; part += gridDim.x) {
    const int64_t begin = part * j.part, end = least(begin + j.part, j.grid.count);
    int64_t count = 0;
    for (int64_t i = begin; i < end; i += THREADS)
      count += __syncthreads_count(i + threadIdx.x < end && is_set(j, i + threadIdx.x));
    if (threadIdx.x == 0) j.a.counts[part] = count;
  }
}

/* The sum of x over the threads of a block up to this one; *all: over all of them. */
static __device__ __forceinline__ int64_t sum_so_far(int64_t x, int64_t *all) {
  __shared__ int64_t of_warp[ADDERS / 32];
  const int warp = (int)threadIdx.x / 32;
  int64_t sum = x;
  for (int distance = 1; distance < 32; distance *= 2) {
    const int64_t before = __shfl_up_sync(EVERY_LANE, sum, distance);
    if (lane_number() >= distance) sum += before;
  }
  if (lane_number() == 31) of_warp[warp] = sum;
  __syncthreads();
  int64_t before = 0;
  *all = 0;
  for (int w = 0; w < (int)blockDim.x / 32; w++) {
    if (w < warp) before += of_warp[w];
    *all += of_warp[w];
  }
  __syncthreads();
  return before + sum;
}

/* Makes of each count the number of elements before its part.  One block. */
static __global__ void __launch_bounds__(ADDERS) add_counts(const __grid_constant__ select_job j) {
  int64_t before = 0;
  for (int64_t first = 0; first < j.parts; first += ADDERS) {
    const int64_t part = first + threadIdx.x;
    const int64_t count = part < j.parts ? j.a.counts[part] : 0;
    int64_t all;
    const int64_t sum = sum_so_far(count, &all);
    if (part < j.parts) j.a.counts[part] = before + sum - count;
    before += all;
  }
  if (threadIdx.x == 0) tell_count(j, before);
}

static __global__ void __launch_bounds__(THREADS)
    move_set(const __grid_constant__ select_job j, int bytes) {
  __shared__ int of_warp[WARPS];
  const int warp = (int)threadIdx.x / 32;
  for (int64_t part = blockIdx.x; part < j.parts; part += gridDim.x) {
    const int64_t begin = part * j.part, end = least(begin + j.part, j.grid.count);
    int64_t to = j.parts > 1 ? j.a.counts[part] : 0;
    for (int64_t first = begin; first < end; first += THREADS) {
      const int64_t i = first + threadIdx.x;
      const bool set = i < end && is_set(j, i);
      const unsigned lanes = __ballot_sync(EVERY_LANE, set);
      if (lane_number() == 0) of_warp[warp] = __popc(lanes);
      __syncthreads();
      int before = __popc(lanes & ((1u << lane_number()) - 1)), all = 0;
      for (int w = 0; w < WARPS; w++) {
        if (w < warp) before += of_warp[w];
        all += of_warp[w];
      }
      if (set) {
        const int64_t from = offset_at(j.grid, j.a.in.strides, i);
        with_bits(j.a.out, j.a.in.address, bytes,
                  [&](auto *out, auto *in) { out[to + before] = in[from]; });
      }
      to += all;
      __syncthreads();
    }
    if (j.parts == 1 && threadIdx.x == 0) tell_count(j, to);
  }
}

/* --- On the host --- */

static int64_t parts_of(int64_t positions) {
  return positions <= ONE_PART ? 1 : pg_ceil_div(positions, PART);
}

/* Where there is no position, there still is a count. */
static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  *tiling = tile_items(parts_of(problem->args.select.grid.count));
  return true;
}

static int64_t workspace(const pg_problem *problem, const pg_tiling *) {
  const int64_t parts = parts_of(problem->args.select.grid.count);
  return parts > 1 ? parts * (int64_t)sizeof(int64_t) : 0;
}

static cudaError_t run(const pg_cuda_call *call) {
  select_job j = {};
  j.a = call->task->problem.args.select;
  j.grid = walk_of(j.a.grid);
  j.report = call->report;
  j.parts = parts_of(j.grid.count);
  j.part = j.parts == 1 ? ONE_PART : PART;
  const int64_t blocks = blocks_for(j.parts, 1);
  cudaError_t status = cudaSuccess;
  if (j.parts > 1) status = launch(call, count_set, blocks, THREADS, 0, j);
  if (j.parts > 1 && status == cudaSuccess) status = launch(call, add_counts, 1, ADDERS, 0, j);
  if (status != cudaSuccess) return status;
  return launch(call, move_set, blocks, THREADS, 0, j, element_bytes(j.a.in.dtype));
}

PG_CUDA_METHOD(select) = {"select", fits, workspace, run, nullptr};
