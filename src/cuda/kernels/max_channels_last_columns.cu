/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER of the usual pools where channels lie next to each other: threads march, see
 * last_march.cuh.
 *
 * Indices are compared in 32 bits.  A thread only notices that one of its column's points out of
 * its window: the column is then gone through again to tell of those, and where planes are whole
 * the block makes its item again. */
#include "cuda/kernels/max_any.cuh"
#include "cuda/kernels/channels_last_columns.cuh"

enum {
  SCATTER_THREADS = 224, /* most of a block: five blocks have 56 registers, four have 72 */
  MARCH_BOX = 16         /* cells of a warp's box of sums, where an item is made again */
};

/* The N outputs of a row that hold a thread's cells, four channels of each.  Indices count from
 * the first cell that the thread gives to. */
template <int N>
struct seen {
  uint32_t index[N][FOUR];
  float grad[N][FOUR];
};

/* Windows of K cells, S apart; a thread's cells begin with the P-th of its output's window.  Its
 * outputs are LEFT and N - 1 - LEFT columns around its own. */
template <int K, int S, int P, typename E, typename I>
struct marcher {
  enum { LEFT = (K - 1 - P) / S, N = LEFT + 1 + (S - 1 + P) / S, KEPT = K - S };

  const I *index;
  const E *grad;
  E *out;
  bool there[N], written[S];   /* outputs; cells */
  uint32_t first;              /* the cell at `out`, if it is one, within the plane */
  uint32_t lead, width;        /* cells of the own output's window before that; of its rows */
  uint32_t far, largest, high; /* of what was seen: the most out of a window, and of a plane */
  float kept[KEPT + 1][S][FOUR];

  __device__ __forceinline__ marcher(const max_job &j, const march &m, int32_t row);
  __device__ __forceinline__ void look(const max_job &j, seen<N> *o);
  __device__ __forceinline__ void check(const max_job &j, const seen<N> &o);
  template <bool OUTPUTS>
  __device__ __forceinline__ void add(const max_job &j, const seen<N> &o, int32_t row, bool write);
};

template <int K, int S, int P, typename E, typename I>
__device__ __forceinline__ marcher<K, S, P, E, I>::marcher(const max_job &j, const march &m,
                                                           int32_t row)
    : far(0), largest(0), high(0) {
  const int32_t window = S * m.column - j.w.pad;
  const int32_t h = S * row - j.h.pad, w = window + P;
  first = (uint32_t)h * (uint32_t)j.w.in + (uint32_t)w;
  lead = (uint32_t)(w - max(window, 0));
  width = (uint32_t)(min(window + K, j.w.in) - max(window, 0));
  index = (const I *)j.index + offset(j.index_strides, m.n, m.c, 0, row, m.column);
  grad = (const E *)j.grad + offset(j.grad_strides, m.n, m.c, 0, row, m.column);
  out = (E *)j.in + offset(j.in_strides, m.n, m.c, 0, h, w);
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int32_t at = m.column + i - LEFT;
    there[i] = at >= 0 && at < j.w.out && !m.idle;
  }
#pragma unroll
  for (int x = 0; x < S; x++) written[x] = (uint32_t)(w + x) < (uint32_t)j.w.in && !m.idle;
#pragma unroll
  for (int i = 0; i < KEPT * S * FOUR; i++) kept[i / FOUR / S][i / FOUR % S][i % FOUR] = 0;
}

/* What is not there has some index, and the gradient 0.  High words are looked at wherever they
 * were read, lest the compiler reads words one by one. */
template <int K, int S, int P, typename E, typename I>
__device__ __forceinline__ void marcher<K, S, P, E, I>::look(const max_job &j, seen<N> *o) {
  vector_of<I, FOUR> read[N];
  four_of<E> four[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int32_t to_index = (i - LEFT) * (int32_t)j.index_strides.of[PG_W];
    const int32_t to_grad = (i - LEFT) * (int32_t)j.grad_strides.of[PG_W];
    read[i].load(there[i] ? index + to_index : (const I *)j.index);
    four[i] = load_four_if(there[i], grad + to_grad);
  }
  index += j.index_strides.of[PG_H];
  grad += j.grad_strides.of[PG_H];
#pragma unroll
  for (int i = 0; i < N * FOUR; i++) {
    const int k = i / FOUR, v = i % FOUR;
    const uint32_t at = (uint32_t)read[k].of[v];
    if (sizeof(I) == 8) high |= (uint32_t)((uint64_t)read[k].of[v] >> 32);
    if (k == LEFT) largest = umax(largest, at);
    o->index[k][v] = at - first;
    o->grad[k][v] = channel(four[k], v);
  }
}

