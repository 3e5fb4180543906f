/* SPDX-License-Identifier: Apache-2.0 */
/* The part of SCATTER that does not depend on the element type: which outputs a tile looks at,
 * and what becomes of an index that does not point into it. */
#ifndef PG_SCATTER_H_
#define PG_SCATTER_H_

#include "cpu/kernel_set.h"

/* One tile at work. */
struct pg_scatter_tile {
  const struct pg_scatter_args *args;
  int64_t plane, n, c;        /* plane = n * C + c */
  int64_t lo, hi;             /* flat positions */
  bool all;                   /* looks at every output, so every output is at home here */
  struct pg_range od, oh, ow; /* the outputs to look at */
  struct pg_index_report bad; /* what it found outside the plane */
};

/* One row of outputs being looked at. */
struct pg_scatter_row {
  int64_t od, oh;
  struct pg_range d, h; /* its windows */
  bool may_be_home;     /* else what does not point into the tile is not the tile's business */
};

/* The tile of an item; every_output for RESCATTER. */
struct pg_scatter_tile pg_scatter_begin(const struct pg_scatter_args *args, int64_t item,
                                        bool every_output);

struct pg_scatter_row pg_scatter_row(const struct pg_scatter_tile *tile, int64_t od, int64_t oh);

/* An output of a row that may be home says i, which is not in this tile: another tile's business,
 * a stray, or outside the plane. */
void pg_scatter_elsewhere(struct pg_scatter_tile *tile, const struct pg_scatter_row *row,
                          int64_t ow, int64_t i);

/* Hands over what the tile found. */
void pg_scatter_end(const struct pg_scatter_tile *tile);

#endif
