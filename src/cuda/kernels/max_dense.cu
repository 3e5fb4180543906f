/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER of adaptive planes with many outputs, no more than cells along an axis.
 *
 * A warp goes down rows of outputs, and each adds to the cell that its index names.  Sums are in
 * shared memory, in a ring that holds the rows of one window: those that the next window does not
 * hold are written and cleared.  A cell lies in one or two windows of each axis, so that within a
 * row of outputs only two neighbours can name the same one: the second adds for both.  An output
 * that names a cell outside its window is unusual, and the item is made again, see item.cuh. */
#include "cuda/kernels/max_recompute.cuh"

/* A lane has up to MOST_UNITS outputs of a row, LANES apart: a strip.  WIDE rows have several. */
enum { LANES = 32, MOST_UNITS = 4, STRIP = MOST_UNITS * LANES };
enum { MOST_WARPS = 4, WARPS_OF_PROCESSOR = 32 };

struct dense_axis {
  int32_t in, out, quotient, rest; /* in = quotient * out + rest */
  pg_divider by_out;
};

struct dense_plan {
  dense_axis h, w;
  int32_t warps, chunks, rows; /* of a block; an item's rows are cut into chunks */
  uint32_t ring;               /* cells of a plane's, a power of two */
  uint32_t one, half; /* a column as a fraction of a row in 32 bits, rounded up, and half of it */
  bool groups;        /* 16 bytes can be written at once */
  pg_divider by_chunks;
};

/* What a warp makes at a time: rows of a plane.  Cells count from the first row on. */
struct dense_task {
  int64_t plane;
  pg_span rows;
};

/* The same, but the compiler shall keep it instead of making it anew. */
template <typename T>
static __device__ __forceinline__ T *kept(T *global) {
  size_t address = __cvta_generic_to_global(global);
  asm volatile("" : "+l"(address));
  return (T *)__cvta_global_to_generic(address);
}
static __device__ __forceinline__ uint32_t kept(uint32_t word) {
  asm volatile("" : "+r"(word));
  return word;
}

/* Shared memory by its address, see shared_address. */
template <typename T>
static __device__ __forceinline__ T *shared_at(uint32_t address) {
  return (T *)__cvta_shared_to_generic(address);
}

/* --- Windows --- */

/* A window: its first cell, and output * in less first * out. */
struct dense_window {
  int32_t first, rest;
};

static __device__ __forceinline__ dense_window window_on(const dense_axis &a, int32_t output) {
  const int32_t first = (int32_t)over((uint32_t)(output * a.in), a.by_out);
  return {first, output * a.in - first * a.out};
}

static __device__ __forceinline__ dense_window after(const dense_axis &a, dense_window w) {
  w.first += a.quotient;
  w.rest += a.rest;
  if (w.rest >= a.out) {
    w.rest -= a.out;
    w.first++;
  }
  return w;
}

/* Where the window before this one ends. */
static __device__ __forceinline__ int32_t end_before(const dense_window &w) {
  return w.first + (w.rest > 0);
}

/* Where a column's windows begin, negated, and how far they reach, in fractions of a row. */
struct dense_column {
  uint32_t less, reach;
};

static __device__ __forceinline__ dense_column column_at(const dense_plan &g, int32_t output) {
  const dense_window w = window_on(g.w, output);
  const uint32_t more = (uint32_t)(end_before(after(g.w, w)) - w.first - 1);
  return {kept(0 - (uint32_t)w.first * g.one), kept(more * g.one + g.half)};
}

/* `behind` the first row of a window, which has `tall` cells of the plane's width, is a cell: is it
 * the window's?  What is left of its product is where in its row it is. */
static __device__ __forceinline__ bool in_window(const dense_plan &g, const dense_column &c,
                                                 uint32_t behind, uint32_t tall) {
  return (behind < tall) & (behind * g.one + c.less < c.reach);
}

/* --- Outputs --- */

/* A lane's outputs of a strip, on their way; ~0 is none. */
template <int UNITS, typename E, typename I>
struct dense_outputs {
  I index[UNITS];
  E grad[UNITS];
};

