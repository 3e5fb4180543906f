/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods `columns` of both forward kernels share: windows of any kind, reduced in two
 * steps that follow each other in a block.
 *
 * First every column of cells is reduced over the rows of its window (and its slices), by a thread
 * that reads down the column, and the result is put into shared memory.  Then every output is
 * reduced over the columns of its window.  So a cell is read once for each row of windows that it
 * lies in, with neighbouring lanes at neighbouring addresses, and a column's result serves all
 * windows along W.  A kernel's reducer says what a column is and how it takes cells and columns.
 *
 * A block has a tile: some rows of outputs, of one plane or of several small ones, and where rows
 * are long a part of each.  Where channels are neighbours, a tile has some channels of each cell,
 * and what is called a column here is one channel of it.  What depends on the row alone, or on the
 * output's place in it, is computed once for the tile and kept in two tables in shared memory. */
#ifndef PG_CUDA_FORWARD_COLUMNS_CUH_
#define PG_CUDA_FORWARD_COLUMNS_CUH_

#include "cuda/kernels/forward_geometry.cuh"
#include "cuda/kernels/in_register.cuh"
#include "cuda/kernels/shared_words.cuh"

enum { MOST_COLUMN_THREADS = 256, COLUMN_BLOCKS_PER_SM = 5 };

/* --- Plans --- */

/* A unit is a plane, or `inner` channels of an image where channels are neighbours.  A tile has
 * `tile_units` whole units, or `tile_rows` rows of one; in each row it has `tile_outputs` outputs,
 * whose windows lie in at most `tile_columns` columns. */
struct column_plan {
  const void *in;
  void *out, *index;
  int32_t index_bytes;
  forward_strides in_strides, out_strides, index_strides;
  forward_axis d, h, w;
  int32_t units, rows, channels, inner;
  int32_t tile_units, tile_rows, tile_outputs, tile_columns;
  int32_t vectors;       /* of the columns of a row of a tile */
  int32_t output_places; /* of a row of a tile that threads have in the second step */
  int32_t column_rows;   /* rows that all threads reduce at a time: in the first step, */
  int32_t output_rows;   /* and in the second; 0: a row has more than there are threads */
  uint32_t pitch;        /* from a row of columns in shared memory to the next */
  int32_t run;           /* rows of outputs that a thread walks down */
  uint32_t outputs_at, places_at, results_at; /* in shared memory, where the tables of rows begin */
  uint32_t result_rows;                       /* that there is room for */
  float divisor;                              /* of averages; 0: the cells of a window count */
  bool count_include_pad;                     /* and those of the padding */

  pg_divider by_w_tiles, by_row_tiles, by_groups, by_tile_rows, by_oh, by_vectors, by_outputs,
      by_inner, by_runs;
};

/* What a block computes. */
struct column_tile {
  int32_t unit, row, output,
      column;                      /* the first of each; no window of it begins before the column */
  int32_t rows, outputs, channels; /* rows of all its units, outputs of a row, channels */
  int64_t in, out, index;          /* where the first unit begins */
};

/* A row of outputs of a tile.  Offsets are counted from the first unit. */
struct column_row {
  uint32_t in;   /* of the first cell of its windows, in column 0 */
  uint32_t line; /* of that cell: its row in the plane, counted through all slices */
  uint32_t taps; /* cells of a window along H, and along D in the upper half */
  uint32_t pad;
};
struct output_row {
  uint32_t out;
  float extent; /* cells that count along D and H */
  uint32_t index, pad;
};

/* An output's place in a row of a tile: its first column, how many, and how many count. */
struct output_place {
  uint32_t first, count_extent;
};

/* --- Shared memory: the tables, and the columns behind them --- */

struct column_tables {
  column_row *columns;
  output_row *outputs;
  output_place *places;
};

static __device__ __forceinline__ column_tables column_tables_of(const column_plan &p,
                                                                 char *memory) {
  return {(column_row *)memory, (output_row *)(memory + p.outputs_at),
          (output_place *)(memory + p.places_at)};
}

/* --- Tiles --- */

static __device__ __forceinline__ int64_t unit_offset(const forward_strides &s, uint32_t n,
                                                      uint32_t c) {
  return n * s.n + c * s.c;
}

