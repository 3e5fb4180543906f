/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER and RESCATTER where channels lie next to each other.
 *
 * gather: cells that lie in few windows look at those windows' outputs.  This finds what points
 * into a window; an index that points elsewhere is noticed, and its item is made again.
 * lanes: a warp takes 32 planes, a lane one of them, and lets each output look for its cell in a
 * small box of sums.  It finds everything, in 64 bits, and is what all else is left to. */
#include "cuda/last.cuh"
#include "cuda/scatter.cuh"

enum {
  GATHER_THREADS = 256,
  GATHER_BOX = 32, /* cells of a warp's box of sums */
  LANES_THREADS = 128,
  LANES_BOX = 80,
  FEW_WINDOWS = 16 /* that two by two cells may lie in */
};

extern __shared__ float pg_scatter_last_room[];

/* --- lanes --- */

struct lanes_box { /* of one slice */
  int64_t d, h, w, rows, columns;
};

/* The cell's number in the box, or -1. */
static __device__ __forceinline__ int64_t cell_in(const scatter_job &j, const lanes_box &b,
                                                  int64_t at) {
  int64_t row, w, d, h;
  if (j.narrow) {
    row = over((uint32_t)at, j.by_w);
    d = over((uint32_t)row, j.by_h);
  } else {
    row = at / j.pool.w.in;
    d = row / j.pool.h.in;
  }
  w = at - row * j.pool.w.in - b.w;
  h = row - d * j.pool.h.in - b.h;
  const bool inside = d == b.d && h >= 0 && h < b.rows && w >= 0 && w < b.columns;
  return inside ? h * b.columns + w : -1;
}

static __device__ __forceinline__ bool touches(pg_range r, int64_t begin, int64_t count) {
  return r.begin >= begin && r.begin < begin + count;
}

/* As pg_scatter_elsewhere. */
static __device__ void tell_elsewhere(const scatter_job &j, const lanes_box &b, int64_t plane,
                                      int64_t od, int64_t oh, int64_t ow, int64_t at,
                                      found_bad *found) {
  const pg_pooling &p = j.pool;
  const pg_range d = pg_window_clip(&p.d, pg_window(&p.d, od));
  const pg_range h = pg_window_clip(&p.h, pg_window(&p.h, oh));
  const pg_range w = pg_window_clip(&p.w, pg_window(&p.w, ow));
  if (d.begin != b.d || !touches(h, b.h, b.rows) || !touches(w, b.w, b.columns)) return;
  if (at < 0 || at >= p.d.in * p.h.in * p.w.in) {
    note_bad(found, position_of(j, plane, od, oh, ow), at);
    return;
  }
  const int64_t row = at / p.w.in, in_d = row / p.h.in, in_h = row % p.h.in, in_w = at % p.w.in;
  if (in_d >= d.begin && in_d < d.end && in_h >= h.begin && in_h < h.end && in_w >= w.begin &&
      in_w < w.end)
    return;
  const pg_tiling &t = j.tiling;
  const int64_t n = plane / p.c, c = plane % p.c;
  const int64_t group = t.interleaved ? n * (t.plane_items / p.n) + c / t.planes : plane / t.planes;
  j.stray[((group * t.d_items + in_d / t.d) * t.h_items + in_h / t.h) * t.w_items + in_w / t.w] = 1;
}

/* A box of a lane's plane: cleared, added to, written.  Whole planes look at every output, and
 * their first box tells of bad indices. */
