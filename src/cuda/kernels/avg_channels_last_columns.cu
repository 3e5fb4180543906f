/* SPDX-License-Identifier: Apache-2.0 */
/* SPREAD of the usual pools where channels lie next to each other: threads march, see
 * last_march.cuh.
 *
 * A row's outputs are divided and added along W once, and those sums go to the rows of cells that
 * the windows cover.  Divisions are products with the reciprocal and a correction, which gives the
 * correctly rounded quotient: docs/numerics.md.  A thread that saw an output for which it may not
 * makes its cells again, with divisions. */
#include "cuda/kernels/channels_last_columns.cuh"
#include "cuda/kernels/avg_job.cuh"

/* May the reciprocal be used?  fp16 has nothing smaller than 2^-24.  A NaN stays one. */
static __device__ __forceinline__ bool is_plain(pg_f16, float g) {
  return !(fabsf(g) == __uint_as_float(0x7f800000));
}
template <typename E>
static __device__ __forceinline__ bool is_plain(E, float g) {
  const float size = fabsf(g);
  return size != __uint_as_float(0x7f800000) && (!(size < 0x1p-100f) || g == 0);
}

/* As extent, where windows have K cells. */
template <int K, int S>
static __device__ __forceinline__ int32_t counted(const pg_axis_32 &a, int32_t o, bool with_pad) {
  const int32_t begin = S * o - a.pad, more = with_pad ? a.pad : 0;
  return min(begin + K, a.in + more) - max(begin, -more);
}

/* Windows of K cells, S apart.  A thread's cells are those of X outputs of a row, beginning with
 * the P-th of the first one's window; N outputs hold them, LEFT of them before those. */
template <int K, int S, int P, int X, typename E>
struct spreader {
  enum { LEFT = (K - 1 - P) / S, N = LEFT + X + (S - 1 + P) / S, KEPT = K - S, CELLS = S * X };

  const E *grad;
  E *out;
  int32_t step[N]; /* to the outputs */
  bool there[N], written[CELLS];
  float width[N], divisor[N], reciprocal[N];
  int32_t height; /* that these divisors are for */
  bool plain;     /* all of what was seen */
  float kept[KEPT + 1][CELLS][FOUR];

  __device__ __forceinline__ spreader(const avg_job &j, const march &m, int32_t row);
  template <bool EXACT>
  __device__ __forceinline__ void look(const avg_job &j, int32_t row, float (*term)[FOUR]);
  __device__ __forceinline__ void add(const avg_job &j, const float (*row_sum)[FOUR], int32_t row,
                                      bool write);
};

template <int K, int S, int P, int X, typename E>
__device__ __forceinline__ spreader<K, S, P, X, E>::spreader(const avg_job &j, const march &m,
                                                             int32_t row)
    : height(0), plain(true) {
  const int32_t own = m.column * X, w = S * own - j.w.pad + P;
  grad = (const E *)j.grad + offset(j.grad_strides, m.n, m.c, 0, row, min(own, j.w.out - 1));
  out = (E *)j.in + offset(j.in_strides, m.n, m.c, 0, S * row - j.h.pad, w);
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int32_t at = own + i - LEFT, near = min(max(at, 0), j.w.out - 1);
    there[i] = at == near;
    step[i] = (near - min(own, j.w.out - 1)) * j.grad_w_stride;
    width[i] = (float)(j.divisor != 0 ? j.divisor : counted<K, S>(j.w, near, j.count_include_pad));
  }
#pragma unroll
  for (int x = 0; x < CELLS; x++) written[x] = (uint32_t)(w + x) < (uint32_t)j.w.in && !m.idle;
#pragma unroll
  for (int i = 0; i < KEPT * CELLS * FOUR; i++)
    kept[i / FOUR / CELLS][i / FOUR % CELLS][i % FOUR] = 0;
}

