/* SPDX-License-Identifier: Apache-2.0 */
/* The part of max-backward that depends neither on the element type nor on the instruction set:
 * which outputs the box of a plane looks at, and what becomes of an index that does not point into
 * the box.
 *
 * Where planes are cut, a box looks only at the outputs whose windows touch it.  A stray (an index
 * inside its plane but outside its window) then may point into another box, whose flag is set in
 * the workspace: after all boxes are written, those with a flag are computed again from every
 * output of their plane.  An output is at home in the box that holds the first cell of its window,
 * and only its home sets flags and reports, so that nothing is counted twice. */
#ifndef PG_MAX_PLANE_H_
#define PG_MAX_PLANE_H_

#include "cpu/box.h"
#include "kernels/kernels.h"

/* One plane of a box at work. */
struct pg_max_plane {
  const struct pg_task *task;
  const struct pg_box *box;
  int64_t plane, n, c;            /* plane = n * C + c */
  bool every_output;              /* it looks at all outputs, so all are at home here */
  struct pg_range od, oh, ow;     /* the outputs to look at */
  struct pg_index_report outside; /* the indices it found outside the plane */
};

/* The windows of a row of outputs along depth and height, clipped. */
struct pg_row_windows {
  int64_t od, oh;
  struct pg_range d, h;
};

struct pg_max_plane pg_max_plane_of(const struct pg_task *task, const struct pg_box *box,
                                    int64_t plane, bool every_output);

struct pg_row_windows pg_row_windows_of(const struct pg_pooling *pool, int64_t od, int64_t oh);

/* Where the flat position `index` lies in the box, or -1. */
int64_t pg_position_in_box(const struct pg_max_plane *plane, int64_t index);

/* The output (row, ow) has an index that is not in this box: it belongs to another box, is a stray,
 * or lies outside the plane. */
void pg_index_elsewhere(struct pg_max_plane *plane, const struct pg_row_windows *row, int64_t ow,
                        int64_t index);

/* Adds what the plane found outside to the report of the problem. */
void pg_max_plane_report(const struct pg_max_plane *plane);

/* The workspace of the methods: one flag per item where planes are cut. */
int64_t pg_flags_bytes(const struct pg_tiling *tiling);

#endif