/* V: the first column is one with which a vector begins.  WALKS: windows that hang over are not cut
 * to the plane, so that the first column may be one before it. */
template <int V, bool WALKS>
static __device__ __forceinline__ column_tile column_tile_of(const column_plan &p, uint32_t block) {
  column_tile t;
  const uint32_t rest = over(block, p.by_w_tiles), group = over(rest, p.by_row_tiles);
  t.output = (int32_t)(block - rest * p.by_w_tiles.by) * p.tile_outputs;
  t.outputs = min(p.tile_outputs, p.w.windows.out - t.output);
  t.column = window<WALKS>(p.w.windows, t.output).begin;
  if (!WALKS) t.column = max(t.column, 0);
  if (V > 1 && p.inner == 1) t.column -= t.column & (V - 1);
  t.row = (int32_t)(rest - group * p.by_row_tiles.by) * p.tile_rows;
  t.unit = (int32_t)group * p.tile_units;
  const int32_t rows = min(p.tile_rows, p.rows - t.row);
  t.rows = rows * min(p.tile_units, p.units - t.unit);
  const uint32_t n = over((uint32_t)t.unit, p.by_groups);
  const uint32_t c = ((uint32_t)t.unit - n * p.by_groups.by) * (uint32_t)p.inner;
  t.channels = min(p.inner, p.channels - (int32_t)c);
  t.in = unit_offset(p.in_strides, n, c);
  t.out = unit_offset(p.out_strides, n, c);
  t.index = unit_offset(p.index_strides, n, c);
  return t;
}

static __device__ __forceinline__ void note_row(const column_plan &p, const column_tile &t,
                                                const column_tables &tables, int32_t i) {
  const uint32_t unit = over((uint32_t)i, p.by_tile_rows);
  const uint32_t row = (uint32_t)t.row + (uint32_t)i - unit * p.by_tile_rows.by;
  const uint32_t od = over(row, p.by_oh), oh = row - od * p.by_oh.by;
  const forward_taps d = taps_of(p.d, (int32_t)od), h = taps_of(p.h, (int32_t)oh);
  column_row c;
  c.in = unit * p.in_strides.unit + (uint32_t)d.first * p.in_strides.d +
         (uint32_t)h.first * p.in_strides.h;
  c.line = (uint32_t)(d.first * p.h.windows.in + h.first);
  c.taps = (uint32_t)d.count << 16 | (uint32_t)h.count;
  c.pad = 0;
  tables.columns[i] = c;
  output_row o;
  o.out = unit * p.out_strides.unit + od * p.out_strides.d + oh * p.out_strides.h;
  o.index = unit * p.index_strides.unit + od * p.index_strides.d + oh * p.index_strides.h;
  o.extent = (float)extent(p.d.windows, (int32_t)od, p.count_include_pad) *
             (float)extent(p.h.windows, (int32_t)oh, p.count_include_pad);
  o.pad = 0;
  tables.outputs[i] = o;
}

/* The same for walks, which have no use for a column_row. */
static __device__ __forceinline__ void note_walked_row(const column_plan &p, const column_tile &t,
                                                       const column_tables &tables, int32_t i) {
  const uint32_t unit = over((uint32_t)i, p.by_tile_rows);
  const uint32_t oh = (uint32_t)t.row + (uint32_t)i - unit * p.by_tile_rows.by;
  const pg_window_32 w = window<true>(p.h.windows, (int32_t)oh);
  const int32_t pad = p.count_include_pad ? p.h.windows.pad : 0;
  output_row o;
  o.out = unit * p.out_strides.unit + oh * p.out_strides.h;
  o.extent = (float)(min(w.begin + (int32_t)w.length, p.h.windows.in + pad) - max(w.begin, -pad));
  o.index = unit * p.index_strides.unit + oh * p.index_strides.h;
  o.pad = 0;
  tables.outputs[i] = o;
}

