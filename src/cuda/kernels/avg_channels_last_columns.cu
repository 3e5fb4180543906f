/* SPDX-License-Identifier: Apache-2.0 */
/* Averages whose channels are neighbours in memory, with the usual windows: 2 x 2 or 3 x 3 cells,
 * 1 or 2 apart, in two dimensions.
 *
 * Threads walk down columns; channels_last_columns.cuh explains how.  A row's outputs are divided
 * once and their quotients added along W once; these sums are then added to the K rows of cells
 * that the windows hold.  Where windows are 1 apart, a thread has two columns and divides
 * the outputs that touch both of them once.  Divisions are products with the reciprocal and a
 * correction, which give the bits of a division for all but tiny and infinite gradients
 * (quotient.cuh).  A thread that saw such a gradient computes its cells again with divisions.
 *
 * Doubles are left to avg_any, and tensors whose addresses are not aligned to avg_strips. */
#include "cuda/kernels/channels_last_columns.cuh"
#include "cuda/kernels/avg_job.cuh"
#include "cuda/kernels/quotient.cuh"

enum { MOST_THREADS = 256 /* of a block */, BLOCKS_PER_SM = 4 /* which have 64 registers */ };

/* As extent, where windows have K cells and are S apart. */
template <int K, int S>
static __device__ __forceinline__ int32_t counted_cells(const pg_axis_32 &a, int32_t o,
                                                        bool with_pad) {
  const int32_t begin = S * o - a.pad, more = with_pad ? a.pad : 0;
  return min(begin + K, a.in + more) - max(begin, -more);
}

/* A thread's walk down X columns of windows of K x K cells, S apart.  Its cells begin with cell
 * LEAD of the window of its first own output.  N outputs of a row touch its cells, LEFT of them
 * before its own X.  Sums begin with a quotient, or a sum of such, instead of +0: none is -0. */
template <int K, int S, int LEAD, int X, typename E>
struct avg_walk {
  enum { LEFT = (K - 1 - LEAD) / S, N = LEFT + X + (S - 1 + LEAD) / S };
  enum { PENDING = K - S, CELLS = S * X /* of a row */ };

  const E *grad;
  E *out;
  int32_t to_grad[N]; /* distances of the outputs from `grad` */
  bool exists[N], writes[CELLS];
  float width[N]; /* counted cells of their windows along W, or the divisor that the call gives */
  int32_t height; /* counted cells along H, which `divisor` is for */
  pg_divisor divisor[N];
  pg_seen<E> seen;
  float pending[PENDING + 1][CELLS][CHANNELS]; /* sums of rows of cells not complete yet */

  __device__ __forceinline__ avg_walk(const avg_job &j, const channel_walk &walk, int32_t row);
  template <bool EXACT>
  __device__ __forceinline__ void load_quotients(const avg_job &j, int32_t row,
                                                 float (*quotients)[CHANNELS]);
  static __device__ __forceinline__ void expand(const float (*quotients)[CHANNELS],
                                                float (*row_sum)[CHANNELS]);
  __device__ __forceinline__ void add(const avg_job &j, const float (*row_sum)[CHANNELS],
                                      int32_t row, bool write);
};

template <int K, int S, int LEAD, int X, typename E>
__device__ __forceinline__ avg_walk<K, S, LEAD, X, E>::avg_walk(const avg_job &j,
                                                                const channel_walk &walk,
                                                                int32_t row)
    : height(0) {
  const int32_t own = walk.column * X, last = j.w.out - 1, w = S * own - j.w.pad + LEAD;
  grad = (const E *)j.grad + offset(j.grad_strides, walk.n, walk.c, 0, row, min(own, last));
  out = (E *)j.in + offset(j.in_strides, walk.n, walk.c, 0, S * row - j.h.pad, w);
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int32_t ow = own + i - LEFT, near = min(max(ow, 0), last);
    exists[i] = ow == near;
    to_grad[i] = (near - min(own, last)) * j.grad_w_stride;
    width[i] =
        (float)(j.divisor != 0 ? j.divisor : counted_cells<K, S>(j.w, near, j.count_include_pad));
  }
#pragma unroll
  for (int x = 0; x < CELLS; x++) writes[x] = (uint32_t)(w + x) < (uint32_t)j.w.in && !walk.idle;
