/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward for cells that lie in few windows: at most three along W and H, and one along D.
 *
 * Each output is divided once.  Then the method walks down columns of LANES cells.  When a row of
 * cells is the first to need a row of quotients, the column takes that row: it adds up along W the
 * quotients of the windows in which its cells lie.  The sums of the latest rows stay in registers
 * and are added along H.  So each quotient is loaded once per column, and only results are
 * stored. */
#include "cpu/kernels/avg_quotients.h"

enum {
  BOX_CELLS = 4096,
  STAGED = 16384,           /* places for the quotients of a box */
  STAGED_WIDTH = 4096,      /* the most outputs in one row */
  ONE_PIECE = AVG_DIVISORS, /* the most outputs that are divided as one run */
  LEAST_WIDTH = 12          /* cells in a row: shorter ones leave vectors half empty (measured) */
};

struct columns {
  struct quotients q;
  struct grad_in grad_in;
  bool one_piece; /* the outputs of the box follow each other and are divided as one run */
  int64_t pitch;  /* between rows of quotients */
  _Alignas(LINE) float quotient[STAGED + 4 * LANES];
  struct line_writer writer;
  _Alignas(LINE)
      element out[BOX_CELLS + 4 * LANES]; /* boxes whose rows are not contiguous in gradInput */
};
_Static_assert(sizeof(struct columns) <= PG_SCRATCH_METHOD, "columns need more scratch");

/* Divides the outputs of a plane whose windows touch the box.  Except in one piece, LANES zeros
 * come before each row of quotients and behind the last one, and dividing fills its last vector
 * with zeros. */
static void divide_plane(struct columns *k, int64_t plane) {
  const struct pg_box_cover *m = &k->q.cover;
  const struct pg_strides *s = &k->q.args->out_strides;
  struct divisors *v = &k->q.divisors;
  const int64_t n = plane / k->q.facts->pool.c, c = plane % k->q.facts->pool.c;
  const int64_t count = pg_length(m->w.outputs);
  const element *grad =
      (const element *)k->q.args->grad_out +
      pg_offset(s, n, c, m->d.outputs.begin, m->h.outputs.begin, m->w.outputs.begin);
  float *to = k->quotient;
  if (k->one_piece) {
    const int64_t rows = pg_length(m->d.outputs) * pg_length(m->h.outputs);
    divide_run(grad, rows * count, divisors_of_rows(&k->q, rows), to + LANES);
    return;
  }
  for (int64_t i = 0; i < pg_length(m->d.outputs); i++)
    for (int64_t j = 0; j < pg_length(m->h.outputs); j++, to += k->pitch) {
      const int64_t outer = v->same ? 0 : v->d_extent[i] * (int64_t)v->h_extent[j];
      store_f32(to, zeros());
      divide_row(&k->q, grad + i * s->of[PG_D] + j * s->of[PG_H], divisors_of(v, outer),
                 to + LANES);
    }
  store_f32(to, zeros());
}

/* Copies slice d - 1 to slice d, where both lie in the same windows. */
static void copy_slice(const struct destination *t, const struct pg_box *b, int64_t d) {
  for (int64_t h = 0; h < pg_length(b->h); h++) {
    element *to = t->plane + d * t->slice + h * t->row;
    memcpy(to, to - t->slice, (size_t)pg_length(b->w) * sizeof *to);
  }
}

/* --- Columns --- */

/* What the compiler knows of a column: the most windows that its cells lie in along each axis, and
 * whether windows slide by one cell along W. */
struct avg_shape {
  int height, width;
  bool by_one;
};

/* The cells w to w + LANES - 1 of the rows [begin, end) of slice d. */
struct avg_column {
  int64_t d, begin, end, w;
};

/* The sum along W of the quotients of the windows in which LANES cells lie. */
static inline __attribute__((always_inline)) floats add_along_w(const float *quotient,
                                                                const struct avg_shape shape,
                                                                ints lane, ints count) {
  floats sum = shape.by_one ? load_f32(quotient) : zeros();
  if (shape.by_one)
    for (int i = 1; i < shape.width; i++) sum = add(sum, load_f32(quotient + i));
  else
    for (int i = 0; i < shape.width; i++)
      sum = add_above(sum, permute(load_f32(quotient + i), lane), count, all_i(i));
  return sum;
}

