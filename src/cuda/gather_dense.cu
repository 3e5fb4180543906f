/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER of adaptive planes with many outputs, no more than cells along an axis.
 *
 * A cell lies in one or two windows of each axis: a thread goes down a column of cells and looks at
 * the two by two outputs that may name the present one.  Who comes upon the first cell of a window
 * looks at where its output points: outside the window is unusual, and the block makes its item
 * again, see item.cuh. */
#include "cuda/item.cuh"

enum { DENSE_THREADS = 128, DENSE_BLOCKS = 10 };

struct dense_axis {
  int32_t in, out, quotient, rest; /* in = quotient * out + rest */
  pg_divider by_in, by_out;
};

struct dense_plan {
  dense_axis h, w;
  int32_t chunks, rows; /* a column's rows are cut */
  pg_divider by_chunks, by_w;
};

/* A cell of an axis: the first output whose window holds it, and cell * out less first * in. */
struct dense_place {
  int32_t first, rest;
};

static __device__ __forceinline__ dense_place place_on(const dense_axis &a, int32_t cell) {
  const int32_t first = (int32_t)over((uint32_t)(cell * a.out), a.by_in);
  return {first, cell * a.out - first * a.in};
}

/* A window: its first cell, and output * in less first * out. */
struct dense_window {
  int32_t first, rest;
};

static __device__ __forceinline__ dense_window window_on(const dense_axis &a, int32_t output) {
  const int32_t first = (int32_t)over((uint32_t)(output * a.in), a.by_out);
  return {first, output * a.in - first * a.out};
}

static __device__ __forceinline__ uint32_t length(const dense_axis &a, const dense_window &w) {
  const int32_t more = w.rest + a.rest;
  return (uint32_t)(a.quotient + (more > 0) + (more > a.out));
}

static __device__ __forceinline__ void step(const dense_axis &a, dense_window &w) {
  w.first += a.quotient;
  w.rest += a.rest;
  if (w.rest >= a.out) {
    w.rest -= a.out;
    w.first++;
  }
}

/* What a thread needs of its plane: its outputs from its column's first on. */
template <typename E, typename I>
struct dense_column {
  const I *index;
  const E *grad;
  E *out;
  bool second;         /* a window of the next column of outputs holds it too */
  int32_t own;         /* which of the two begins with it, or -1 */
  uint32_t w, columns; /* it, and that window's length */
};

/* Two outputs as they come, and as they are used: the cells they name, ~0 for none. */
template <typename E, typename I>
struct dense_loads {
  I index[2];
  E grad[2];
};

struct dense_row {
  uint32_t cell[2];
  float grad[2];
};

template <typename E, typename I>
static __device__ __forceinline__ dense_loads<E, I> send_for(const scatter_job &j,
                                                             const dense_column<E, I> &c,
                                                             int32_t oh) {
  dense_loads<E, I> l = {{-1, -1}, {}};
  if (oh >= j.h.out) return l;
  const uint32_t at = (uint32_t)oh * j.w.out;
  l.index[0] = __ldg(c.index + at);
  l.grad[0] = c.grad[at];
  if (c.second) {
    l.index[1] = __ldg(c.index + at + 1);
    l.grad[1] = c.grad[at + 1];
  }
  return l;
}

template <typename E, typename I>
static __device__ __forceinline__ dense_row arrived(const scatter_job &j,
                                                    const dense_loads<E, I> &l) {
  dense_row r;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    r.cell[i] = (uint64_t)l.index[i] < j.cells ? (uint32_t)l.index[i] : ~0u;
    r.grad[i] = widened(l.grad[i]);
  }
  return r;
}

static __device__ __forceinline__ void take(float &sum, const dense_row &r, uint32_t cell) {
  if (r.cell[0] == cell) sum += r.grad[0];
  if (r.cell[1] == cell) sum += r.grad[1];
}

/* Does the row's output whose window begins with the column name a cell outside it? */
template <typename E, typename I>
static __device__ __forceinline__ bool is_unusual(const scatter_job &j, const dense_plan &g,
                                                  const dense_column<E, I> &c, const dense_row &r,
                                                  const dense_window &rows) {
  const uint32_t behind =
      (c.own == 0 ? r.cell[0] : r.cell[1]) - (uint32_t)(rows.first * j.w.in) - c.w;
  const uint32_t row = over(behind, g.by_w);
  return (c.own >= 0) & (rows.first < j.h.in) &
         ((behind >= j.cells) | (row >= length(g.h, rows)) |
          (behind - row * g.by_w.by >= c.columns));
}

template <typename E>
static __device__ __forceinline__ void write(E *to, float sum, bool stream) {
  E e;
  put(&e, sum);
  if (!stream)
    *to = e;
  else if constexpr (sizeof(E) == 4)
    __stcs((uint32_t *)to, __float_as_uint(sum));
  else
    __stcs((uint16_t *)to, e.bits);
}

template <typename E, typename I>
static __device__ __forceinline__ dense_column<E, I> column_at(const dense_plan &g,
                                                               dense_column<E, I> c, int32_t w) {
  const dense_place x = place_on(g.w, w);
  c.second = x.rest + g.w.out > g.w.in;
  c.own = x.rest == 0 ? 0 : c.second ? 1 : -1;
  c.index += x.first;
  c.grad += x.first;
  c.w = (uint32_t)w;
  c.columns = length(g.w, window_on(g.w, x.first + (x.rest != 0)));
  return c;
}