#pragma unroll
  for (int i = 0; i < PENDING * CELLS * CHANNELS; i++)
    pending[i / CHANNELS / CELLS][i / CHANNELS % CELLS][i % CHANNELS] = 0;
}

/* Reads a row's outputs and divides them. */
template <int K, int S, int LEAD, int X, typename E>
template <bool EXACT>
__device__ __forceinline__ void avg_walk<K, S, LEAD, X, E>::load_quotients(
    const avg_job &j, int32_t row, float (*quotients)[CHANNELS]) {
  const int32_t tall = j.divisor != 0 ? 1 : counted_cells<K, S>(j.h, row, j.count_include_pad);
  channel_words<E> grads[N];
#pragma unroll
  for (int i = 0; i < N; i++) grads[i] = load_channels_if(exists[i], grad + to_grad[i]);
  grad += j.grad_strides.of[PG_H];
  if (tall != height) {
    height = tall;
#pragma unroll
    for (int i = 0; i < N; i++) {
      const float by = width[i] * (float)tall;
      divisor[i] = {by, __frcp_rn(by)};
    }
  }
#pragma unroll
  for (int i = 0; i < N * CHANNELS; i++) {
    const int k = i / CHANNELS, v = i % CHANNELS;
    const float g = channel(grads[k], v);
    seen.note(g);
    quotients[k][v] = EXACT ? true_quotient(g, divisor[k]) : quotient(g, divisor[k]);
  }
}

/* Adds quotients along W: row_sum[x] is the sum of those whose windows hold the x-th cell. */
template <int K, int S, int LEAD, int X, typename E>
__device__ __forceinline__ void avg_walk<K, S, LEAD, X, E>::expand(
    const float (*quotients)[CHANNELS], float (*row_sum)[CHANNELS]) {
#pragma unroll
  for (int i = 0; i < CELLS * CHANNELS; i++) {
    const int x = i / CHANNELS, v = i % CHANNELS;
    float sum = 0;
    bool first = true;
#pragma unroll
    for (int k = 0; k < N; k++) {
      const int tap = x + LEAD - S * (k - LEFT);
      if (tap < 0 || tap >= K) continue;
      sum = first ? quotients[k][v] : sum + quotients[k][v];
      first = false;
    }
    row_sum[x][v] = sum;
  }
}

/* Adds a row's sums to the rows of cells, and writes those that are complete then. */
template <int K, int S, int LEAD, int X, typename E>
__device__ __forceinline__ void avg_walk<K, S, LEAD, X, E>::add(const avg_job &j,
                                                                const float (*row_sum)[CHANNELS],
                                                                int32_t row, bool write) {
  const int32_t h = S * row - j.h.pad;
#pragma unroll
  for (int y = 0; y < K; y++) {
    float sum[CELLS][CHANNELS];
#pragma unroll
    for (int i = 0; i < CELLS * CHANNELS; i++) {
      const int x = i / CHANNELS, v = i % CHANNELS;
      sum[x][v] = y < PENDING ? pending[y % (PENDING + 1)][x][v] + row_sum[x][v] : row_sum[x][v];
      if (y >= S) pending[y < S ? 0 : y - S][x][v] = sum[x][v];
    }
#pragma unroll
    for (int x = 0; x < CELLS; x++)
      if (y < S && write && (uint32_t)(h + y) < (uint32_t)j.h.in && writes[x])
        write_channels(out + y * j.in_strides.of[PG_H] + x * j.in_strides.of[PG_W], sum[x]);
  }
  out += S * j.in_strides.of[PG_H];
}

/* --- Columns --- */

/* True if a gradient needs EXACT divisions. */
template <bool EXACT, int K, int S, int LEAD, int X, typename E>
static __device__ __forceinline__ bool walk_down(const avg_job &j, const channel_walk &walk) {
  typedef avg_walk<K, S, LEAD, X, E> walk_type;
  enum { BEFORE = (K - 1) / S }; /* rows of outputs before the chunk that touch its first cells */
  int32_t row = max(walk.begin - BEFORE, 0);
  walk_type s(j, walk, row);
#pragma unroll 1
  for (; row < min(walk.end, j.h.out); row++) {
    float quotients[walk_type::N][CHANNELS], row_sum[walk_type::CELLS][CHANNELS];
    s.template load_quotients<EXACT>(j, row, quotients);
    walk_type::expand(quotients, row_sum);
    s.add(j, row_sum, row, row >= walk.begin);
  }
  const float zeros[walk_type::CELLS][CHANNELS] = {};
#pragma unroll 1
  for (; row < walk.end; row++) s.add(j, zeros, row, row >= walk.begin);
  return s.seen.odd();
}