template <bool WALKS>
static __device__ __forceinline__ void note_place(const column_plan &p, const column_tile &t,
                                                  const column_tables &tables, int32_t i) {
  const uint32_t counted = (uint32_t)extent(p.w.windows, t.output + i, p.count_include_pad);
  forward_taps w = {window<WALKS>(p.w.windows, t.output + i).begin, 0};
  if (!WALKS) w = taps_of(p.w, t.output + i);
  tables.places[i] = {(uint32_t)(w.first - t.column) * (uint32_t)p.inner,
                      (uint32_t)w.count | counted << 16};
}

template <bool WALKS>
static __device__ __forceinline__ void fill_tables(const column_plan &p, const column_tile &t,
                                                   const column_tables &tables) {
  for (int32_t i = (int32_t)threadIdx.x; i < t.rows + t.outputs; i += (int32_t)blockDim.x)
    if (i >= t.rows)
      note_place<WALKS>(p, t, tables, i - t.rows);
    else if (WALKS)
      note_walked_row(p, t, tables, i);
    else
      note_row(p, t, tables, i);
}

/* --- How threads are dealt out --- */

/* A thread's place among `width` ones and its rows: `row`, and others `rows` apart.  Where a row
 * has more places than there are threads, it has further ones `next` apart. */
struct column_share {
  int32_t place, next, row, rows;
};

static __device__ __forceinline__ column_share share_of(const pg_divider &width, int32_t rows) {
  if (rows == 0) return {(int32_t)threadIdx.x, (int32_t)blockDim.x, 0, 1};
  const uint32_t row = over(threadIdx.x, width);
  const int32_t place = (int32_t)(threadIdx.x - row * width.by);
  return {place, (int32_t)width.by, (int32_t)row < rows ? (int32_t)row : INT32_MAX / 2, rows};
}

/* --- The first step --- */

/* Windows of K rows that are S apart, in one slice: a thread walks down `run` rows of outputs and
 * has the rows of cells that two of them share in registers.  OUT rows of outputs at a time. */
template <typename R, int V, int K, int S, int OUT>
struct column_walk {
  typedef typename R::element E;
  enum { KEPT = K - S, ROWS = KEPT + OUT * S };
  vector_of<E, V> cells[ROWS];
  bool valid[ROWS];

  /* Rows [FROM, TO) of those that the next OUT outputs need.  h: that of the first of them; those
   * from `end` on are not needed. */
  template <int FROM, int TO>
  __device__ __forceinline__ void load(const E *cell, int64_t down, int32_t h, int32_t end) {
#pragma unroll
    for (int i = FROM; i < TO; i++) {
      valid[i] = (uint32_t)(h + i) < (uint32_t)end;
#pragma unroll
      for (int v = 0; v < V; v++) cells[i].of[v] = R::filler();
      if (valid[i]) cells[i].load(cell + i * down);
    }
  }
  __device__ __forceinline__ void shift() {
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
      cells[i] = cells[i + OUT * S];
      valid[i] = valid[i + OUT * S];
    }
  }
};

/* Rows [row, end) of outputs of a unit; `cell` is where row 0 of its cells would have the vector,
 * `to` the place of the first row's results. */
template <typename R, int V, int K, int S>
static __device__ __forceinline__ void walk_down(const column_plan &p,
                                                 const typename R::element *cell, int32_t row,
                                                 int32_t end, const typename R::room &room) {
  constexpr int OUT = V * (int)sizeof(typename R::element) >= 16 ? (S == 1 ? 4 : 2) : 4;
  column_walk<R, V, K, S, OUT> walk;
  const int64_t down = p.in_strides.h;
  int32_t h = row * S - p.h.windows.pad;
  const int32_t h_end = min(p.h.windows.in, (end - 1) * S - p.h.windows.pad + K);
  typename R::room to = room;
  cell += h * down;
  walk.template load<0, K - S>(cell, down, h, h_end);
#pragma unroll 1
  for (; row < end; row += OUT) {
    walk.template load<K - S, K - S + OUT * S>(cell, down, h, h_end);
#pragma unroll
    for (int o = 0; o < OUT; o++) {
      if (row + o >= end) break;
      typename R::column results[V];
      R::template take_window<V, K>(results, walk.cells + o * S, walk.valid + o * S,
                                    (uint32_t)(h + o * S));
      R::template keep<V>(to, results);
      to = R::below(to, p.pitch);
    }
    walk.shift();
    cell += OUT * S * down;
    h += OUT * S;
  }
}

