/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools whose channels are neighbours in memory, with the usual windows: 2 x 2 cells 2 apart,
 * 3 x 3 cells 1 or 2 apart, in two dimensions.
 *
 * Threads walk down columns; channels_last_columns.cuh explains how.  At each row of outputs a
 * thread reads the outputs whose windows touch its cells, compares their indices with the
 * positions of the K x S cells that the row adds to, and adds.  Everything is in registers then.
 *
 * Indices are compared in their low 32 bits.  While a thread walks, it only collects how far
 * indices point out of their windows.  If one does, code that seldom runs walks down the column
 * again, checks each index, sets item flags and reports.  Where items are whole planes there are no
 * flags, and the block computes its item again.  Tensors whose addresses are not aligned are left
 * to max_strips. */
#include "cuda/kernels/channels_last_columns.cuh"
#include "cuda/kernels/max_any.cuh"

enum {
  MOST_THREADS = 224, /* of a block: five blocks have 56 registers, four have 72 */
  PART_CELLS = 16     /* of a plane, where a block computes its item again: 14 KiB of sums */
};

/* Four blocks where more registers are needed: for windows that overlap by several cells, which
 * have more pending sums, and for large elements and indices. */
static constexpr int blocks_per_sm(int kernel, int stride, int bytes) {
  return kernel > stride + 1 || bytes > 10 ? 4 : 5;
}

/* The N outputs of a row whose windows touch a thread's cells.  Indices count from the first cell
 * that the row adds to. */
template <int N>
struct walk_outputs {
  uint32_t index[N][CHANNELS];
  float grad[N][CHANNELS];
};

/* A thread's walk down a column of windows of K x K cells, S apart.  Its cells begin with cell LEAD
 * of the window of its own output.  LEFT of its N outputs are before its own. */
template <int K, int S, int LEAD, typename E, typename I>
struct max_walk {
  enum { LEFT = (K - 1 - LEAD) / S, N = LEFT + 1 + (S - 1 + LEAD) / S, PENDING = K - S };

  const I *index;
  const E *grad;
  E *out;
  bool exists[N], writes[S]; /* outputs; columns of cells */
  uint32_t first;            /* position in the plane of the cell at `out`, if it is one */
  uint32_t before, width;    /* of the own window: its cells before that one; its width, clipped */
  /* What was seen: the farthest index of own outputs from the begin of a row of their windows, the
   * largest of them, and the high words of all indices. */
  uint32_t farthest, largest, high_words;
  float pending[PENDING + 1][S][CHANNELS]; /* sums of rows of cells that are not complete yet */

  __device__ __forceinline__ max_walk(const max_job &j, const channel_walk &walk, int32_t row);
  __device__ __forceinline__ void load(const max_job &j, walk_outputs<N> *o);
  __device__ __forceinline__ void check(const max_job &j, const walk_outputs<N> &o);
  template <bool OUTPUTS>
  __device__ __forceinline__ void add(const max_job &j, const walk_outputs<N> &o, int32_t row,
                                      bool write);
  __device__ __forceinline__ bool saw_unusual(const max_job &j) const;
};

template <int K, int S, int LEAD, typename E, typename I>
__device__ __forceinline__ max_walk<K, S, LEAD, E, I>::max_walk(const max_job &j,
                                                                const channel_walk &walk,
                                                                int32_t row)
    : farthest(0), largest(0), high_words(0) {
  const int32_t window = S * walk.column - j.w.pad;
  const int32_t h = S * row - j.h.pad, w = window + LEAD;
  first = (uint32_t)h * (uint32_t)j.w.in + (uint32_t)w;
  before = (uint32_t)(w - max(window, 0));
  width = (uint32_t)(min(window + K, j.w.in) - max(window, 0));
  index = (const I *)j.index + offset(j.index_strides, walk.n, walk.c, 0, row, walk.column);
  grad = (const E *)j.grad + offset(j.grad_strides, walk.n, walk.c, 0, row, walk.column);
  out = (E *)j.in + offset(j.in_strides, walk.n, walk.c, 0, h, w);
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int32_t ow = walk.column + i - LEFT;
    exists[i] = ow >= 0 && ow < j.w.out && !walk.idle;
  }
#pragma unroll
  for (int x = 0; x < S; x++) writes[x] = (uint32_t)(w + x) < (uint32_t)j.w.in && !walk.idle;
#pragma unroll
  for (int i = 0; i < PENDING * S * CHANNELS; i++)
    pending[i / CHANNELS / S][i / CHANNELS % S][i % CHANNELS] = 0;
}

/* An output that does not exist gets the gradient 0 and the index of the call's first output.  The
 * high words of indices are used wherever they are read, because the compiler would otherwise not
 * read 16 bytes at once but only the low words, one by one. */
