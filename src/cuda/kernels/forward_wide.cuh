/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods `wide` of both forward kernels share: windows of many cells, 1 apart, in planes.
 *
 * As in the methods `columns` (forward_columns.cuh), a block first reduces every column of cells
 * over the rows of its windows into shared memory, and then every output over the columns of its
 * window.  Here a thread has four windows in both steps, below each other and then side by side.
 * They share all but their first and last three cells, so that a thread reads a cell once for all
 * four.  What a thread knows about its windows, a struct like column_sums, takes cells in order:
 *
 *     first(i, cell)   lies in windows 0 to i only
 *     common(cell)     lies in all four
 *     last(i, cell)    lies in windows i + 1 to 3 only
 *
 * A tile is some whole planes, or some rows and columns of outputs of one. */
#ifndef PG_CUDA_FORWARD_WIDE_CUH_
#define PG_CUDA_FORWARD_WIDE_CUH_

#include <type_traits>

#include "cuda/kernels/forward_geometry.cuh"
#include "cuda/kernels/shared_words.cuh"

enum {
  WIDE_THREADS = 256,
  WIDE_BLOCKS_PER_SM = 4,
  WINDOWS = 4,        /* that a thread has */
  RAMP = WINDOWS - 1, /* cells that not all of them have, at either end */
  MOST_WIDE_OUTPUTS = 128,
  MOST_WIDE_KERNEL = 512
};

/* --- Plans --- */

struct wide_plan {
  const void *in;
  void *out, *index;
  int32_t index_bytes;
  forward_strides in_strides, out_strides, index_strides;
  pg_axis_32 h, w;
  int32_t planes, tile_planes;
  int32_t tile_rows, tile_outputs; /* multiples of four */
  int32_t columns;                 /* of a row of a tile, in the plane or not */
  bool vectors;                    /* outputs are written four at a time */
  float divisor;                   /* of averages; 0: the cells of a window count */
  bool count_include_pad;          /* and those of the padding */
  pg_divider by_c, by_w_tiles, by_row_tiles;
  pg_divider by_inside; /* the most columns of a tile that lie in the plane */
  pg_divider by_bands;  /* four rows of a tile */
  pg_divider by_quads;  /* four outputs of a row of a tile */
  pg_divider by_tile_rows;
};

/* What a block computes: planes, and the first row and output of each. */
struct wide_tile {
  int32_t plane, planes, row, output;
  int32_t column;      /* the first one, which may lie before the plane */
  int32_t left, right; /* columns [left, right) lie in it */
};

static __device__ __forceinline__ wide_tile wide_tile_of(const wide_plan &p, uint32_t block) {
  wide_tile t;
  const uint32_t rest = over(block, p.by_w_tiles), group = over(rest, p.by_row_tiles);
  t.plane = (int32_t)group * p.tile_planes;
  t.planes = min(p.tile_planes, p.planes - t.plane);
  t.row = (int32_t)(rest - group * p.by_row_tiles.by) * p.tile_rows;
  t.output = (int32_t)(block - rest * p.by_w_tiles.by) * p.tile_outputs;
  t.column = t.output - p.w.pad;
  t.left = max(t.column, 0);
  t.right = min(t.column + p.columns, p.w.in);
  return t;
}

/* Where a plane begins. */
static __device__ __forceinline__ int64_t plane_offset(const wide_plan &p, const forward_strides &s,
                                                       int32_t plane) {
  const uint32_t n = over((uint32_t)plane, p.by_c), c = (uint32_t)plane - n * p.by_c.by;
  return n * s.n + c * s.c;
}

/* The first of all results in shared memory is at 0; results are 4 bytes each. */
static __device__ __forceinline__ uint32_t result_at(const wide_plan &p, int32_t row,
                                                     int32_t column) {
  return (uint32_t)(row * p.columns + column) * 4;
}

/* --- The first step --- */

/* Gives four windows the cells of a column: `column` is where it has row 0, and `row` is the first
 * one of window 0, which may lie before it.  Rows outside the plane are left out, but for the first
 * and the last three, which are fillers there. */
template <typename E, typename Windows>
static __device__ __forceinline__ void take_rows(const wide_plan &p, const E *column, int32_t row,
                                                 Windows *windows) {
  enum { BATCH = 4 }; /* rows that are loaded before the first of them is used */
  const int32_t kernel = p.h.reach + 1;
  float first[RAMP], last[RAMP];
  const auto load = [&](int32_t at) {
    if ((uint32_t)at >= (uint32_t)p.h.in) return Windows::filler();
    return widened(column[(uint64_t)(uint32_t)at * p.in_strides.h]);
  };
#pragma unroll
  for (int i = 0; i < RAMP; i++) {
    first[i] = load(row + i);
    last[i] = load(row + kernel + i);
  }
#pragma unroll
  for (int i = 0; i < RAMP; i++) windows->first(i, {first[i], row + i});
  int32_t at = max(row + RAMP, 0);
  const int32_t end = min(row + kernel, p.h.in);
  const E *cell = column + (uint64_t)(uint32_t)at * p.in_strides.h;
  const auto take_batch = [&](int32_t count) {
    E cells[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) {
      if (k < count) cells[k] = *cell;
      cell += p.in_strides.h;
    }
#pragma unroll
    for (int k = 0; k < BATCH; k++)
      if (k < count) windows->common({widened(cells[k]), at + k});
    at += BATCH;
  };
#pragma unroll 1
  while (at + BATCH <= end) take_batch(BATCH);
  take_batch(end - at);
#pragma unroll
  for (int i = 0; i < RAMP; i++) windows->last(i, {last[i], row + kernel + i});
}

