/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools with adaptive windows and many outputs: planes with at least 32 outputs in a row, and
 * along each axis no more outputs than cells.
 *
 * A warp walks down the rows of outputs of a plane and adds each output to the sum of the cell that
 * its index names.  The sums are in shared memory, in a ring that holds the rows of one window:
 * rows that the next window does not have are written to gradInput and cleared.  So a warp needs
 * little shared memory, reads each output once and writes each cell once, and never waits for
 * another warp.
 *
 * Here a cell lies in one or two windows along each axis.  So of a row of outputs only two that are
 * neighbours can name the same cell, and the right one of two such lanes adds both gradients.
 *
 * An index outside its window, be it a stray or a bad index, is not added, and the block computes
 * its item again (max_recompute.cuh).  Windows that slide are left to other methods, except those
 * that follow each other without a gap, which are adaptive ones as well. */
#include "cuda/kernels/in_register.cuh"
#include "cuda/kernels/max_recompute.cuh"

enum {
  LANES = 32,
  MOST_UNITS = 4,             /* outputs of a lane at a time, LANES apart: as registers allow */
  STRIP = MOST_UNITS * LANES, /* outputs of a warp at a time; a row that has more is WIDE */
  MOST_WARPS = 4,             /* of a block */
  WARPS_OF_PROCESSOR = 32     /* as many as their registers allow */
};

/* in = advance * out + remainder: a window begins `advance` cells behind the one before, or one
 * cell more. */
struct dense_axis {
  int32_t in, out, advance, remainder;
  pg_divider by_out;
};

struct dense_plan {
  dense_axis h, w;
  int32_t warps;        /* of a block */
  int32_t chunks, rows; /* an item's rows of cells are cut into chunks of so many rows */
  uint32_t ring;        /* cells of a warp's ring, a power of two */
  uint32_t column;      /* 2^32 / w.in, rounded up: a column as a fraction of a row */
  uint32_t half_column;
  bool groups; /* 16 bytes of gradInput can be written at once */
  pg_divider by_chunks;
};

/* What a warp computes at a time: rows of a plane.  Rows and cells are counted from the first of
 * them. */
struct dense_task {
  int64_t plane;
  pg_span rows;
};

/* Shared memory by its address, see shared_address. */
template <typename T>
static __device__ __forceinline__ T *shared_at(uint32_t address) {
  return (T *)__cvta_shared_to_generic(address);
}

/* --- Windows --- */

/* A window along an axis begins with cell floor(output * in / out). */
struct dense_window {
  int32_t first, remainder; /* the quotient and the remainder of that division */
};

static __device__ __forceinline__ dense_window window_on(const dense_axis &a, int32_t output) {
  const int32_t first = (int32_t)over((uint32_t)(output * a.in), a.by_out);
  return {first, output * a.in - first * a.out};
}

static __device__ __forceinline__ dense_window after(const dense_axis &a, dense_window w) {
  w.first += a.advance;
  w.remainder += a.remainder;
  if (w.remainder >= a.out) {
    w.remainder -= a.out;
    w.first++;
  }
  return w;
}

/* Where the window before this one ends. */
static __device__ __forceinline__ int32_t end_before(const dense_window &w) {
  return w.first + (w.remainder > 0);
}

/* The windows of a column of outputs along W, in fractions of a row that are counted in 2^-32:
 * where they begin, negated, and a length that lies between their last cell and the cell behind it.
 */
struct dense_column {
  uint32_t minus_begin, length;
};

static __device__ __forceinline__ dense_column dense_column_of(const dense_plan &g,
                                                               int32_t output) {
  const dense_window w = window_on(g.w, output);
  const uint32_t last = (uint32_t)(end_before(after(g.w, w)) - w.first - 1);
  return {in_register(0 - (uint32_t)w.first * g.column),
          in_register(last * g.column + g.half_column)};
}

