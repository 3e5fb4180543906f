/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of wide windows that are 1 apart (forward_wide.cuh).
 *
 * Cells come ascending, as kernels/kernels.h wants them: down each column, then column by column,
 * of which there are 16 at most.  So every window has a sum of its own, to which a cell is added
 * once it is read; what windows share is the reading. */
#include "cuda/kernels/forward_wide.cuh"
#include "cuda/kernels/quotient.cuh"

struct wide_cell {
  float value;
  int32_t row;
};

/* The sums of four windows. */
struct wide_sums {
  float of[WINDOWS] = {};

  static __device__ __forceinline__ float filler() { return 0; }
  __device__ __forceinline__ void first(int i, const wide_cell &cell) {
#pragma unroll
    for (int k = 0; k <= i; k++) of[k] += cell.value;
  }
  __device__ __forceinline__ void common(const wide_cell &cell) {
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) of[k] += cell.value;
  }
  __device__ __forceinline__ void last(int i, const wide_cell &cell) {
#pragma unroll
    for (int k = i + 1; k < WINDOWS; k++) of[k] += cell.value;
  }
  __device__ __forceinline__ void keep(const wide_plan &p, uint32_t to, int32_t) const {
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) shared_store(to + result_at(p, k, 0), of[k]);
  }
  static __device__ __forceinline__ void keep_outside(const wide_plan &, uint32_t to) {
    shared_store(to, 0);
  }
};

struct sum_quad {
  vector_of<float, WINDOWS> sums;
  __device__ __forceinline__ wide_cell operator[](int i) const { return {sums.of[i], 0}; }
};

template <typename E>
static __device__ __forceinline__ void write_averages(const wide_plan &p, const wide_outputs &o,
                                                      const wide_sums &sums) {
  float averages[WINDOWS];
  averager by;
  by.set(p.divisor);
  const float down = (float)extent(p.h, o.oh, p.count_include_pad);
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) {
    if (p.divisor == 0) by.set(down * (float)extent(p.w, o.ow + k, p.count_include_pad));
    averages[k] = by.average(sums.of[k]);
  }
  E *to = (E *)p.out + offset_of(p, p.out_strides, o);
  if (p.vectors)
    put_vector<WINDOWS>(to, averages);
  else
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
      if (k < o.count) put(to + (uint32_t)k * p.out_strides.w, averages[k]);
}

/* REST: kernel % 4. */
template <typename E, int REST>
static __global__ void __launch_bounds__(WIDE_THREADS, WIDE_BLOCKS_PER_SM)
    avg_forward_wide(const __grid_constant__ wide_plan p) {
  extern __shared__ __align__(16) char pg_wide_memory[];
  const wide_tile t = wide_tile_of(p, blockIdx.x);
  fill_outside<wide_sums>(p, t, shared_address(pg_wide_memory));
  reduce_columns<E, wide_sums>(p, t, shared_address(pg_wide_memory));
  __syncthreads();
  const uint32_t memory = shared_address(pg_wide_memory);
  for_outputs(p, t, [&](const wide_outputs &o) {
    wide_sums sums;
    take_columns<REST>(p, &sums, [&](int32_t i) {
      return sum_quad{table_vector<float, WINDOWS>(memory + o.results + (uint32_t)i * 16)};
    });
    write_averages<E>(p, o, sums);
  });
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_avg_forward &a = problem->args.avg_forward;
  const pg_facts &f = problem->facts;
  const pg_pooling grid = pg_output_grid(&f.pool);
  *tiling = pg_tile_flat(&grid, 4096);
  return has_wide_windows(f) && f.pool.w.kernel <= PG_PARTIAL_SUMS && a.divisor >= 0 &&
         f.largest_divisor <= MOST_DIVISOR && !pg_is_global(&f.pool) &&
         has_forward_sizes(*problem, a.in_strides, a.out_strides);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const pg_problem &problem = call->task->problem;
  const pg_avg_forward &a = problem.args.avg_forward;
  const pg_facts &f = problem.facts;
  wide_plan p = wide_plan_of(f, a.in_strides, a.out_strides, sizeof(float));
  p.in = a.in;
  p.out = a.out;
  p.vectors =
      f.pool.w.out % WINDOWS == 0 && has_row_vectors(a.out, a.out_strides, sizeof(E), WINDOWS);
  p.divisor = constant_divisor(f.pool, a);
  p.count_include_pad = a.count_include_pad;
  return with_rest(f.pool.w.kernel, [&](auto rest) {
    return launch(call, avg_forward_wide<E, decltype(rest)::value>, wide_blocks(p), WIDE_THREADS,
                  wide_room(p, sizeof(float)), p);
  });
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_forward_wide) = {"wide", fits, nullptr, run, nullptr};
