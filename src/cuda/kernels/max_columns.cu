/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools with the windows that networks use most: 2 x 2 or 3 x 3 cells that slide by 2, or 3 x 3
 * that slide by 1, padded by at most one cell, over planes that lie one after the other.
 *
 * A thread walks down a column of gradInput with the outputs of a few rows in registers.  It
 * compares them with the cells that their windows hold, adds in the order of the outputs, and
 * writes a row of cells when all rows of outputs that can name them are there.  Sums
 * are in registers too, and no two threads share one.  Rows of outputs are loaded several at a
 * time, so that many loads are on their way, and neighbouring lanes read and write neighbouring
 * memory.
 *
 * Where windows slide by 2, each output owns two cells along an axis.  A window of 2 has no others.
 * A window of 3 also has the cell before them, which is the second one of the output before:
 *
 *   cell               2o-1   2o  2o+1  2o+2  2o+3
 *   window of o          x     x    x
 *   window of o + 1                 x     x     x
 *   owned by           o-1     o    o    o+1   o+1
 *
 * There are three walks: walk_pairs below computes the cells that one column of outputs owns, for
 * any alignment; walk_vectors and walk_cells are in max_columns.cuh.
 *
 * An index outside its window, be it a stray or a bad index, is found by the thread that walks over
 * its output.  Sums may then be wrong, and the block computes its item again (max_recompute.cuh).
 * Three dimensions, other windows and tiny planes are left to the methods that follow. */
#include "cuda/kernels/max_columns.cuh"

enum {
  THREADS = 128,
  ROWS_OF_THREAD = 7, /* of a chunk: a thread has much to compute before its first row */
  ROWS_AT_ONCE = 4,   /* whose loads are on their way in walk_pairs: as many as registers hold */
  LEAST_WIDTH = 8,    /* cells of a row; smaller planes do not repay a thread's preparations */
  LEAST_HEIGHT = 4    /* rows, likewise */
};

/* How an item is divided among threads: by columns, and each column into chunks of rows.  Columns
 * and rows are counted as in max_column_task. */
struct max_columns_plan {
  int32_t first, columns; /* column -1 is the first where the first cell belongs to no output */
  int32_t chunks, rows;   /* of a column; of a chunk */
  int32_t threads;
  int32_t shift_h, shift_w; /* 2 * output - shift is the first cell that an output owns; -1 to 1 */
  bool two_cells;           /* walk_pairs can write two cells at once */
  int32_t side_by_side;     /* outputs of a thread in walk_vectors; 0: another walk is used */
  pg_divider by_columns, by_chunks;
};

/* --- The walk for windows that slide by 2, one output wide --- */

/* A column of outputs, read row by row.  A column outside the plane is read at the plane's edge
 * instead, and its outputs name no cell. */
template <typename E, typename I>
struct max_output_column {
  const I *index;
  const E *grad;
  uint32_t no_column; /* ~0 where there is no such column, else 0 */

  /* no_row is ~0 where there is no such row, else 0.  The upper half of a 64-bit index is added to
   * `high`. */
  __device__ __forceinline__ max_column_output load(uint32_t no_row, uint32_t *high) const {
    const I at = __ldg(index);
    if (sizeof(I) == 8 && high != nullptr) *high |= (uint32_t)((uint64_t)at >> 32);
    return {(uint32_t)at | no_row | no_column, widened(*grad)};
  }
  __device__ __forceinline__ void advance(int32_t stride) {
    index += stride;
    grad += stride;
  }
};

/* `first` is the first output of the plane. */
template <typename E, typename I>
static __device__ __forceinline__ max_output_column<E, I> output_column(const max_job &j,
                                                                        int64_t first, int32_t row,
                                                                        int32_t column) {
  const int32_t w = min(max(column, 0), j.w.out - 1), h = min(max(row, 0), j.h.out - 1);
  const int64_t at = first + h * j.w.out + w;
  return {(const I *)j.index + at, (const E *)j.grad + at, w == column ? 0 : ~0u};
}

/* The row of outputs that is loaded next; rows [0, end) exist. */
struct max_output_row {
  int32_t at, end;
  __device__ __forceinline__ uint32_t no_row() const {
    return (uint32_t)at < (uint32_t)end ? 0 : ~0u;
  }
  /* Advances to the next row.  Returns the stride to it, or 0 if one of the two does not exist. */
  __device__ __forceinline__ int32_t advance(int32_t stride) {
    const bool moves = (uint32_t)at < (uint32_t)(end - 1);
    at++;
    return moves ? stride : 0;
  }
};