/* Where a lane reads: a strip of a row.  Behind the last row it is there again. */
template <bool WIDE, int UNITS, typename E, typename I>
struct dense_reader {
  const I *index;
  const E *grad;
  int32_t own;                  /* column of the lane's first output in a row */
  int32_t width, columns, rows; /* of the row; from the strip on */

  /* Has the lane an i-th output, `columns` being left?  Rows that are not WIDE have more than half
   * of the outputs that the lanes could have. */
  __device__ __forceinline__ bool has(int i, int32_t columns) const {
    return (!WIDE && i < UNITS / 2) || own + i * LANES < columns;
  }

  __device__ __forceinline__ void send_for(dense_outputs<UNITS, E, I> &o, bool wanted) {
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
      if (has(i, columns)) o.grad[i] = grad[i * LANES];
      if (wanted & has(i, columns))
        o.index[i] = __ldg(index + i * LANES);
      else if (WIDE)
        o.index[i] = (I)~0u;
    }
    const bool last = !WIDE || columns <= STRIP;
    const int32_t step = !last ? STRIP : (WIDE ? columns : width) - (rows > 1 ? 0 : width);
    index = kept(index + step);
    grad = kept(grad + step);
    if (WIDE) columns = last ? width : columns - STRIP;
    if (last) rows--;
  }
};

/* --- Sums --- */

/* A lane's look at them. */
struct dense_ring {
  uint32_t sums, mask; /* shared address of its plane's; cells less one */
  uint32_t cells;      /* that are the item's */
  uint32_t next_lane;
  bool has_left; /* the lane before it has the output before its own */
};

/* No two lanes touch a cell: not the first of two neighbours, nor who is unusual. */
static __device__ __forceinline__ void add(const dense_ring &r, uint32_t cell, float grad,
                                           bool usual) {
  const bool second = (__shfl_up_sync(EVERY_LANE, cell, 1) == cell) & r.has_left;
  const float before = __uint_as_float(__shfl_up_sync(EVERY_LANE, __float_as_uint(grad), 1));
  const bool done_by_next = (__ballot_sync(EVERY_LANE, second) & r.next_lane) != 0;
  if ((cell < r.cells) & !done_by_next & usual) {
    float *at = shared_at<float>(r.sums + 4 * (cell & r.mask));
    *at = (second ? *at + before : *at) + grad;
  }
  __syncwarp();
}

