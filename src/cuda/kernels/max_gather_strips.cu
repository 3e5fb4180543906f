/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools whose cells lie in few windows of any kind, in two or three dimensions, planar or with
 * channels that are neighbours in memory.
 *
 * A thread computes a strip (max_strips.cuh).  It walks down the rows of its column in bands, which
 * lie in the same windows, loads the outputs of these windows into registers, compares their
 * indices with the position of each cell, and adds those that name it.  A cell costs some
 * instructions for each window that it lies in and no access to shared memory; with many windows
 * max_scatter_strips is better. */
#include "cuda/kernels/max_strips.cuh"

enum {
  MOST_ROWS = 1024, /* of a plane: a block has a table of them */
  GATHERED_ROWS = 32,
  MOST_WINDOWS = 9
};

/* A row of cells: the outputs along H in whose windows it lies, and where its band ends. */
struct row_of_cells {
  int32_t first;
  uint16_t count, end;
};

static __device__ __forceinline__ row_of_cells *row_table() {
  return (row_of_cells *)(pg_max_any_scratch + THREADS * LEAST_SUMS);
}

static __device__ __forceinline__ void prepare_rows(const max_job &j) {
  for (int32_t h = (int32_t)threadIdx.x; h < j.h.in; h += THREADS) {
    const pg_span o = touching(j.h, h, h + 1);
    row_table()[h] = {o.begin, (uint16_t)length(o), (uint16_t)band_end(j.h, o, j.h.in)};
  }
}

/* The outputs in whose windows the cells of a band lie, in their order. */
template <int V, int N>
struct band_outputs {
  static constexpr uint32_t NO_CELL = ~0u;
  uint32_t index[N][V]; /* NO_CELL, where there are fewer than N */
  float grad[N][V];
  int32_t count;

  template <typename E, typename I>
  __device__ __forceinline__ void load(const I *index_from, const E *grad_from, const max_job &j,
                                       const strip &s, const row_of_cells &row) {
    const uint32_t on = (uint32_t)j.grad_strides.of[PG_W], down = (uint32_t)j.grad_strides.of[PG_H];
    const uint32_t deeper = (uint32_t)j.grad_strides.of[PG_D];
    const int32_t across = length(s.ow), rows = row.count;
    uint32_t line = (uint32_t)(row.first - s.oh.begin) * down, at = line;
    int32_t x = 0, y = 0;
    count = length(s.od) * rows * across;
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (i >= count) break;
      vector_of<I, V> named;
      vector_of<E, V> grads;
      named.load(index_from + at);
      grads.load(grad_from + at);
#pragma unroll
      for (int v = 0; v < V; v++) {
        index[i][v] = high_half(named.of[v]) == 0 ? low_half(named.of[v]) : NO_CELL;
        grad[i][v] = widened(grads.of[v]);
      }
      at += on;
      if (++x == across) {
        x = 0;
        line += ++y == rows ? deeper - (uint32_t)(rows - 1) * down : down;
        if (y == rows) y = 0;
        at = line;
      }
    }
  }
};

/* One strip of a unit; returns how many outputs were added. */
template <int V, int N, typename E, typename I>
static __device__ __forceinline__ int32_t compute_strip(const max_job &j, const strip_plan &p,
                                                        const strip &s, uint32_t unit) {
  const uint32_t n = over(unit, p.by_groups);
  const int32_t c = (int32_t)(unit - n * p.by_groups.by) * p.unit_channels;
  if (c + s.channel >= (int32_t)j.by_c.by) return 0; /* the last of an n may have fewer channels */
  const int64_t outputs =
      s.outputs_from + n * j.grad_strides.of[PG_N] + c * j.grad_strides.of[PG_C];
  E *out = (E *)j.in + s.cells_from + n * j.in_strides.of[PG_N] + c * j.in_strides.of[PG_C];
  uint32_t cell = s.first;
  int32_t named = 0;
  for (int32_t h = s.h; h < s.h + s.rows;) {
    const row_of_cells row = row_table()[h];
    band_outputs<V, N> o;
    o.load((const I *)j.index + outputs, (const E *)j.grad + outputs, j, s, row);
    for (const int32_t end = min((int32_t)row.end, s.h + s.rows); h < end; h++) {
      float sum[V] = {};
#pragma unroll
      for (int i = 0; i < N; i++) {
        if (i >= o.count) break;
#pragma unroll
        for (int v = 0; v < V; v++)
          if (o.index[i][v] == cell) {
            sum[v] += o.grad[i][v];
            named++;
          }
      }
      put_vector<V>(out, sum);
      out += j.in_strides.of[PG_H];
      cell += (uint32_t)j.w.in;
    }
  }
  return named;
}

template <int V, int N, typename E, typename I>
static __global__ void __launch_bounds__(THREADS, V *N <= 8     ? 12
                                                  : V * N <= 16 ? 8
                                                                : 6)
    max_gather_strips(const __grid_constant__ max_job j, const __grid_constant__ strip_plan p) {
  prepare_rows(j);
  __syncthreads();
  const block_share b = share_of(p, j.flags != nullptr);
  int32_t named = 0;
  for (uint32_t number = b.strip; number < b.strip_end; number += THREADS) {
    const strip s = strip_of(j, p, V, number);
    for (uint32_t unit = b.unit; unit < b.unit_end; unit += (uint32_t)p.beside)
      named += compute_strip<V, N, E, I>(j, p, s, unit);
  }
  check_block(j, p, named, LEAST_SUMS);
}

/* --- On the host --- */

static int64_t windows_of(const pg_facts &f) { return f.d_windows * f.h_windows * f.w_windows; }

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (!fits_strips(*problem) || f.pool.h.in > MOST_ROWS) return false;
  if (f.d_windows > MOST_WINDOWS || f.h_windows > MOST_WINDOWS || f.w_windows > MOST_WINDOWS ||
      windows_of(f) > MOST_WINDOWS)
    return false;
  *tiling = tile_strips(f, problem->dtype == ACL_FLOAT ? 4 : 2);
  return counts_outputs(f, *tiling);
}

template <int V, int N, typename E, typename I>
static cudaError_t run_vectors(const pg_cuda_call *call, const max_job &j) {
  const strip_plan p = strip_plan_of(j, V, GATHERED_ROWS);
  const int64_t bytes = scratch_bytes(THREADS, LEAST_SUMS) + j.h.in * (int64_t)sizeof(row_of_cells);
  return launch(call, max_gather_strips<V, N, E, I>, blocks_of(j, p), THREADS, bytes, j, p);
}

/* The more windows, the fewer channels a thread has registers for. */
template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  constexpr int MOST = 16 / sizeof(E);
  const max_job j = max_job_of(call);
  const int64_t windows = windows_of(call->task->problem.facts);
  if (windows <= 1)
    return has_vectors_of<E, I>(j, MOST) ? run_vectors<MOST, 1, E, I>(call, j)
                                         : run_vectors<1, 1, E, I>(call, j);
  if (windows <= 4)
    return has_vectors_of<E, I>(j, 4) ? run_vectors<4, 4, E, I>(call, j)
                                      : run_vectors<1, 4, E, I>(call, j);
  return has_vectors_of<E, I>(j, 2) ? run_vectors<2, MOST_WINDOWS, E, I>(call, j)
                                    : run_vectors<1, MOST_WINDOWS, E, I>(call, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_gather_strips) = {"gather_strips", fits, strips_workspace, run, mend_strips};