/* Rows [begin, end) of a column.  Outputs of the row after next are on their way.  One whose window
 * begins with a later item's cells may be found unusual here too: no harm is done. */
template <typename E, typename I>
static __device__ __forceinline__ bool go_down(const scatter_job &j, const dense_plan &g,
                                               const dense_column<E, I> &c, int32_t begin,
                                               int32_t end) {
  dense_place y = place_on(g.h, begin);
  dense_window rows = window_on(g.h, y.first);
  dense_row upper = arrived(j, send_for(j, c, y.first));
  dense_row lower = arrived(j, send_for(j, c, y.first + 1));
  dense_loads<E, I> next = send_for(j, c, y.first + 2);
  bool unusual = is_unusual(j, g, c, upper, rows);
  step(g.h, rows);
  unusual |= is_unusual(j, g, c, lower, rows);
  uint32_t at = (uint32_t)(begin * j.w.in) + c.w;
  for (int32_t h = begin; h < end; h++) {
    float sum = 0;
    take(sum, upper, at);
    take(sum, lower, at);
    write(c.out + at, sum, j.stream);
    at += j.w.in;
    y.rest += g.h.out;
    if (y.rest >= g.h.in) {
      y.rest -= g.h.in;
      y.first++;
      upper = lower;
      lower = arrived(j, next);
      next = send_for(j, c, y.first + 2);
      step(g.h, rows);
      unusual |= is_unusual(j, g, c, lower, rows);
    }
  }
  return unusual;
}

extern __shared__ float4 pg_dense_room[];

/* Not inlined: what is rare shall not take registers from what is not. */
template <typename E, typename I>
static __device__ __noinline__ void make_unusual(const scatter_job &j, const scan_plan &s,
                                                 found_bad *found) {
  make_item<false, E, I>(j, s, blockIdx.x, (float *)pg_dense_room, found + threadIdx.x / 32);
}

template <typename E, typename I>
static __global__ void __launch_bounds__(DENSE_THREADS, DENSE_BLOCKS)
    gather_dense(const __grid_constant__ scatter_job j, const __grid_constant__ scan_plan s,
                 const __grid_constant__ dense_plan g) {
  __shared__ found_bad found[DENSE_THREADS / 32];
  const pg_box_32 b = box_32(j.cut, blockIdx.x);
  const int32_t tasks = b.planes * g.chunks * j.w.in;
  bool unusual = false;
  for (int32_t task = threadIdx.x; task < tasks; task += DENSE_THREADS) {
    const int32_t upper = (int32_t)over(task, g.by_w);
    const int32_t plane = (int32_t)over(upper, g.by_chunks);
    const int32_t begin = b.h.begin + (upper - plane * g.chunks) * g.rows;
    const int64_t at = b.first + plane;
    const dense_column<E, I> c = {(const I *)j.index + at * j.outputs,
                                  (const E *)j.grad + at * j.outputs, (E *)j.in + at * j.cells};
    if (begin < b.h.end)
      unusual |= go_down(j, g, column_at(g, c, task - upper * j.w.in), begin,
                         min(begin + g.rows, b.h.end));
  }
  if (__syncthreads_or(unusual)) make_unusual<E, I>(j, s, found);
}

/* --- On the host --- */

static dense_axis dense_axis_of(const pg_axis &a) {
  return {(int32_t)a.in,           (int32_t)a.out,   (int32_t)(a.in / a.out),
          (int32_t)(a.in % a.out), divider_of(a.in), divider_of(a.out)};
}

static bool is_dense(const pg_axis &a) {
  return a.kernel == 0 && a.out > 0 && a.out <= a.in && fits_32_bits(a);
}

template <typename E, typename I>
static bool try_dense(const pg_cuda_call *call, cudaError_t *status) {
  const scatter_job j = scatter_job_of(call, sizeof(E));
  const pg_pooling &p = j.pool;
  const pg_tiling &t = j.tiling;
  if (!j.narrow || j.again || j.deep || !j.flat_in || !j.flat_out || t.w != p.w.in) return false;
  if (!is_dense(p.h) || !is_dense(p.w)) return false;
  dense_plan g = {};
  g.h = dense_axis_of(p.h);
  g.w = dense_axis_of(p.w);
  const int64_t most = DENSE_THREADS / (p.w.in * t.planes);
  g.chunks = (int32_t)least(most < 1 ? 1 : most, t.h);
  g.rows = (int32_t)((t.h + g.chunks - 1) / g.chunks);
  g.by_chunks = divider_of(g.chunks);
  g.by_w = divider_of(p.w.in);
  const int64_t bytes = (t.planes * t.d * t.h * t.w + 16) * (int64_t)sizeof(float);
  *status = launch(call, gather_dense<E, I>, j.items, DENSE_THREADS, bytes, j, scan_plan_of(j), g);
  return true;
}

bool pg_cuda_try_gather_dense(const pg_cuda_call *call, cudaError_t *status) {
  bool done = false;
  (void)with_scatter_types(call->step, [&](auto e, auto i) {
    done = try_dense<decltype(e), decltype(i)>(call, status);
    return cudaSuccess;
  });
  return done;
}
