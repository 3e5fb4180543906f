/* SPDX-License-Identifier: Apache-2.0 */
/* The part of SCATTER that depends neither on the element type nor on the instruction set: which
 * outputs a box looks at, and what becomes of an index that does not point into it. */
#ifndef PG_SCATTER_H_
#define PG_SCATTER_H_

#include "cpu/box.h"
#include "cpu/kernel_set.h"

/* One plane's box at work. */
struct pg_scatter_plane {
  const struct pg_scatter_args *args;
  const struct pg_box *box;
  int64_t plane, n, c;        /* plane = n * C + c */
  bool all;                   /* looks at every output, so every output is at home here */
  struct pg_range od, oh, ow; /* the outputs to look at */
  struct pg_index_report bad; /* what it found outside the plane */
};

/* One row of outputs being looked at. */
struct pg_scatter_row {
  int64_t od, oh;
  struct pg_range d, h; /* its windows */
};

/* The plane of a box; every_output for RESCATTER. */
struct pg_scatter_plane pg_scatter_begin(const struct pg_scatter_args *args,
                                         const struct pg_box *box, int64_t plane,
                                         bool every_output);

struct pg_scatter_row pg_scatter_row(const struct pg_scatter_plane *plane, int64_t od, int64_t oh);

/* Where the flat position i lies in the box, or -1. */
int64_t pg_scatter_at(const struct pg_scatter_plane *plane, int64_t i);

/* An output says i, which is not in this box: another box's business, a stray, or outside the
 * plane. */
void pg_scatter_elsewhere(struct pg_scatter_plane *plane, const struct pg_scatter_row *row,
                          int64_t ow, int64_t i);

/* Hands over what the plane found. */
void pg_scatter_end(const struct pg_scatter_plane *plane);

/* Adaptive windows that are all as long as each other slide: the arguments, put so in `room` if
 * need be. */
const struct pg_scatter_args *pg_scatter_sliding(const struct pg_scatter_args *args,
                                                 struct pg_scatter_args *room);

/* Is it cheaper to let each cell look into its windows than to let each output look for its cell?
 */
bool pg_prefers_gather(const struct pg_scatter_args *args);

#endif
