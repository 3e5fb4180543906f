/* SPDX-License-Identifier: Apache-2.0 */
/* Averages whose channels are neighbours in memory, with any windows in two or three dimensions,
 * also of doubles.
 *
 * A thread computes some channels of two by two cells.  It divides the outputs that touch them and
 * adds the quotients along W, those sums along H, and those along D: the order that kernels.h
 * states.  Sums stay in registers, and every access is to 16 bytes of neighbouring channels.  An
 * output is read and divided by every thread whose cells its window touches, so the usual windows
 * have a method of their own, avg_channels_last_columns. */
#include "cuda/kernels/channels_last_cells.cuh"
#include "cuda/kernels/avg_job.cuh"

enum { THREADS = 256 };

template <int V, typename S>
static __device__ __forceinline__ void add_vector(S *to, const S *more) {
#pragma unroll
  for (int v = 0; v < V; v++) to[v] += more[v];
}

static __device__ __forceinline__ bool window_holds(const pg_axis_32 &a, int32_t out,
                                                    int32_t cell) {
  const pg_window_32 w = window(a, out);
  return holds(w.begin, w.length, (uint32_t)cell);
}

/* The outputs of one row that touch a quad. */
template <typename E>
struct quad_outputs {
  pg_span ow;
  const E *first;
  int64_t counted; /* cells that their windows count along D and H */
};

/* row[x] is the sum of the quotients along W in the quad's x-th column. */
template <int V, typename E, typename S>
static __device__ __forceinline__ void sum_along_w(const avg_job &j, const quad &q,
                                                   const quad_outputs<E> &o, S (*row)[V]) {
#pragma unroll
  for (int v = 0; v < V; v++) row[0][v] = row[1][v] = 0;
  const E *from = o.first;
  for (int32_t w = o.ow.begin; w < o.ow.end; w++, from += j.grad_strides.of[PG_W]) {
    vector_of<E, V> grad;
    grad.load(from);
    const S divisor =
        (S)(j.divisor != 0 ? j.divisor : o.counted * extent(j.w, w, j.count_include_pad));
    S quotients[V];
#pragma unroll
    for (int v = 0; v < V; v++) quotients[v] = (S)widened(grad.of[v]) / divisor;
    if (window_holds(j.w, w, q.w)) add_vector<V>(row[0], quotients);
    if (window_holds(j.w, w, q.w + 1)) add_vector<V>(row[1], quotients);
  }
}

/* DEEP: a cell may lie in several windows along D, whose sums need registers of their own. */
template <int V, bool DEEP, typename E, typename S>
static __device__ __forceinline__ void compute_quad(const avg_job &j, const quad &q) {
  const pg_span od = touching(j.d, q.d, q.d + 1), oh = touching(j.h, q.h, q.h + q.rows);
  const pg_span ow = touching(j.w, q.w, q.w + q.columns);
  S total[4][V] = {};
  for (int32_t d = od.begin; d < od.end; d++) {
    S slice[DEEP ? 4 : 1][V] = {};
    S(*sum)[V] = DEEP ? slice : total;
    for (int32_t h = oh.begin; h < oh.end; h++) {
      const E *first = (const E *)j.grad + offset(j.grad_strides, q.n, q.c, d, h, ow.begin);
      const int64_t counted =
          (int64_t)extent(j.d, d, j.count_include_pad) * extent(j.h, h, j.count_include_pad);
      S row[2][V];
      sum_along_w<V, E>(j, q, {ow, first, counted}, row);
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (window_holds(j.h, h, q.h + i / 2)) add_vector<V>(sum[i], row[i % 2]);
    }
    if constexpr (DEEP) {
#pragma unroll
      for (int i = 0; i < 4; i++) add_vector<V>(total[i], slice[i]);
    }
  }
  E *first = (E *)j.in + offset(j.in_strides, q.n, q.c, q.d, q.h, q.w);
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (i / 2 < q.rows && i % 2 < q.columns)
      put_vector<V>(first + (i / 2) * j.in_strides.of[PG_H] + (i % 2) * j.in_strides.of[PG_W],
                    total[i]);
}

template <int V, bool DEEP, typename E>
static __global__ void __launch_bounds__(THREADS)
    avg_channels_last_cells(const __grid_constant__ avg_job j,
                            const __grid_constant__ quad_plan p) {
  const quad_block b = quad_block_of(p, j.cut, j.by_c, blockIdx.x);
  const uint32_t quads = quads_of(p, b);
  for (uint32_t number = threadIdx.x; number < quads; number += THREADS) {
    quad q;
    if (quad_of(p, b, number, V, &q)) compute_quad<V, DEEP, E, typename sum_of<E>::type>(j, q);
  }
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  if (!problem->facts.channels_last || !fits_avg_32_bits(*problem)) return false;
  *tiling = tile_avg_channels(problem->facts);
  return true;
}

template <int V, bool DEEP, typename E>
static cudaError_t run_vectors(const pg_cuda_call *call, const avg_job &j) {
  const quad_plan p = quad_plan_of(j.tiling, V, false);
  return launch(call, avg_channels_last_cells<V, DEEP, E>, j.items * p.blocks, THREADS, 0, j, p);
}

/* Windows that overlap along D need twice the sums, and have half the channels. */
template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  constexpr int V = 16 / sizeof(E), HALF = V > 2 ? V / 2 : V;
  const avg_job j = avg_job_of(call);
  const bool vectors = is_vector(j.in, j.in_strides, sizeof(E), j.pool.c, 16) &&
                       is_vector(j.grad, j.grad_strides, sizeof(E), j.pool.c, 16) &&
                       j.tiling.planes % V == 0;
  if (!vectors) return run_vectors<1, true, E>(call, j);
  return call->task->problem.facts.d_windows > 1 ? run_vectors<HALF, true, E>(call, j)
                                                 : run_vectors<V, false, E>(call, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_channels_last_cells) = {"channels_last_cells", fits, nullptr, run, nullptr};