/* Its own output.  The least distance over the window's rows says whether an index is in one of
 * them; those may lie above or below the plane. */
template <int K, int S, int P, typename E, typename I>
__device__ __forceinline__ void marcher<K, S, P, E, I>::check(const max_job &j, const seen<N> &o) {
#pragma unroll
  for (int v = 0; v < FOUR; v++) {
    const uint32_t in_first = o.index[LEFT][v] + lead;
    uint32_t rest = in_first;
#pragma unroll
    for (int y = 1; y < K; y++) rest = umin(rest, in_first - (uint32_t)(y * j.w.in));
    far = umax(far, rest);
  }
}

/* A row's outputs, if there are such, to the cells that they name; what is complete is written. */
template <int K, int S, int P, typename E, typename I>
template <bool OUTPUTS>
__device__ __forceinline__ void marcher<K, S, P, E, I>::add(const max_job &j, const seen<N> &o,
                                                            int32_t row, bool write) {
  const int32_t h = S * row - j.h.pad;
#pragma unroll
  for (int y = 0; y < K; y++) {
    float sum[S][FOUR];
#pragma unroll
    for (int i = 0; i < S * FOUR; i++) {
      const int x = i / FOUR, v = i % FOUR;
      sum[x][v] = y < KEPT ? kept[y % (KEPT + 1)][x][v] : 0;
#pragma unroll
      for (int k = 0; k < (OUTPUTS ? N : 0); k++) {
        const int tap = x + P - S * (k - LEFT);
        const uint32_t name = (uint32_t)(y * j.w.in + x);
        if (tap >= 0 && tap < K && o.index[k][v] == name) sum[x][v] += o.grad[k][v];
      }
      if (y >= S) kept[y < S ? 0 : y - S][x][v] = sum[x][v];
    }
#pragma unroll
    for (int x = 0; x < S; x++)
      if (y < S && write && (uint32_t)(h + y) < (uint32_t)j.h.in && written[x])
        put_four(out + y * j.in_strides.of[PG_H] + x * j.in_strides.of[PG_W], sum[x]);
  }
  out += S * j.in_strides.of[PG_H];
  first += (uint32_t)(S * j.w.in);
}

/* True if something was unusual. */
template <int K, int S, int P, typename E, typename I>
static __device__ __forceinline__ bool march_down(const max_job &j, const march &m) {
  typedef marcher<K, S, P, E, I> M;
  enum { BEFORE = (K - 1) / S }; /* rows of outputs that give to the chunk's first */
  int32_t row = max(m.begin - BEFORE, 0);
  M a(j, m, row);
  const int32_t stop = min(m.end, j.h.out);
  seen<M::N> o;
#pragma unroll 1
  for (; row < stop; row++) {
    a.look(j, &o);
    a.check(j, o);
    a.template add<true>(j, o, row, row >= m.begin);
  }
#pragma unroll 1
  for (; row < m.end; row++) a.template add<false>(j, o, row, row >= m.begin);
  return a.there[M::LEFT] && (a.far >= a.width || a.largest >= j.cells || a.high != 0);
}

/* Not inlined: what is rare shall not take registers from what is not. */
static __device__ __noinline__ void tell_column(const max_job &j, const channel_march_plan &p,
                                                bad_indices *found) {
  const march m = march_of(p, j.cut.c, blockIdx.x);
  if (threadIdx.x % 32 == 0) clear(found);
  __syncwarp();
  if (!m.idle && m.column < j.w.out)
    for (int32_t row = m.begin; row < min(m.end, j.h.out); row++)
      check_channels<FOUR>(j, {m.n, m.c, 0, row, m.column}, found);
  __syncwarp();
  if (threadIdx.x % 32 == 0) report(j, found);
}