/* Computes the 2 x 2 cells from `cell` on, which output rows[0][0] owns.  The others of these rows,
 * which are those to the right and below, may name them too if windows have 3 cells.  They are
 * added in their order. */
template <int K>
static __device__ __forceinline__ void add_to_pairs(float *sum, const max_column_output (*rows)[2],
                                                    uint32_t cell, uint32_t wide) {
  add_if_named(sum[0], rows[0][0], cell);
  add_if_named(sum[1], rows[0][0], cell + 1);
  add_if_named(sum[2], rows[0][0], cell + wide);
  add_if_named(sum[3], rows[0][0], cell + wide + 1);
  if (K == 3) {
    add_if_named(sum[1], rows[0][1], cell + 1);
    add_if_named(sum[3], rows[0][1], cell + wide + 1);
    add_if_named(sum[2], rows[1][0], cell + wide);
    add_if_named(sum[3], rows[1][0], cell + wide + 1);
    add_if_named(sum[3], rows[1][1], cell + wide + 1);
  }
}

static __device__ __forceinline__ void write_two_cells(float *to, float a, float b) {
  __stcs((float2 *)to, make_float2(a, b));
}
template <typename E>
static __device__ __forceinline__ void write_two_cells(E *to, float a, float b) {
  __stcs((uint32_t *)to, packed(E(), a, b));
}

/* Writes 2 x 2 cells, then those below. */
template <typename E>
struct max_pair_writer {
  E *out;
  uint32_t row, rows; /* the upper row, counted from the item's first; rows of the item */
  bool left, right;   /* does the plane have the left, the right cells? */

  __device__ __forceinline__ void write(const float *sum, int32_t wide, bool two_cells) {
    if (two_cells) {
      if (right & (row < rows)) write_two_cells(out, sum[0], sum[1]);
      if (right & (row + 1 < rows)) write_two_cells(out + wide, sum[2], sum[3]);
    } else {
      if (left & (row < rows)) write_cell(out, sum[0]);
      if (right & (row < rows)) write_cell(out + 1, sum[1]);
      if (left & (row + 1 < rows)) write_cell(out + wide, sum[2]);
      if (right & (row + 1 < rows)) write_cell(out + wide + 1, sum[3]);
    }
    out += 2 * wide;
    row += 2;
  }
};

/* Computes the two columns of cells that a column of outputs owns.  The right one lies in windows
 * of 3 of the next column of outputs too, which is therefore read as well.  True if an index lies
 * outside its window. */
template <int K, typename E, typename I>
static __device__ __forceinline__ bool walk_pairs(const max_job &j, const max_columns_plan &g,
                                                  const max_column_task &t) {
  enum { LAST = K - 2 /* rows of outputs between a row and the last that names its cells */ };
  const int32_t ow = t.column, begin = t.rows.begin, end = t.rows.end;
  const int32_t w = 2 * ow - g.shift_w, top = 2 * begin - g.shift_h, wide = j.w.in;
  max_pair_writer<E> writer;
  writer.left = (uint32_t)w < (uint32_t)wide;
  writer.right = (uint32_t)(w + 1) < (uint32_t)wide;
  const max_columns_inside inside = columns_inside<K>(j, 2 * ow - j.w.pad);
  max_output_column<E, I> own = output_column<E, I>(j, t.plane * j.outputs, begin, ow);
  max_output_column<E, I> next = output_column<E, I>(j, t.plane * j.outputs, begin, ow + 1);
  writer.out = (E *)j.in + t.plane * j.cells + top * wide + w;
  writer.row = (uint32_t)(top - t.item_rows.begin);
  writer.rows = (uint32_t)length(t.item_rows);
  max_output_row row = {begin, j.h.out};
  uint32_t cell = (uint32_t)(top * wide + w), high = 0;
  bool in_windows = true;
  max_column_output o[ROWS_AT_ONCE + 1][2];
  const auto check = [&](const max_column_output &output, int32_t oh, uint32_t own_cell) {
    in_windows &= window_holds<K>(j, own_cell - (K == 3 ? wide + 1 : 0), inside, output.cell) |
                  ((uint32_t)oh >= (uint32_t)j.h.out) | (own.no_column != 0);
  };
  const auto load = [&](int i) {
    const uint32_t no_row = row.no_row();
    o[i][0] = own.load(no_row, &high);
    if (K == 3) o[i][1] = next.load(no_row, nullptr);
    const int32_t stride = row.advance(j.w.out);
    own.advance(stride);
    if (K == 3) next.advance(stride);
  };
  load(0);
  if (K == 3) check(o[0][0], begin, cell);
  for (int32_t oh = begin; oh < end; oh += ROWS_AT_ONCE) {
#pragma unroll
    for (int i = 1; i <= ROWS_AT_ONCE; i++) load(i); /* all, before the first is used */
#pragma unroll
    for (int i = 0; i < ROWS_AT_ONCE; i++, cell += 2 * wide) {
      if (oh + i >= end) break;
      check(o[i + LAST][0], oh + i + LAST, cell + LAST * 2 * wide);
      float sum[4] = {0, 0, 0, 0};
      add_to_pairs<K>(sum, o + i, cell, wide);
      writer.write(sum, wide, g.two_cells);
    }
    o[0][0] = o[ROWS_AT_ONCE][0];
    o[0][1] = o[ROWS_AT_ONCE][1];
  }
  return !in_windows | (high != 0);
}

