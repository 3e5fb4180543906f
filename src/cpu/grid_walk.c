/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/grid_walk.h"

#include "core/checked.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Axes of length 1 take no step, and axes that all operands pass over in one stride are one.  A
 * length of 0 ends the walk before it begins. */
static void add_axis(struct pg_walk *w, int64_t size, const int64_t *const strides[], int operands,
                     int axis) {
  const int last = w->rank - 1;
  bool joins = last >= 0;
  if (size == 1) return;
  for (int n = 0; n < operands && joins; n++)
    joins = w->strides[n][last] == pg_mul_or_most(strides[n][axis], size);
  const int to = joins ? last : w->rank++;
  w->sizes[to] = joins ? pg_mul_or_most(w->sizes[last], size) : size;
  for (int n = 0; n < operands; n++) w->strides[n][to] = strides[n][axis];
}

static void swap_axes(struct pg_walk *w, int a, int b) {
  const int64_t size = w->sizes[a];
  w->sizes[a] = w->sizes[b];
  w->sizes[b] = size;
  for (int n = 0; n < PG_WALK_OPERANDS; n++) {
    const int64_t stride = w->strides[n][a];
    w->strides[n][a] = w->strides[n][b];
    w->strides[n][b] = stride;
  }
}

/* Moves an axis to another place; those between make room. */
static void move_axis(struct pg_walk *w, int from, int to) {
  for (int i = from; i < to; i++) swap_axes(w, i, i + 1);
  for (int i = from; i > to; i--) swap_axes(w, i, i - 1);
}

/* By the strides of the first operand, the greatest first. */
static void sort_axes(struct pg_walk *w) {
  for (int i = 1; i < w->rank; i++) {
    int to = i;
    while (to > 0 && w->strides[0][to - 1] < w->strides[0][i]) to--;
    move_axis(w, i, to);
  }
}

/* Sorted axes may be joined where those of the caller could not. */
static void join_axes(struct pg_walk *w) {
  const struct pg_walk sorted = *w;
  const int64_t *const strides[] = {sorted.strides[0], sorted.strides[1], sorted.strides[2]};
  w->rank = 0;
  for (int axis = 0; axis < sorted.rank; axis++)
    add_axis(w, sorted.sizes[axis], strides, PG_WALK_OPERANDS, axis);
}

/* The axis along which another operand has nearer neighbours than along the columns; -1: none. */
static int row_axis(const struct pg_walk *w) {
  const int column = w->rank - 1;
  for (int n = 1; n < PG_WALK_OPERANDS; n++) {
    int nearest = column;
    for (int axis = 0; axis < column; axis++)
      if (w->strides[n][axis] > 0 && w->strides[n][axis] < w->strides[n][nearest]) nearest = axis;
    if (nearest != column) return nearest;
  }
  return -1;
}

/* Axes of length 1 in front, until there are two. */
static void widen_rank(struct pg_walk *w) {
  while (w->rank < 2) {
    w->sizes[w->rank++] = 1;
    move_axis(w, w->rank - 1, 0);
    for (int n = 0; n < PG_WALK_OPERANDS; n++) w->strides[n][0] = 0;
  }
}

/* Panels are about as high as wide where rows are neighbours in one operand and columns in another,
 * and otherwise as wide as possible. */
static void cut(struct pg_walk *w, int64_t most, bool both_ways) {
  const int64_t height = w->sizes[w->rank - 2], width = w->sizes[w->rank - 1];
  int64_t side = most;
  while (both_ways && side * side > most) side /= 2;
  w->columns = least(width, side);
  w->rows = least(height, most / (w->columns < 1 ? 1 : w->columns));
  w->columns = least(width, most / (w->rows < 1 ? 1 : w->rows));
}

static void count_panels(struct pg_walk *w) {
  w->row_panels = w->column_panels = w->panels = 0;
  if (w->rows == 0 || w->columns == 0) return;
  w->row_panels = pg_ceil_div(w->sizes[w->rank - 2], w->rows);
  w->column_panels = pg_ceil_div(w->sizes[w->rank - 1], w->columns);
  w->panels = w->row_panels * w->column_panels;
  for (int axis = 0; axis < w->rank - 2; axis++) w->panels *= w->sizes[axis];
}

struct pg_walk pg_walk_of(const struct pg_grid *grid, const int64_t *const strides[], int operands,
                          int64_t most, bool in_order) {
  struct pg_walk w = {.rank = 0};
  int turned = -1;
  for (int axis = 0; axis < grid->rank; axis++)
    add_axis(&w, grid->sizes[axis], strides, operands, axis);
  if (!in_order && w.rank > 1) {
    sort_axes(&w);
    join_axes(&w);
  }
  if (!in_order && w.rank > 1) turned = row_axis(&w);
  if (turned >= 0) move_axis(&w, turned, w.rank - 2);
  widen_rank(&w);
  cut(&w, most, turned >= 0);
  count_panels(&w);
  return w;
}

struct pg_panel pg_panel_at(const struct pg_walk *w, int64_t number) {
  const int row_axis = w->rank - 2, column_axis = w->rank - 1;
  const int64_t column = number % w->column_panels * w->columns;
  int64_t left = number / w->column_panels;
  const int64_t row = left % w->row_panels * w->rows;
  left /= w->row_panels;
  struct pg_panel p = {.rows = least(w->rows, w->sizes[row_axis] - row),
                       .columns = least(w->columns, w->sizes[column_axis] - column),
                       .first = row * w->sizes[column_axis] + column};
  for (int n = 0; n < PG_WALK_OPERANDS; n++)
    p.at[n] = row * w->strides[n][row_axis] + column * w->strides[n][column_axis];
  int64_t worth = w->sizes[row_axis] * w->sizes[column_axis];
  for (int axis = row_axis - 1; axis >= 0; axis--) {
    const int64_t position = left % w->sizes[axis];
    left /= w->sizes[axis];
    p.first += position * worth;
    worth *= w->sizes[axis];
    for (int n = 0; n < PG_WALK_OPERANDS; n++) p.at[n] += position * w->strides[n][axis];
  }
  return p;
}

struct pg_plot pg_plot_of(const struct pg_walk *w, const struct pg_panel *p, int operand) {
  return (struct pg_plot){p->rows, p->columns, w->strides[operand][w->rank - 2],
                          w->strides[operand][w->rank - 1]};
}

struct pg_tiling pg_tile_items(int64_t items) {
  return (struct pg_tiling){.planes = 1,
                            .d = 1,
                            .h = 1,
                            .w = 1,
                            .plane_items = items,
                            .d_items = 1,
                            .h_items = 1,
                            .w_items = 1};
}
