/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of max_boxes.cu: boxes, where their cells and outputs lie, and how large they are.
 *
 * A unit is up to 32 planes that follow each other in number; a box is the same part of each of
 * them.  A plane is divided into boxes of one size, but for those at its ends. */
#ifndef PG_CUDA_MAX_BOXES_CUH_
#define PG_CUDA_MAX_BOXES_CUH_

#include "cuda/kernels/max_counted.cuh"

enum {
  LANES = 32,
  WARPS = 4,
  THREADS = LANES * WARPS,
  BLOCKS_AT_ONCE = 3, /* of a processor: as many as its shared memory holds */
  LAST_CELLS = 128,   /* of a box, at the most, where channels are neighbours */
  PLANAR_CELLS = 108, /* otherwise: outputs take room too */
  MOST_TURNS = 8,     /* boxes of a warp, if they are whole planes */
  MOST_PLANES = LANES * WARPS * MOST_TURNS, /* of a block */
  NO_CELL = -1
};

/* Where the cells of a box lie in their plane: one after the other, in rows of one slice, or in
 * rows of several slices. */
enum box_shape { ONE_RUN, ONE_SLICE, SLICES };

struct box_plan {
  int32_t d, h, w, cells;    /* of a box */
  int32_t boxes;             /* of a plane */
  int32_t flags;             /* of items: before the counts of units */
  int32_t planes;            /* of a unit */
  int32_t room;              /* words of shared memory of a warp */
  int32_t vector;            /* channels that a lane writes at once */
  int32_t units_of_block;    /* that a block computes, if it has whole planes */
  int32_t boxes_of_block;    /* of one unit, otherwise */
  int32_t blocks;            /* that share a unit then */
  uint32_t magic_w, magic_h; /* 2^32 / length of an axis, rounded up: planes have so few cells that
                                a position times this, over 2^32, is the position over the length */
  uint32_t minus_w, minus_h; /* the negative lengths */
  pg_divider by_boxes, by_blocks; /* of a plane; of a unit */
  pg_divider by_across, by_down;  /* boxes of a plane along W and along H */
  pg_divider by_w, by_h;          /* the size of a box */
};

struct cell_box {
  pg_span d, h, w;
  uint32_t first, cells; /* of ONE_RUN: position of the first in the plane, and how many */
};

static __device__ __forceinline__ cell_box box_of(const max_job &j, const box_plan &p,
                                                  uint32_t number) {
  const uint32_t line = over(number, p.by_across), slice = over(line, p.by_down);
  cell_box b;
  b.w = cut((int32_t)(number - line * p.by_across.by), p.w, j.w.in);
  b.h = cut((int32_t)(line - slice * p.by_down.by), p.h, j.h.in);
  b.d = cut((int32_t)slice, p.d, j.d.in);
  b.first = (uint32_t)((b.d.begin * j.h.in + b.h.begin) * j.w.in + b.w.begin);
  b.cells = (uint32_t)(length(b.d) * length(b.h) * length(b.w));
  return b;
}

/* The outputs whose windows touch a box, which are numbered along W, then H, then D. */
struct box_outputs {
  pg_span d, h, w;
  uint32_t count;
  uint32_t magic_w, magic_h; /* see over_magic */
};

/* n / by, for n * by < 2^32, with magic_of(by). */
static __device__ __forceinline__ uint32_t magic_of(uint32_t by) { return ~0u / max(by, 1u) + 1; }
static __device__ __forceinline__ uint32_t over_magic(uint32_t n, uint32_t magic) {
  return magic == 0 ? n : __umulhi(n, magic);
}

static __device__ __forceinline__ box_outputs outputs_of(const max_job &j, const cell_box &b) {
  box_outputs o;
  o.d = touching(j.d, b.d.begin, b.d.end);
  o.h = touching(j.h, b.h.begin, b.h.end);
  o.w = touching(j.w, b.w.begin, b.w.end);
  o.count = (uint32_t)(length(o.d) * length(o.h) * length(o.w));
  o.magic_w = magic_of((uint32_t)length(o.w));
  o.magic_h = magic_of((uint32_t)length(o.h));
  return o;
}

/* Where the nth output of a box lies, counted from the first of its plane. */
static __device__ __forceinline__ uint32_t place_of_output(const max_job &j, const box_outputs &o,
                                                           uint32_t nth) {
  const uint32_t row = over_magic(nth, o.magic_w), slice = over_magic(row, o.magic_h);
  const uint32_t ow = nth - row * (uint32_t)length(o.w), oh = row - slice * (uint32_t)length(o.h);
  const pg_strides &s = j.grad_strides;
  return ((uint32_t)o.d.begin + slice) * (uint32_t)s.of[PG_D] +
         ((uint32_t)o.h.begin + oh) * (uint32_t)s.of[PG_H] +
         ((uint32_t)o.w.begin + ow) * (uint32_t)s.of[PG_W];
}