/* V sums are taken out, and are zeros again. */
template <int V>
static __device__ __forceinline__ void take_out(float *sum, uint32_t address) {
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

/* Cells [from, to) of a plane, V at a time. */
template <int V, typename E>
static __device__ __forceinline__ void write(const dense_plan &g, E *out, uint32_t ring,
                                             uint32_t from, uint32_t to) {
#pragma unroll 1
  for (uint32_t at = from + V * lane_number(); at < to; at += V * LANES) {
    float sum[V];
    take_out<V>(sum, ring + 4 * (at & (g.ring - 1)));
    put_vector<V>(out + at, sum);
  }
}

/* Rows [from, to), those that are the item's. */
template <typename E>
static __device__ __forceinline__ void write_rows(const max_job &j, const dense_plan &g,
                                                  const dense_task &t, E *out, uint32_t ring,
                                                  int32_t from, int32_t to) {
  const uint32_t first = (uint32_t)(max(from, 0) * j.w.in);
  const uint32_t end = (uint32_t)(min(to, length(t.rows)) * j.w.in);
  if (g.groups)
    write<16 / sizeof(E)>(g, out, ring, first, end);
  else
    write<1>(g, out, ring, first, end);
  __syncwarp();
}

/* True if an output is unusual.  One whose window begins with another item's cells may be found so
 * too: no harm is done.  Whoever is unusual loads no more indices, so that they are looked at
 * before the next take their registers. */
template <bool WIDE, int UNITS, typename E, typename I>
static __device__ __forceinline__ bool go_down(const max_job &j, const dense_plan &g,
                                               const dense_task &t, uint32_t ring) {
  enum { AHEAD = sizeof(I) == 8 ? 1 : 2 /* strips on their way: as many as registers hold */ };
  const int32_t lane = lane_number(), wide = j.w.in, width = j.w.out;
  const pg_span oh = touching((const pg_axis_32 &)j.h, t.rows.begin, t.rows.end);
  const int64_t first = t.plane * j.outputs + oh.begin * width + lane;
  const uint32_t begin = (uint32_t)(t.rows.begin * wide);
  E *out = kept((E *)j.in + t.plane * j.cells + begin);
  dense_reader<WIDE, UNITS, E, I> in = {kept((const I *)j.index + first),
                                        kept((const E *)j.grad + first),
                                        lane,
                                        width,
                                        width,
                                        length(oh)};
  dense_outputs<UNITS, E, I> o[AHEAD];
#pragma unroll
  for (int k = 0; k < AHEAD; k++) {
#pragma unroll
    for (int i = 0; i < UNITS; i++) o[k].index[i] = (I)~0u;
    in.send_for(o[k], true);
  }
  const dense_ring r = {kept(ring), g.ring - 1, (uint32_t)(length(t.rows) * wide), kept(2u << lane),
                        lane > 0};
  dense_column c[UNITS];
#pragma unroll
  for (int i = 0; i < UNITS; i++) c[i] = column_at(g, lane + i * LANES);
  dense_window rows = window_on(g.h, oh.begin);
  rows.first -= t.rows.begin;
  dense_window below = after(g.h, rows);
  int32_t strip = 0;
  bool usual = true;
  for (int32_t left = length(oh); left > 0;) {
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
      if (left <= 0) break;
      const uint32_t top = (uint32_t)(rows.first * wide);
      const uint32_t tall = (uint32_t)((end_before(below) - rows.first) * wide);
      uint32_t cell[UNITS];
      float grad[UNITS];
#pragma unroll
      for (int i = 0; i < UNITS; i++) {
        const uint64_t index = (uint64_t)(int64_t)o[k].index[i];
        cell[i] = (uint32_t)index - begin;
        grad[i] = widened(o[k].grad[i]);
        if (WIDE) c[i] = column_at(g, lane + strip + i * LANES);
        usual &= (in_window(g, c[i], cell[i] - top, tall) & (sizeof(I) == 4 || index >> 32 == 0)) |
                 !in.has(i, width - strip);
      }
      in.send_for(o[k], usual);
#pragma unroll
      for (int i = 0; i < UNITS; i++) add(r, cell[i], grad[i], usual);
      if (WIDE) {
        strip = strip + STRIP < width ? strip + STRIP : 0;
        if (strip > 0) continue;
      }
      write_rows(j, g, t, out, ring, rows.first, below.first);
      rows = below;
      below = after(g.h, below);
      left--;
    }
  }
  return !usual;
}

extern __shared__ float4 pg_dense_room[];

/* A block's task-th task; false if there is none. */
static __device__ __forceinline__ bool find_task(const max_job &j, const dense_plan &g,
                                                 int32_t task, dense_task *t) {
  const pg_box_32 b = box_32(j.cut, kept(blockIdx.x));
  const int32_t plane = (int32_t)over(task, g.by_chunks);
  const int32_t begin = min(b.h.begin + (task - plane * g.chunks) * g.rows, b.h.end);
  *t = {b.first + plane, {begin, min(begin + g.rows, b.h.end)}};
  return plane < b.planes;
}

