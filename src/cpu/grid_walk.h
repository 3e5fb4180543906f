/* SPDX-License-Identifier: Apache-2.0 */
/* How a method passes over the positions of a grid: in panels, which are rows and columns of
 * positions along two axes.  A panel is an item.
 *
 * Where nothing depends on the order of the positions, the axes are sorted: columns are neighbours
 * in the first operand, and if another operand has its neighbours along another axis, rows are
 * taken along that one, so that every line of memory that a panel touches is used up. */
#ifndef PG_GRID_WALK_H_
#define PG_GRID_WALK_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum { PG_WALK_OPERANDS = 3 };

struct pg_walk {
  int32_t rank; /* at least 2: the last two axes are those of the rows and of the columns */
  int64_t sizes[PG_GRID_AXES];
  int64_t strides[PG_WALK_OPERANDS][PG_GRID_AXES];
  int64_t rows, columns; /* of a panel; fewer at the ends of their axes */
  int64_t row_panels, column_panels, panels;
};

/* The elements that an operand has in a panel. */
struct pg_plot {
  int64_t rows, columns, row_stride, column_stride;
};

struct pg_panel {
  int64_t rows, columns;
  int64_t first;                /* position, if the walk is in order: others follow one by one */
  int64_t at[PG_WALK_OPERANDS]; /* offsets of the first elements */
};

/* Panels of at most `most` positions.  in_order: the axes stay as they are. */
struct pg_walk pg_walk_of(const struct pg_grid *grid, const int64_t *const strides[], int operands,
                          int64_t most, bool in_order);

struct pg_panel pg_panel_at(const struct pg_walk *walk, int64_t number);

struct pg_plot pg_plot_of(const struct pg_walk *walk, const struct pg_panel *panel, int operand);

/* Do the elements of a plot follow each other without a gap? */
static inline bool pg_is_dense(const struct pg_plot *p) {
  return (p->columns == 1 || p->column_stride == 1) &&
         (p->rows == 1 || p->row_stride == p->columns);
}

/* Is a plot better passed over column by column?  Loops should be long, and neighbours in memory be
 * taken one after the other. */
static inline bool pg_goes_by_columns(const struct pg_plot *p) {
  enum { SHORT = 16 };
  if (p->rows < SHORT || p->columns < SHORT) return p->rows > p->columns;
  return p->row_stride != 0 && p->row_stride < p->column_stride;
}

/* So many items that are not boxes. */
struct pg_tiling pg_tile_items(int64_t items);

/* The bytes of an element. */
static inline int64_t pg_element_bytes(aclDataType dtype) {
  switch (dtype) {
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
      return 8;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
      return 4;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    default:
      return 1;
  }
}

#endif