/* Columns outside the plane are fillers. */
template <typename Windows>
static __device__ __forceinline__ void fill_outside(const wide_plan &p, const wide_tile &t,
                                                    uint32_t memory) {
  enum { LANES = 32 };
  const int32_t before = t.left - t.column, inside = t.right - t.left;
  const int32_t lane = (int32_t)(threadIdx.x % LANES);
  for (int32_t row = (int32_t)(threadIdx.x / LANES); row < t.planes * p.tile_rows;
       row += WIDE_THREADS / LANES)
    for (int32_t x = lane; x < p.columns - inside; x += LANES)
      Windows::keep_outside(p, memory + result_at(p, row, x < before ? x : x + inside));
}

template <typename E, typename Windows>
static __device__ __forceinline__ void reduce_columns(const wide_plan &p, const wide_tile &t,
                                                      uint32_t memory) {
  const int32_t inside = (int32_t)p.by_inside.by, bands = (int32_t)p.by_bands.by;
  for (int32_t i = (int32_t)threadIdx.x; i < t.planes * bands * inside; i += WIDE_THREADS) {
    const int32_t band = (int32_t)over((uint32_t)i, p.by_inside);
    const int32_t plane = (int32_t)over((uint32_t)band, p.by_bands);
    const int32_t row = t.row + (band - plane * bands) * WINDOWS;
    const int32_t column = t.left + (i - band * inside);
    if (row >= p.h.out || column >= t.right) continue;
    const E *in = (const E *)p.in + plane_offset(p, p.in_strides, t.plane + plane) +
                  (uint32_t)column * p.in_strides.w;
    Windows windows;
    take_rows(p, in, row - p.h.pad, &windows);
    windows.keep(p, memory + result_at(p, band * WINDOWS, column - t.column), column);
  }
}

/* --- The second step --- */

/* Gives four windows the columns of a row.  get(i) returns the four columns from 4 i on. */
template <int REST, typename Windows, typename F>
static __device__ __forceinline__ void take_columns(const wide_plan &p, Windows *windows, F get) {
  constexpr int MORE = (REST + RAMP + WINDOWS - 1) / WINDOWS;
  typedef decltype(get(0)) quad;
  const int32_t wholes = (p.w.reach + 1) / WINDOWS;
  const quad begin = get(0);
#pragma unroll
  for (int i = 0; i < RAMP; i++) windows->first(i, begin[i]);
  windows->common(begin[RAMP]);
#pragma unroll 2
  for (int32_t v = 1; v < wholes; v++) {
    const quad columns = get(v);
#pragma unroll
    for (int i = 0; i < WINDOWS; i++) windows->common(columns[i]);
  }
  quad rest[MORE];
#pragma unroll
  for (int v = 0; v < MORE; v++) rest[v] = get(wholes + v);
#pragma unroll
  for (int i = 0; i < REST; i++) windows->common(rest[i / WINDOWS][i % WINDOWS]);
#pragma unroll
  for (int i = 0; i < RAMP; i++) windows->last(i, rest[(REST + i) / WINDOWS][(REST + i) % WINDOWS]);
}

/* Four outputs side by side, of which there are `count`. */
struct wide_outputs {
  int32_t plane, oh, ow, count;
  uint32_t results; /* where their first column is in shared memory */
};

/* Calls fn with all outputs of the thread. */
template <typename F>
static __device__ __forceinline__ void for_outputs(const wide_plan &p, const wide_tile &t, F fn) {
  const int32_t rows = p.tile_rows, quads = (int32_t)p.by_quads.by;
  for (int32_t i = (int32_t)threadIdx.x; i < t.planes * rows * quads; i += WIDE_THREADS) {
    const int32_t row = (int32_t)over((uint32_t)i, p.by_quads);
    const int32_t plane = (int32_t)over((uint32_t)row, p.by_tile_rows);
    const int32_t x = (i - row * quads) * WINDOWS;
    wide_outputs o;
    o.plane = t.plane + plane;
    o.oh = t.row + (row - plane * rows);
    o.ow = t.output + x;
    o.count = p.w.out - o.ow;
    o.results = result_at(p, row, x);
    if (o.oh < p.h.out && o.count > 0) fn(o);
  }
}

/* The place of the first of four outputs in a tensor. */
static __device__ __forceinline__ int64_t offset_of(const wide_plan &p, const forward_strides &s,
                                                    const wide_outputs &o) {
  return plane_offset(p, s, o.plane) + ((uint32_t)o.oh * s.h + (uint32_t)o.ow * s.w);
}

