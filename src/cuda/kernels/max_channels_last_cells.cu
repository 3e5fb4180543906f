/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools whose channels are neighbours in memory, where a cell lies in few windows of any kind,
 * in two or three dimensions.
 *
 * A thread computes some channels of two by two cells: it reads the outputs of all windows that
 * touch them, and adds those that name one of its cells.  So sums stay in registers, and every
 * access is to 16 bytes of neighbouring channels.  An output is read by every thread whose cells
 * its window touches, mostly from a cache; this is why cells may lie in few windows only.
 *
 * An index that points into its window is found in this way.  The others are found by the thread
 * that has the output's home; max_job.cuh says what happens then. */
#include "cuda/kernels/channels_last_cells.cuh"
#include "cuda/kernels/max_any.cuh"

enum {
  THREADS = 256,
  PART_CELLS = 32,  /* of a plane, where a block computes its item again: 32 KiB of sums */
  FEW_WINDOWS = 16, /* that two by two cells may lie in */
  NO_CELL = -2      /* no index is that, not even one that is not representable */
};

/* --- Outputs --- */

/* Is the first cell of an output's window one of these along an axis? */
static __device__ __forceinline__ bool is_home(const pg_axis_32 &a, int32_t out, int32_t cell,
                                               int32_t count) {
  return holds(cell, (uint32_t)count, (uint32_t)max(window(a, out).begin, 0));
}

template <typename I>
static __device__ __forceinline__ int32_t index_or_minus_one(I index) {
  return (int64_t)index == (int32_t)index ? (int32_t)index : -1;
}

/* `cell` has the positions of the quad's cells in their plane. */
template <int V, typename E, typename I>
static __device__ __forceinline__ void add_named(const vector_of<I, V> &index,
                                                 const vector_of<E, V> &grad, const int32_t *cell,
                                                 float (*sum)[V]) {
#pragma unroll
  for (int v = 0; v < V; v++) {
    const float g = widened(grad.of[v]);
    const int32_t named = index_or_minus_one(index.of[v]);
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (named == cell[i]) sum[i][v] += g;
  }
}

template <int V, typename I>
static __device__ __forceinline__ bool all_in_window(const max_job &j, const vector_of<I, V> &index,
                                                     const channel_outputs &o) {
  bool all = true;
#pragma unroll
  for (int v = 0; v < V; v++)
    all = all && (uint64_t)index.of[v] < j.cells &&
          in_window(j, (uint32_t)index.of[v], o.od, o.oh, o.ow);
  return all;
}

/* --- Cells --- */

/* True if an output whose home is here has a stray. */
template <int V, typename E, typename I>
static __device__ __forceinline__ bool compute_quad(const max_job &j, const quad &q,
                                                    bad_indices *bad) {
  const pg_span od = touching(j.d, q.d, q.d + 1), oh = touching(j.h, q.h, q.h + q.rows);
  const pg_span ow = touching(j.w, q.w, q.w + q.columns);
  const int32_t first = (q.d * j.h.in + q.h) * j.w.in + q.w;
  int32_t cell[4] = {first, first + 1, first + j.w.in, first + j.w.in + 1};
  if (q.columns < 2) cell[1] = cell[3] = NO_CELL;
  if (q.rows < 2) cell[2] = cell[3] = NO_CELL;
  float sum[4][V] = {};
  bool strayed = false;
  for (int32_t d = od.begin; d < od.end; d++)
    for (int32_t h = oh.begin; h < oh.end; h++) {
      const bool home = is_home(j.h, h, q.h, q.rows) && is_home(j.d, d, q.d, 1);
      const I *index_from = (const I *)j.index + offset(j.index_strides, q.n, q.c, d, h, ow.begin);
      const E *grad_from = (const E *)j.grad + offset(j.grad_strides, q.n, q.c, d, h, ow.begin);
      for (int32_t w = ow.begin; w < ow.end; w++) {
        vector_of<I, V> index;
        vector_of<E, V> grad;
        index.load(index_from);
        grad.load(grad_from);
        index_from += j.index_strides.of[PG_W];
        grad_from += j.grad_strides.of[PG_W];
        add_named<V>(index, grad, cell, sum);
        if (home && is_home(j.w, w, q.w, q.columns)) {
          const channel_outputs o = {q.n, q.c, d, h, w};
          if (!all_in_window<V>(j, index, o)) strayed |= check_channels<V>(j, o, bad);
        }
      }
    }
  E *out = (E *)j.in + offset(j.in_strides, q.n, q.c, q.d, q.h, q.w);
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (cell[i] != NO_CELL)
      put_vector<V>(out + (i / 2) * j.in_strides.of[PG_H] + (i % 2) * j.in_strides.of[PG_W],
                    sum[i]);
  return strayed;
}

template <int V, typename E, typename I>
static __global__ void __launch_bounds__(THREADS)
    max_channels_last_cells(const __grid_constant__ max_job j,
                            const __grid_constant__ quad_plan p) {
  __shared__ bad_indices bad;
  if (threadIdx.x == 0) clear(&bad);
  __syncthreads();
  const quad_block b = quad_block_of(p, j.cut, j.by_c, blockIdx.x);
  const uint32_t quads = quads_of(p, b);
  bool strayed = false;
  for (uint32_t number = threadIdx.x; number < quads; number += THREADS) {
    quad q;
    if (quad_of(p, b, number, V, &q)) strayed |= compute_quad<V, E, I>(j, q, &bad);
  }
  const bool again = __syncthreads_or(strayed) && j.flags == nullptr;
  if (again) compute_item(j, blockIdx.x, PART_CELLS, nullptr);
  if (threadIdx.x == 0) report(j, &bad);
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
  const quad_plan p = quad_plan_of(j.tiling, V, whole);
  return launch(call, max_channels_last_cells<V, E, I>, j.items * p.blocks, THREADS,
                whole ? scratch_bytes(THREADS, PART_CELLS) : 0, j, p);
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  constexpr int V = 16 / sizeof(E);
  const max_job j = max_job_of(call);
  const int64_t c = j.pool.c;
  const bool vectors = is_vector(j.in, j.in_strides, sizeof(E), c, 16) &&
                       is_vector(j.grad, j.grad_strides, sizeof(E), c, 16) &&
                       is_vector(j.index, j.index_strides, sizeof(I), c, 16) &&
                       j.tiling.planes % V == 0;
  return vectors ? run_vectors<V, E, I>(call, j) : run_vectors<1, E, I>(call, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_channels_last_cells) = {"channels_last_cells", fits, flag_bytes, run,
                                           pg_cuda_mend_channels};