template <int K, int S, int LEAD, typename E, typename I>
__device__ __forceinline__ void max_walk<K, S, LEAD, E, I>::load(const max_job &j,
                                                                 walk_outputs<N> *o) {
  vector_of<I, CHANNELS> indices[N];
  channel_words<E> grads[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int32_t to_index = (i - LEFT) * (int32_t)j.index_strides.of[PG_W];
    const int32_t to_grad = (i - LEFT) * (int32_t)j.grad_strides.of[PG_W];
    indices[i].load(exists[i] ? index + to_index : (const I *)j.index);
    grads[i] = load_channels_if(exists[i], grad + to_grad);
  }
  index += j.index_strides.of[PG_H];
  grad += j.grad_strides.of[PG_H];
#pragma unroll
  for (int i = 0; i < N * CHANNELS; i++) {
    const int k = i / CHANNELS, v = i % CHANNELS;
    const uint32_t low = (uint32_t)indices[k].of[v];
    if (sizeof(I) == 8) high_words |= (uint32_t)((uint64_t)indices[k].of[v] >> 32);
    if (k == LEFT) largest = umax(largest, low);
    o->index[k][v] = low - first;
    o->grad[k][v] = channel(grads[k], v);
  }
}

/* The distances of an index from the begins of its window's rows, unsigned: it is in the window if
 * the least of them is below the width, provided that it is in the plane, because rows of a window
 * may lie above or below it. */
template <int K, int S, int LEAD, typename E, typename I>
__device__ __forceinline__ void max_walk<K, S, LEAD, E, I>::check(const max_job &j,
                                                                  const walk_outputs<N> &o) {
#pragma unroll
  for (int v = 0; v < CHANNELS; v++) {
    const uint32_t from_first = o.index[LEFT][v] + before;
    uint32_t distance = from_first;
#pragma unroll
    for (int y = 1; y < K; y++) distance = umin(distance, from_first - (uint32_t)(y * j.w.in));
    farthest = umax(farthest, distance);
  }
}

template <int K, int S, int LEAD, typename E, typename I>
__device__ __forceinline__ bool max_walk<K, S, LEAD, E, I>::saw_unusual(const max_job &j) const {
  return exists[LEFT] && (farthest >= width || largest >= j.cells || high_words != 0);
}

/* Adds a row's outputs to the cells that they name, and writes the rows of cells that are complete
 * then.  OUTPUTS: there are some; cells below the last window have none. */
template <int K, int S, int LEAD, typename E, typename I>
template <bool OUTPUTS>
__device__ __forceinline__ void max_walk<K, S, LEAD, E, I>::add(const max_job &j,
                                                                const walk_outputs<N> &o,
                                                                int32_t row, bool write) {
  const int32_t h = S * row - j.h.pad;
#pragma unroll
  for (int y = 0; y < K; y++) {
    float sum[S][CHANNELS];
#pragma unroll
    for (int i = 0; i < S * CHANNELS; i++) {
      const int x = i / CHANNELS, v = i % CHANNELS;
      sum[x][v] = y < PENDING ? pending[y % (PENDING + 1)][x][v] : 0;
#pragma unroll
      for (int k = 0; k < (OUTPUTS ? N : 0); k++) {
        const int tap = x + LEAD - S * (k - LEFT);
        const uint32_t cell = (uint32_t)(y * j.w.in + x);
        if (tap >= 0 && tap < K && o.index[k][v] == cell) sum[x][v] += o.grad[k][v];
      }
      if (y >= S) pending[y < S ? 0 : y - S][x][v] = sum[x][v];
    }
#pragma unroll
    for (int x = 0; x < S; x++)
      if (y < S && write && (uint32_t)(h + y) < (uint32_t)j.h.in && writes[x])
        write_channels(out + y * j.in_strides.of[PG_H] + x * j.in_strides.of[PG_W], sum[x]);
  }
  out += S * j.in_strides.of[PG_H];
  first += (uint32_t)(S * j.w.in);
}

/* --- Columns --- */

/* True if an index may not be in its window. */
template <int K, int S, int LEAD, typename E, typename I>
static __device__ __forceinline__ bool walk_down(const max_job &j, const channel_walk &walk) {
  typedef max_walk<K, S, LEAD, E, I> walk_type;
  enum { BEFORE = (K - 1) / S }; /* rows of outputs before the chunk that touch its first cells */
  int32_t row = max(walk.begin - BEFORE, 0);
  walk_type s(j, walk, row);
  const int32_t stop = min(walk.end, j.h.out);
  walk_outputs<walk_type::N> o;
#pragma unroll 1
  for (; row < stop; row++) {
    s.load(j, &o);
    s.check(j, o);
    s.template add<true>(j, o, row, row >= walk.begin);
  }
#pragma unroll 1
  for (; row < walk.end; row++) s.template add<false>(j, o, row, row >= walk.begin);
  return s.saw_unusual(j);
}

/* A warp checks the indices of its columns one by one.  Not inlined, because it seldom runs and
 * would take registers from what often does. */
