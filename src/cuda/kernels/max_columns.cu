/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER of the usual pools: windows of 2 or 3 cells that slide by 2, or of 3 that slide by 1,
 * over planes that follow each other.
 *
 * A thread goes down a column of gradInput, one cell wide or two as the windows' step is, and looks
 * at the outputs whose windows hold its cells: each adds to the cell that its index names.  Nothing
 * is shared but the look at the indices: one that points out of its window is unusual, and each
 * block whose cells its window has makes its item again, see item.cuh. */
#include "cuda/kernels/max_columns.cuh"

enum { GATHER_THREADS = 128, ROWS_OF_THREAD = 7 };

/* Lanes of a warp that have cells: the outer ones may only serve those beside them. */
static constexpr __host__ __device__ int lanes_of(int kernel, int stride, int words) {
  return stride == 1 ? 30 : kernel == 3 && words > 1 ? 31 : 32;
}

/* Rows whose outputs a thread has on their way together: as many as registers hold. */
enum { ROWS_AT_ONCE = 4 };

/* Blocks of a processor: as many as do with their registers. */
static constexpr int blocks_of(int kernel, int stride, int words) {
  if (stride == 1 || words == 4 || (kernel == 3 && words == 1)) return 7;
  return kernel == 3 || words > 1 ? 8 : 9;
}

/* Columns of threads begin at `first`; a column's rows are cut into `chunks` of `rows`. */
struct gather_plan {
  int32_t first, columns, chunks, rows, threads;
  int32_t shift_h,
      shift_w;   /* an output's own cells begin at its number times the step, less these */
  bool pairs;    /* two cells can be written at once */
  int32_t words; /* not 0: outputs a thread takes side by side, see go_by_words */
  pg_divider by_columns, by_chunks;
};

/* A column of outputs, read row by row.  Behind the last row it stays there, and names nothing. */
template <typename E, typename I>
struct column_of {
  const I *index;
  const E *grad;
  uint32_t nothing; /* ~0 where there is no such column */

  __device__ __forceinline__ output look(uint32_t none, uint32_t *high) const {
    const I at = __ldg(index);
    if (sizeof(I) == 8 && high != nullptr) *high |= (uint32_t)((uint64_t)at >> 32);
    return {(uint32_t)at | none | nothing, widened(*grad)};
  }
  __device__ __forceinline__ void go(int32_t step) {
    index += step;
    grad += step;
  }
};

template <typename E, typename I>
static __device__ __forceinline__ column_of<E, I> column_at(const max_job &j, int64_t first,
                                                            int32_t row, int32_t column) {
  const int32_t w = min(max(column, 0), j.w.out - 1), h = min(max(row, 0), j.h.out - 1);
  const int64_t at = first + h * j.w.out + w;
  return {(const I *)j.index + at, (const E *)j.grad + at, w == column ? 0 : ~0u};
}

/* Rows of outputs, one after the other. */
struct row_of {
  int32_t at, end;
  __device__ __forceinline__ uint32_t nothing() const {
    return (uint32_t)at < (uint32_t)end ? 0 : ~0u;
  }
  /* How far on the next row is. */
  __device__ __forceinline__ int32_t next(int32_t step) {
    const bool moves = (uint32_t)at < (uint32_t)(end - 1);
    at++;
    return moves ? step : 0;
  }
};

static __device__ __forceinline__ void put_two(float *to, float a, float b) {
  __stcs((float2 *)to, make_float2(a, b));
}
template <typename E>
static __device__ __forceinline__ void put_two(E *to, float a, float b) {
  __stcs((uint32_t *)to, packed(E(), a, b));
}

/* Step 2: rows [begin, end) of outputs with their two by two own cells.  A window of 3 begins one
 * before those, with the last of the outputs before. */
