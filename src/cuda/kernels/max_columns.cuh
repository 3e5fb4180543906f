/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of max_columns.cu in which lanes get outputs from the lanes beside them:
 *
 *   walk_vectors  windows that slide by 2, V outputs side by side, loaded and written as vectors
 *   walk_cells    windows of 3 that slide by 1, one cell wide */
#ifndef PG_CUDA_MAX_COLUMNS_CUH_
#define PG_CUDA_MAX_COLUMNS_CUH_

#include "cuda/kernels/max_recompute.cuh"

/* What a lane walks over: a chunk of a column.  Columns and rows are counted in outputs where
 * windows slide by 2, else in cells.  All lanes of a warp take the same number of steps, whether
 * they have a column or not, because they get outputs from each other by shuffles. */
struct max_column_task {
  int64_t plane;
  pg_span item_rows; /* rows of cells of the block's item */
  int32_t column;    /* the first, if there are several side by side */
  pg_span rows;
  int32_t steps; /* rows of a whole chunk */
  bool active;   /* the lane has a column; else its outputs name no cell */
  bool writes;   /* the lane writes cells; else it only serves the lane beside it */
};

/* An output: the cell that it names in its plane, or ~0, and its gradient. */
struct max_column_output {
  uint32_t cell;
  float grad;
};

static __device__ __forceinline__ void add_if_named(float &sum, const max_column_output &o,
                                                    uint32_t cell) {
  if (o.cell == cell) sum += o.grad;
}

/* V elements that lie side by side, at an address that is a multiple of their size or of 16. */
template <typename T, int V>
struct neighbours {
  T of[V];
  __device__ __forceinline__ void load(const T *from) {
    if constexpr (sizeof of == 4) {
      const uint32_t word = __ldg((const uint32_t *)from);
      memcpy(of, &word, 4);
    } else {
      vector_of<T, V> vector;
      vector.load(from);
      memcpy(of, vector.of, sizeof of);
    }
  }
};

static __device__ __forceinline__ void write_cell(float *to, float sum) { __stcs(to, sum); }
template <typename E>
static __device__ __forceinline__ void write_cell(E *to, float sum) {
  E e;
  put(&e, sum);
  __stcs((unsigned short *)to, e.bits);
}

/* The nearest row or column of [0, end). */
static __device__ __forceinline__ int32_t clamped(int32_t at, int32_t end) {
  return min(max(at, 0), end - 1);
}

/* --- Checking --- */

/* The columns of a window that lie in the plane: `count` of them, the first being `first` columns
 * behind the window's begin. */
struct max_columns_inside {
  uint32_t first, count;
};

template <int K>
static __device__ __forceinline__ max_columns_inside columns_inside(const max_job &j,
                                                                    int32_t begin) {
  const int32_t first = max(-begin, 0);
  return {(uint32_t)first, (uint32_t)max(min(K, j.w.in - begin) - first, 0)};
}

/* Does the K x K window whose first cell is `begin` hold this cell?  A cell before a row of the
 * window wraps to a huge unsigned number and fails the test.  Rows of the window above or below the
 * plane need no test of their own, because their cells have no numbers below j.cells. */
template <int K>
static __device__ __forceinline__ bool window_holds(const max_job &j, uint32_t begin,
                                                    max_columns_inside c, uint32_t cell) {
  uint32_t rest = cell - begin - c.first;
  bool inside = rest < c.count;
#pragma unroll
  for (int i = 1; i < K; i++) {
    rest -= j.w.in;
    inside |= rest < c.count;
  }
  return inside & (cell < j.cells);
}

/* --- Rows in two sets --- */

/* Walks over rows of outputs, which are loaded into two sets of registers in turn: one set is on
 * its way while the other is used.  Sets are not moved, because a move would wait for the loads.
 * (ptxas 13.0 counts the loads of both sets together, so that waiting for one waits for the other
 * too; without moves it was faster all the same.) */
template <typename W>
static __device__ __forceinline__ void walk_in_turns(W &walk, int32_t rows) {
  typename W::set one = {}, other = {};
  walk.load(one);
#pragma unroll 1
  for (int32_t left = rows; left > 0; left -= 2 * W::ROWS) {
    walk.load(other);
    walk.compute(one);
    if (left <= W::ROWS) break;
    walk.load(one);
    walk.compute(other);
  }
}

/* Advances the pointers from a row of outputs to the next that is to be loaded.  Before the first
 * row and behind the last there is none: the pointers stay, and what is loaded there is not used.
 * To load nothing there would need more instructions. */
template <typename E, typename I>
static __device__ __forceinline__ void advance_row(const max_job &j, int32_t row, int32_t end,
                                                   const I **index, const E **grad) {
  const int32_t stride = row >= 0 && row < end - 1 ? j.w.out : 0;
  *index += stride;
  *grad += stride;
}

/* --- Windows that slide by 2, V outputs side by side --- */