template <typename E, typename I>
static __device__ __forceinline__ void make_lane(const scatter_job &j, const lanes_box &b,
                                                 int64_t plane, bool every, bool tell, float *sum,
                                                 found_bad *found) {
  const pg_pooling &p = j.pool;
  const int64_t n = plane / p.c, c = plane % p.c, cells = p.d.in * p.h.in * p.w.in;
  const bool first = b.d == 0 && b.h == 0 && b.w == 0;
  pg_range od = {0, p.d.out}, oh = {0, p.h.out}, ow = {0, p.w.out};
  if (!every) {
    od = pg_touching(&p.d, b.d, b.d + 1);
    oh = pg_touching(&p.h, b.h, b.h + b.rows);
    ow = pg_touching(&p.w, b.w, b.w + b.columns);
  }
  for (int64_t i = 0; i < b.rows * b.columns; i++) sum[i * 32] = 0;
  for (int64_t d = od.begin; d < od.end; d++)
    for (int64_t h = oh.begin; h < oh.end; h++) {
      const I *index = (const I *)j.index + offset(j.index_at, n, c, d, h, ow.begin);
      const E *grad = (const E *)j.grad + offset(j.grad_at, n, c, d, h, ow.begin);
#pragma unroll 4
      for (int64_t w = ow.begin; w < ow.end; w++) {
        const int64_t at = *index;
        const float g = widened(*grad);
        const bool outside = (uint64_t)at >= (uint64_t)cells;
        const int64_t cell = outside ? -1 : cell_in(j, b, at);
        index += j.index_at.of[PG_W];
        grad += j.grad_at.of[PG_W];
        if (cell >= 0)
          sum[cell * 32] += g;
        else if (tell && !every)
          tell_elsewhere(j, b, plane, d, h, w, at, found);
        else if (tell && first && outside)
          note_bad(found, position_of(j, plane, d, h, w), at);
      }
    }
  E *out = (E *)j.in + offset(j.in_at, n, c, b.d, b.h, b.w);
  for (int64_t h = 0; h < b.rows; h++)
    for (int64_t w = 0; w < b.columns; w++)
      put(out + h * j.in_at.of[PG_H] + w * j.in_at.of[PG_W], sum[(h * b.columns + w) * 32]);
}

/* All of an item by the warps of a block, boxes of `cells` at a time. */
template <typename E, typename I>
static __device__ __noinline__ void make_lanes(const scatter_job &j, int64_t item, bool every,
                                               bool tell, int64_t cells, found_bad *found) {
  const pg_box_64 box = box_64(j.tiling, j.pool, item);
  const pg_range planes = box.planes, d = box.d, h = box.h, w = box.w;
  const int64_t columns = least(w.end - w.begin, cells);
  const int64_t rows = least(h.end - h.begin, cells / columns);
  const int64_t across = (w.end - w.begin + columns - 1) / columns;
  const int64_t down = (h.end - h.begin + rows - 1) / rows, deep = d.end - d.begin;
  const int64_t tasks = (planes.end - planes.begin + 31) / 32 * across * down * deep;
  float *sum = pg_scatter_last_room + threadIdx.x / 32 * cells * 32 + threadIdx.x % 32;
  for (int64_t task = threadIdx.x / 32; task < tasks; task += blockDim.x / 32) {
    const int64_t line = task / across, slice = line / down, first = slice / deep * 32;
    lanes_box b;
    b.d = d.begin + slice % deep;
    b.h = h.begin + line % down * rows;
    b.w = w.begin + task % across * columns;
    b.rows = least(rows, h.end - b.h);
    b.columns = least(columns, w.end - b.w);
    const int64_t plane = planes.begin + first + threadIdx.x % 32;
    if (plane < planes.end) make_lane<E, I>(j, b, plane, every, tell, sum, found);
  }
}

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

/* Of V channels from o.c on at the output (od, oh, ow), which is at home with these cells: each
 * index that is not in its window.  True if one points elsewhere in its plane. */
template <int V, typename I>
static __device__ __noinline__ bool tell_channels(const scatter_job &j, const I *index, uint32_t n,
                                                  int32_t c, int32_t od, int32_t oh, int32_t ow,
                                                  found_bad *found) {
  bool strayed = false;
  for (int v = 0; v < V; v++) {
    const int64_t at = index[v];
    if ((uint64_t)at >= j.cells) {
      note_bad(found, position_of(j, (int64_t)n * j.by_c.by + c + v, od, oh, ow), at);
    } else if (!in_window(j, (uint32_t)at, od, oh, ow)) {
      const int64_t group = (int64_t)n * j.cut.groups.by + (c + v) / j.cut.of_planes;
      if (j.stray != nullptr) j.stray[item_of(j, group, (uint32_t)at)] = 1;
      strayed = true;
    }
  }
  return strayed;
}

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
  if (!prefers_gather(j)) return launch_lanes<E, I>(call, j);
  const int64_t c = j.pool.c;
  const bool vector = is_vector(j.in, j.in_at, sizeof(E), c, 16) &&
                      is_vector(j.grad, j.grad_at, sizeof(E), c, 16) &&
                      is_vector(j.index, j.index_at, sizeof(I), c, 16) && j.tiling.planes % V == 0;
  return vector ? launch_gather<V, E, I>(call, j) : launch_gather<1, E, I>(call, j);
}

cudaError_t pg_cuda_scatter_last(const pg_cuda_call *call) {
  return with_scatter_types(
      call->step, [call](auto e, auto i) { return launch_last<decltype(e), decltype(i)>(call); });
}