template <int K, int AT_ONCE, typename E, typename I>
static __device__ __forceinline__ bool go_by_two(const max_job &j, const gather_plan &g,
                                                 int64_t plane, pg_span cells, int32_t ow,
                                                 int32_t begin, int32_t end) {
  enum { LAST = K - 2 /* row of outputs that a row's cells end with */ };
  const int32_t w = 2 * ow - g.shift_w, top = 2 * begin - g.shift_h, wide = j.w.in;
  const bool left = (uint32_t)w < (uint32_t)wide, right = (uint32_t)(w + 1) < (uint32_t)wide;
  const columns_inside c = inside_of<K>(j, 2 * ow - j.w.pad);
  column_of<E, I> own = column_at<E, I>(j, plane * j.outputs, begin, ow);
  column_of<E, I> next = column_at<E, I>(j, plane * j.outputs, begin, ow + 1);
  E *out = (E *)j.in + plane * j.cells + top * wide + w;
  row_of row = {begin, j.h.out};
  uint32_t at = (uint32_t)(top * wide + w), h = (uint32_t)(top - cells.begin), high = 0;
  const uint32_t tall = (uint32_t)length(cells);
  bool usual = true;
  output o[AT_ONCE + 1][2];
  const auto check = [&](const output &output, int32_t row, uint32_t own_cell) {
    usual &= is_usual<K>(j, output.cell, own_cell - (K == 3 ? wide + 1 : 0), c) |
             ((uint32_t)row >= (uint32_t)j.h.out) | (own.nothing != 0);
  };
  const auto look = [&](int i) {
    const uint32_t none = row.nothing();
    o[i][0] = own.look(none, &high);
    if (K == 3) o[i][1] = next.look(none, nullptr);
    const int32_t step = row.next(j.w.out);
    own.go(step);
    if (K == 3) next.go(step);
  };
  look(0);
  if (K == 3) check(o[0][0], begin, at);
  for (int32_t oh = begin; oh < end; oh += AT_ONCE) {
#pragma unroll
    for (int i = 1; i <= AT_ONCE; i++) look(i); /* all on their way before the first is used */
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++, at += 2 * wide, h += 2) {
      if (oh + i >= end) break;
      check(o[i + LAST][0], oh + i + LAST, at + LAST * 2 * wide);
      float sum[4] = {0, 0, 0, 0};
      take(sum[0], o[i][0], at);
      take(sum[1], o[i][0], at + 1);
      take(sum[2], o[i][0], at + wide);
      take(sum[3], o[i][0], at + wide + 1);
      if (K == 3) {
        take(sum[1], o[i][1], at + 1);
        take(sum[3], o[i][1], at + wide + 1);
        take(sum[2], o[i + 1][0], at + wide);
        take(sum[3], o[i + 1][0], at + wide + 1);
        take(sum[3], o[i + 1][1], at + wide + 1);
      }
      if (g.pairs) {
        if (right & (h < tall)) put_two(out, sum[0], sum[1]);
        if (right & (h + 1 < tall)) put_two(out + wide, sum[2], sum[3]);
      } else {
        if (left & (h < tall)) put_one(out, sum[0]);
        if (right & (h < tall)) put_one(out + 1, sum[1]);
        if (left & (h + 1 < tall)) put_one(out + wide, sum[2]);
        if (right & (h + 1 < tall)) put_one(out + wide + 1, sum[3]);
      }
      out += 2 * wide;
    }
    o[0][0] = o[AT_ONCE][0];
    o[0][1] = o[AT_ONCE][1];
  }
  return !usual | (high != 0);
}

/* The rows that an item's threads go through: those of the outputs whose own cells it has, and at
 * the edges those that have none. */
template <int S>
static __device__ __forceinline__ pg_span rows_of(const max_job &j, const gather_plan &g,
                                                  pg_span h) {
  pg_span rows = {h.begin, h.end};
  if (S == 2) {
    rows.begin = (h.begin + g.shift_h + 2) / 2 - 1; /* shifts are -1, 0 or 1 */
    rows.end = (h.end - 1 + g.shift_h + 2) / 2;
  }
  if (h.begin == 0) rows.begin = min(rows.begin, 0);
  if (h.end == j.h.in) rows.end = max(rows.end, j.h.out);
  return rows;
}

/* V: outputs side by side, where they slide by 2. */
template <int K, int S, int V, typename E, typename I>
static __global__ void __launch_bounds__(GATHER_THREADS, blocks_of(K, S, V))
    max_columns(const __grid_constant__ max_job j, const __grid_constant__ gather_plan g) {
  __shared__ float room[GATHER_THREADS / 32][RECOMPUTED_CELLS];
  __shared__ bad_indices bad[GATHER_THREADS / 32];
  const pg_box_32 b = box_32(j.cut, blockIdx.x);
  const pg_span rows = rows_of<S>(j, g, b.h);
  const int32_t tasks = b.planes * g.chunks * g.columns;
  constexpr int LANES = lanes_of(K, S, V);
  const int32_t lane = lane_number() - (S == 1), step = (int32_t)blockDim.x / 32 * LANES;
  bool unusual = false;
  for (int32_t done = 0; done < tasks; done += step) { /* the same for all: lanes serve others */
    const int32_t first = done + (int32_t)threadIdx.x / 32 * LANES;
    const bool there = (uint32_t)(first + lane) < (uint32_t)tasks;
    const int32_t task = there ? first + lane : 0; /* who has none may serve: with nothing */
    const int32_t upper = (int32_t)over(task, g.by_columns);
    const int32_t plane = (int32_t)over(upper, g.by_chunks);
    const int32_t column = g.first + task - upper * g.columns;
    const int32_t begin = rows.begin + (upper - plane * g.chunks) * g.rows;
    const int32_t end = min(begin + g.rows, rows.end);
    if constexpr (S == 1)
      unusual |= go_by_one<E, I>(j, b.first + plane, b.h, column, begin, g.rows, there,
                                 (uint32_t)lane < LANES);
    else if constexpr (V > 1)
      unusual |= go_by_words<K, V, E, I>(j, b.first + plane, b.h, V * column, begin, end, g.rows,
                                         there, (uint32_t)lane < LANES);
    else if (there)
      unusual |= go_by_two<K, ROWS_AT_ONCE, E, I>(j, g, b.first + plane, b.h, column, begin, end);
  }
  if (__syncthreads_or(unusual))
    recompute_item(j, blockIdx.x, {room[threadIdx.x / 32], RECOMPUTED_CELLS},
                   bad + threadIdx.x / 32);
}