/* The same for the nth cell; NO_CELL if the box ends before it. */
static __device__ __forceinline__ int32_t place_of_cell(const max_job &j, const box_plan &p,
                                                        const cell_box &b, uint32_t nth) {
  const uint32_t row = over(nth, p.by_w), slice = over(row, p.by_h);
  const int32_t w = (int32_t)(nth - row * p.by_w.by), h = (int32_t)(row - slice * p.by_h.by);
  const int32_t d = (int32_t)slice;
  if (d >= length(b.d) || h >= length(b.h) || w >= length(b.w)) return NO_CELL;
  const pg_strides &s = j.in_strides;
  return (b.d.begin + d) * (int32_t)s.of[PG_D] + (b.h.begin + h) * (int32_t)s.of[PG_H] +
         (b.w.begin + w) * (int32_t)s.of[PG_W];
}

/* One instruction, where the compiler would make two. */
static __device__ __forceinline__ void count_if(bool condition, int32_t &count) {
  asm("{.reg .pred p; setp.ne.u32 p, %1, 0; @p add.s32 %0, %0, 1;}"
      : "+r"(count)
      : "r"((uint32_t)condition));
}

/* The number of the cell of the box that an index names; the one behind the last if there is none.
 * Positions outside the plane have rows and slices outside it too. */
template <box_shape SHAPE, typename I>
static __device__ __forceinline__ uint32_t named_cell(const max_job &j, const box_plan &p,
                                                      const cell_box &b, I index, bool valid,
                                                      int32_t &named) {
  const uint32_t position = low_half(index);
  bool inside = valid & (high_half(index) == 0);
  uint32_t cell;
  if (SHAPE == ONE_RUN) {
    cell = position - b.first;
    inside &= cell < b.cells;
  } else {
    uint32_t row = __umulhi(position, p.magic_w);
    const uint32_t w = position + row * p.minus_w - (uint32_t)b.w.begin;
    cell = 0;
    if (SHAPE == SLICES) {
      const uint32_t slice = __umulhi(row, p.magic_h), d = slice - (uint32_t)b.d.begin;
      row += slice * p.minus_h;
      inside &= d < (uint32_t)length(b.d);
      cell = d * (uint32_t)p.h;
    }
    const uint32_t h = row - (uint32_t)b.h.begin;
    inside &= (h < (uint32_t)length(b.h)) & (w < (uint32_t)length(b.w));
    cell = (cell + h) * (uint32_t)p.w + w;
  }
  count_if(inside, named);
  return inside ? cell : (uint32_t)p.cells;
}

/* --- Which boxes a block computes --- */

/* Boxes are numbered through all units. */
struct box_share {
  uint32_t first, end;
  counted_block counted;
};

static __device__ __forceinline__ box_share share_of(const max_job &j, const box_plan &p) {
  box_share s = {};
  const uint32_t boxes = (uint32_t)p.boxes;
  if (j.flags == nullptr) {
    const uint32_t unit = blockIdx.x * (uint32_t)p.units_of_block;
    const uint32_t end = (uint32_t)least((int64_t)unit + p.units_of_block, j.items);
    s.counted.items = {(int32_t)unit, (int32_t)end};
    s.first = unit * boxes;
    s.end = end * boxes;
    return s;
  }
  const uint32_t unit = over(blockIdx.x, p.by_blocks);
  const uint32_t box = (blockIdx.x - unit * p.by_blocks.by) * (uint32_t)p.boxes_of_block;
  s.first = unit * boxes + box;
  s.end = unit * boxes + min(box + (uint32_t)p.boxes_of_block, boxes);
  if (p.flags == 0) s.counted.items = {(int32_t)unit, (int32_t)unit + 1};
  s.counted.count = (unit_count *)(j.flags + p.flags) + unit;
  s.counted.first = (int64_t)unit * p.planes;
  s.counted.planes = (uint32_t)least(p.planes, j.cut.planes - s.counted.first);
  s.counted.unit_blocks = (uint32_t)p.blocks;
  return s;
}

/* --- On the host --- */

struct box_size {
  int64_t d, h, w;
};

static int64_t cells_of(const box_size &s) { return s.d * s.h * s.w; }

/* About how many outputs are read along an axis if boxes have so many cells along it: windows that
 * several boxes touch are read for each of them. */
static double reads(const pg_axis &a, int64_t cells) {
  const double step = a.kernel == 0 ? (double)a.in / (double)a.out : (double)a.stride;
  const double window = a.kernel == 0 ? step + 0.5 : (double)((a.kernel - 1) * a.dilation + 1);
  const double touching = ((double)(cells - 1) + window) / step, most = (double)a.out;
  return (double)a.in / (double)cells * (touching < most ? touching : most);
}

/* How many times as much is read if an axis is cut in half. */
static double cost_of_halving(const pg_axis &a, int64_t cells) {
  return cells == 1 ? 1e30 : reads(a, (cells + 1) / 2) / reads(a, cells);
}

/* The longest part of an axis up to `most` that leaves parts of about the same length. */
static int64_t even_length(int64_t in, int64_t most) {
  return pg_ceil_div(in, pg_ceil_div(in, least(in, most)));
}

/* A box of at most `most` cells, along which outputs are read as seldom as possible.  W is not made
 * shorter than `least_w`, unless nothing else is left. */
