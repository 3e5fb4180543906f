/* SPDX-License-Identifier: Apache-2.0 */
/* What the methods `direct` of both forward kernels share: small windows, computed in registers.
 *
 * A thread has a block of outputs: V side by side in R rows, and of averages in C neighbouring
 * channels where channels are neighbours.  For each slice of its windows it loads all the rows of
 * cells that the block needs before it uses the first, and goes through them from the top: so a row
 * is reduced once for all the windows that share it.  Blocks are numbered along rows, then down
 * planes and from plane to plane, and threads are dealt out to them in this order: so small planes
 * leave no lane idle, and the cells that two blocks share are mostly found in the first-level
 * cache.
 *
 * The sizes of windows and blocks are known to the compiler, because registers can be numbered by
 * constants alone. */
#ifndef PG_CUDA_FORWARD_DIRECT_CUH_
#define PG_CUDA_FORWARD_DIRECT_CUH_

#include <type_traits>

#include "cuda/kernels/forward_geometry.cuh"
#include "cuda/kernels/quotient.cuh"

enum { DIRECT_THREADS = 256, DIRECT_BLOCKS_PER_SM = 2 };

/* Windows of K x K cells that are D apart; the next window begins S cells behind. */
template <int K_, int S_, int D_ = 1>
struct window_shape {
  static constexpr int K = K_, S = S_, D = D_, SPAN = (K - 1) * D + 1;
};

/* What a row of cells is loaded by: single cells (or vectors of C channels), or vectors of V * S
 * cells, the first of which begins LEAD cells behind the window of the first output. */
enum { SINGLE_CELLS = -1 };

template <typename Shape_, int V_, int R_, int C_, int LEAD_ = SINGLE_CELLS>
struct direct_block {
  typedef Shape_ Shape;
  static constexpr int V = V_, R = R_, C = C_, LEAD = LEAD_, K = Shape::K, S = Shape::S,
                       D = Shape::D;
  static constexpr int ROWS = (R - 1) * S + Shape::SPAN;
  static constexpr int COLUMNS = (V - 1) * S + K; /* D apart */
  static constexpr int STORED = C > 1 ? C : V;    /* neighbours that are written at once */
  static constexpr int STORED_W = C > 1 ? 1 : V;  /* and how many of them are side by side */
  static_assert(D == 1 || (V == 1 && S == 1 && D == 2), "other dilations are not computed");
  static_assert(C == 1 || LEAD == SINGLE_CELLS, "");

  /* Does the window of the block's o-th row of outputs hold its i-th row of cells? */
  static constexpr __device__ bool holds_row(int o, int i) {
    return i >= o * S && i <= o * S + Shape::SPAN - 1 && (i - o * S) % D == 0;
  }
};

/* --- Plans --- */

/* Distances in elements along the axes; 32 bits, so that an offset takes one instruction each. */
struct direct_strides {
  uint32_t n, c, d, h, w;
};

struct direct_plan {
  const void *in; /* where the window of output 0 would begin, though it may lie in the padding */
  void *out, *index;
  int32_t index_bytes;
  direct_strides in_strides, out_strides, index_strides;
  forward_axis d;
  pg_axis_32 h, w;
  uint32_t channels; /* of an image, where lanes have channels; else 1 */
  uint32_t threads;
  /* How threads are numbered: lanes along C where channels are neighbours (else one), along W, H
   * and D, then groups of as many channels as the lanes have, and images. */
  pg_divider by_lanes, by_blocks, by_bands, by_od, by_groups;
  /* Of averages: the divisor of all windows, or of those that lie in the plane; 0: there is none.
   */
  pg_divisor divisor;
  bool counts, count_include_pad; /* others count their cells, and those of the padding */
};

/* What a thread computes: where its first output is, and its slices of cells. */
struct direct_place {
  uint32_t n, c;
  int32_t od, oh, ow;
  forward_taps slices;
};