/* Does a window hold the cell that lies `behind` the first cell of its first row, if its rows have
 * `tall` cells together?  The product of `behind` with a column is the cell's position in rows; the
 * whole rows overflow, and the fraction that is left says where in its row the cell is.  So no
 * division is needed.  The fraction is too large by less than half a column, see has_fractions. */
static __device__ __forceinline__ bool in_dense_window(const dense_plan &g, const dense_column &c,
                                                       uint32_t behind, uint32_t tall) {
  return (behind < tall) & (behind * g.column + c.minus_begin < c.length);
}

/* --- Outputs --- */

/* A lane's outputs of a strip, as loaded.  Index ~0: there is none. */
template <int UNITS, typename E, typename I>
struct dense_outputs {
  I index[UNITS];
  E grad[UNITS];
};

/* The strip that a lane loads next.  Behind the last row it loads that row again. */
template <bool WIDE, int UNITS, typename E, typename I>
struct dense_reader {
  const I *index;
  const E *grad;
  int32_t own;           /* column of the lane's first output in a strip */
  int32_t width;         /* outputs of a row */
  int32_t columns, rows; /* that are left, with those of the strip */
  bool in_windows;       /* all indices that the lane has checked */

  /* Has the lane an i-th output in a strip of `columns` outputs?  Rows that are not WIDE have more
   * than half of the outputs that the lanes could have. */
  __device__ __forceinline__ bool has(int i, int32_t columns) const {
    return (!WIDE && i < UNITS / 2) || own + i * LANES < columns;
  }

  /* A lane that has found an index outside its window loads no more of them.  This has the
   * compiler check a strip's indices before it loads others into their registers. */
  __device__ __forceinline__ void load(dense_outputs<UNITS, E, I> &o) {
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
      if (has(i, columns)) o.grad[i] = grad[i * LANES];
      if (in_windows & has(i, columns))
        o.index[i] = __ldg(index + i * LANES);
      else if (WIDE)
        o.index[i] = (I)~0u;
    }
    const bool last = !WIDE || columns <= STRIP;
    const int32_t stride = !last ? STRIP : (WIDE ? columns : width) - (rows > 1 ? 0 : width);
    index = global_in_register(index + stride);
    grad = global_in_register(grad + stride);
    if (WIDE) columns = last ? width : columns - STRIP;
    if (last) rows--;
  }
};

/* --- Sums --- */

/* A lane's view of its warp's ring. */
struct dense_ring {
  uint32_t sums, mask; /* shared address; cells of the ring less one */
  uint32_t cells;      /* of the task: an output may name one above or below it, and is ignored */
  uint32_t next_lane;  /* its bit */
  bool has_left;       /* there is a lane to the left, which has the output before */
};

/* If two neighbouring lanes name the same cell, the right one adds both gradients.  So no two lanes
 * touch a sum at once, as long as those whose index lies outside its window add nothing. */
static __device__ __forceinline__ void add(const dense_ring &r, uint32_t cell, float grad,
                                           bool in_window) {
  const bool second = (__shfl_up_sync(EVERY_LANE, cell, 1) == cell) & r.has_left;
  const float before = __uint_as_float(__shfl_up_sync(EVERY_LANE, __float_as_uint(grad), 1));
  const bool done_by_next = (__ballot_sync(EVERY_LANE, second) & r.next_lane) != 0;
  if ((cell < r.cells) & !done_by_next & in_window) {
    float *at = shared_at<float>(r.sums + 4 * (cell & r.mask));
    *at = (second ? *at + before : *at) + grad;
  }
  __syncwarp();
}

/* Reads V sums and clears them. */
template <int V>
static __device__ __forceinline__ void read_and_clear(float *sum, uint32_t address) {
  if constexpr (V == 1) {
    sum[0] = *shared_at<float>(address);
    *shared_at<float>(address) = 0;
  } else {
#pragma unroll
    for (int i = 0; i < V; i += 4) {
      const float4 four = *shared_at<float4>(address + 4 * i);
      *shared_at<float4>(address + 4 * i) = make_float4(0, 0, 0, 0);
      memcpy(sum + i, &four, sizeof four);
    }
  }
}

