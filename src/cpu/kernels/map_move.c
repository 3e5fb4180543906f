/* SPDX-License-Identifier: Apache-2.0 */
/* Maps that move bits: copies between tensors of one type, whatever their strides, and fills.
 *
 * Rows that are contiguous on both sides are copied line by line.  Everything else is packed into
 * a panel in the nearest cache first and goes to its place from there, so a transposition reads and
 * writes whole lines of memory, and large results go past the caches.  A BOOL may become another
 * byte, so the last method copies it. */
#include "cpu/grid_walk.h"
#include "cpu/kernels/line_writer.h"
#include "cpu/kernels/tensor_numbers.h"
#include "cpu/method.h"
#include "cpu/nontemporal.h"

enum { PANEL_BYTES = 16384 };

struct move {
  struct pg_walk walk; /* of out and in */
  struct pg_tensor_view out, in;
  int64_t bytes; /* of an element */
  bool nontemporal;
  uint64_t value; /* the element that fills, where there is no input */
};

static bool is_copy(const struct pg_map *a) {
  return a->function == PG_MAP_COPY && a->in[0].dtype == a->out.dtype && a->out.dtype != ACL_BOOL;
}

static struct pg_walk walk_of(const struct pg_map *a) {
  static const int64_t nowhere[PG_GRID_AXES];
  const int64_t *const strides[] = {a->out.strides,
                                    a->function == PG_MAP_COPY ? a->in[0].strides : nowhere};
  return pg_walk_of(&a->grid, strides, 2, PANEL_BYTES / pg_element_bytes(a->out.dtype), false);
}

/* --- Packing --- */

/* Both sides may have steps between rows and between columns. */
/* NOLINTBEGIN(bugprone-macro-parentheses): types */
#define DEFINE_MOVE(name, type)                                                                    \
  static void name(type *to, const struct pg_plot *t, const type *from, const struct pg_plot *f) { \
    for (int64_t row = 0; row < t->rows; row++) {                                                  \
      type *const to_row = to + row * t->row_stride;                                               \
      const type *const from_row = from + row * f->row_stride;                                     \
      const int64_t columns = t->columns;                                                          \
      if (f->column_stride == 0 && t->column_stride == 1) {                                        \
        const type x = *from_row;                                                                  \
        for (int64_t i = 0; i < columns; i++) to_row[i] = x;                                       \
      } else if (f->column_stride == 1) {                                                          \
        for (int64_t i = 0; i < columns; i++) to_row[i * t->column_stride] = from_row[i];          \
      } else {                                                                                     \
        for (int64_t i = 0; i < columns; i++)                                                      \
          to_row[i * t->column_stride] = from_row[i * f->column_stride];                           \
      }                                                                                            \
    }                                                                                              \
  }
/* NOLINTEND(bugprone-macro-parentheses) */

DEFINE_MOVE(move_8, uint8_t)
DEFINE_MOVE(move_16, uint16_t)
DEFINE_MOVE(move_32, uint32_t)
DEFINE_MOVE(move_64, uint64_t)

static void move_plot(void *to, const struct pg_plot *t, const void *from, const struct pg_plot *f,
                      int64_t bytes) {
  if (bytes == 8)
    move_64(to, t, from, f);
  else if (bytes == 4)
    move_32(to, t, from, f);
  else if (bytes == 2)
    move_16(to, t, from, f);
  else
    move_8(to, t, from, f);
}

/* Rows and columns change places. */
static struct pg_plot turned(struct pg_plot p) {
  return (struct pg_plot){p.columns, p.rows, p.column_stride, p.row_stride};
}

/* Passes over the elements in the order in which they lie in the input. */
static void pack(void *room, const void *from, struct pg_plot f, int64_t bytes) {
  struct pg_plot t = {f.rows, f.columns, f.columns, 1};
  if (pg_goes_by_columns(&f)) {
    f = turned(f);
    t = turned(t);
  }
  move_plot(room, &t, from, &f, bytes);
}

/* --- A panel --- */

static void copy_rows(const struct move *m, char *to, const struct pg_plot *t, const char *from,
                      int64_t from_step) {
  const int64_t width = t->columns * m->bytes;
  if (pg_is_dense(t) && from_step == width) {
    copy_bytes(to, from, t->rows * width, m->nontemporal);
    return;
  }
  for (int64_t row = 0; row < t->rows; row++)
    copy_bytes(to + row * t->row_stride * m->bytes, from + row * from_step, width, m->nontemporal);
}

static void move_panel(const struct move *m, int64_t number, void *room) {
  const struct pg_panel p = pg_panel_at(&m->walk, number);
  const struct pg_plot t = pg_plot_of(&m->walk, &p, 0), f = pg_plot_of(&m->walk, &p, 1);
  const struct pg_plot packed = {p.rows, p.columns, p.columns, 1};
  char *const to = element_at(&m->out, p.at[0]);
  const char *const from = element_at(&m->in, p.at[1]);
  if (to == from) return; /* an input that is the output's view */
  if (t.column_stride == 1 && f.column_stride == 1) {
    copy_rows(m, to, &t, from, f.row_stride * m->bytes);
    return;
  }
  pack(room, from, f, m->bytes);
  if (t.column_stride == 1)
    copy_rows(m, to, &t, room, p.columns * m->bytes);
  else
    move_plot(to, &t, room, &packed, m->bytes);
}

/* --- The method --- */

/* The value as an element of the output's type. */
static uint64_t value_of(const struct pg_map *a) {
  const struct pg_plot one = {1, 1, 1, 1};
  const float as_float = (float)a->s.real;
  uint64_t value = 0;
  VARIANT(store_numbers)
  (&value, a->out.dtype, &one, a->class_of == PG_CLASS_FLOAT ? (const void *)&as_float : &a->s,
   a->class_of);
  return value;
}

static void move_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_map *a = &((const struct pg_task *)args)->problem.args.map;
  struct move m = {.walk = walk_of(a), .out = a->out, .in = a->in[0]};
  m.bytes = pg_element_bytes(a->out.dtype);
  m.nontemporal = pg_prefers_nontemporal(a->grid.count * m.bytes);
  if (a->function == PG_MAP_VALUE) {
    m.value = value_of(a);
    m.in = (struct pg_tensor_view){.address = &m.value, .dtype = a->out.dtype};
  }
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++)
    move_panel(&m, item, scratch->room);
  if (m.nontemporal) fence_nontemporal();
}

static bool move_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_map *a = &problem->args.map;
  if (!is_copy(a) && a->function != PG_MAP_VALUE) return false;
  *tiling = pg_tile_items(walk_of(a).panels);
  return true;
}

const struct pg_cpu_method VARIANT(map_move) = {
    .name = "move", .fits = move_fits, .run = move_items};