/* Returns false if there is nothing to compute for this thread. */
template <typename B>
static __device__ __forceinline__ bool find_place(const direct_plan &p, direct_place *to) {
  const uint32_t i = blockIdx.x * (uint32_t)DIRECT_THREADS + threadIdx.x;
  if (i >= p.threads) return false;
  const uint32_t block = over(i, p.by_lanes), band = over(block, p.by_blocks),
                 slice = over(band, p.by_bands), group = over(slice, p.by_od);
  to->n = over(group, p.by_groups);
  to->c = (group - to->n * p.by_groups.by) * p.by_lanes.by + (i - block * p.by_lanes.by);
  to->c *= (uint32_t)B::C;
  if (p.channels > 1 && to->c >= p.channels) return false;
  to->ow = (int32_t)(block - band * p.by_blocks.by) * B::V;
  to->oh = (int32_t)(band - slice * p.by_bands.by) * B::R;
  to->od = (int32_t)(slice - group * p.by_od.by);
  to->slices = {0, 1};
  if (p.d.windows.in > 1) to->slices = taps_of(p.d, to->od);
  return true;
}

static __device__ __forceinline__ uint64_t offset_of(const direct_strides &s, uint32_t n,
                                                     uint32_t c, int32_t d, int32_t h, int32_t w) {
  return (uint64_t)n * s.n + (uint64_t)c * s.c + (uint64_t)(uint32_t)d * s.d +
         (uint64_t)(uint32_t)h * s.h + (uint64_t)(uint32_t)w * s.w;
}

/* The offset of the first output in a tensor with these strides. */
static __device__ __forceinline__ uint64_t offset_of(const direct_strides &s,
                                                     const direct_place &at) {
  return offset_of(s, at.n, at.c, at.od, at.oh, at.ow);
}

/* --- Cells --- */

/* The rows of cells of a block in one slice.  Those outside the plane are a filler. */
template <typename E, typename B>
struct direct_cells {
  E of[B::ROWS][B::COLUMNS][B::C];

  /* Rows [0, h_end) exist; the block begins with row h and column w, where `cell` points to. */
  __device__ __forceinline__ void load(const direct_plan &p, const E *cell, int32_t h,
                                       int32_t h_end, int32_t w, E filler) {
    const uint64_t down = p.in_strides.h;
#pragma unroll
    for (int i = 0; i < B::ROWS; i++) {
      const bool valid = (uint32_t)(h + i) < (uint32_t)h_end;
      if constexpr (B::LEAD == SINGLE_CELLS)
        load_singles(p, of[i], cell, valid, w, filler);
      else
        load_vectors(p, of[i], cell, valid, w, filler);
      cell += down;
    }
  }

 private:
  typedef E row_of[B::COLUMNS][B::C];

  template <int COUNT>
  static __device__ __forceinline__ void load_some(E *to, const E *from, bool valid, E filler) {
    vector_of<E, COUNT> vector;
#pragma unroll
    for (int k = 0; k < COUNT; k++) vector.of[k] = filler;
    if (valid) vector.load(from);
#pragma unroll
    for (int k = 0; k < COUNT; k++) to[k] = vector.of[k];
  }
  static __device__ __forceinline__ void load_singles(const direct_plan &p, row_of &to,
                                                      const E *row, bool valid, int32_t w,
                                                      E filler) {
    const uint64_t right = (uint64_t)p.in_strides.w * B::D;
#pragma unroll
    for (int x = 0; x < B::COLUMNS; x++)
      load_some<B::C>(to[x], row + x * right, valid && (uint32_t)(w + x * B::D) < (uint32_t)p.w.in,
                      filler);
  }
  /* Vectors behind the first LEAD cells lie in the plane as far as they are V * S cells of the
   * block; the cells before and behind them may not. */
  static __device__ __forceinline__ void load_vectors(const direct_plan &p, row_of &to,
                                                      const E *row, bool valid, int32_t w,
                                                      E filler) {
    constexpr int VECTOR = B::V * B::S, BEHIND = B::LEAD + VECTOR;
    constexpr int BEFORE_AT_ONCE = B::LEAD == VECTOR ? VECTOR : 1;
    constexpr int BEHIND_AT_ONCE = B::COLUMNS - BEHIND == VECTOR ? VECTOR : 1;
#pragma unroll
    for (int x = 0; x < B::LEAD; x += BEFORE_AT_ONCE)
      load_some<BEFORE_AT_ONCE>(to[x], row + x, valid && w + x >= 0, filler);
    load_some<VECTOR>(to[B::LEAD], row + B::LEAD, valid, filler);
#pragma unroll
    for (int x = BEHIND; x < B::COLUMNS; x += BEHIND_AT_ONCE)
      load_some<BEHIND_AT_ONCE>(to[x], row + x, valid && w + x < p.w.in, filler);
  }
};