/* Writes cells [from, to), V at a time. */
template <int V, typename E>
static __device__ __forceinline__ void write_range(const dense_plan &g, E *out, uint32_t ring,
                                                   uint32_t from, uint32_t to) {
#pragma unroll 1
  for (uint32_t at = from + V * lane_number(); at < to; at += V * LANES) {
    float sum[V];
    read_and_clear<V>(sum, ring + 4 * (at & (g.ring - 1)));
    put_vector<V>(out + at, sum);
  }
}

/* Writes rows as far as they belong to the task. */
template <typename E>
static __device__ __forceinline__ void write_rows(const max_job &j, const dense_plan &g,
                                                  const dense_task &t, E *out, uint32_t ring,
                                                  pg_span rows) {
  const uint32_t first = (uint32_t)(max(rows.begin, 0) * j.w.in);
  const uint32_t end = (uint32_t)(min(rows.end, length(t.rows)) * j.w.in);
  if (g.groups)
    write_range<16 / sizeof(E)>(g, out, ring, first, end);
  else
    write_range<1>(g, out, ring, first, end);
  __syncwarp();
}

/* --- The walk --- */

/* Where a strip of outputs and its windows are. */
struct dense_strip {
  int32_t first;  /* column of outputs */
  uint32_t begin; /* the task's first cell, in its plane */
  uint32_t top;   /* the first cell of the row that the windows begin in, from there on */
  uint32_t tall;  /* cells of all rows that the windows have */
};

/* Finds the cells that a strip's outputs name, and checks that they lie in their windows. */
template <bool WIDE, int UNITS, typename E, typename I>
static __device__ __forceinline__ void find_cells(const dense_plan &g, const dense_strip &s,
                                                  dense_reader<WIDE, UNITS, E, I> &in,
                                                  const dense_outputs<UNITS, E, I> &o,
                                                  dense_column *columns, uint32_t *cell) {
#pragma unroll
  for (int i = 0; i < UNITS; i++) {
    const uint64_t index = (uint64_t)(int64_t)o.index[i];
    cell[i] = (uint32_t)index - s.begin;
    if (WIDE) columns[i] = dense_column_of(g, in.own + s.first + i * LANES);
    in.in_windows &= (in_dense_window(g, columns[i], cell[i] - s.top, s.tall) &
                      (sizeof(I) == 4 || index >> 32 == 0)) |
                     !in.has(i, in.width - s.first);
  }
}

/* A warp computes a task with its ring, whose sums are zeros before and afterwards.  True if an
 * index lies outside its window.  This may be one whose window begins above the task: the item is
 * then computed again for nothing, which does no harm. */