/* Adds the sums along W of the latest rows of quotients along H. */
static inline __attribute__((always_inline)) floats add_rows_up(const floats *row,
                                                                const struct avg_shape shape,
                                                                int32_t count) {
  const int last = shape.height - 1;
  if (shape.height > 2 && count > 2) return add(add(row[last - 2], row[last - 1]), row[last]);
  if (shape.height > 1 && count > 1) return add(row[last - 1], row[last]);
  return count > 0 ? row[last] : zeros();
}

static inline __attribute__((always_inline)) void make_column(const struct columns *k,
                                                              const struct destination *t,
                                                              const struct avg_column c,
                                                              const struct avg_shape shape) {
  const struct pg_cover *mh = &k->q.cover.h, *mw = &k->q.cover.w;
  const int32_t *first = mh->first, *count_of = mh->count;
  const int64_t pitch = k->pitch, stride = t->row, slice = pg_length(mh->outputs) * pitch;
  const int64_t left = pg_length(mw->cells) - c.w;
  const ints lane = sub_i(load_i32(mw->first + c.w), all_i(mw->first[c.w]));
  const ints count = load_i32(mw->count + c.w);
  int64_t taken = first[c.begin]; /* rows of quotients */
  const float *quotient = k->quotient + k->q.cover.d.first[c.d] * slice + taken * pitch;
  quotient += mw->first[c.w];
  const element *end = t->end;
  element *to = t->at + c.w;
  packed cells = pack(zeros());
  floats row[3] = {zeros(), zeros(), zeros()};
  for (int64_t h = c.begin; h < c.end; h++, to += stride) {
    if (h > c.begin && first[h] == first[h - 1] && count_of[h] == count_of[h - 1]) {
      store_cells(end, to, cells, left);
      continue;
    }
    for (; taken < first[h] + count_of[h]; taken++, quotient += pitch) {
      for (int j = 1; j < shape.height; j++) row[j - 1] = row[j];
      row[shape.height - 1] = add_along_w(quotient, shape, lane, count);
    }
    cells = pack(add_rows_up(row, shape, count_of[h]));
    store_cells(end, to, cells, left);
  }
}

/* Columns are computed from right to left, so that what a vector stores beyond the end of its row
 * is overwritten: by the next row, or by a column further left. */
static inline __attribute__((always_inline)) void make_columns(const struct columns *k,
                                                               const struct destination *t,
                                                               struct avg_column c,
                                                               const struct avg_shape shape) {
  for (c.w = round_up(pg_length(k->q.cover.w.cells)) - LANES; c.w >= 0; c.w -= LANES)
    make_column(k, t, c, shape);
}

static void make_some_rows(const struct columns *k, const struct destination *t,
                           const struct avg_column *rows) {
  const struct avg_column c = *rows;
  const struct pg_cover *h = &k->q.cover.h, *w = &k->q.cover.w;
  const int width = (int)w->most;
  if (w->by_one && width == 3)
    make_columns(k, t, c, (struct avg_shape){3, 3, true});
  else if (w->by_one)
    make_columns(k, t, c, (struct avg_shape){3, width, true});
  else if (width == 1 && h->most == 1)
    make_columns(k, t, c, (struct avg_shape){1, 1, false});
  else if (width <= 2 && h->most <= 2)
    make_columns(k, t, c, (struct avg_shape){2, 2, false});
  else
    make_columns(k, t, c, (struct avg_shape){3, 3, false});
}

static void make_avg_plane(struct columns *k, const struct pg_box *b, struct destination *t) {
  const int64_t rows = rows_at_once(b);
  for (int64_t d = 0; d < pg_length(b->d); d++) {
    if (t->writer == NULL && in_same_windows(&k->q.cover.d, d)) {
      copy_slice(t, b, d);
      continue;
    }
    for (int64_t h = 0; h < pg_length(b->h); h += rows) {
      const struct avg_column c = {.d = d, .begin = h, .end = least(h + rows, pg_length(b->h))};
      begin_rows(t, d, h);
      make_some_rows(k, t, &c);
      end_rows(t, (c.end - h) * pg_length(b->w));
    }
  }
}

