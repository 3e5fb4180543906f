/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to cut a problem into items.  Backends choose the sizes. */
#ifndef PG_TILING_H_
#define PG_TILING_H_

#include "kernels/kernels.h"

/* The most that a box may have: cells along W; rows, and slices. */
enum { PG_BOX_WIDTH = 4096, PG_BOX_ROWS = 512 };

#ifdef __cplusplus
extern "C" {
#endif

/* Boxes of about `cells` cells that follow each other in a plane: several whole planes if they are
 * small, else one plane, whole slices, whole rows, or a part of one row. */
struct pg_tiling pg_tile_flat(const struct pg_pooling *pool, int64_t cells);

/* Boxes of `width` cells in each of cells / width rows of one slice.  Where windows overlap, boxes
 * share outputs along their edges, and square ones share the fewest. */
struct pg_tiling pg_tile_square(const struct pg_pooling *pool, int64_t cells, int64_t width);

/* Interleaved boxes: up to `row` elements (cells times channels) of each row, and so narrow that
 * the rows of outputs in whose windows a cell lies, and one row more, are at most `staged` outputs
 * (times channels). */
struct pg_tiling pg_tile_interleaved(const struct pg_facts *facts, int64_t row, int64_t staged);

/* Interleaved boxes of whole rows of a slice, or of whole slices, and of at most `cells` cells.  A
 * method computes them with `room` sums: for the cells (times channels) of a box, or, where these
 * are more, of any window and half of its rows or slices again. */
struct pg_tiling pg_tile_bands(const struct pg_facts *facts, int64_t cells, int64_t room);

/* Boxes that are whole planes: several where these have fewer than `cells` cells. */
struct pg_tiling pg_tile_planes(const struct pg_pooling *pool, int64_t cells);

/* Boxes of the size that *sizes has.  Interleaved ones may have the channels of several n, if it is
 * all of them. */
struct pg_tiling pg_tile_boxes(const struct pg_pooling *pool, const struct pg_tiling *sizes);

int64_t pg_tiling_items(const struct pg_tiling *tiling);

#ifdef __cplusplus
}
#endif

/* Are planes cut into several items? */
static inline bool pg_tiling_cuts(const struct pg_tiling *t) {
  return t->d_items * t->h_items * t->w_items > 1;
}

#endif
