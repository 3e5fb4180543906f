/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD where windows tile the plane and its rows are whole words: a thread divides the outputs of
 * 16 (or 8) bytes of a row, once, and writes those bytes to every row of their windows. */
#include "cuda/spread.cuh"

enum { THREADS = 256, MOST_ROWS = 64 /* of a window, or too few threads would write too much */ };

struct apart_plan {
  int64_t tasks;
  bool flat_out, same; /* same: all divisors are */
  float divisor;
  pg_divider by_groups, by_out_h, by_out_d;
};

/* Cells of the o-th window along an axis. */
static __device__ __forceinline__ pg_span cells_of(const pg_axis_32 &a, uint32_t o) {
  return {(int32_t)o * a.stride, min((int32_t)o * a.stride + a.stride, a.in)};
}

/* The quotients of N outputs from ow on. */
template <int N, typename E>
static __device__ __forceinline__ void divide(const spread_job &j, const apart_plan &s,
                                              const E *grad, int32_t outer, uint32_t ow,
                                              float *term) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    const float g = ow + i < (uint32_t)j.w.out ? widened(grad[(uint32_t)i * j.grad_step]) : 0.0f;
    const float divisor = s.same ? s.divisor : (float)(outer * length(cells_of(j.w, ow + i)));
    term[i] = 0.0f + g / divisor;
  }
}

/* V cells of a row are N outputs'. */
template <int V, int N, typename E>
static __global__ void __launch_bounds__(THREADS)
    spread_apart(const __grid_constant__ spread_job j, const __grid_constant__ apart_plan s) {
  const uint32_t task = blockIdx.x * THREADS + threadIdx.x;
  if (task >= s.tasks) return;
  const uint32_t row = over(task, s.by_groups), x = V * (task - row * s.by_groups.by);
  const uint32_t slice = over(row, s.by_out_h), oh = row - slice * s.by_out_h.by;
  const uint32_t plane = over(slice, s.by_out_d), od = slice - plane * s.by_out_d.by;
  const uint32_t ow = over(x, j.w.first);
  const pg_span d = cells_of(j.d, od), h = cells_of(j.h, oh);
  const E *grad = (const E *)j.grad;
  if (s.flat_out) {
    grad += (int64_t)row * j.w.out + ow;
  } else {
    const uint32_t n = over(plane, j.by_c);
    grad += offset(j.grad_at, n, plane - n * j.by_c.by, od, oh, ow);
  }
  float term[N], sum[V];
  divide<N>(j, s, grad, length(d) * length(h), ow, term);
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] = term[i * N / V];
  E *out = (E *)j.in + (int64_t)plane * j.cells + x;
  for (int32_t a = d.begin; a < d.end; a++) {
    E *to = out + (int64_t)((a * j.h.in + h.begin) * j.w.in);
    for (int32_t b = h.begin; b < h.end; b++, to += j.w.in) put_vector<V>(to, sum, j.stream);
  }
}

/* --- On the host --- */

/* Do windows cover the axis, one after the other?  The last may be cut. */
static bool tiles(const pg_axis_32 &a) {
  return a.stride > 0 && a.pad == 0 && a.reach + 1 == a.stride && a.out > 0 &&
         (int64_t)a.out * a.stride >= a.in;
}

static bool tiles_exactly(const pg_axis_32 &a) { return (int64_t)a.out * a.stride == a.in; }

template <int V, int N, typename E>
static cudaError_t launch_apart(const pg_cuda_call *call, const spread_job &j,
                                const apart_plan &s) {
  return launch(call, spread_apart<V, N, E>, (s.tasks + THREADS - 1) / THREADS, THREADS, 0, j, s);
}

/* Writes V cells at a time if rows are made of such, V cells of whole windows or windows of whole V
 * cells. */
template <int V, typename E>
static bool try_apart(const pg_cuda_call *call, const spread_job &j, cudaError_t *status) {
  const pg_pooling &p = j.pool;
  const int64_t kernel = j.w.stride, wide = V * (int64_t)sizeof(E);
  if (p.w.in % V != 0 || (uintptr_t)j.in % wide != 0) return false;
  const bool whole = kernel % V == 0, half = kernel * 2 == V, quarter = kernel * 4 == V;
  if (!whole && !half && !quarter) return false;
  apart_plan s = {};
  const int64_t groups = p.w.in / V;
  if (p.n * p.c * p.d.out * p.h.out >= ((int64_t)1 << 31) / groups) return false;
  s.tasks = p.n * p.c * p.d.out * p.h.out * groups;
  s.flat_out = is_flat(j.grad_at, p.d.out, p.h.out, p.w.out, p.c, p.n);
  s.same = j.divisor != 0 || (tiles_exactly(j.d) && tiles_exactly(j.h) && tiles_exactly(j.w));
  s.divisor =
      j.divisor != 0 ? (float)j.divisor : (float)((int64_t)j.d.stride * j.h.stride * j.w.stride);
  s.by_groups = divider_of(groups);
  s.by_out_h = divider_of(p.h.out);
  s.by_out_d = divider_of(p.d.out);
  *status = whole  ? launch_apart<V, 1, E>(call, j, s)
            : half ? launch_apart<V, 2, E>(call, j, s)
                   : launch_apart<V, 4, E>(call, j, s);
  return true;
}

template <typename E>
static bool try_type(const pg_cuda_call *call, cudaError_t *status) {
  const spread_job j = spread_job_of(call, sizeof(E));
  if (!j.narrow || !j.flat_in || most_divisor(j) == INT64_MAX) return false;
  if (!tiles(j.d) || !tiles(j.h) || !tiles(j.w)) return false;
  if ((int64_t)j.d.stride * j.h.stride > MOST_ROWS) return false;
  constexpr int V = 16 / sizeof(E);
  if (try_apart<V, E>(call, j, status)) return true;
  if constexpr (V > 4) return try_apart<V / 2, E>(call, j, status);
  return false;
}

bool pg_cuda_try_spread_apart(const pg_cuda_call *call, cudaError_t *status) {
  return try_spread_type(call->task, [&](auto e) { return try_type<decltype(e)>(call, status); });
}
