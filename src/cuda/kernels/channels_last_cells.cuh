/* SPDX-License-Identifier: Apache-2.0 */
/* Interleaved items: a thread makes V channels of two by two cells.
 *
 * A block takes some pairs of rows of an item; its threads go through channels first, so that
 * neighbours read and write neighbours. */
#ifndef PG_CUDA_CHANNELS_LAST_CELLS_CUH_
#define PG_CUDA_CHANNELS_LAST_CELLS_CUH_

#include "cuda/kernels/box.cuh"

struct last_plan {
  int32_t parts, part_pairs;        /* blocks of an item, pairs of rows of each */
  pg_divider part, vectors, across; /* parts; vectors of channels and pairs of cells of a row */
  pg_divider pairs;                 /* pairs of rows of a slice */
};

struct last_block {
  pg_box_32 box;
  uint32_t n, c; /* of its first channel */
  pg_span pairs; /* of rows, slices one after the other */
};

/* What a thread makes: channels from c on, of up to 2 x 2 cells from (d, h, w) on. */
struct last_cells {
  int32_t c, d, h, w;
  int32_t rows, columns;
};

static inline last_plan last_plan_of(const pg_tiling &t, int64_t channels, bool whole) {
  enum { TASKS = 512 };
  last_plan l = {};
  const int64_t vectors = (t.planes + channels - 1) / channels, across = (t.w + 1) / 2;
  const int64_t pairs = (t.h + 1) / 2 * t.d, row = vectors * across;
  const int64_t some = row >= TASKS ? 1 : TASKS / row;
  l.part_pairs = (int32_t)(whole || some > pairs ? pairs : some);
  l.parts = (int32_t)((pairs + l.part_pairs - 1) / l.part_pairs);
  l.part = divider_of(l.parts);
  l.vectors = divider_of(vectors);
  l.across = divider_of(across);
  l.pairs = divider_of((t.h + 1) / 2);
  return l;
}

static __device__ __forceinline__ last_block last_block_of(const pg_items &t,
                                                           const pg_divider &by_c,
                                                           const last_plan &l, uint32_t block) {
  const uint32_t item = over(block, l.part);
  const int32_t part = (int32_t)(block - item * l.part.by);
  last_block b;
  b.box = box_32(t, item);
  b.n = over((uint32_t)b.box.first, by_c);
  b.c = (uint32_t)b.box.first - b.n * by_c.by;
  const int32_t pairs = (int32_t)l.pairs.by * length(b.box.d);
  b.pairs = {min(part * l.part_pairs, pairs), min(part * l.part_pairs + l.part_pairs, pairs)};
  return b;
}

static __device__ __forceinline__ uint32_t last_tasks(const last_plan &l, const last_block &b) {
  return (uint32_t)length(b.pairs) * l.vectors.by * l.across.by;
}

/* The task-th of a block; false if there is nothing at the end of a box. */
static __device__ __forceinline__ bool last_cells_of(const last_plan &l, const last_block &b,
                                                     uint32_t task, int32_t channels,
                                                     last_cells *o) {
  const uint32_t pair = over(task, l.vectors), line = over(pair, l.across);
  const uint32_t rows = b.pairs.begin + line, slice = over(rows, l.pairs);
  const int32_t c = (int32_t)(task - pair * l.vectors.by) * channels;
  o->c = (int32_t)b.c + c;
  o->d = b.box.d.begin + (int32_t)slice;
  o->h = b.box.h.begin + 2 * (int32_t)(rows - slice * l.pairs.by);
  o->w = b.box.w.begin + 2 * (int32_t)(pair - line * l.across.by);
  o->rows = min(2, b.box.h.end - o->h);
  o->columns = min(2, b.box.w.end - o->w);
  return c < b.box.planes && o->rows > 0 && o->columns > 0;
}

#endif
