/* SPDX-License-Identifier: Apache-2.0 */
/* Which cells a thread of max_channels_last_cells.cu computes, where channels are neighbours in
 * memory.
 *
 * A thread computes a quad: two by two cells of V neighbouring channels, V being what 16 bytes hold
 * where addresses and strides allow that, else one.  A block computes an item or a part of one.
 * Its threads are numbered by channels first, so that lanes read and write elements that follow
 * each other. */
#ifndef PG_CUDA_CHANNELS_LAST_CELLS_CUH_
#define PG_CUDA_CHANNELS_LAST_CELLS_CUH_

#include "cuda/kernels/box.cuh"

/* About as many are computed by a block, if it need not compute a whole item: two by a thread. */
enum { QUADS_OF_BLOCK = 512 };

/* How quads are numbered.  A pair is two rows of cells, which are one row of quads. */
struct quad_plan {
  int32_t blocks;        /* that share an item */
  int32_t pairs;         /* that a block computes; pairs of an item's slices follow each other */
  pg_divider by_blocks;  /* of an item */
  pg_divider by_vectors; /* of V channels in an item */
  pg_divider by_columns; /* of quads in a pair */
  pg_divider by_slice;   /* pairs of a slice */
};

struct quad_block {
  pg_box_32 box; /* of its item */
  uint32_t n, c; /* of the item's first channel */
  pg_span pairs; /* that it computes, counted in the item */
};

/* V channels from c on of rows x columns cells from (d, h, w) on.  At the end of a box these can be
 * fewer than 2 x 2. */
struct quad {
  uint32_t n;
  int32_t c, d, h, w;
  int32_t rows, columns;
};

/* whole: a block computes a whole item. */
static inline quad_plan quad_plan_of(const pg_tiling &t, int64_t channels, bool whole) {
  const int64_t vectors = (t.planes + channels - 1) / channels, columns = (t.w + 1) / 2;
  const int64_t pairs = (t.h + 1) / 2 * t.d, row = vectors * columns;
  const int64_t some = row >= QUADS_OF_BLOCK ? 1 : QUADS_OF_BLOCK / row;
  quad_plan p = {};
  p.pairs = (int32_t)(whole || some > pairs ? pairs : some);
  p.blocks = (int32_t)((pairs + p.pairs - 1) / p.pairs);
  p.by_blocks = divider_of(p.blocks);
  p.by_vectors = divider_of(vectors);
  p.by_columns = divider_of(columns);
  p.by_slice = divider_of((t.h + 1) / 2);
  return p;
}

static __device__ __forceinline__ quad_block quad_block_of(const quad_plan &p, const pg_items &t,
                                                           const pg_divider &by_c, uint32_t block) {
  const uint32_t item = over(block, p.by_blocks);
  const int32_t nth = (int32_t)(block - item * p.by_blocks.by);
  quad_block b;
  b.box = box_32(t, item);
  b.n = over((uint32_t)b.box.first, by_c);
  b.c = (uint32_t)b.box.first - b.n * by_c.by;
  const int32_t pairs = (int32_t)p.by_slice.by * length(b.box.d);
  b.pairs = {min(nth * p.pairs, pairs), min(nth * p.pairs + p.pairs, pairs)};
  return b;
}

/* How many quads a block has.  Boxes at the end of a plane count like all others. */
static __device__ __forceinline__ uint32_t quads_of(const quad_plan &p, const quad_block &b) {
  return (uint32_t)length(b.pairs) * p.by_vectors.by * p.by_columns.by;
}

/* The number-th quad of a block, for V = channels; false: it lies behind the end of the box. */
static __device__ __forceinline__ bool quad_of(const quad_plan &p, const quad_block &b,
                                               uint32_t number, int32_t channels, quad *q) {
  const uint32_t column = over(number, p.by_vectors), row = over(column, p.by_columns);
  const uint32_t pair = b.pairs.begin + row, slice = over(pair, p.by_slice);
  const int32_t c = (int32_t)(number - column * p.by_vectors.by) * channels;
  q->n = b.n;
  q->c = (int32_t)b.c + c;
  q->d = b.box.d.begin + (int32_t)slice;
  q->h = b.box.h.begin + 2 * (int32_t)(pair - slice * p.by_slice.by);
  q->w = b.box.w.begin + 2 * (int32_t)(column - row * p.by_columns.by);
  q->rows = min(2, b.box.h.end - q->h);
  q->columns = min(2, b.box.w.end - q->w);
  return c < b.box.planes && q->rows > 0 && q->columns > 0;
}

#endif