template <bool WIDE, int UNITS, typename E, typename I>
static __device__ __forceinline__ bool compute_task(const max_job &j, const dense_plan &g,
                                                    const dense_task &t, uint32_t ring) {
  enum { AHEAD = sizeof(I) == 8 ? 1 : 2 /* strips on their way: as many as registers hold */ };
  const int32_t lane = lane_number(), wide = j.w.in, width = j.w.out;
  const pg_span oh = touching((const pg_axis_32 &)j.h, t.rows.begin, t.rows.end);
  const int64_t first = t.plane * j.outputs + oh.begin * width + lane;
  const uint32_t begin = (uint32_t)(t.rows.begin * wide);
  E *out = global_in_register((E *)j.in + t.plane * j.cells + begin);
  dense_reader<WIDE, UNITS, E, I> in = {global_in_register((const I *)j.index + first),
                                        global_in_register((const E *)j.grad + first),
                                        lane,
                                        width,
                                        width,
                                        length(oh),
                                        true};
  dense_outputs<UNITS, E, I> o[AHEAD];
#pragma unroll
  for (int k = 0; k < AHEAD; k++) {
#pragma unroll
    for (int i = 0; i < UNITS; i++) o[k].index[i] = (I)~0u;
    in.load(o[k]);
  }
  const dense_ring r = {in_register(ring), g.ring - 1, (uint32_t)(length(t.rows) * wide),
                        in_register(2u << lane), lane > 0};
  dense_column c[UNITS];
#pragma unroll
  for (int i = 0; i < UNITS; i++) c[i] = dense_column_of(g, lane + i * LANES);
  dense_window rows = window_on(g.h, oh.begin);
  rows.first -= t.rows.begin;
  dense_window below = after(g.h, rows);
  int32_t strip = 0;
  for (int32_t left = length(oh); left > 0;) {
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
      if (left <= 0) break;
      const dense_strip s = {strip, begin, (uint32_t)(rows.first * wide),
                             (uint32_t)((end_before(below) - rows.first) * wide)};
      uint32_t cell[UNITS];
      float grad[UNITS];
      find_cells(g, s, in, o[k], c, cell);
#pragma unroll
      for (int i = 0; i < UNITS; i++) grad[i] = widened(o[k].grad[i]);
      in.load(o[k]);
#pragma unroll
      for (int i = 0; i < UNITS; i++) add(r, cell[i], grad[i], in.in_windows);
      if (WIDE) {
        strip = strip + STRIP < width ? strip + STRIP : 0;
        if (strip > 0) continue;
      }
      write_rows(j, g, t, out, ring, {rows.first, below.first});
      rows = below;
      below = after(g.h, below);
      left--;
    }
  }
  return !in.in_windows;
}

extern __shared__ float4 pg_dense_scratch[]; /* a ring for each warp */

/* The number-th task of this block; false if there is none. */
static __device__ __forceinline__ bool find_dense_task(const max_job &j, const dense_plan &g,
                                                       int32_t number, dense_task *t) {
  const pg_box_32 b = box_32(j.cut, in_register(blockIdx.x));
  const int32_t plane = (int32_t)over(number, g.by_chunks);
  const int32_t begin = min(b.h.begin + (number - plane * g.chunks) * g.rows, b.h.end);
  *t = {b.first + plane, {begin, min(begin + g.rows, b.h.end)}};
  return plane < b.planes;
}

template <bool WIDE, int UNITS, typename E, typename I>
static __global__ void __launch_bounds__(MOST_WARPS *LANES, WARPS_OF_PROCESSOR / MOST_WARPS)
    max_dense(const __grid_constant__ max_job j, const __grid_constant__ dense_plan g) {
  __shared__ bad_indices bad[MOST_WARPS];
  /* The warp's number, as a maximum so that the compiler knows that all lanes have the same. */
  int32_t task = (int32_t)__reduce_max_sync(EVERY_LANE, threadIdx.x / LANES);
  const uint32_t sums = shared_address(pg_dense_scratch) + 4 * g.ring * task;
  for (uint32_t i = 4 * lane_number(); i < g.ring; i += 4 * LANES)
    *shared_at<float4>(sums + 4 * i) = make_float4(0, 0, 0, 0);
  __syncwarp();
  bool outside = false;
  for (dense_task t; find_dense_task(j, g, task, &t); task += (int32_t)blockDim.x / LANES)
    if (length(t.rows) > 0) outside |= compute_task<WIDE, UNITS, E, I>(j, g, t, sums);
  const uint32_t warp = threadIdx.x / LANES;
  if (__syncthreads_or(outside))
    recompute_item(j, blockIdx.x,
                   {(float *)pg_dense_scratch + warp * RECOMPUTED_CELLS, RECOMPUTED_CELLS},
                   bad + warp);
}

/* --- On the host --- */