static box_size size_of_box(const pg_pooling &p, int64_t most, int64_t least_w) {
  box_size s = {p.d.in, p.h.in, p.w.in};
  while (cells_of(s) > most) {
    const double d = cost_of_halving(p.d, s.d), h = cost_of_halving(p.h, s.h);
    const double w = cost_of_halving(p.w, s.w) + (s.w < 2 * least_w ? 1e20 : 0);
    int64_t *shorter = d <= h && d <= w ? &s.d : h <= w ? &s.h : &s.w;
    *shorter = (*shorter + 1) / 2;
  }
  s.w = even_length(p.w.in, most / (s.d * s.h));
  s.h = even_length(p.h.in, most / (s.d * s.w));
  s.d = even_length(p.d.in, most / (s.h * s.w));
  return s;
}

static int64_t boxes_of(const pg_pooling &p, const box_size &s) {
  return pg_ceil_div(p.d.in, s.d) * pg_ceil_div(p.h.in, s.h) * pg_ceil_div(p.w.in, s.w);
}

/* Boxes are smaller where there would be too few of them for all warps of the device. */
static box_size size_of_box(const pg_facts &f) {
  enum { LEAST_CELLS = 64, LEAST_WIDTH = 8 /* in planes: lanes write cells that are neighbours */ };
  const int64_t warps = WARPS * BLOCKS_AT_ONCE * (int64_t)pg_cuda_least_limits()->processors;
  const int64_t each = f.planes * f.cells / (LANES * warps);
  return f.neighbours ? size_of_box(f.pool, between(LEAST_CELLS, each, LAST_CELLS), 1)
                      : size_of_box(f.pool, between(LEAST_CELLS, each, PLANAR_CELLS), LEAST_WIDTH);
}

static box_shape shape_of(const pg_pooling &p, const box_size &s) {
  if (s.w == p.w.in && (s.h == p.h.in || s.d == 1)) return ONE_RUN;
  return p.d.in == 1 ? ONE_SLICE : SLICES;
}

/* Items are units, or, where planes are so large that computing them again would take too long,
 * parts of planes, which have flags. */
static pg_tiling tile_units(const pg_facts &f) {
  enum { WHOLE_CELLS = 1 << 16 };
  if (f.cells > WHOLE_CELLS) return pg_tile_flat(&f.pool, BOX_CELLS);
  return pg_tile_planes(&f.pool, least(f.planes, LANES) * f.cells);
}

/* Bytes of the flags and of the counts of units, behind the flags; 0: there is a block for each
 * unit, because there are many or because they are small. */
static int64_t box_workspace(const pg_tiling *t) {
  enum { ENOUGH = 4 /* units for a processor */ };
  const int64_t flags = flag_bytes(t);
  const int64_t units = pg_ceil_div(t->plane_items, flags > 0 ? (int64_t)LANES : 1);
  const bool whole = t->d * t->h * t->w <= LAST_CELLS ||
                     units >= ENOUGH * (int64_t)pg_cuda_least_limits()->processors;
  return flags == 0 && whole ? 0 : flags + units * (int64_t)sizeof(unit_count);
}

static uint32_t host_magic(int64_t by) {
  return by < 2 ? 0 : (uint32_t)((((uint64_t)1 << 32) + (uint64_t)by - 1) / (uint64_t)by);
}

static box_plan box_plan_of(const max_job &j, const pg_facts &f) {
  const pg_pooling &p = f.pool;
  const box_size size = size_of_box(f);
  const int64_t boxes = boxes_of(p, size), processors = pg_cuda_least_limits()->processors;
  const bool cuts = pg_tiling_cuts(&j.tiling);
  const int64_t planes = cuts ? (int64_t)LANES : j.tiling.planes;
  const int64_t units = pg_ceil_div(f.planes, planes), enough = 4 * BLOCKS_AT_ONCE * processors;
  box_plan s = {};
  s.d = (int32_t)size.d;
  s.h = (int32_t)size.h;
  s.w = (int32_t)size.w;
  s.cells = (int32_t)cells_of(size);
  s.boxes = (int32_t)boxes;
  s.planes = (int32_t)planes;
  s.flags = (int32_t)(cuts ? j.items : 0);
  s.vector = 1;
  const int64_t alone = pg_ceil_div(WARPS, boxes);
  s.units_of_block = (int32_t)(alone * between(1, units / (alone * enough), MOST_TURNS));
  s.boxes_of_block = (int32_t)(WARPS * between(1, units * boxes / (WARPS * enough), MOST_TURNS));
  s.blocks = (int32_t)pg_ceil_div(boxes, s.boxes_of_block);
  s.magic_w = host_magic(p.w.in);
  s.magic_h = host_magic(p.h.in);
  s.minus_w = 0u - (uint32_t)p.w.in;
  s.minus_h = 0u - (uint32_t)p.h.in;
  s.by_boxes = divider_of(boxes);
  s.by_blocks = divider_of(s.blocks);
  s.by_across = divider_of(pg_ceil_div(p.w.in, size.w));
  s.by_down = divider_of(pg_ceil_div(p.h.in, size.h));
  s.by_w = divider_of(size.w);
  s.by_h = divider_of(size.h);
  return s;
}

#endif