/* Calls fn(is_first, slice, cells) with each slice of the thread's windows. */
template <typename E, typename B, typename F>
static __device__ __forceinline__ void for_slices(const direct_plan &p, const direct_place &at,
                                                  E filler, F fn) {
  const int32_t h = at.oh * B::S - p.h.pad, w = at.ow * B::S - p.w.pad;
  const int32_t rows = min(B::R, p.h.out - at.oh); /* rows behind their windows are not loaded */
  const int32_t h_end = min(p.h.in, h + (rows - 1) * B::S + B::Shape::SPAN);
  int32_t slice = at.slices.first;
  const E *cell =
      (const E *)p.in + offset_of(p.in_strides, at.n, at.c, slice, at.oh * B::S, at.ow * B::S);
  direct_cells<E, B> cells;
  cells.load(p, cell, h, h_end, w, filler);
  fn(std::true_type(), slice, cells);
#pragma unroll 1
  for (int32_t k = 1; k < at.slices.count; k++) {
    slice += (int32_t)p.d.step.by;
    cell += (uint64_t)p.d.step.by * p.in_strides.d;
    cells.load(p, cell, h, h_end, w, filler);
    fn(std::false_type(), slice, cells);
  }
}

/* Calls fn(r, v, offset) with each vector of outputs of the block that is written at once: the row
 * and the column of its first one in the block, and its offset in a tensor with these strides. */
template <typename B, typename F>
static __device__ __forceinline__ void for_stored(const direct_plan &p, const direct_place &at,
                                                  const direct_strides &strides, F fn) {
  uint64_t row = offset_of(strides, at);
#pragma unroll
  for (int r = 0; r < B::R; r++) {
    if (at.oh + r < p.h.out) {
#pragma unroll
      for (int v = 0; v < B::V; v += B::STORED_W)
        if (B::C == 1 || at.ow + v < p.w.out) fn(r, v, row + (uint64_t)v * strides.w);
    }
    row += strides.h;
  }
}

/* --- On the host --- */

static inline direct_strides direct_strides_of(const pg_strides &s) {
  return {(uint32_t)s.of[PG_N], (uint32_t)s.of[PG_C], (uint32_t)s.of[PG_D], (uint32_t)s.of[PG_H],
          (uint32_t)s.of[PG_W]};
}

/* Can strides be kept in 32 bits? */
static inline bool has_direct_strides(const pg_strides &s) {
  for (int64_t stride : s.of)
    if (stride < 0 || stride > (int64_t)UINT32_MAX) return false;
  return true;
}

/* How many outputs a thread has below each other.  More of them share the work of finding the
 * place, and rows of cells; fewer leave registers for more threads.  Seven divides the planes of
 * many networks. */
template <typename Shape>
static constexpr int rows_of_block(int v, int c) {
  if (Shape::K == 2) return c == 4 ? 2 : 4;
  if (Shape::K == 3 && Shape::S == 1 && Shape::D == 1 && v * c == 1) return 7;
  return v * c >= 4 ? 2 : 4;
}

/* Are windows of this shape, along H and W? */
template <typename Shape>
static inline bool has_shape(const pg_pooling &p) {
  for (const pg_axis &a : {p.h, p.w})
    if (a.kernel != Shape::K || a.stride != Shape::S || a.dilation != Shape::D) return false;
  return true;
}

/* What decides about blocks: a tensor that is read, and one or two that are written. */
struct direct_tensors {
  const void *in, *out, *index;
  pg_strides in_strides, out_strides, index_strides;
  int64_t element_bytes, index_bytes; /* index_bytes 0: there is no index */
};

/* Can threads have v outputs side by side, and load vectors of as many cells as these advance? */
static inline bool has_blocks(const pg_pooling &p, const direct_tensors &t, int64_t v) {
  const int64_t advance = v * p.w.stride;
  return advance * t.element_bytes <= 16 && v * t.index_bytes <= 16 && p.w.out % v == 0 &&
         p.w.out * p.w.stride <= p.w.in &&
         has_row_vectors(t.in, t.in_strides, t.element_bytes, advance) &&
         has_row_vectors(t.out, t.out_strides, t.element_bytes, v) &&
         (t.index_bytes == 0 || has_row_vectors(t.index, t.index_strides, t.index_bytes, v));
}