static dense_axis dense_axis_of(const pg_axis &a) {
  return {(int32_t)a.in, (int32_t)a.out, (int32_t)(a.in / a.out), (int32_t)(a.in % a.out),
          divider_of(a.out)};
}

/* Positions along the axis are computed as output * in / out, adaptive windows or not. */
static bool is_dense(const pg_axis &a) {
  return pg_is_tiled(&a) && a.out <= a.in && (a.in + 1) * (a.out + 1) < (int64_t)1 << 30;
}

/* No window has more cells. */
static int64_t longest(const pg_axis &a) { return least(a.in / a.out + 2, a.in); }

/* A column as a fraction of a row is rounded up.  Over the rows of a window this must add up to
 * less than half a column. */
static bool has_fractions(const pg_pooling &p) {
  return (longest(p.h) + 1) * p.w.in * p.w.in <= (int64_t)1 << 31;
}

/* Cells of a ring for windows of an item's or a chunk's rows. */
static uint32_t ring_cells(const pg_pooling &p, int64_t rows) {
  uint32_t cells = 16; /* whole groups */
  while (cells < least(longest(p.h), rows) * p.w.in) cells *= 2;
  return cells;
}

static int64_t scratch_bytes(int64_t warps, uint32_t ring) {
  const int64_t recomputed = RECOMPUTED_CELLS, cells = ring;
  return warps * (cells > recomputed ? cells : recomputed) * (int64_t)sizeof(float);
}

/* Rows of fewer outputs than a warp has lanes would leave some idle. */
static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (!fits_flat_rows(f, tiling) || f.has_depth || f.pool.w.out < LANES) return false;
  if (!is_dense(f.pool.h) || !is_dense(f.pool.w) || !has_fractions(f.pool)) return false;
  return scratch_bytes(MOST_WARPS, ring_cells(f.pool, tiling->h)) +
             MOST_WARPS * (int64_t)sizeof(bad_indices) <=
         pg_cuda_least_limits()->shared_bytes;
}

/* If there are too few items to fill the processors with one warp each, a block has several warps
 * and cuts its item into chunks for them. */
static dense_plan dense_plan_of(const max_job &j, int64_t element_bytes) {
  const pg_pooling &p = j.pool;
  dense_plan g = {};
  g.h = dense_axis_of(p.h);
  g.w = dense_axis_of(p.w);
  g.warps = j.items < (int64_t)WARPS_OF_PROCESSOR / 2 * pg_cuda_least_limits()->processors
                ? MOST_WARPS
                : 1;
  const int64_t chunks = g.warps / j.tiling.planes;
  g.chunks = (int32_t)least(chunks < 1 ? 1 : chunks, j.tiling.h);
  g.rows = (int32_t)((j.tiling.h + g.chunks - 1) / g.chunks);
  const int64_t tasks = j.tiling.planes * g.chunks;
  g.warps = (int32_t)least(g.warps, tasks);
  g.ring = ring_cells(p, g.rows);
  const uint64_t column = (((uint64_t)1 << 32) + (uint64_t)p.w.in - 1) / (uint64_t)p.w.in;
  g.column = (uint32_t)column;
  g.half_column = (uint32_t)(column / 2);
  g.groups = p.w.in * element_bytes % 16 == 0 && (uintptr_t)j.in % 16 == 0;
  g.by_chunks = divider_of(g.chunks);
  return g;
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const dense_plan g = dense_plan_of(j, sizeof(E));
  const auto start = [&](auto kernel) {
    return launch(call, kernel, j.items, g.warps * LANES, scratch_bytes(g.warps, g.ring), j, g);
  };
  if (j.pool.w.out <= 2 * LANES) return start(max_dense<false, 2, E, I>);
  if (j.pool.w.out <= STRIP) return start(max_dense<false, MOST_UNITS, E, I>);
  return start(max_dense<true, MOST_UNITS, E, I>);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_dense) = {"dense", fits, flag_bytes, run, pg_cuda_mend_planes};