/* Computes the cells that V columns of outputs own, where rows consist of whole vectors, and of own
 * cells only.  The last of these columns of cells lies in windows of 3 of the next lane's first
 * outputs. If that lane has another chunk or plane, its outputs name no cell here, as long as their
 * indices lie in their windows. */
template <int K, int V, typename E, typename I>
struct max_column_vectors {
  enum { ROWS = V == 4 ? 1 : 2 /* of a set: as many as registers hold */ };
  enum { LAST = K - 2 /* rows of outputs between a row and the last that names its cells */ };
  const max_job &j;
  const I *index;
  const E *grad;
  E *out;
  int32_t load_row, row_end; /* of outputs: loaded next; behind the last that is needed */
  int32_t row;               /* checked next */
  uint32_t cell, h;          /* the first own cell of that row; its row, from the item's first */
  uint32_t done, count;      /* rows of outputs whose cells are written, or are to be */
  uint32_t item_height;      /* rows of cells */
  uint32_t outside;          /* 1 where the first window begins left of the plane, else 0 */
  bool in_windows;           /* all indices so far */
  max_column_output o[2][V + 1]; /* of this row and the one before, in turn */

  struct set {
    neighbours<I, V> index[ROWS];
    neighbours<E, V> grad[ROWS];
  };

  __device__ __forceinline__ void load(set &s) {
#pragma unroll
    for (int i = 0; i < ROWS; i++, load_row++) {
      s.index[i].load(index);
      s.grad[i].load(grad);
      advance_row(j, load_row, row_end, &index, &grad);
    }
  }

  /* Checks the indices of row i of a set and stores its outputs in o[i % 2]. */
  __device__ __forceinline__ void check(const set &s, int i) {
    const bool exists = (uint32_t)row < (uint32_t)row_end;
    const uint32_t window = cell - (K == 3 ? j.w.in + 1 : 0);
    uint32_t high = 0;
    max_column_output *to = o[i % 2];
#pragma unroll
    for (int v = 0; v < V; v++) {
      const I index = s.index[i].of[v];
      if (sizeof(I) == 8) high |= (uint32_t)((uint64_t)index >> 32);
      to[v] = {exists ? (uint32_t)index : ~0u, widened(s.grad[i].of[v])};
      const uint32_t first = v == 0 ? outside : 0;
      in_windows &= !exists | window_holds<K>(j, window + 2 * v, {first, K - first}, to[v].cell);
    }
    in_windows &= !exists | (high == 0);
    if (K == 3)
      to[V] = {__shfl_down_sync(EVERY_LANE, to[0].cell, 1),
               __shfl_down_sync(EVERY_LANE, to[0].grad, 1)};
    row++;
  }

  /* Writes the cells from `first` on, which outputs `own` own; those `below` may name them too. */
  __device__ __forceinline__ void compute_row(const max_column_output *own,
                                              const max_column_output *below, uint32_t first) {
    const uint32_t wide = j.w.in;
    float sum[2][2 * V] = {};
#pragma unroll
    for (int x = 0; x < 2 * V; x++) {
      const uint32_t upper = first + x, lower = upper + wide;
      add_if_named(sum[0][x], own[x / 2], upper);
      if (K == 3 && x % 2 == 1) add_if_named(sum[0][x], own[x / 2 + 1], upper);
      add_if_named(sum[1][x], own[x / 2], lower);
      if (K == 3 && x % 2 == 1) add_if_named(sum[1][x], own[x / 2 + 1], lower);
      if (K == 3) add_if_named(sum[1][x], below[x / 2], lower);
      if (K == 3 && x % 2 == 1) add_if_named(sum[1][x], below[x / 2 + 1], lower);
    }
    const uint32_t item_row = h - 2 * LAST;
    if ((done < count) & (item_row < item_height)) put_vector<2 * V>(out, sum[0]);
    if ((done < count) & (item_row + 1 < item_height)) put_vector<2 * V>(out + wide, sum[1]);
  }

  __device__ __forceinline__ void compute(const set &s) {
    const uint32_t stride = 2 * (uint32_t)j.w.in;
#pragma unroll
    for (int i = 0; i < ROWS; i++, cell += stride, h += 2, done++, out += stride) {
      check(s, i);
      if (K == 3)
        compute_row(o[(i + 1) % 2], o[i % 2], cell - stride);
      else
        compute_row(o[i % 2], nullptr, cell);
    }
  }
};