template <typename Shape, int V, int C, int LEAD>
using direct_block_of = direct_block<Shape, V, rows_of_block<Shape>(V, C), C, LEAD>;

/* Calls fn with the best block for a problem of this shape, whose windows may begin LEAD cells
 * before a vector. */
template <typename Shape, int LEAD, typename F>
static cudaError_t with_vectors(const pg_pooling &p, const direct_tensors &t, F fn) {
  if constexpr (Shape::K < 5)
    if (has_blocks(p, t, 4)) return fn(direct_block_of<Shape, 4, 1, LEAD>());
  if (has_blocks(p, t, 2)) return fn(direct_block_of<Shape, 2, 1, LEAD>());
  if constexpr (Shape::S == 2)
    if (has_blocks(p, t, 1)) return fn(direct_block_of<Shape, 1, 1, LEAD>());
  return fn(direct_block_of<Shape, 1, 1, SINGLE_CELLS>());
}

/* The same for windows that may begin before any cell. */
template <typename Shape, typename F>
static cudaError_t with_planar_block(const pg_pooling &p, const direct_tensors &t, F fn) {
  if constexpr (Shape::D == 1 && Shape::K > 2)
    if (p.w.pad == Shape::K / 2) return with_vectors<Shape, Shape::K / 2>(p, t, fn);
  if constexpr (Shape::S > 1)
    if (p.w.pad == 0) return with_vectors<Shape, 0>(p, t, fn);
  return fn(direct_block_of<Shape, 1, 1, SINGLE_CELLS>());
}

/* Does the method compute these tensors?  Each thread has an output at least. */
static inline bool fits_direct(const pg_problem &problem, const pg_strides &in,
                               const pg_strides &out) {
  const pg_facts &f = problem.facts;
  const pg_pooling &p = f.pool;
  if (problem.dtype != ACL_FLOAT && problem.dtype != ACL_FLOAT16 && problem.dtype != ACL_BF16)
    return false;
  return f.planes > 0 && f.outputs > 0 && fits_32_bits(p) && f.outputs < (1 << 30) / f.planes &&
         has_direct_strides(in) && has_direct_strides(out);
}

template <typename B>
static direct_plan direct_plan_of(const pg_facts &f, const direct_tensors &t) {
  const pg_pooling &g = f.pool;
  direct_plan p = {};
  p.in_strides = direct_strides_of(t.in_strides);
  p.out_strides = direct_strides_of(t.out_strides);
  if (t.index_bytes != 0) p.index_strides = direct_strides_of(t.index_strides);
  p.in = (const void *)((uintptr_t)t.in - (uintptr_t)((g.h.pad * t.in_strides.of[PG_H] +
                                                       g.w.pad * t.in_strides.of[PG_W]) *
                                                      t.element_bytes));
  p.out = (void *)t.out;
  p.index = (void *)t.index;
  p.index_bytes = (int32_t)t.index_bytes;
  p.d = forward_axis_of(g.d);
  p.h = axis_32(g.h);
  p.w = axis_32(g.w);
  /* A warp has the same cell's channels, and its neighbours behind it. */
  const int64_t all = f.neighbours ? pg_ceil_div(g.c, B::C) : 1;
  const int64_t lanes = pg_ceil_div(all, pg_ceil_div(all, 32));
  const int64_t groups = f.neighbours ? pg_ceil_div(all, lanes) : g.c;
  const int64_t blocks = pg_ceil_div(g.w.out, B::V), bands = pg_ceil_div(g.h.out, B::R);
  p.channels = f.neighbours ? (uint32_t)g.c : 1;
  p.by_lanes = divider_of(lanes);
  p.by_blocks = divider_of(blocks);
  p.by_bands = divider_of(bands);
  p.by_od = divider_of(g.d.out);
  p.by_groups = divider_of(groups);
  p.threads = (uint32_t)(lanes * blocks * bands * g.d.out * groups * g.n);
  return p;
}

static inline int64_t direct_grid(const direct_plan &p) {
  return pg_ceil_div(p.threads, DIRECT_THREADS);
}

#endif