/* --- The kernel --- */

/* Lanes of a warp that write cells: an outer one may only serve the lane beside it. */
static constexpr __host__ __device__ int writing_lanes(int kernel, int stride, int side_by_side) {
  return stride == 1 ? 30 : kernel == 3 && side_by_side > 1 ? 31 : 32;
}

/* Blocks that a processor holds at once: as many as the registers of the walk allow. */
static constexpr int blocks_of(int kernel, int stride, int side_by_side) {
  if (stride == 1 || side_by_side == 4 || (kernel == 3 && side_by_side == 1)) return 7;
  return kernel == 3 || side_by_side > 1 ? 8 : 9;
}

/* The rows that an item's threads walk over, given its rows of cells.  At the edges of the plane
 * these include outputs that own no cell: their indices have to be checked too. */
template <int S>
static __device__ __forceinline__ pg_span rows_to_walk(const max_job &j, const max_columns_plan &g,
                                                       pg_span h) {
  pg_span rows = {h.begin, h.end};
  if (S == 2) {
    rows.begin = (h.begin + g.shift_h + 2) / 2 - 1;
    rows.end = (h.end - 1 + g.shift_h + 2) / 2;
  }
  if (h.begin == 0) rows.begin = min(rows.begin, 0);
  if (h.end == j.h.in) rows.end = max(rows.end, j.h.out);
  return rows;
}

/* K, S: window and stride.  V: outputs side by side. */
template <int K, int S, int V, typename E, typename I>
static __global__ void __launch_bounds__(THREADS, blocks_of(K, S, V))
    max_columns(const __grid_constant__ max_job j, const __grid_constant__ max_columns_plan g) {
  __shared__ float scratch[THREADS / 32][RECOMPUTED_CELLS];
  __shared__ bad_indices bad[THREADS / 32];
  const pg_box_32 b = box_32(j.cut, blockIdx.x);
  const pg_span rows = rows_to_walk<S>(j, g, b.h);
  const int32_t tasks = b.planes * g.chunks * g.columns;
  constexpr int LANES = writing_lanes(K, S, V);
  const int32_t lane = lane_number() - (S == 1), step = (int32_t)blockDim.x / 32 * LANES;
  bool outside = false;
  for (int32_t done = 0; done < tasks;
       done += step) { /* the same for all lanes, see max_column_task */
    const int32_t first = done + (int32_t)threadIdx.x / 32 * LANES;
    const bool active = (uint32_t)(first + lane) < (uint32_t)tasks;
    const int32_t task = active ? first + lane : 0;
    const int32_t upper = (int32_t)over(task, g.by_columns);
    const int32_t plane = (int32_t)over(upper, g.by_chunks);
    const int32_t column = g.first + task - upper * g.columns;
    const int32_t begin = rows.begin + (upper - plane * g.chunks) * g.rows;
    const int32_t end = min(begin + g.rows, rows.end);
    const max_column_task t = {b.first + plane,       b.h, V * column, {begin, end}, g.rows, active,
                               (uint32_t)lane < LANES};
    if constexpr (S == 1)
      outside |= walk_cells<E, I>(j, t);
    else if constexpr (V > 1)
      outside |= walk_vectors<K, V, E, I>(j, t);
    else if (active)
      outside |= walk_pairs<K, E, I>(j, g, t);
  }
  if (__syncthreads_or(outside))
    recompute_item(j, blockIdx.x, {scratch[threadIdx.x / 32], RECOMPUTED_CELLS},
                   bad + threadIdx.x / 32);
}