/* --- On the host --- */

static bool slides(const pg_axis &a, int64_t kernel, int64_t stride) {
  return a.kernel == kernel && a.stride == stride && a.dilation == 1 && a.pad <= 1;
}

static bool both_slide(const pg_pooling &p, int64_t kernel, int64_t stride) {
  return slides(p.h, kernel, stride) && slides(p.w, kernel, stride);
}

/* Outputs side by side whose cells are a word of 16 bytes, or of 8; 0 where rows are not made of
 * such. */
static int32_t words_of(const max_job &j, int64_t element_bytes) {
  const pg_pooling &p = j.pool;
  if (p.w.stride != 2 || p.w.pad != p.w.kernel - 2 || p.h.pad != p.w.pad || p.w.in != 2 * p.w.out)
    return 0;
  for (int64_t v = p.w.kernel == 2 && element_bytes == 2 ? 4 : 2; v > 1; v /= 2)
    if (p.w.out % v == 0 && (uintptr_t)j.in % (2 * v * element_bytes) == 0 &&
        (uintptr_t)j.grad % (v * element_bytes) == 0 &&
        (uintptr_t)j.index % least(16, v * (j.index_64 ? 8 : 4)) == 0)
      return (int32_t)v;
  return 0;
}

static gather_plan gather_plan_of(const max_job &j, int64_t element_bytes) {
  const pg_pooling &p = j.pool;
  const int32_t stride = (int32_t)p.w.stride, more = p.w.kernel == 3 && stride == 2;
  gather_plan g = {};
  g.shift_h = stride == 2 ? (int32_t)p.h.pad - more : 0;
  g.shift_w = stride == 2 ? (int32_t)p.w.pad - more : 0;
  g.first = g.shift_w < 0 ? -1 : 0;
  const int64_t last = (p.w.in - 1 + g.shift_w) / stride + 1;
  g.columns = (int32_t)(last > p.w.out ? last : p.w.out) - g.first;
  g.words = words_of(j, element_bytes);
  if (g.words > 0) g.columns = (int32_t)p.w.out / g.words;
  const int64_t odd = g.shift_h != 0 || j.tiling.h % stride != 0 || stride * p.h.out > p.h.in;
  const int64_t rows = (j.tiling.h + stride - 1) / stride + odd;
  /* So many rows that what a thread has to know first is worth it, unless nobody else waits. */
  const int64_t each = j.items < pg_cuda_least_limits()->processors ? 1 : ROWS_OF_THREAD;
  const int64_t wanted = (rows + each - 1) / each, across = g.columns * j.tiling.planes;
  const int64_t lanes = lanes_of((int)p.w.kernel, stride, g.words);
  const int64_t most = GATHER_THREADS / 32 * lanes / across;
  g.chunks = (int32_t)least(most < 1 ? 1 : most, wanted);
  g.rows = (int32_t)((rows + g.chunks - 1) / g.chunks);
  g.threads = (int32_t)least((across * g.chunks + lanes - 1) / lanes * 32, GATHER_THREADS);
  g.pairs = g.shift_w == 0 && p.w.in % 2 == 0 && (uintptr_t)j.in % (2 * element_bytes) == 0;
  g.by_columns = divider_of(g.columns);
  g.by_chunks = divider_of(g.chunks);
  return g;
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_pooling &p = problem->facts.pool;
  if (!fits_flat_rows(problem->facts, tiling) || problem->facts.has_depth) return false;
  if (p.w.in < 8 || p.h.in < 4) return false;
  return both_slide(p, 2, 2) || both_slide(p, 3, 2) || (both_slide(p, 3, 1) && p.h.pad == p.w.pad);
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const gather_plan g = gather_plan_of(j, sizeof(E));
  const auto go = [&](auto kernel) { return launch(call, kernel, j.items, g.threads, 0, j, g); };
  constexpr int FOUR = sizeof(E) == 2 ? 4 : 2; /* words of 16 bytes, where halves are not added */
  if (j.w.stride == 1) return go(max_columns<3, 1, 1, E, I>);
  if (j.pool.w.kernel == 3)
    return g.words == 2 ? go(max_columns<3, 2, 2, E, I>) : go(max_columns<3, 2, 1, E, I>);
  if (g.words == FOUR) return go(max_columns<2, 2, FOUR, E, I>);
  return g.words == 2 ? go(max_columns<2, 2, 2, E, I>) : go(max_columns<2, 2, 1, E, I>);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_columns) = {"columns", fits, flag_bytes, run, pg_cuda_mend_planes};