/* The terms of a row of outputs.  None is -0: a product that is gets corrected by +0. */
template <int K, int S, int P, int X, typename E>
template <bool EXACT>
__device__ __forceinline__ void spreader<K, S, P, X, E>::look(const avg_job &j, int32_t row,
                                                              float (*term)[FOUR]) {
  const int32_t tall = j.divisor != 0 ? 1 : counted<K, S>(j.h, row, j.count_include_pad);
  four_of<E> four[N];
#pragma unroll
  for (int i = 0; i < N; i++) four[i] = load_four_if(there[i], grad + step[i]);
  grad += j.grad_strides.of[PG_H];
  if (tall != height) {
    height = tall;
#pragma unroll
    for (int i = 0; i < N; i++) {
      divisor[i] = width[i] * (float)tall;
      reciprocal[i] = __frcp_rn(divisor[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < N * FOUR; i++) {
    const int k = i / FOUR, v = i % FOUR;
    const float g = channel(four[k], v), guess = __fmul_rn(g, reciprocal[k]);
    plain = plain && is_plain(E(), g);
    term[k][v] = EXACT ? 0.0f + __fdiv_rn(g, divisor[k])
                       : __fmaf_rn(__fmaf_rn(-guess, divisor[k], g), reciprocal[k], guess);
  }
}

/* A row's sums to the rows of cells; what is complete is written. */
template <int K, int S, int P, int X, typename E>
__device__ __forceinline__ void spreader<K, S, P, X, E>::add(const avg_job &j,
                                                             const float (*row_sum)[FOUR],
                                                             int32_t row, bool write) {
  const int32_t h = S * row - j.h.pad;
#pragma unroll
  for (int y = 0; y < K; y++) {
    float sum[CELLS][FOUR];
#pragma unroll
    for (int i = 0; i < CELLS * FOUR; i++) {
      const int x = i / FOUR, v = i % FOUR;
      sum[x][v] = y < KEPT ? kept[y % (KEPT + 1)][x][v] + row_sum[x][v] : row_sum[x][v];
      if (y >= S) kept[y < S ? 0 : y - S][x][v] = sum[x][v];
    }
#pragma unroll
    for (int x = 0; x < CELLS; x++)
      if (y < S && write && (uint32_t)(h + y) < (uint32_t)j.h.in && written[x])
        put_four(out + y * j.in_strides.of[PG_H] + x * j.in_strides.of[PG_W], sum[x]);
  }
  out += S * j.in_strides.of[PG_H];
}

/* False if not all was plain, and EXACT wanted.  Sums begin with a term, or a sum of such, instead
 * of +0: none of those is -0. */
template <bool EXACT, int K, int S, int P, int X, typename E>
static __device__ __forceinline__ bool spread_down(const avg_job &j, const march &m) {
  typedef spreader<K, S, P, X, E> M;
  enum { BEFORE = (K - 1) / S }; /* rows of outputs that give to the chunk's first */
  int32_t row = max(m.begin - BEFORE, 0);
  M a(j, m, row);
#pragma unroll 1
  for (; row < min(m.end, j.h.out); row++) {
    float term[M::N][FOUR], row_sum[M::CELLS][FOUR];
    a.template look<EXACT>(j, row, term);
#pragma unroll
    for (int i = 0; i < M::CELLS * FOUR; i++) {
      float sum = 0;
      bool first = true;
#pragma unroll
      for (int k = 0; k < M::N; k++) {
        const int tap = i / FOUR + P - S * (k - M::LEFT);
        if (tap < 0 || tap >= K) continue;
        sum = first ? term[k][i % FOUR] : sum + term[k][i % FOUR];
        first = false;
      }
      row_sum[i / FOUR][i % FOUR] = sum;
    }
    a.add(j, row_sum, row, row >= m.begin);
  }
  const float nothing[M::CELLS][FOUR] = {};
#pragma unroll 1
  for (; row < m.end; row++) a.add(j, nothing, row, row >= m.begin);
  return a.plain;
}

/* Not inlined: what is rare shall not take registers from what is not. */
template <int K, int S, int P, int X, typename E>
static __device__ __noinline__ void spread_exactly(const avg_job &j, const channel_march_plan &p) {
  spread_down<true, K, S, P, X, E>(j, march_of(p, j.cut.c, blockIdx.x));
}

template <int K, int S, int P, int X, typename E>
static __global__ void __launch_bounds__(MARCH_THREADS, MARCH_BLOCKS)
    spread_march(const __grid_constant__ avg_job j, const __grid_constant__ channel_march_plan p) {
  const march m = march_of(p, j.cut.c, blockIdx.x);
  const bool plain = spread_down<false, K, S, P, X, E>(j, m);
  if (!plain) spread_exactly<K, S, P, X, E>(j, p);
}

/* --- On the host --- */

enum { WANTED_THREADS = 4096 /* of a processor */, MOST_DIVISOR = 1 << 20 };

/* How a thread's cells lie in its output's window, and of how many outputs they are; false: these
 * windows are not for this method. */
static bool shape_of(const pg_pooling &p, int *lead, int *across) {
  *lead = both_slide(p, 3, 2) && p.w.pad >= 1;
  *across = both_slide(p, 3, 1) || both_slide(p, 2, 1) ? 2 : 1;
  return *across == 2 || both_slide(p, 2, 2) || both_slide(p, 3, 2);
}

/* Threads of a block, 0 if this method is not for it. */
static int plan_of(const pg_pooling &p, const pg_tiling &tiling, channel_march_plan *plan) {
  const int64_t wanted = (int64_t)WANTED_THREADS * pg_cuda_least_limits()->processors;
  int lead, across;
  if (!shape_of(p, &lead, &across)) return 0;
  return march_plan_of(p, tiling, false, lead, across, MARCH_THREADS, wanted, plan);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_avg_backward &a = problem->args.avg_backward;
  channel_march_plan plan;
  if (!f.channels_last || problem->dtype == ACL_DOUBLE || !fits_avg_32_bits(*problem)) return false;
  if (f.has_depth || f.pool.d.kernel > 1 || f.pool.d.pad != 0) return false;
  if (a.divisor < 0 || a.divisor > MOST_DIVISOR || a.out_strides.of[PG_W] > INT32_MAX / 8)
    return false;
  if (!has_vectors(a.in_strides, f.pool.c, FOUR) || !has_vectors(a.out_strides, f.pool.c, FOUR))
    return false;
  *tiling = tile_avg_channels(f);
  return plan_of(f.pool, *tiling, &plan) != 0;
}

template <int K, int S, int P, int X, typename E>
static cudaError_t march_as(const pg_cuda_call *call, const avg_job &j) {
  channel_march_plan p;
  const int threads = plan_of(j.pool, j.tiling, &p);
  return launch(call, spread_march<K, S, P, X, E>, march_blocks(p, j.pool.n), threads, 0, j, p);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const avg_job j = avg_job_of(call);
  const pg_axis &w = j.pool.w;
  if (w.kernel == 2)
    return w.stride == 2 ? march_as<2, 2, 0, 1, E>(call, j) : march_as<2, 1, 0, 2, E>(call, j);
  if (w.stride == 1) return march_as<3, 1, 0, 2, E>(call, j);
  return w.pad >= 1 ? march_as<3, 2, 1, 1, E>(call, j) : march_as<3, 2, 0, 1, E>(call, j);
}

static bool is_aligned(const pg_problem &problem) {
  const pg_avg_backward &a = problem.args.avg_backward;
  const uintptr_t bytes = (uintptr_t)(FOUR * element_bytes(problem));
  return (uintptr_t)a.grad_in % bytes == 0 && (uintptr_t)a.grad_out % bytes == 0;
}

/* The other method for channels that lie next to each other cuts a call into the same items. */
static cudaError_t run(const pg_cuda_call *call) {
  if (!is_aligned(call->task->problem)) return pg_cuda_avg_channels_last_cells.run(call);
  return with_avg_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_channels_last_columns) = {"channels_last_columns", fits, nullptr, run, nullptr};