static __device__ __noinline__ void check_columns(const max_job &j, const channel_walk_plan &p,
                                                  bad_indices *bad) {
  if (lane_number() == 0) clear(bad);
  __syncwarp();
  for (uint32_t i = 0; i < p.block_rounds; i++) {
    const channel_walk walk = channel_walk_of(p, j.cut.c, blockIdx.x * p.block_rounds + i);
    if (walk.idle || walk.column >= j.w.out) continue;
    for (int32_t row = walk.begin; row < min(walk.end, j.h.out); row++)
      check_channels<CHANNELS>(j, {walk.n, walk.c, 0, row, walk.column}, bad);
  }
  __syncwarp();
  if (lane_number() == 0) report(j, bad);
}

template <int K, int S, int LEAD, typename E, typename I>
static __global__ void __launch_bounds__(MOST_THREADS, blocks_per_sm(K, S, sizeof(E) + sizeof(I)))
    max_channels_last_columns(const __grid_constant__ max_job j,
                              const __grid_constant__ channel_walk_plan p) {
  __shared__ bad_indices bad[MOST_THREADS / 32];
  bool unusual = false;
  for (uint32_t i = 0; i < p.block_rounds; i++) {
    const channel_walk walk = channel_walk_of(p, j.cut.c, blockIdx.x * p.block_rounds + i);
    unusual |= walk_down<K, S, LEAD, E, I>(j, walk);
  }
  const bool cut = j.flags != nullptr;
  if (cut ? !__any_sync(EVERY_LANE, unusual) : !__syncthreads_or(unusual)) return;
  check_columns(j, p, bad + threadIdx.x / 32);
  if (!cut) compute_item(j, blockIdx.x, PART_CELLS, nullptr);
}

/* --- On the host --- */

/* channel_walk_shape.lead; -1: these windows are not for this method. */
static int lead_of(const pg_pooling &p) {
  if (has_square_windows(p, 2, 2) || has_square_windows(p, 3, 1)) return 0;
  return has_square_windows(p, 3, 2) ? p.w.pad >= 1 : -1;
}

static channel_walk_plan plan_of(const pg_pooling &p, const pg_tiling &tiling) {
  return channel_walk_plan_of(p, tiling, {!pg_tiling_cuts(&tiling), lead_of(p), 1, MOST_THREADS});
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  const pg_max_backward &a = problem->args.max_backward;
  const int64_t far = INT32_MAX / 8; /* distances to neighbouring outputs have 32 bits */
  if (!f.channels_last || f.has_depth || lead_of(f.pool) < 0) return false;
  if (!pg_cuda_max_strips.fits(problem, tiling)) return false; /* see `run` */
  if (a.index_strides.of[PG_W] > far || a.out_strides.of[PG_W] > far) return false;
  if (!has_vectors(a.in_strides, f.pool.c, CHANNELS) ||
      !has_vectors(a.out_strides, f.pool.c, CHANNELS) ||
      !has_vectors(a.index_strides, f.pool.c, CHANNELS))
    return false;
  *tiling = tile_max_channels(f);
  return tiling->planes % CHANNELS == 0 && plan_of(f.pool, *tiling).block_threads != 0;
}

template <int K, int S, int LEAD, typename E, typename I>
static cudaError_t run_windows(const pg_cuda_call *call, const max_job &j) {
  const channel_walk_plan p = plan_of(j.pool, j.tiling);
  return launch(call, max_channels_last_columns<K, S, LEAD, E, I>, walk_blocks(p, j.pool.n),
                p.block_threads,
                j.flags == nullptr ? scratch_bytes(p.block_threads, PART_CELLS) : 0, j, p);
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  if (j.pool.w.kernel == 2) return run_windows<2, 2, 0, E, I>(call, j);
  if (j.pool.w.stride == 1) return run_windows<3, 1, 0, E, I>(call, j);
  return lead_of(j.pool) == 1 ? run_windows<3, 2, 1, E, I>(call, j)
                              : run_windows<3, 2, 0, E, I>(call, j);
}

static bool is_aligned(const pg_problem &problem) {
  const pg_max_backward &a = problem.args.max_backward;
  const uintptr_t bytes = problem.dtype == ACL_FLOAT ? 16 : 8;
  return (uintptr_t)a.grad_in % bytes == 0 && (uintptr_t)a.grad_out % bytes == 0 &&
         (uintptr_t)a.index % 16 == 0;
}

/* Also for max_strips, which needs more than flags. */
static int64_t workspace(const pg_problem *problem, const pg_tiling *tiling) {
  return pg_cuda_max_strips.workspace(problem, tiling);
}

static cudaError_t run(const pg_cuda_call *call) {
  if (!is_aligned(call->task->problem)) return pg_cuda_max_strips.run(call);
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_channels_last_columns) = {"channels_last_columns", fits, workspace, run,
                                             pg_cuda_mend_channels};