/* True if an index lies outside its window. */
template <int K, int V, typename E, typename I>
static __device__ __forceinline__ bool walk_vectors(const max_job &j, const max_column_task &t) {
  typedef max_column_vectors<K, V, E, I> vectors;
  const int32_t last = vectors::LAST, begin = t.rows.begin, end = t.rows.end;
  const int32_t ow = t.column, w = 2 * ow, top = 2 * begin;
  const int64_t first = t.plane * j.outputs + clamped(begin, j.h.out) * j.w.out + ow;
  const int64_t above = t.plane * j.cells + (top - 2 * last) * j.w.in + w;
  vectors v = {j, (const I *)j.index + first, (const E *)j.grad + first, (E *)j.in + above};
  v.load_row = v.row = begin;
  v.row_end = t.active ? min(end + last, j.h.out) : 0;
  v.cell = (uint32_t)(top * j.w.in + w);
  v.h = (uint32_t)(top - t.item_rows.begin);
  v.done = (uint32_t)-last;
  v.count = t.active && t.writes ? (uint32_t)max(end - begin, 0) : 0;
  v.item_height = (uint32_t)length(t.item_rows);
  v.outside = K == 3 && ow == 0;
  v.in_windows = true;
#pragma unroll
  for (int i = 0; i <= V; i++) v.o[1][i] = {~0u, 0};
  walk_in_turns(v, t.steps + last);
  return !v.in_windows;
}

/* --- Windows of 3 that slide by 1 --- */

/* Computes a column of cells.  They lie in the windows of three columns of outputs.  The lane reads
 * the middle one and gets the others from the lanes beside it.  If those have another chunk or
 * plane, their outputs name no cell here, as long as their indices lie in their windows. */
template <typename E, typename I>
struct max_column_cells {
  enum { K = 3, ROWS = 3 /* of a set, and that a cell lies in the windows of */ };
  enum { LAST = K - 1 /* rows of outputs from the first to the last that names a cell */ };
  const max_job &j;
  const I *index;
  const E *grad;
  E *out;
  int32_t load_row, row_end; /* of outputs: loaded next; behind the last that is needed */
  int32_t row;               /* checked next */
  uint32_t cell;             /* written next */
  uint32_t done, count;      /* cells written; cells to write */
  uint32_t window;           /* the first cell of that output's window */
  max_columns_inside inside;
  bool in_windows; /* all indices so far */
  max_column_output o[ROWS][K];

  struct set {
    I index[ROWS];
    E grad[ROWS];
  };

  __device__ __forceinline__ void load(set &s) {
#pragma unroll
    for (int i = 0; i < ROWS; i++, load_row++) {
      s.index[i] = __ldg(index);
      s.grad[i] = *grad;
      advance_row(j, load_row, row_end, &index, &grad);
    }
  }

  /* Checks the index of row i of a set and stores its output and its neighbours' in o[i]. */
  __device__ __forceinline__ void check(const set &s, int i) {
    const bool exists = (uint32_t)row < (uint32_t)row_end;
    const uint32_t cell = exists ? (uint32_t)s.index[i] : ~0u;
    const float grad = widened(s.grad[i]);
    const bool high = sizeof(I) == 8 && (uint64_t)s.index[i] >> 32 != 0;
    in_windows &= !exists | (window_holds<K>(j, window, inside, cell) & !high);
    o[i][0] = {__shfl_up_sync(EVERY_LANE, cell, 1), __shfl_up_sync(EVERY_LANE, grad, 1)};
    o[i][1] = {cell, grad};
    o[i][2] = {__shfl_down_sync(EVERY_LANE, cell, 1), __shfl_down_sync(EVERY_LANE, grad, 1)};
    row++;
    window += j.w.in;
  }

  /* Each row of outputs is the last one that may name a row of cells. */
  __device__ __forceinline__ void compute(const set &s) {
#pragma unroll
    for (int i = 0; i < ROWS; i++, done++, cell += j.w.in, out += j.w.in) {
      check(s, i);
      float sum = 0;
#pragma unroll
      for (int k = 0; k < K * K; k++) add_if_named(sum, o[(i + 1 + k / K) % ROWS][k % K], cell);
      if (done < count) write_cell(out, sum);
    }
  }
};

/* True if an index lies outside its window. */
template <typename E, typename I>
static __device__ __forceinline__ bool walk_cells(const max_job &j, const max_column_task &t) {
  typedef max_column_cells<E, I> cells;
  const int32_t pad = j.w.pad, last = cells::LAST, begin = t.rows.begin, w = t.column;
  const int32_t ow = w + pad - 1, row = begin + pad - last;
  const int32_t end = min(begin + t.steps, t.item_rows.end);
  const int64_t first =
      t.plane * j.outputs + clamped(row, j.h.out) * j.w.out + clamped(ow, j.w.out);
  const int64_t above = t.plane * j.cells + (begin - last) * j.w.in + w;
  cells c = {j, (const I *)j.index + first, (const E *)j.grad + first, (E *)j.in + above};
  c.load_row = c.row = row;
  c.row_end = t.active && (uint32_t)ow < (uint32_t)j.w.out ? min(end + pad, j.h.out) : 0;
  c.cell = (uint32_t)((begin - last) * j.w.in + w);
  c.done = (uint32_t)-last;
  c.count = t.active && t.writes ? (uint32_t)max(end - begin, 0) : 0;
  c.window = (uint32_t)((row - pad) * j.w.in + ow - pad);
  c.inside = columns_inside<3>(j, ow - pad);
  c.in_windows = true;
  walk_in_turns(c, t.steps + last);
  return !c.in_windows;
}

#endif