template <bool WIDE, int UNITS, typename E, typename I>
static __global__ void __launch_bounds__(MOST_WARPS *LANES, WARPS_OF_PROCESSOR / MOST_WARPS)
    max_dense(const __grid_constant__ max_job j, const __grid_constant__ dense_plan g) {
  __shared__ bad_indices found[MOST_WARPS];
  /* A warp's number, and the compiler shall know that its lanes have the same one. */
  int32_t task = (int32_t)__reduce_max_sync(EVERY_LANE, threadIdx.x / LANES);
  const uint32_t ring = shared_address(pg_dense_room) + 4 * g.ring * task;
  for (uint32_t i = 4 * lane_number(); i < g.ring; i += 4 * LANES)
    *shared_at<float4>(ring + 4 * i) = make_float4(0, 0, 0, 0);
  __syncwarp();
  bool unusual = false;
  for (dense_task t; find_task(j, g, task, &t); task += (int32_t)blockDim.x / LANES)
    if (length(t.rows) > 0) unusual |= go_down<WIDE, UNITS, E, I>(j, g, t, ring);
  const uint32_t warp = threadIdx.x / LANES;
  if (__syncthreads_or(unusual))
    recompute_item(j, blockIdx.x,
                   {(float *)pg_dense_room + warp * RECOMPUTED_CELLS, RECOMPUTED_CELLS},
                   found + warp);
}

/* --- On the host --- */

static dense_axis dense_axis_of(const pg_axis &a) {
  return {(int32_t)a.in, (int32_t)a.out, (int32_t)(a.in / a.out), (int32_t)(a.in % a.out),
          divider_of(a.out)};
}

static bool is_dense(const pg_axis &a) {
  return pg_is_tiled(&a) && a.out <= a.in && fits_32_bits(a);
}

/* No window has more cells. */
static int64_t longest(const pg_axis &a) { return least(a.in / a.out + 2, a.in); }

/* Fractions of a row are rounded up: over a window's rows that must be less than half a column. */
static bool has_fractions(const pg_pooling &p) {
  return (longest(p.h) + 1) * p.w.in * p.w.in <= (int64_t)1 << 31;
}

/* Who has little to do takes more warps to it. */
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
  for (g.ring = 16; g.ring < least(longest(p.h), g.rows) * p.w.in;) g.ring *= 2;
  const uint64_t one = (((uint64_t)1 << 32) + (uint64_t)p.w.in - 1) / (uint64_t)p.w.in;
  g.one = (uint32_t)one;
  g.half = (uint32_t)(one / 2);
  g.groups = p.w.in * element_bytes % 16 == 0 && (uintptr_t)j.in % 16 == 0;
  g.by_chunks = divider_of(g.chunks);
  return g;
}

static int64_t room_bytes(const dense_plan &g) {
  const int64_t least_cells = RECOMPUTED_CELLS, cells = g.ring;
  return g.warps * (cells > least_cells ? cells : least_cells) * (int64_t)sizeof(float);
}

/* Rows of fewer outputs than a warp has lanes would leave some idle. */
static bool fits(const pg_problem *problem, pg_tiling *tiling) {
  const pg_facts &f = problem->facts;
  if (!fits_flat_rows(f, tiling) || f.has_depth || f.pool.w.out < LANES) return false;
  if (!is_dense(f.pool.h) || !is_dense(f.pool.w) || !has_fractions(f.pool)) return false;
  dense_plan most = {};
  most.warps = MOST_WARPS;
  for (most.ring = 16; most.ring < least(longest(f.pool.h), tiling->h) * f.pool.w.in;)
    most.ring *= 2;
  return room_bytes(most) + MOST_WARPS * (int64_t)sizeof(bad_indices) <=
         pg_cuda_least_limits()->shared_bytes;
}

template <typename E, typename I>
static cudaError_t run_as(const pg_cuda_call *call) {
  const max_job j = max_job_of(call);
  const dense_plan g = dense_plan_of(j, sizeof(E));
  const auto go = [&](auto kernel) {
    return launch(call, kernel, j.items, g.warps * LANES, room_bytes(g), j, g);
  };
  if (j.pool.w.out <= 2 * LANES) return go(max_dense<false, 2, E, I>);
  if (j.pool.w.out <= STRIP) return go(max_dense<false, MOST_UNITS, E, I>);
  return go(max_dense<true, MOST_UNITS, E, I>);
}

static cudaError_t run(const pg_cuda_call *call) {
  return with_max_types(call,
                        [call](auto e, auto i) { return run_as<decltype(e), decltype(i)>(call); });
}

PG_CUDA_METHOD(max_dense) = {"dense", fits, flag_bytes, run, pg_cuda_mend_planes};
