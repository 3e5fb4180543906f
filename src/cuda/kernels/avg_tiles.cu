/* SPDX-License-Identifier: Apache-2.0 */
/* Averages whose windows tile the plane without padding, so that a cell lies in exactly one window,
 * and whose contiguous rows are made of whole groups of 16 bytes (or 8).  A group must be a part of
 * one window, or two or four whole windows.
 *
 * A cell is then one quotient, and nothing is added.  A thread has a group of cells along W: it
 * divides the one, two or four outputs that it lies in, once, and writes the same bytes to every
 * row and slice of their windows.  So an output is read about once and each write is a whole group.
 * Very high windows are left to other methods, because a thread would write many rows one after the
 * other while others have nothing to do. */
#include "cuda/kernels/avg_job.cuh"

enum {
  THREADS = 256,
  MOST_ROWS = 64, /* of a window: more of them would leave too few threads for the device */
};

struct tiles_plan {
  int64_t threads; /* one for each group of a row of windows */
  bool one_divisor;
  float divisor; /* of all outputs, if they have the same */
  pg_divider by_groups, by_out_h, by_out_d;
};

/* The cells of the o-th window along an axis; the last one may hang over its end. */
static __device__ __forceinline__ pg_span tile_of(const pg_axis_32 &a, uint32_t o) {
  return {(int32_t)o * a.stride, min((int32_t)o * a.stride + a.stride, a.in)};
}

/* The quotients of N outputs from ow on.  `counted` is the cells of their windows along D and H. */
template <int N, typename E>
static __device__ __forceinline__ void divide_tiles(const avg_job &j, const tiles_plan &t,
                                                    const E *grad, int32_t counted, uint32_t ow,
                                                    float *quotient) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    const float g =
        ow + i < (uint32_t)j.w.out ? widened(grad[(uint32_t)i * j.grad_w_stride]) : 0.0f;
    const float divisor =
        t.one_divisor ? t.divisor : (float)(counted * length(tile_of(j.w, ow + i)));
    quotient[i] = 0.0f + g / divisor; /* a sum starts at +0, so that -0 becomes +0 */
  }
}

/* A thread writes groups of V cells, which lie in the windows of N outputs. */
template <int V, int N, typename E>
static __global__ void __launch_bounds__(THREADS)
    avg_tiles(const __grid_constant__ avg_job j, const __grid_constant__ tiles_plan t) {
  const uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
  if (thread >= t.threads) return;
  const uint32_t row = over(thread, t.by_groups), iw = V * (thread - row * t.by_groups.by);
  const uint32_t slice = over(row, t.by_out_h), oh = row - slice * t.by_out_h.by;
  const uint32_t plane = over(slice, t.by_out_d), od = slice - plane * t.by_out_d.by;
  const uint32_t ow = over(iw, j.w.first);
  const pg_span d = tile_of(j.d, od), h = tile_of(j.h, oh);
  const E *grad = (const E *)j.grad;
  if (j.flat_out) {
    grad += (int64_t)row * j.w.out + ow;
  } else {
    const uint32_t n = over(plane, j.by_c);
    grad += offset(j.grad_strides, n, plane - n * j.by_c.by, od, oh, ow);
  }
  float quotient[N], group[V];
  divide_tiles<N>(j, t, grad, length(d) * length(h), ow, quotient);
#pragma unroll
  for (int i = 0; i < V; i++) group[i] = quotient[i * N / V];
  E *out = (E *)j.in + (int64_t)plane * j.cells + iw;
  for (int32_t id = d.begin; id < d.end; id++) {
    E *to = out + (int64_t)((id * j.h.in + h.begin) * j.w.in);
    for (int32_t ih = h.begin; ih < h.end; ih++, to += j.w.in) put_vector<V>(to, group);
  }
}

/* --- On the host --- */

/* Do windows follow each other from the first cell to the last?  The last window may hang over. */
static bool windows_tile(const pg_axis &a) {
  return a.kernel > 0 && a.kernel == a.stride && a.dilation == 1 && a.pad == 0 && a.out > 0 &&
         a.out * a.stride >= a.in;
}

/* Are rows made of groups of v cells, each a part of one window, or two or four whole windows? */
static bool has_groups(const pg_axis &w, int64_t v) {
  return w.in % v == 0 && (w.kernel % v == 0 || w.kernel * 2 == v || w.kernel * 4 == v);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_pooling &p = f.pool;
  const int64_t v = 16 / element_bytes(*problem);
  if (!fits_avg_planes(*problem) || !f.in.all) return false;
  if (!windows_tile(p.d) || !windows_tile(p.h) || !windows_tile(p.w)) return false;
  if (p.d.stride * p.h.stride > MOST_ROWS) return false;
  *tiling = tile_avg_planes(f);
  return (has_groups(p.w, v) || (v > 4 && has_groups(p.w, v / 2))) &&
         f.planes * p.d.out * p.h.out < ((int64_t)1 << 31) / p.w.in;
}

template <int V, int N, typename E>
static cudaError_t launch_groups(const pg_cuda_call *call, const avg_job &j) {
  const pg_pooling &p = j.pool;
  const int64_t groups = p.w.in / V;
  tiles_plan t = {};
  t.threads = p.n * p.c * p.d.out * p.h.out * groups;
  t.one_divisor = j.divisor != 0 || (pg_is_tiled(&p.d) && pg_is_tiled(&p.h) && pg_is_tiled(&p.w));
  t.divisor = j.divisor != 0 ? (float)j.divisor : (float)(p.d.stride * p.h.stride * p.w.stride);
  t.by_groups = divider_of(groups);
  t.by_out_h = divider_of(p.h.out);
  t.by_out_d = divider_of(p.d.out);
  return launch(call, avg_tiles<V, N, E>, pg_ceil_div(t.threads, THREADS), THREADS, 0, j, t);
}

template <int V, typename E>
static cudaError_t run_groups(const pg_cuda_call *call, const avg_job &j) {
  if (j.w.stride % V == 0) return launch_groups<V, 1, E>(call, j);
  return j.w.stride * 2 == V ? launch_groups<V, 2, E>(call, j) : launch_groups<V, 4, E>(call, j);
}

/* Cells are written one by one where gradInput is not aligned to groups. */
template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  constexpr int V = 16 / sizeof(E);
  const avg_job j = avg_job_of(call);
  if (has_groups(j.pool.w, V) && (uintptr_t)j.in % 16 == 0) return run_groups<V, E>(call, j);
  if constexpr (V > 4)
    if (has_groups(j.pool.w, V / 2) && (uintptr_t)j.in % 8 == 0)
      return run_groups<V / 2, E>(call, j);
  return launch_groups<1, 1, E>(call, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_tiles) = {"tiles", fits, nullptr, run, nullptr};
