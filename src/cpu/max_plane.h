/* SPDX-License-Identifier: Apache-2.0 */
/* The part of max-backward that depends neither on the element type nor on the instruction set:
 * which outputs the box of a plane looks at, and what becomes of an index that does not point into
 * the box.
 *
 * Where planes are cut, a box looks only at the outputs whose windows touch it.  A stray (an index
 * inside its plane but outside its window) may then point into another box.  That box's flag is set
 * in the workspace, and after all boxes are written, those with a flag are computed again from
 * every output of their plane.  The home of an output is the box in which the first cell of its
 * window lies.  Only the home sets flags and reports, so that nothing is counted twice. */
#ifndef PG_MAX_PLANE_H_
#define PG_MAX_PLANE_H_

#include "cpu/box.h"
#include "kernels/kernels.h"

/* One plane of a box while it is computed. */
struct pg_max_plane {
  const struct pg_task *task;
  const struct pg_box *box;
  int64_t plane, n, c;           /* plane = n * C + c */
  bool every_output;             /* all outputs are looked at, so this is the home of all */
  struct pg_range od, oh, ow;    /* the outputs that are looked at */
  struct pg_index_report report; /* of the indices that were found outside the plane */
};

/* The windows of a row of outputs along depth and height, clipped to the plane. */
struct pg_row_windows {
  int64_t od, oh;
  struct pg_range d, h;
};

struct pg_max_plane pg_max_plane_of(const struct pg_task *task, const struct pg_box *box,
                                    int64_t plane, bool every_output);

struct pg_row_windows pg_row_windows_of(const struct pg_pooling *pool, int64_t od, int64_t oh);

/* The position in the box of the cell that has the flat position `index` in the plane, or -1. */
int64_t pg_position_in_box(const struct pg_max_plane *plane, int64_t index);

/* To be called for an output (row, ow) whose index does not point into this box: it points into
 * another box, as a stray or not, or lies outside the plane.  Sets the flag or reports. */
void pg_index_elsewhere(struct pg_max_plane *plane, const struct pg_row_windows *row, int64_t ow,
                        int64_t index);

/* Adds the plane's report to that of the problem. */
void pg_max_plane_report(const struct pg_max_plane *plane);

/* The bytes of workspace that the methods need: one flag per item where planes are cut. */
int64_t pg_flags_bytes(const struct pg_problem *problem, const struct pg_tiling *tiling);

#endif