/* Any windows: a row of outputs. */
template <typename R, int V>
static __device__ __forceinline__ void reduce_rows(const column_plan &p, const column_row &r,
                                                   const typename R::element *from,
                                                   const typename R::room &to) {
  typedef typename R::element E;
  constexpr int BATCH = V * (int)sizeof(E) >= 16 ? 4 : 8; /* rows loaded before the first is used */
  const uint32_t down = in_register(p.h.step.by * p.in_strides.h);
  const int32_t h_count = (int32_t)(r.taps & 0xffff), d_count = (int32_t)(r.taps >> 16);
  typename R::column results[V];
  R::template clear<V>(results, r.line);
  const E *slice = from + r.in;
  uint32_t line = r.line;
  for (int32_t d = 0; d < d_count; d++) {
    const E *cell = slice;
    uint32_t at = line;
    for (int32_t h = 0; h < h_count; h += BATCH) {
      vector_of<E, V> cells[BATCH];
#pragma unroll
      for (int k = 0; k < BATCH; k++) {
        if (h + k < h_count) cells[k].load(cell);
        cell += down;
      }
#pragma unroll
      for (int k = 0; k < BATCH; k++) {
        if (h + k < h_count) R::template take_cells<V>(results, cells[k], at);
        at += p.h.step.by;
      }
    }
    slice += p.d.step.by * p.in_strides.d;
    line += p.d.step.by * (uint32_t)p.h.windows.in;
  }
  R::template keep<V>(to, results);
}

/* The distance of a vector of a row of cells from the row's first cell, and its column. */
struct column_vector {
  uint32_t offset;
  bool exists;
};

static __device__ __forceinline__ column_vector vector_at(const column_plan &p,
                                                          const column_tile &t, uint32_t x) {
  const uint32_t column = p.inner == 1 ? x : over(x, p.by_inner);
  const uint32_t channel = x - column * (uint32_t)p.inner, all = (uint32_t)t.column + column;
  return {all * p.in_strides.w + channel,
          all < (uint32_t)p.w.windows.in && (int32_t)channel < t.channels};
}

/* The rows of a thread in the first step: walks where K is not 0. */
template <typename R, int V, int K, int S>
static __device__ __forceinline__ void reduce_vector(const column_plan &p, const column_tile &t,
                                                     const column_share &share,
                                                     const typename R::element *in,
                                                     const typename R::room &room,
                                                     const column_tables &tables) {
  if constexpr (K > 0) {
    const int32_t rows = min(p.tile_rows, p.rows - t.row), runs = (int32_t)p.by_runs.by;
    const int32_t units = min(p.tile_units, p.units - t.unit);
    for (int32_t i = share.row; i < units * runs; i += share.rows) {
      const int32_t unit = (int32_t)over((uint32_t)i, p.by_runs), first = (i - unit * runs) * p.run;
      const int32_t end = min(first + p.run, rows);
      if (first < end)
        walk_down<R, V, K, S>(p, in + (uint32_t)unit * p.in_strides.unit, t.row + first,
                              t.row + end,
                              R::below(room, (uint32_t)(unit * rows + first) * p.pitch));
    }
  } else {
    for (int32_t row = share.row; row < t.rows; row += share.rows)
      reduce_rows<R, V>(p, tables.columns[row], in, R::below(room, (uint32_t)row * p.pitch));
  }
}

/* Columns outside the plane, which take part in windows that hang over and change nothing. */
template <typename R, int V>
static __device__ __forceinline__ void keep_outside(const column_plan &p, const column_tile &t,
                                                    const column_share &share,
                                                    const typename R::room &room) {
  typename R::column results[V];
  R::template outside<V>(results);
  for (int32_t row = share.row; row < t.rows; row += share.rows)
    R::template keep<V>(R::below(room, (uint32_t)row * p.pitch), results);
}

