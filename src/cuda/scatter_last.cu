/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER and RESCATTER where channels lie next to each other.
 *
 * march: the usual windows, see scatter_last_march.cuh.
 * gather: cells that lie in few windows look at those windows' outputs.  This finds what points
 * into a window; an index that points elsewhere is noticed, and its item is made again.
 * lanes: what all else is left to, see lanes.cuh. */
#include "cuda/last.cuh"
#include "cuda/lanes.cuh"
#include "cuda/scatter_last_march.cuh"

enum {
  GATHER_THREADS = 256,
  GATHER_BOX = 32, /* cells of a warp's box of sums */
  LANES_THREADS = 128,
  LANES_BOX = 80,
  FEW_WINDOWS = 16 /* that two by two cells may lie in */
};

/* --- lanes --- */

template <typename E, typename I>
static __global__ void __launch_bounds__(LANES_THREADS)
    scatter_lanes(const __grid_constant__ scatter_job j) {
  __shared__ found_bad found;
  if (threadIdx.x == 0) clear(&found);
  __syncthreads();
  make_lanes<E, I>(j, blockIdx.x, j.stray == nullptr, true, LANES_BOX, &found);
  __syncthreads();
  if (threadIdx.x == 0) hand_over(j, &found);
}

/* The items that a stray points into, most often none: a block looks at many at a time. */
template <typename E, typename I>
static __global__ void __launch_bounds__(LANES_THREADS)
    rescatter_lanes(const __grid_constant__ scatter_job j) {
  for (int64_t first = (int64_t)blockIdx.x * LANES_THREADS; first < j.items;
       first += (int64_t)gridDim.x * LANES_THREADS) {
    const int64_t mine = first + threadIdx.x;
    const bool strayed = mine < j.items && j.stray[mine] != 0;
    if (!__syncthreads_or(strayed)) continue;
    for (int64_t i = first; i < least(first + LANES_THREADS, j.items); i++)
      if (j.stray[i] != 0) make_lanes<E, I>(j, i, true, false, LANES_BOX, nullptr);
  }
}

/* --- gather --- */

static __device__ __forceinline__ bool is_home(const pg_axis_32 &a, int32_t out, int32_t cell,
                                               int32_t count) {
  return holds(cell, (uint32_t)count, (uint32_t)max(window(a, out).begin, 0));
}

/* V channels of up to two by two cells.  True if an index at home here points elsewhere. */
template <int V, typename E, typename I>
static __device__ __forceinline__ bool gather_cells(const scatter_job &j, const last_block &b,
                                                    const last_cells &o, found_bad *found) {
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
      const I *index_at = (const I *)j.index + offset(j.index_at, b.n, o.c, d, h, ow.begin);
      const E *grad_at = (const E *)j.grad + offset(j.grad_at, b.n, o.c, d, h, ow.begin);
      for (int32_t w = ow.begin; w < ow.end; w++) {
        vector_of<I, V> index;
        vector_of<E, V> grad;
        index.load(index_at);
        grad.load(grad_at);
        index_at += j.index_at.of[PG_W];
        grad_at += j.grad_at.of[PG_W];
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
                tell_channels<V, I>(j, index_at - j.index_at.of[PG_W], b.n, o.c, d, h, w, found);
        }
      }
    }
  E *out = (E *)j.in + offset(j.in_at, b.n, o.c, o.d, o.h, o.w);
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (name[i] != NONE)
      put_vector<V>(out + (i / 2) * j.in_at.of[PG_H] + (i % 2) * j.in_at.of[PG_W], sum[i],
                    j.stream);
  return strayed;
}

template <int V, typename E, typename I>
static __global__ void __launch_bounds__(GATHER_THREADS)
    gather_last(const __grid_constant__ scatter_job j, const __grid_constant__ last_plan l) {
  __shared__ found_bad found;
  if (threadIdx.x == 0) clear(&found);
  __syncthreads();
  const last_block b = last_block_of(j.cut, j.by_c, l, blockIdx.x);
  const uint32_t tasks = last_tasks(l, b);
  bool strayed = false;
  for (uint32_t task = threadIdx.x; task < tasks; task += GATHER_THREADS) {
    last_cells o;
    if (last_cells_of(l, b, task, V, &o)) strayed |= gather_cells<V, E, I>(j, b, o, &found);
  }
  const bool again = __syncthreads_or(strayed) && j.stray == nullptr;
  if (again) make_lanes<E, I>(j, blockIdx.x, true, false, GATHER_BOX, &found);
  if (threadIdx.x == 0) hand_over(j, &found);
}

/* --- On the host --- */

static bool prefers_gather(const scatter_job &j) {
  const pg_pooling &p = j.pool;
  return j.narrow && j.tiling.interleaved && !j.again &&
         most_windows(p.d) * most_touching(p.h, 2) * most_touching(p.w, 2) <= FEW_WINDOWS;
}

template <typename E, typename I>
static cudaError_t launch_lanes(const pg_cuda_call *call, const scatter_job &j) {
  const int64_t bytes = (int64_t)LANES_BOX * LANES_THREADS * sizeof(float);
  if (!j.again) return launch(call, scatter_lanes<E, I>, j.items, LANES_THREADS, bytes, j);
  const int64_t most = 4 * (int64_t)call->limits.processors;
  const int64_t blocks = (j.items - 1) / LANES_THREADS + 1;
  return launch(call, rescatter_lanes<E, I>, least(blocks, most), LANES_THREADS, bytes, j);
}

template <int V, typename E, typename I>
static cudaError_t launch_gather(const pg_cuda_call *call, const scatter_job &j) {
  const bool whole = j.stray == nullptr;
  const last_plan l = last_plan_of(j.tiling, V, whole);
  const int64_t bytes = whole ? (int64_t)GATHER_BOX * GATHER_THREADS * sizeof(float) : 0;
  return launch(call, gather_last<V, E, I>, j.items * l.parts, GATHER_THREADS, bytes, j, l);
}

template <typename E, typename I>
static cudaError_t launch_last(const pg_cuda_call *call) {
  constexpr int V = 16 / sizeof(E);
  const scatter_job j = scatter_job_of(call, sizeof(E));
  cudaError_t status = cudaSuccess;
  if (try_march<E, I>(call, j, &status)) return status;
  if (!prefers_gather(j)) return launch_lanes<E, I>(call, j);
  const int64_t c = j.pool.c;
  const bool vector = is_vector(j.in, j.in_at, sizeof(E), c, 16) &&
                      is_vector(j.grad, j.grad_at, sizeof(E), c, 16) &&
                      is_vector(j.index, j.index_at, sizeof(I), c, 16) && j.tiling.planes % V == 0;
  return vector ? launch_gather<V, E, I>(call, j) : launch_gather<1, E, I>(call, j);
}

cudaError_t pg_cuda_scatter_last(const pg_cuda_call *call) {
  return with_scatter_types(
      call->task, [call](auto e, auto i) { return launch_last<decltype(e), decltype(i)>(call); });
}