/* Makes what depends on the box alone. */
static void begin_columns(struct columns *k, const struct pg_box *b) {
  const struct pg_box_cover *m = &k->q.cover;
  begin_box(&k->q, b, 1, LANES);
  const int64_t rows = pg_length(m->d.outputs) * pg_length(m->h.outputs);
  const int64_t count = pg_length(m->w.outputs);
  k->one_piece = b->whole && k->q.out.planes && !m->w.by_one && rows * count <= ONE_PIECE;
  k->pitch = k->one_piece ? count : LANES + round_up(count);
}

static void columns_items(const void *args, int64_t begin, int64_t end,
                          struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *f = &task->problem.facts;
  struct columns *k = scratch->room;
  begin_quotients(&k->q, task);
  k->grad_in = grad_in_of(f, k->q.args->grad_in, &k->q.args->in_strides);
  writer_clear(&k->writer);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, &f->pool, item);
    begin_columns(k, &box);
    for (int64_t i = 0; i < box.planes; i++) {
      struct destination t = destination_of(&k->grad_in, &box, i, &k->writer, k->out);
      divide_plane(k, box.first + i);
      make_avg_plane(k, &box, &t);
    }
    if (!k->grad_in.contiguity.rows) write_box(&k->grad_in, &box, k->out);
  }
  writer_flush(&k->writer);
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

/* Is there room for the quotients of every box?  And can LANES cells get the quotients that they
 * need with one load? */
static bool has_room(const struct pg_facts *f, const struct pg_tiling *t) {
  const struct pg_axis *w = &f->pool.w;
  const int64_t width = pg_most_touching(w, t->w), depth = pg_most_touching(&f->pool.d, t->d);
  const int64_t height = pg_most_touching(&f->pool.h, t->h);
  const bool by_one = w->kernel > 0 && w->stride == 1;
  const bool one_piece =
      !pg_tiling_cuts(t) && f->out.planes && !by_one && depth * height * width <= ONE_PIECE;
  return begin_in_lanes(w, t->w) && width <= STAGED_WIDTH && depth <= AVG_OUTPUT_ROWS &&
         height <= AVG_OUTPUT_ROWS &&
         (one_piece || depth * height * (LANES + round_up(width)) <= STAGED);
}

/* Where windows overlap, boxes share outputs along their edges, and square boxes share the fewest.
 * Boxes are halved until there is room. */
static bool tile_columns(const struct pg_facts *f, struct pg_tiling *tiling) {
  enum { SQUARE = 128, FROM = 256, LEAST = 256 };
  const struct pg_axis *w = &f->pool.w;
  const bool square = w->in > FROM && w->kernel > w->stride;
  for (int64_t cells = BOX_CELLS; cells >= LEAST; cells /= 2) {
    *tiling = square ? pg_tile_square(&f->pool, cells, SQUARE) : pg_tile_flat(&f->pool, cells);
    if (has_room(f, tiling)) return true;
  }
  return false;
}

/* Is avg_rows.c faster (measured)?  It copies rows of cells that lie in the same windows, unless
 * rows are short, and slices; where each cell of a row lies in one window of its own, it has
 * nothing to add along W; and it adds short rows, along which windows slide by one cell, as one. */
static bool rows_are_faster(const struct pg_pooling *p) {
  const bool by_one = p->w.kernel > 0 && p->w.stride == 1;
  return (p->h.in / 4 >= p->h.out && p->w.in > TWO_VECTORS) || p->d.in > 2 * p->d.out ||
         (p->w.in == p->w.out && p->w.kernel <= 1) || (by_one && p->w.in <= LANES);
}

/* Does every slice of cells lie in a window? */
static bool has_no_gap(const struct pg_axis *d) {
  return d->kernel == 0 ||
         (d->kernel >= d->stride && pg_window(d, d->out - 1).end >= d->in && d->out > 0);
}

static bool columns_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  if (f->outputs == 0 || f->largest_divisor == INT64_MAX) return false;
  if (is_interleaved(&problem->args.avg_backward) || f->pool.w.in < LEAST_WIDTH) return false;
  return f->d_windows <= 1 && has_no_gap(&f->pool.d) && f->h_windows <= 3 && f->w_windows <= 3 &&
         (f->pool.w.stride != 1 || f->pool.w.kernel <= 3) && !rows_are_faster(&f->pool) &&
         tile_columns(f, tiling);
}

const struct pg_cpu_method VARIANT(avg_columns) = {
    .name = "columns", .fits = columns_fits, .run = columns_items};