/* --- On the host --- */

static bool slides(const pg_axis &a, int64_t kernel, int64_t stride) {
  return a.kernel == kernel && a.stride == stride && a.dilation == 1 && a.pad <= 1;
}

static bool both_slide(const pg_pooling &p, int64_t kernel, int64_t stride) {
  return slides(p.h, kernel, stride) && slides(p.w, kernel, stride);
}

static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_pooling &p = problem->facts.pool;
  if (!fits_flat_rows(problem->facts, tiling) || problem->facts.has_depth) return false;
  if (p.w.in < LEAST_WIDTH || p.h.in < LEAST_HEIGHT) return false;
  return both_slide(p, 2, 2) || both_slide(p, 3, 2) || (both_slide(p, 3, 1) && p.h.pad == p.w.pad);
}

/* Outputs whose own cells are a vector of 16 bytes, or of 8; 0 where rows do not consist of such
 * vectors.  Four outputs with windows of 3 would need too many registers. */
static int32_t side_by_side_of(const max_job &j, int64_t element_bytes) {
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

/* Cuts the columns of an item into chunks, of ROWS_OF_THREAD rows if possible.  If there are fewer
 * items than processors, chunks are as short as the threads of a block allow. */
static void cut_columns(const max_job &j, max_columns_plan &g) {
  const pg_pooling &p = j.pool;
  const int32_t stride = (int32_t)p.w.stride;
  const bool one_more = g.shift_h != 0 || j.tiling.h % stride != 0 || stride * p.h.out > p.h.in;
  const int64_t rows = (j.tiling.h + stride - 1) / stride + one_more;
  const int64_t each = j.items < pg_cuda_least_limits()->processors ? 1 : ROWS_OF_THREAD;
  const int64_t wanted = (rows + each - 1) / each, columns = g.columns * j.tiling.planes;
  const int64_t lanes = writing_lanes((int)p.w.kernel, stride, g.side_by_side);
  const int64_t most = THREADS / 32 * lanes / columns;
  g.chunks = (int32_t)least(most < 1 ? 1 : most, wanted);
  g.rows = (int32_t)((rows + g.chunks - 1) / g.chunks);
  g.threads = (int32_t)least((columns * g.chunks + lanes - 1) / lanes * 32, THREADS);
}

static max_columns_plan max_columns_plan_of(const max_job &j, int64_t element_bytes) {
  const pg_pooling &p = j.pool;
  const int32_t stride = (int32_t)p.w.stride, before_own = p.w.kernel == 3 && stride == 2;
  max_columns_plan g = {};
  g.shift_h = stride == 2 ? (int32_t)p.h.pad - before_own : 0;
  g.shift_w = stride == 2 ? (int32_t)p.w.pad - before_own : 0;
  g.first = g.shift_w < 0 ? -1 : 0;
  const int64_t last = (p.w.in - 1 + g.shift_w) / stride + 1;
  g.columns = (int32_t)(last > p.w.out ? last : p.w.out) - g.first;
  g.side_by_side = side_by_side_of(j, element_bytes);
  if (g.side_by_side > 0) g.columns = (int32_t)p.w.out / g.side_by_side;
  cut_columns(j, g);
  g.two_cells = g.shift_w == 0 && p.w.in % 2 == 0 && (uintptr_t)j.in % (2 * element_bytes) == 0;
  g.by_columns = divider_of(g.columns);
  g.by_chunks = divider_of(g.chunks);
  return g;
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const max_columns_plan g = max_columns_plan_of(j, sizeof(E));
  const auto start = [&](auto kernel) { return launch(call, kernel, j.items, g.threads, 0, j, g); };
  constexpr int MOST = sizeof(E) == 2 ? 4 : 2; /* of side_by_side: cells of 16 bytes */
  if (j.w.stride == 1) return start(max_columns<3, 1, 1, E, I>);
  if (j.pool.w.kernel == 3)
    return g.side_by_side == 2 ? start(max_columns<3, 2, 2, E, I>)
                               : start(max_columns<3, 2, 1, E, I>);
  if (g.side_by_side == MOST) return start(max_columns<2, 2, MOST, E, I>);
  return g.side_by_side == 2 ? start(max_columns<2, 2, 2, E, I>)
                             : start(max_columns<2, 2, 1, E, I>);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_columns) = {"columns", fits, flag_bytes, run, pg_cuda_mend_planes};