template <typename R, int V, int K, int S>
static __device__ __forceinline__ void reduce_columns(const column_plan &p, const column_tile &t,
                                                      const column_tables &tables,
                                                      uint32_t memory) {
  typedef typename R::element E;
  const column_share share = share_of(p.by_vectors, p.column_rows);
  const E *in = (const E *)p.in + t.in;
  for (int32_t place = share.place; place < p.vectors; place += share.next) {
    const uint32_t x = (uint32_t)place * V;
    const column_vector v = vector_at(p, t, x);
    if (v.exists)
      reduce_vector<R, V, K, S>(p, t, share, global_in_register(in + v.offset),
                                R::room_at(p, memory, x), tables);
    else if (K > 0)
      keep_outside<R, V>(p, t, share, R::room_at(p, memory, x));
    if (p.column_rows != 0) break;
  }
}

/* --- The second step --- */

/* A cell of a maximum, and its position in the plane or its row. */
template <typename T>
struct found_cell {
  T value;
  uint32_t position;
};

/* An output's place in a row, as a thread of the second step has it: its columns, the output in the
 * first row of the tile's first unit, and the thread's rows. */
struct output_column {
  uint32_t first; /* column, or channel of it, in a row of results */
  int32_t count;  /* columns of the window */
  float wide;     /* and those that count for an average */
  uint32_t ow, channel;
  uint32_t row_at;   /* in shared memory, what is known about the first of its rows */
  int32_t row, rows; /* the first one, and the distance of others */
};

/* Calls fn with every output_column of the thread.  VB: neighbouring channels that it has. */
template <int VB, typename F>
static __device__ __forceinline__ void for_outputs(const column_plan &p, const column_tile &t,
                                                   uint32_t memory, F fn) {
  const column_share share = share_of(p.by_outputs, p.output_rows);
  const int32_t width = p.tile_outputs * p.inner;
  for (int32_t y = share.place * VB; y < width; y += share.next * VB) {
    const int32_t place = p.inner == 1 ? y : (int32_t)over((uint32_t)y, p.by_inner);
    const int32_t channel = y - place * p.inner;
    if (place < t.outputs && channel < t.channels) {
      const uint2 at =
          table_words(memory + p.places_at + (uint32_t)(place * (int)sizeof(output_place)));
      output_column o;
      o.first = at.x + (uint32_t)channel;
      o.count = (int32_t)(at.y & 0xffff);
      o.wide = (float)(at.y >> 16);
      o.ow = (uint32_t)(t.output + place);
      o.channel = (uint32_t)channel;
      o.row_at = memory + p.outputs_at + (uint32_t)share.row * (uint32_t)sizeof(output_row);
      o.row = share.row;
      o.rows = share.rows;
      fn(o);
    }
    if (p.output_rows != 0) break;
  }
}

/* --- On the host --- */

struct column_shape {
  int64_t element_bytes, column_bytes; /* of a cell; of a column's result in shared memory */
  int64_t v;                           /* cells that a thread loads at once */
  bool walks;                          /* windows that hang over are not cut */
  int64_t vb;                          /* channels of outputs that a thread has */
};

/* Are units a fixed distance apart, so that a tile may have several?  Sets the distance. */
static inline bool has_equal_units(const pg_facts &f, const pg_strides &s, forward_strides *to) {
  const int64_t most = (int64_t)1 << 21, n = s.of[PG_N], c = s.of[PG_C];
  const int64_t unit = f.neighbours || f.pool.c == 1 ? n : c;
  to->unit = (uint32_t)unit;
  if (unit < 0 || unit >= most) return false;
  return f.neighbours || f.pool.n == 1 || f.pool.c == 1 || n == f.pool.c * c;
}

/* At most how many columns of a tile the windows of `outputs` neighbouring outputs need. */
static inline int64_t columns_of(const pg_axis &a, int64_t outputs, const column_shape &s,
                                 int64_t inner) {
  const int64_t all = a.kernel == 0 ? outputs * a.in / a.out + 2
                                    : (outputs - 1) * a.stride + pg_window_span(&a) + 1;
  const int64_t begun = inner == 1 ? pg_ceil_div(all + s.v - 1, s.v) * s.v : all;
  return s.walks ? begun : least(a.in, begun);
}

