/* SPDX-License-Identifier: Apache-2.0 */
/* PG_GATHER: each position has the element that its index names along one axis.  Elements are
 * moved as they are.  Where a row of positions shares its index, it is moved as a row. */
#include "cpu/bad_indices.h"
#include "cpu/grid_walk.h"
#include "cpu/kernels/tensor_numbers.h"
#include "cpu/method.h"

/* A panel. */
struct gathering {
  const struct pg_gather *a;
  struct pg_plot out, in;
  int64_t first;        /* position */
  const int64_t *index; /* of its positions, or of its rows */
  struct pg_index_report *found;
};

static void note(const struct gathering *g, int64_t position, int64_t index) {
  pg_note_bad_index(g->found, g->first + position, index);
}

static bool is_good(const struct gathering *g, int64_t index) {
  return index >= 0 && index < g->a->length;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): types */
#define DEFINE_GATHER(bits, type)                                                             \
  static void gather_positions_##bits(const struct gathering *g, type *out, const type *in) { \
    const int64_t *index = g->index;                                                          \
    for (int64_t row = 0; row < g->out.rows; row++, index += g->out.columns)                  \
      for (int64_t i = 0; i < g->out.columns; i++) {                                          \
        const int64_t from = row * g->in.row_stride + i * g->in.column_stride;                \
        type *const to = out + row * g->out.row_stride + i * g->out.column_stride;            \
        if (is_good(g, index[i])) {                                                           \
          *to = in[from + index[i] * g->a->axis_stride];                                      \
        } else {                                                                              \
          *to = 0;                                                                            \
          note(g, row * g->out.columns + i, index[i]);                                        \
        }                                                                                     \
      }                                                                                       \
  }                                                                                           \
  static void move_row_##bits(const struct gathering *g, type *to, const type *from) {        \
    const int64_t columns = g->out.columns;                                                   \
    if (g->out.column_stride == 1 && g->in.column_stride == 1)                                \
      memcpy(to, from, (size_t)columns * sizeof *to);                                         \
    else                                                                                      \
      for (int64_t i = 0; i < columns; i++)                                                   \
        to[i * g->out.column_stride] = from[i * g->in.column_stride];                         \
  }                                                                                           \
  static void gather_rows_##bits(const struct gathering *g, type *out, const type *in) {      \
    for (int64_t row = 0; row < g->out.rows; row++) {                                         \
      const int64_t index = g->index[row], from = row * g->in.row_stride;                     \
      type *const to = out + row * g->out.row_stride;                                         \
      if (is_good(g, index)) {                                                                \
        move_row_##bits(g, to, in + from + index * g->a->axis_stride);                        \
        continue;                                                                             \
      }                                                                                       \
      for (int64_t i = 0; i < g->out.columns; i++) {                                          \
        to[i * g->out.column_stride] = 0;                                                     \
        note(g, row * g->out.columns + i, index);                                             \
      }                                                                                       \
    }                                                                                         \
  }
/* NOLINTEND(bugprone-macro-parentheses) */

DEFINE_GATHER(8, uint8_t)
DEFINE_GATHER(16, uint16_t)
DEFINE_GATHER(32, uint32_t)
DEFINE_GATHER(64, uint64_t)

#define GATHER(bits) (by_rows ? gather_rows_##bits : gather_positions_##bits)

static void gather_elements(const struct gathering *g, void *out, const void *in, bool by_rows) {
  switch (pg_element_bytes(g->a->out.dtype)) {
    case 8:
      GATHER(64)(g, out, in);
      return;
    case 4:
      GATHER(32)(g, out, in);
      return;
    case 2:
      GATHER(16)(g, out, in);
      return;
    default:
      GATHER(8)(g, out, in);
  }
}

/* The positions of a report are those of the grid, so its axes stay in order. */
static struct pg_walk walk_of(const struct pg_gather *a) {
  const int64_t *const strides[] = {a->out.strides, a->in.strides, a->index.strides};
  return pg_walk_of(&a->grid, strides, 3, NUMBERS, true);
}

static void gather_panel(const struct pg_gather *a, const struct pg_walk *walk, int64_t item,
                         union numbers *room, struct pg_index_report *found) {
  const struct pg_panel p = pg_panel_at(walk, item);
  struct pg_plot index = pg_plot_of(walk, &p, 2);
  const bool by_rows = index.column_stride == 0 && p.columns > 1;
  if (by_rows) index.columns = 1;
  const struct gathering g = {
      .a = a,
      .out = pg_plot_of(walk, &p, 0),
      .in = pg_plot_of(walk, &p, 1),
      .first = p.first,
      .index =
          numbers_of(room, PG_CLASS_INT, element_at(&a->index, p.at[2]), a->index.dtype, &index),
      .found = found};
  gather_elements(&g, element_at(&a->out, p.at[0]), element_at(&a->in, p.at[1]), by_rows);
}

static void any_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_gather *a = &((const struct pg_task *)args)->problem.args.gather;
  const struct pg_walk walk = walk_of(a);
  struct pg_index_report found = pg_no_bad_indices();
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++)
    gather_panel(a, &walk, item, scratch->room, &found);
  pg_report_bad_indices(a->report, &found);
}

static bool any_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  *tiling = pg_tile_items(walk_of(&problem->args.gather).panels);
  return true;
}

const struct pg_cpu_method VARIANT(gather_any) = {
    .name = "any", .fits = any_fits, .run = any_items};