/* --- On the host --- */

/* Has a window enough cells along the axis, each next to the one before, and so the next window?
 */
static inline bool is_wide(const pg_axis &a) {
  return a.kernel >= WINDOWS && a.kernel <= MOST_WIDE_KERNEL && a.stride == 1 && a.dilation == 1;
}

/* Windows along depth that hang over it are left to others: divisors may count their padding. */
static inline bool has_wide_windows(const pg_facts &f) {
  const pg_axis &d = f.pool.d;
  return !f.neighbours && d.in == 1 && d.out == 1 && d.kernel == 1 && d.pad == 0 &&
         is_wide(f.pool.h) && is_wide(f.pool.w);
}

/* Which part of a block's threads has work. */
static inline double used(int64_t items) {
  return (double)items / (double)(pg_ceil_div(items, WIDE_THREADS) * WIDE_THREADS);
}

/* How many whole planes, `most` at most, leave the fewest threads idle; they have `columns` items
 * each in the first step and `outputs` in the second. */
static inline int64_t planes_of_tile(int64_t most, int64_t columns, int64_t outputs) {
  int64_t best = most;
  double part = used(most * columns) * used(most * outputs);
  for (int64_t planes = most - 1; planes > most / 2; planes--) {
    const double other = used(planes * columns) * used(planes * outputs);
    if (other <= part + 0.02) continue;
    part = other;
    best = planes;
  }
  return best;
}

/* Cuts outputs into tiles whose results, of `bytes` each, have room in shared memory. */
static inline void plan_wide_tiles(const pg_facts &f, int64_t bytes, wide_plan *p) {
  enum { ROOM = 32 * 1024, BLOCKS_PER_PROCESSOR = 8 };
  const pg_pooling &g = f.pool;
  const int64_t w_tiles = pg_ceil_div(g.w.out, MOST_WIDE_OUTPUTS);
  const int64_t quads = pg_ceil_div(pg_ceil_div(g.w.out, w_tiles), WINDOWS);
  const int64_t columns = (quads + pg_ceil_div(g.w.kernel + RAMP, WINDOWS) - 1) * WINDOWS;
  const int64_t inside = least(columns, g.w.in), all_bands = pg_ceil_div(g.h.out, WINDOWS);
  const int64_t blocks = (int64_t)pg_cuda_least_limits()->processors * BLOCKS_PER_PROCESSOR;
  const int64_t fair = pg_ceil_div(all_bands * f.planes * w_tiles, blocks);
  int64_t bands = least(ROOM / (columns * bytes * WINDOWS), fair), planes = 1;
  if (bands < 1) bands = 1;
  if (bands >= all_bands) {
    planes = w_tiles > 1 ? 1 : least(f.planes, bands / all_bands);
    bands = all_bands;
    planes = planes_of_tile(planes, bands * inside, bands * WINDOWS * quads);
  } else {
    bands = pg_ceil_div(all_bands, pg_ceil_div(all_bands, bands));
  }
  p->tile_planes = (int32_t)planes;
  p->tile_rows = (int32_t)(bands * WINDOWS);
  p->tile_outputs = (int32_t)(quads * WINDOWS);
  p->columns = (int32_t)columns;
  p->by_w_tiles = divider_of(pg_ceil_div(g.w.out, p->tile_outputs));
  p->by_row_tiles = divider_of(pg_ceil_div(g.h.out, p->tile_rows));
  p->by_inside = divider_of(inside);
  p->by_bands = divider_of(bands);
  p->by_quads = divider_of(quads);
  p->by_tile_rows = divider_of(p->tile_rows);
}

/* The plan of a problem, but for its addresses and the strides of its indices; results have `bytes`
 * each. */
static inline wide_plan wide_plan_of(const pg_facts &f, const pg_strides &in, const pg_strides &out,
                                     int64_t bytes) {
  wide_plan p = {};
  p.in_strides = forward_strides_of(in);
  p.out_strides = forward_strides_of(out);
  p.h = axis_32(f.pool.h);
  p.w = axis_32(f.pool.w);
  p.planes = (int32_t)f.planes;
  p.by_c = divider_of(f.pool.c);
  plan_wide_tiles(f, bytes, &p);
  return p;
}

static inline int64_t wide_blocks(const wide_plan &p) {
  return (int64_t)p.by_w_tiles.by * p.by_row_tiles.by * pg_ceil_div(p.planes, p.tile_planes);
}

static inline int64_t wide_room(const wide_plan &p, int64_t bytes) {
  return (int64_t)p.tile_planes * p.tile_rows * p.columns * bytes;
}

/* Calls fn with kernel % 4, as a constant. */
template <typename F>
static cudaError_t with_rest(int64_t kernel, F fn) {
  switch (kernel % WINDOWS) {
    case 0:
      return fn(std::integral_constant<int, 0>());
    case 1:
      return fn(std::integral_constant<int, 1>());
    case 2:
      return fn(std::integral_constant<int, 2>());
    default:
      return fn(std::integral_constant<int, 3>());
  }
}

#endif