static __device__ __noinline__ void make_whole(const max_job &j, bad_indices *found) {
  if (threadIdx.x == 0) clear(found);
  __syncthreads();
  compute_item(j, blockIdx.x, MARCH_BOX, found);
  __syncthreads();
  if (threadIdx.x == 0) report(j, found);
}

template <int K, int S, int P, typename E, typename I>
static __global__ void __launch_bounds__(SCATTER_THREADS,
                                         K > S + 1 || sizeof(E) + sizeof(I) > 10 ? 4 : 5)
    scatter_march(const __grid_constant__ max_job j, const __grid_constant__ channel_march_plan p) {
  __shared__ bad_indices found[SCATTER_THREADS / 32];
  bool unusual = false;
  for (uint32_t i = 0; i < p.pieces; i++) {
    const march m = march_of(p, j.cut.c, blockIdx.x * p.pieces + i);
    unusual |= march_down<K, S, P, E, I>(j, m);
  }
  if (j.flags == nullptr) {
    if (__syncthreads_or(unusual)) make_whole(j, found);
  } else if (__any_sync(~0u, unusual)) {
    tell_column(j, p, found + threadIdx.x / 32);
  }
}

/* --- On the host --- */

enum { WANTED_THREADS = 4096 /* of a processor */ };

/* How a thread's cells lie in its output's window; -1: these windows are not for this method. */
static int lead_of(const pg_pooling &p) {
  if (both_slide(p, 2, 2) || both_slide(p, 3, 1)) return 0;
  return both_slide(p, 3, 2) ? p.w.pad >= 1 : -1;
}

/* Threads of a block, 0 if this method is not for it. */
static int plan_of(const pg_pooling &p, const pg_tiling &tiling, channel_march_plan *plan) {
  const int64_t wanted = (int64_t)WANTED_THREADS * pg_cuda_least_limits()->processors;
  return march_plan_of(p, tiling, !pg_tiling_cuts(&tiling), lead_of(p), 1, SCATTER_THREADS, wanted,
                       plan);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_max_backward &a = problem->args.max_backward;
  const int64_t far = INT32_MAX / 8;
  channel_march_plan plan;
  if (!f.channels_last || !fits_32_bits(f.pool) || f.has_depth || lead_of(f.pool) < 0) return false;
  if (a.index_strides.of[PG_W] > far || a.out_strides.of[PG_W] > far) return false;
  if (!has_vectors(a.in_strides, f.pool.c, FOUR) || !has_vectors(a.out_strides, f.pool.c, FOUR) ||
      !has_vectors(a.index_strides, f.pool.c, FOUR))
    return false;
  *tiling = tile_max_channels(f);
  return tiling->planes % FOUR == 0 && plan_of(f.pool, *tiling, &plan) != 0;
}

template <int K, int S, int P, typename E, typename I>
static cudaError_t march_as(const pg_cuda_call *call, const max_job &j) {
  channel_march_plan p;
  const int threads = plan_of(j.pool, j.tiling, &p);
  const int64_t bytes =
      j.flags == nullptr ? (int64_t)MARCH_BOX * threads * (int64_t)sizeof(float) : 0;
  return launch(call, scatter_march<K, S, P, E, I>, march_blocks(p, j.pool.n), threads, bytes, j,
                p);
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  if (j.pool.w.kernel == 2) return march_as<2, 2, 0, E, I>(call, j);
  if (j.pool.w.stride == 1) return march_as<3, 1, 0, E, I>(call, j);
  return lead_of(j.pool) == 1 ? march_as<3, 2, 1, E, I>(call, j) : march_as<3, 2, 0, E, I>(call, j);
}

static bool is_aligned(const pg_problem &problem) {
  const pg_max_backward &a = problem.args.max_backward;
  const uintptr_t bytes = problem.dtype == ACL_FLOAT ? 16 : 8;
  return (uintptr_t)a.grad_in % bytes == 0 && (uintptr_t)a.grad_out % bytes == 0 &&
         (uintptr_t)a.index % 16 == 0;
}

/* The other method for channels that lie next to each other cuts a call into the same items. */
static cudaError_t run(const pg_cuda_call *call) {
  if (!is_aligned(call->task->problem)) return pg_cuda_max_channels_last_cells.run(call);
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_channels_last_columns) = {"channels_last_columns", fits, flag_bytes, run,
                                             pg_cuda_mend_channels};
