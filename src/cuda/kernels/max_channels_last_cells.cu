/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools where channels lie next to each other and a cell lies in few windows.
 *
 * A thread computes some channels of two by two cells: it looks at the outputs of all windows that
 * touch them, and adds those that name one of its cells.  This finds every index that points into
 * its window.  An index that points elsewhere is noticed by the thread that has the first cell of
 * the window; max_job.cuh says what happens then. */
#include "cuda/kernels/channels_last_cells.cuh"
#include "cuda/kernels/max_any.cuh"

enum {
  GATHER_THREADS = 256,
  GATHER_BOX = 32, /* cells of a warp's box of sums */
  FEW_WINDOWS = 16 /* that two by two cells may lie in */
};

/* --- gather --- */

static __device__ __forceinline__ bool is_home(const pg_axis_32 &a, int32_t out, int32_t cell,
                                               int32_t count) {
  return holds(cell, (uint32_t)count, (uint32_t)max(window(a, out).begin, 0));
}

/* V channels of up to two by two cells.  True if an index at home here points elsewhere. */
template <int V, typename E, typename I>
static __device__ __forceinline__ bool gather_cells(const max_job &j, const last_block &b,
                                                    const last_cells &o, bad_indices *found) {
  enum { NONE = -2, NOT_32_BITS = -1 };
  const pg_span od = touching(j.d, o.d, o.d + 1), oh = touching(j.h, o.h, o.h + o.rows);
  const pg_span ow = touching(j.w, o.w, o.w + o.columns);
  const int32_t first = (o.d * j.h.in + o.h) * j.w.in + o.w;
  int32_t name[4] = {first, first + 1, first + j.w.in, first + j.w.in + 1};
  if (o.columns < 2) name[1] = name[3] = NONE;
  if (o.rows < 2) name[2] = name[3] = NONE;
  float sum[4][V] = {};
  bool strayed = false;
  for (int32_t d = od.begin; d < od.end; d++)
    for (int32_t h = oh.begin; h < oh.end; h++) {
      const bool home = is_home(j.h, h, o.h, o.rows) && is_home(j.d, d, o.d, 1);
      const I *index_from = (const I *)j.index + offset(j.index_strides, b.n, o.c, d, h, ow.begin);
      const E *grad_from = (const E *)j.grad + offset(j.grad_strides, b.n, o.c, d, h, ow.begin);
      for (int32_t w = ow.begin; w < ow.end; w++) {
        vector_of<I, V> index;
        vector_of<E, V> grad;
        index.load(index_from);
        grad.load(grad_from);
        index_from += j.index_strides.of[PG_W];
        grad_from += j.grad_strides.of[PG_W];
#pragma unroll
        for (int v = 0; v < V; v++) {
          const float g = widened(grad.of[v]);
          const int32_t at =
              (int64_t)index.of[v] == (int32_t)index.of[v] ? (int32_t)index.of[v] : NOT_32_BITS;
#pragma unroll
          for (int i = 0; i < 4; i++)
            if (at == name[i]) sum[i][v] += g;
        }
        if (home && is_home(j.w, w, o.w, o.columns)) {
          bool usual = true;
#pragma unroll
          for (int v = 0; v < V; v++)
            usual = usual && (uint64_t)index.of[v] < j.cells &&
                    in_window(j, (uint32_t)index.of[v], d, h, w);
          if (!usual)
            strayed |=
                tell_channels<V>(j, index_from - (const I *)j.index - j.index_strides.of[PG_W], b.n,
                                 o.c, d, h, w, found);
        }
      }
    }
  E *out = (E *)j.in + offset(j.in_strides, b.n, o.c, o.d, o.h, o.w);
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (name[i] != NONE)
      put_vector<V>(out + (i / 2) * j.in_strides.of[PG_H] + (i % 2) * j.in_strides.of[PG_W],
                    sum[i]);
  return strayed;
}

template <int V, typename E, typename I>
static __global__ void __launch_bounds__(GATHER_THREADS)
    gather_last(const __grid_constant__ max_job j, const __grid_constant__ last_plan l) {
  __shared__ bad_indices found;
  if (threadIdx.x == 0) clear(&found);
  __syncthreads();
  const last_block b = last_block_of(j.cut, j.by_c, l, blockIdx.x);
  const uint32_t tasks = last_tasks(l, b);
  bool strayed = false;
  for (uint32_t task = threadIdx.x; task < tasks; task += GATHER_THREADS) {
    last_cells o;
    if (last_cells_of(l, b, task, V, &o)) strayed |= gather_cells<V, E, I>(j, b, o, &found);
  }
  const bool again = __syncthreads_or(strayed) && j.flags == nullptr;
  if (again) make_lanes(j, blockIdx.x, true, false, GATHER_BOX, &found);
  if (threadIdx.x == 0) report(j, &found);
}

/* --- On the host --- */

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (!f.channels_last || !fits_32_bits(f.pool)) return false;
  *tiling = tile_max_channels(f);
  return f.d_windows * pg_most_touching(&f.pool.h, 2) * pg_most_touching(&f.pool.w, 2) <=
         FEW_WINDOWS;
}

template <int V, typename E, typename I>
static cudaError_t run_vectors(const pg_cuda_call *call, const max_job &j) {
  const bool whole = j.flags == nullptr;
  const last_plan l = last_plan_of(j.tiling, V, whole);
  const int64_t bytes = whole ? (int64_t)GATHER_BOX * GATHER_THREADS * sizeof(float) : 0;
  return launch(call, gather_last<V, E, I>, j.items * l.parts, GATHER_THREADS, bytes, j, l);
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  constexpr int V = 16 / sizeof(E);
  const max_job j = max_job_of(call);
  const int64_t c = j.pool.c;
  const bool vector = is_vector(j.in, j.in_strides, sizeof(E), c, 16) &&
                      is_vector(j.grad, j.grad_strides, sizeof(E), c, 16) &&
                      is_vector(j.index, j.index_strides, sizeof(I), c, 16) &&
                      j.tiling.planes % V == 0;
  return vector ? run_vectors<V, E, I>(call, j) : run_vectors<1, E, I>(call, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_channels_last_cells) = {"channels_last_cells", fits, flag_bytes, run,
                                           pg_cuda_mend_channels};
