/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD where windows tile the plane and its rows are whole words: a thread divides the outputs of
 * 16 (or 8) bytes of a row, once, and writes those bytes to every row of their windows. */
#include "cuda/kernels/avg_job.cuh"

enum { THREADS = 256, MOST_ROWS = 64 /* of a window, or too few threads would write too much */ };

struct apart_plan {
  int64_t tasks;
  bool same; /* all divisors are */
  float divisor;
  pg_divider by_groups, by_out_h, by_out_d;
};

/* Cells of the o-th window along an axis. */
static __device__ __forceinline__ pg_span cells_of(const pg_axis_32 &a, uint32_t o) {
  return {(int32_t)o * a.stride, min((int32_t)o * a.stride + a.stride, a.in)};
}

/* The quotients of N outputs from ow on. */
template <int N, typename E>
static __device__ __forceinline__ void divide(const avg_job &j, const apart_plan &s, const E *grad,
                                              int32_t outer, uint32_t ow, float *term) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    const float g =
        ow + i < (uint32_t)j.w.out ? widened(grad[(uint32_t)i * j.grad_w_stride]) : 0.0f;
    const float divisor = s.same ? s.divisor : (float)(outer * length(cells_of(j.w, ow + i)));
    term[i] = 0.0f + g / divisor;
  }
}

/* V cells of a row are N outputs'. */
template <int V, int N, typename E>
static __global__ void __launch_bounds__(THREADS)
    spread_apart(const __grid_constant__ avg_job j, const __grid_constant__ apart_plan s) {
  const uint32_t task = blockIdx.x * THREADS + threadIdx.x;
  if (task >= s.tasks) return;
  const uint32_t row = over(task, s.by_groups), x = V * (task - row * s.by_groups.by);
  const uint32_t slice = over(row, s.by_out_h), oh = row - slice * s.by_out_h.by;
  const uint32_t plane = over(slice, s.by_out_d), od = slice - plane * s.by_out_d.by;
  const uint32_t ow = over(x, j.w.first);
  const pg_span d = cells_of(j.d, od), h = cells_of(j.h, oh);
  const E *grad = (const E *)j.grad;
  if (j.flat_out) {
    grad += (int64_t)row * j.w.out + ow;
  } else {
    const uint32_t n = over(plane, j.by_c);
    grad += offset(j.grad_strides, n, plane - n * j.by_c.by, od, oh, ow);
  }
  float term[N], sum[V];
  divide<N>(j, s, grad, length(d) * length(h), ow, term);
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] = term[i * N / V];
  E *out = (E *)j.in + (int64_t)plane * j.cells + x;
  for (int32_t a = d.begin; a < d.end; a++) {
    E *to = out + (int64_t)((a * j.h.in + h.begin) * j.w.in);
    for (int32_t b = h.begin; b < h.end; b++, to += j.w.in) put_vector<V>(to, sum);
  }
}

/* --- On the host --- */

/* Do windows cover the axis, one after the other?  The last may be cut. */
static bool tiles(const pg_axis &a) {
  return a.kernel > 0 && a.kernel == a.stride && a.dilation == 1 && a.pad == 0 && a.out > 0 &&
         a.out * a.stride >= a.in;
}

/* Are V cells of a row whole windows, or windows whole groups of V cells? */
static bool has_groups(const pg_axis &w, int64_t v) {
  return w.in % v == 0 && (w.kernel % v == 0 || w.kernel * 2 == v || w.kernel * 4 == v);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_pooling &p = f.pool;
  const int64_t v = 16 / element_bytes(*problem);
  if (!fits_avg_planes(*problem) || !f.in.all) return false;
  if (!tiles(p.d) || !tiles(p.h) || !tiles(p.w) || p.d.stride * p.h.stride > MOST_ROWS)
    return false;
  *tiling = tile_avg_planes(f);
  return (has_groups(p.w, v) || has_groups(p.w, v / 2)) &&
         f.planes * p.d.out * p.h.out < ((int64_t)1 << 31) / p.w.in;
}

template <int V, int N, typename E>
static cudaError_t launch_apart(const pg_cuda_call *call, const avg_job &j) {
  const pg_pooling &p = j.pool;
  const int64_t groups = p.w.in / V;
  apart_plan s = {};
  s.tasks = p.n * p.c * p.d.out * p.h.out * groups;
  s.same = j.divisor != 0 || (pg_is_tiled(&p.d) && pg_is_tiled(&p.h) && pg_is_tiled(&p.w));
  s.divisor = j.divisor != 0 ? (float)j.divisor : (float)(p.d.stride * p.h.stride * p.w.stride);
  s.by_groups = divider_of(groups);
  s.by_out_h = divider_of(p.h.out);
  s.by_out_d = divider_of(p.d.out);
  return launch(call, spread_apart<V, N, E>, (s.tasks + THREADS - 1) / THREADS, THREADS, 0, j, s);
}

template <int V, typename E>
static cudaError_t run_groups(const pg_cuda_call *call, const avg_job &j) {
  if (j.w.stride % V == 0) return launch_apart<V, 1, E>(call, j);
  return j.w.stride * 2 == V ? launch_apart<V, 2, E>(call, j) : launch_apart<V, 4, E>(call, j);
}

/* gradInput at an address that is no multiple of a group is written cell by cell. */
template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  constexpr int V = 16 / sizeof(E);
  const avg_job j = avg_job_of(call);
  if (has_groups(j.pool.w, V) && (uintptr_t)j.in % 16 == 0) return run_groups<V, E>(call, j);
  if constexpr (V > 4)
    if (has_groups(j.pool.w, V / 2) && (uintptr_t)j.in % 8 == 0)
      return run_groups<V / 2, E>(call, j);
  return launch_apart<1, 1, E>(call, j);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_avg_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_tiles) = {"tiles", fits, nullptr, run, nullptr};