/* Channels of a tile: as many as fill a cache line, in groups of the same size. */
static inline int64_t inner_of(const pg_facts &f, const column_shape &s) {
  if (!f.neighbours) return 1;
  const int64_t line = 128 / s.element_bytes, groups = pg_ceil_div(f.pool.c, line);
  return least(f.pool.c, pg_ceil_div(pg_ceil_div(f.pool.c, groups), 8) * 8);
}

/* Which part of `threads` threads has work if each row has `width` places. */
static inline double used(int64_t width, int64_t rows, int64_t threads) {
  if (width > threads) return (double)width / (double)(pg_ceil_div(width, threads) * threads);
  const int64_t at_once = threads / width, rounds = pg_ceil_div(rows, at_once);
  return (double)(rows * width) / (double)(rounds * threads);
}

static inline int64_t column_threads(const column_plan &p) {
  const int64_t rows = (int64_t)p.tile_units * p.tile_rows, outputs = p.output_places;
  int64_t best = 256;
  double most = 0;
  for (int64_t threads = 128; threads <= MOST_COLUMN_THREADS; threads += 32) {
    const double part = used(p.vectors, rows, threads) * used(outputs, rows, threads);
    if (part > most + 0.02) {
      most = part;
      best = threads;
    }
  }
  return best;
}

/* Sets how large tiles are. */
static inline void plan_tiles(const pg_facts &f, const column_shape &s, column_plan *p) {
  enum { ROOM = 36 * 1024, ROW_ROOM = 8 * 1024, MOST_TILE_OUTPUTS = 1024, LEAST_PLACES = 128 };
  const pg_pooling &g = f.pool;
  const int64_t inner = p->inner;
  int64_t outputs = least(g.w.out, MOST_TILE_OUTPUTS);
  while (outputs > 1 && columns_of(g.w, outputs, s, inner) * inner * s.column_bytes > ROW_ROOM)
    outputs = pg_ceil_div(outputs, 2);
  outputs = pg_ceil_div(g.w.out, pg_ceil_div(g.w.out, outputs));
  const int64_t columns =
      outputs == g.w.out && !s.walks ? g.w.in : columns_of(g.w, outputs, s, inner);
  p->tile_outputs = (int32_t)outputs;
  p->tile_columns = (int32_t)columns;
  p->pitch = (uint32_t)(pg_ceil_div(columns * inner, 8) * 8);
  p->vectors = (int32_t)pg_ceil_div(columns * inner, s.v);
  const int64_t row_bytes = (int64_t)p->pitch * s.column_bytes + 32;
  const int64_t w_tiles = pg_ceil_div(g.w.out, outputs), all_rows = p->rows * (int64_t)p->units;
  const int64_t wanted_blocks = (int64_t)pg_cuda_least_limits()->processors * 16;
  int64_t rows = ROOM / row_bytes < 1 ? 1 : ROOM / row_bytes;
  const int64_t fair = pg_ceil_div(all_rows * w_tiles, wanted_blocks);
  const int64_t enough = pg_ceil_div(LEAST_PLACES, p->vectors);
  if (rows > fair) rows = fair > enough ? fair : least(rows, enough);
  p->tile_units = 1;
  if (rows >= p->rows) {
    p->tile_units = (int32_t)least(least(p->units, 512), rows / p->rows);
    rows = p->rows;
  } else {
    rows = pg_ceil_div(p->rows, pg_ceil_div(p->rows, rows));
  }
  p->tile_rows = (int32_t)rows;
}

static inline void plan_dividers(const pg_pooling &g, bool neighbours, column_plan *p) {
  p->by_w_tiles = divider_of(pg_ceil_div(g.w.out, p->tile_outputs));
  p->by_row_tiles = divider_of(pg_ceil_div(p->rows, p->tile_rows));
  p->by_groups = divider_of(neighbours ? pg_ceil_div(g.c, p->inner) : g.c);
  p->by_tile_rows = divider_of(p->tile_rows);
  p->by_oh = divider_of(g.h.out);
  p->by_vectors = divider_of(p->vectors);
  p->by_outputs = divider_of(p->output_places);
  p->by_inner = divider_of(p->inner);
}

/* The plan of a problem; the caller sets addresses and the strides of indices before, which count
 * where units must be a fixed distance apart. */