/* Not inlined, because it seldom runs and would take registers from what often does. */
template <int K, int S, int LEAD, int X, typename E>
static __device__ __noinline__ void walk_down_exactly(const avg_job &j,
                                                      const channel_walk_plan &p) {
  walk_down<true, K, S, LEAD, X, E>(j, channel_walk_of(p, j.cut.c, blockIdx.x));
}

template <int K, int S, int LEAD, int X, typename E>
static __global__ void __launch_bounds__(MOST_THREADS, BLOCKS_PER_SM)
    avg_channels_last_columns(const __grid_constant__ avg_job j,
                              const __grid_constant__ channel_walk_plan p) {
  const channel_walk walk = channel_walk_of(p, j.cut.c, blockIdx.x);
  if (walk_down<false, K, S, LEAD, X, E>(j, walk)) walk_down_exactly<K, S, LEAD, X, E>(j, p);
}

/* --- On the host --- */

static bool has_usual_windows(const pg_pooling &p) {
  return has_square_windows(p, 2, 1) || has_square_windows(p, 2, 2) ||
         has_square_windows(p, 3, 1) || has_square_windows(p, 3, 2);
}

static channel_walk_plan plan_of(const pg_pooling &p, const pg_tiling &tiling) {
  const int64_t lead = p.w.kernel == 3 && p.w.stride == 2 && p.w.pad >= 1;
  return channel_walk_plan_of(p, tiling, {false, lead, p.w.stride == 1 ? 2 : 1, MOST_THREADS});
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_avg_backward &a = problem->args.avg_backward;
  if (!f.channels_last || problem->dtype == ACL_DOUBLE || !fits_avg_32_bits(*problem)) return false;
  if (f.has_depth || f.pool.d.kernel > 1 || f.pool.d.pad != 0) return false;
  if (a.divisor < 0 || a.divisor > MOST_DIVISOR || a.out_strides.of[PG_W] > INT32_MAX / 8)
    return false;
  if (!has_vectors(a.in_strides, f.pool.c, CHANNELS) ||
      !has_vectors(a.out_strides, f.pool.c, CHANNELS))
    return false;
  *tiling = tile_avg_channels(f);
  return has_usual_windows(f.pool) && plan_of(f.pool, *tiling).block_threads != 0;
}

template <int K, int S, int LEAD, int X, typename E>
static cudaError_t run_windows(const pg_cuda_call *call, const avg_job &j) {
  const channel_walk_plan p = plan_of(j.pool, j.tiling);
  return launch(call, avg_channels_last_columns<K, S, LEAD, X, E>, walk_blocks(p, j.pool.n),
                p.block_threads, 0, j, p);
}

template <typename E>
static cudaError_t run_as(const pg_cuda_call *call) {
  const avg_job j = avg_job_of(call);
  const pg_axis &w = j.pool.w;
  if (w.kernel == 2)
    return w.stride == 2 ? run_windows<2, 2, 0, 1, E>(call, j)
                         : run_windows<2, 1, 0, 2, E>(call, j);
  if (w.stride == 1) return run_windows<3, 1, 0, 2, E>(call, j);
  return w.pad >= 1 ? run_windows<3, 2, 1, 1, E>(call, j) : run_windows<3, 2, 0, 1, E>(call, j);
}

static bool is_aligned(const pg_problem &problem) {
  const pg_avg_backward &a = problem.args.avg_backward;
  const uintptr_t bytes = (uintptr_t)(CHANNELS * element_bytes(problem));
  return (uintptr_t)a.grad_in % bytes == 0 && (uintptr_t)a.grad_out % bytes == 0;
}

static cudaError_t run(const pg_cuda_call *call) {
  if (!is_aligned(call->task->problem)) return pg_cuda_avg_strips.run(call);
  return with_fp32_type(call, [call](auto e) { return run_as<decltype(e)>(call); });
}

PG_CUDA_METHOD(avg_channels_last_columns) = {"channels_last_columns", fits, nullptr, run, nullptr};
