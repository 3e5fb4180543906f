/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD where channels lie next to each other: a thread divides the outputs that touch its two by
 * two cells, and adds them along W, those sums along H, those along D.  The usual windows: see
 * spread_last_march.cuh. */
#include "cuda/kernels/channels_last_cells.cuh"
#include "cuda/kernels/avg_job.cuh"

enum { THREADS = 256 };

template <int V, typename S>
static __device__ __forceinline__ void add(S *to, const S *more) {
#pragma unroll
  for (int v = 0; v < V; v++) to[v] += more[v];
}

static __device__ __forceinline__ bool covers(const pg_axis_32 &a, int32_t out, int32_t cell) {
  const pg_window_32 w = window(a, out);
  return holds(w.begin, w.length, (uint32_t)cell);
}

/* row[x] = sum over the outputs of one row that hold the x-th column. */
template <int V, typename E, typename S>
static __device__ __forceinline__ void make_row(const avg_job &j, const last_cells &o, pg_span ow,
                                                const E *grad_at, int64_t outer, S (*row)[V]) {
#pragma unroll
  for (int v = 0; v < V; v++) row[0][v] = row[1][v] = 0;
  for (int32_t w = ow.begin; w < ow.end; w++, grad_at += j.grad_strides.of[PG_W]) {
    vector_of<E, V> grad;
    grad.load(grad_at);
    const S divisor = (S)(j.divisor != 0 ? j.divisor : outer * extent(j.w, w, j.count_include_pad));
    S term[V];
#pragma unroll
    for (int v = 0; v < V; v++) term[v] = (S)widened(grad.of[v]) / divisor;
    if (covers(j.w, w, o.w)) add<V>(row[0], term);
    if (covers(j.w, w, o.w + 1)) add<V>(row[1], term);
  }
}

/* DEEP: a cell may lie in several windows along D. */
template <int V, bool DEEP, typename E, typename S>
static __device__ __forceinline__ void make_cells(const avg_job &j, const last_block &b,
                                                  const last_cells &o) {
  const pg_span od = touching(j.d, o.d, o.d + 1), oh = touching(j.h, o.h, o.h + o.rows);
  const pg_span ow = touching(j.w, o.w, o.w + o.columns);
  S total[4][V] = {};
  for (int32_t d = od.begin; d < od.end; d++) {
    S slice[DEEP ? 4 : 1][V] = {};
    S(*sum)[V] = DEEP ? slice : total;
    for (int32_t h = oh.begin; h < oh.end; h++) {
      const E *grad_at = (const E *)j.grad + offset(j.grad_strides, b.n, o.c, d, h, ow.begin);
      const int64_t outer =
          (int64_t)extent(j.d, d, j.count_include_pad) * extent(j.h, h, j.count_include_pad);
      S row[2][V];
      make_row<V>(j, o, ow, grad_at, outer, row);
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (covers(j.h, h, o.h + i / 2)) add<V>(sum[i], row[i % 2]);
    }
    if constexpr (DEEP) {
#pragma unroll
      for (int i = 0; i < 4; i++) add<V>(total[i], slice[i]);
    }
  }
  E *out = (E *)j.in + offset(j.in_strides, b.n, o.c, o.d, o.h, o.w);
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (i / 2 < o.rows && i % 2 < o.columns)
      put_vector<V>(out + (i / 2) * j.in_strides.of[PG_H] + (i % 2) * j.in_strides.of[PG_W],
                    total[i]);
}

template <int V, bool DEEP, typename E>
static __global__ void __launch_bounds__(THREADS)
    spread_last(const __grid_constant__ avg_job j, const __grid_constant__ last_plan l) {
  const last_block b = last_block_of(j.cut, j.by_c, l, blockIdx.x);
  const uint32_t tasks = last_tasks(l, b);
  for (uint32_t task = threadIdx.x; task < tasks; task += THREADS) {
    last_cells o;
    if (last_cells_of(l, b, task, V, &o)) make_cells<V, DEEP, E, typename sum_of<E>::type>(j, b, o);
  }
}

/* --- On the host --- */

template <int V, bool DEEP, typename E>
static cudaError_t launch_cells(const pg_cuda_call *call, const avg_job &j) {
  const last_plan l = last_plan_of(j.tiling, V, false);
  return launch(call, spread_last<V, DEEP, E>, j.items * l.parts, THREADS, 0, j, l);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  if (!problem->facts.channels_last || !fits_avg_32_bits(*problem)) return false;
  *tiling = tile_avg_channels(problem->facts);
  return true;
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  constexpr int V = 16 / sizeof(E), HALF = V > 2 ? V / 2 : V;
  const avg_job j = avg_job_of(call);
  const bool vector = is_vector(j.in, j.in_strides, sizeof(E), j.pool.c, 16) &&
                      is_vector(j.grad, j.grad_strides, sizeof(E), j.pool.c, 16) &&
                      j.tiling.planes % V == 0;
  if (!vector) return launch_cells<1, true, E>(call, j);
  return call->task->problem.facts.d_windows > 1 ? launch_cells<HALF, true, E>(call, j)
                                                 : launch_cells<V, false, E>(call, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_channels_last_cells) = {"channels_last_cells", fits, nullptr, run, nullptr};