static inline void plan_columns(const pg_facts &f, const column_shape &s, bool equal_units,
                                column_plan *p) {
  const pg_pooling &g = f.pool;
  p->d = forward_axis_of(g.d);
  p->h = forward_axis_of(g.h);
  p->w = forward_axis_of(g.w);
  p->channels = (int32_t)g.c;
  p->inner = (int32_t)inner_of(f, s);
  const int64_t groups = f.neighbours ? pg_ceil_div(g.c, p->inner) : 1;
  p->units = (int32_t)(f.neighbours ? g.n * groups : f.planes);
  if (!f.neighbours) p->channels = INT32_MAX;
  p->rows = (int32_t)(g.d.out * g.h.out);
  plan_tiles(f, s, p);
  if (!equal_units || groups > 1) p->tile_units = 1;
  p->output_places = (int32_t)(p->tile_outputs * (int64_t)p->inner / s.vb);
  plan_dividers(g, f.neighbours, p);
}

static inline int64_t column_blocks(const column_plan &p) {
  return (int64_t)p.by_w_tiles.by * p.by_row_tiles.by * pg_ceil_div(p.units, p.tile_units);
}

/* Deals out threads, and shared memory. */
static inline void deal_out(column_plan *p, int64_t threads) {
  const int64_t rows = (int64_t)p->tile_units * p->tile_rows;
  p->column_rows = (int32_t)(threads / p->vectors);
  const int64_t teams = p->column_rows < 1 ? 1 : p->column_rows;
  const int64_t runs = teams > p->tile_units ? teams / p->tile_units : 1;
  p->run = (int32_t)pg_ceil_div(p->tile_rows, runs);
  p->by_runs = divider_of(pg_ceil_div(p->tile_rows, p->run));
  p->result_rows = (uint32_t)rows;
  p->outputs_at = (uint32_t)(rows * (int64_t)sizeof(column_row));
  p->places_at = p->outputs_at + (uint32_t)(rows * (int64_t)sizeof(output_row));
  p->results_at =
      p->places_at + (uint32_t)((p->tile_outputs * (int64_t)sizeof(output_place) + 15) / 16 * 16);
  p->output_rows = (int32_t)(threads / p->output_places);
}

static inline int64_t column_room(const column_plan &p, int64_t column_bytes) {
  return p.results_at + (int64_t)p.result_rows * p.pitch * column_bytes;
}

/* Have windows `kernel` columns, and as many rows that are `stride` apart, in one slice?  Windows
 * along depth that hang over it are left to others: divisors may count their padding. */
static inline bool has_walks(const pg_pooling &p, int64_t kernel, int64_t stride) {
  return p.d.in == 1 && p.d.out == 1 && p.d.kernel == 1 && p.d.pad == 0 && p.h.kernel == kernel &&
         p.h.stride == stride && p.h.dilation == 1 && p.h.pad < kernel && p.w.kernel == kernel &&
         p.w.dilation == 1;
}

/* How many cells a thread can load at once.  Where threads would be few, they load 4 bytes. */
static inline int64_t column_vector_cells(const pg_facts &f, const void *in, const pg_strides &s,
                                          int64_t element_bytes) {
  const int64_t inner = f.neighbours ? f.pool.c : f.pool.w.in;
  const int axes[] = {PG_N, PG_D, PG_H, f.neighbours ? PG_W : PG_C};
  const int64_t enough =
      (int64_t)2 * MOST_COLUMN_THREADS * COLUMN_BLOCKS_PER_SM * pg_cuda_least_limits()->processors;
  const int64_t all = f.planes * f.pool.d.out * f.pool.h.out * f.pool.w.in;
  const int64_t most = all * element_bytes / 16 < enough ? 4 : 16;
  for (int64_t bytes = most; bytes > element_bytes; bytes = bytes == 16 ? 4 : element_bytes) {
    bool fits = (uintptr_t)in % (uintptr_t)bytes == 0 && inner * element_bytes % bytes == 0;
    for (int axis : axes) fits = fits && s.of[axis] * element_bytes % bytes == 0;
    if (!f.neighbours) fits = fits && s.of[PG_W] == 1;
    if (fits) return bytes / element_bytes;
  }
  return 1;
}

#endif
