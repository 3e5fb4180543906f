/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of average-backward, for the methods avg_columns.c and avg_rows.c: each output
 * whose window touches a box is divided by its divisor once, in vectors.  The quotients are put
 * into scratch memory row by row, with zeros between the rows.
 *
 * Sums begin at +0, so they are never -0.  Here each quotient is added to +0, so that all further
 * sums may begin with their first quotient. */
#ifndef PG_AVG_QUOTIENTS_H_
#define PG_AVG_QUOTIENTS_H_

#include "cpu/kernels/rows.h"
#include "cpu/method.h"

enum {
  AVG_BOX_CELLS = 4096,
  AVG_STAGED = 16384,       /* places for the quotients of a box */
  AVG_STAGED_WIDTH = 4096,  /* the most outputs in one row */
  AVG_STAGED_ROWS = 1024,   /* the most rows, and the most slices, of outputs */
  RECIPROCAL_MOST = 1 << 20 /* up to here divide() may multiply by the reciprocal */
};

/* The divisors of the outputs whose windows touch a box.  The divisor of an output is the product
 * of the extents of its window along D, H and W, or a number that is given. */
struct divisors {
  struct pg_range od, oh, ow; /* the outputs that the extents are for */
  int32_t d_extent[AVG_STAGED_ROWS], h_extent[AVG_STAGED_ROWS];
  float w_extent[AVG_STAGED_WIDTH + LANES];
  /* divisor[] and its reciprocals are for rows of outputs whose d_extent * h_extent is `outer`.  If
   * that is -1, they are for all outputs of the plane; if it is 0, they are not made yet. */
  int64_t outer;
  _Alignas(LINE) float divisor[AVG_STAGED_WIDTH + LANES];
  _Alignas(LINE) float reciprocal[AVG_STAGED_WIDTH + LANES];
};

struct quotients {
  const struct pg_avg_backward *args;
  const struct pg_facts *facts;
  struct grad_in grad_in;
  bool by_reciprocal; /* all divisors are whole numbers up to RECIPROCAL_MOST */
  bool one_piece;     /* the outputs of the box are contiguous and divided in one piece */
  int64_t pitch;      /* between rows of quotients */
  int64_t ahead;      /* prefetch distance, in outputs */
  struct pg_box_cover cover;
  struct divisors divisors;
  _Alignas(LINE) float quotient[AVG_STAGED + 4 * LANES];
  struct line_writer writer;
  _Alignas(LINE)
      element out[AVG_BOX_CELLS + 4 * LANES]; /* boxes whose rows are not contiguous in gradInput */
};

static inline floats quotient_of(bool by_reciprocal, floats grad, floats divisor,
                                 floats reciprocal) {
  return add(zeros(), by_reciprocal ? divide(grad, divisor, reciprocal) : over(grad, divisor));
}

static inline int64_t extent_of(const struct pg_avg_backward *a, const struct pg_axis *axis,
                                int64_t o) {
  return pg_window_extent(axis, o, a->count_include_pad);
}

static inline bool is_same_range(struct pg_range a, struct pg_range b) {
  return a.begin == b.begin && a.end == b.end;
}

/* Makes the extents of the outputs whose windows touch the box; all are 1 if the divisor is given.
 */
static inline void make_extents(struct quotients *k) {
  struct divisors *v = &k->divisors;
  const struct pg_avg_backward *a = k->args;
  const struct pg_pooling *p = &k->facts->pool;
  const struct pg_range d = k->cover.d.outputs, h = k->cover.h.outputs, w = k->cover.w.outputs;
  if (is_same_range(v->od, d) && is_same_range(v->oh, h) && is_same_range(v->ow, w)) return;
  const bool matter = a->divisor == 0;
  for (int64_t i = 0; i < pg_length(d); i++)
    v->d_extent[i] = matter ? (int32_t)extent_of(a, &p->d, d.begin + i) : 1;
  for (int64_t i = 0; i < pg_length(h); i++)
    v->h_extent[i] = matter ? (int32_t)extent_of(a, &p->h, h.begin + i) : 1;
  for (int64_t i = 0; i < pg_length(w) + LANES; i++)
    v->w_extent[i] = matter && i < pg_length(w) ? (float)extent_of(a, &p->w, w.begin + i) : 1;
  v->od = d;
  v->oh = h;
  v->ow = w;
  v->outer = 0;
}

/* Makes the divisors of a row of outputs, from place `at` on. */
static inline void make_divisors(struct quotients *k, int64_t outer, int64_t at) {
  struct divisors *v = &k->divisors;
  const int64_t given = k->args->divisor;
  const floats factor = all(given != 0 ? (float)given : (float)outer);
  for (int64_t i = 0; i < pg_length(v->ow); i += LANES) {
    const floats divisor = times(factor, load_f32(v->w_extent + i));
    store_f32(v->divisor + at + i, divisor);
    store_f32(v->reciprocal + at + i, over(all(1), divisor));
  }
}

/* Makes the divisors of all outputs of the plane, one row behind the other. */
static inline void make_all_divisors(struct quotients *k) {
  struct divisors *v = &k->divisors;
  const int64_t depth = pg_length(v->od), height = pg_length(v->oh);
  if (v->outer == -1) return;
  for (int64_t i = 0; i < depth * height; i++)
    make_divisors(k, v->d_extent[i / height] * (int64_t)v->h_extent[i % height],
                  i * pg_length(v->ow));
  v->outer = -1;
}

/* LANES outputs, of which the first has the i-th divisor, as quotients. */
static inline floats divided(const struct quotients *k, floats grad, int64_t i) {
  return quotient_of(k->by_reciprocal, grad, load_f32(k->divisors.divisor + i),
                     load_f32(k->divisors.reciprocal + i));
}

/* Divides contiguous outputs. */
static inline void divide_contiguous(const struct quotients *k, const element *grad, int64_t count,
                                     float *to) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    __builtin_prefetch(grad + i + k->ahead);
    store_f32(to + i, divided(k, load_elements(grad + i), i));
  }
  if (i < count) store_f32(to + i, divided(k, load_part(grad + i, count - i), i));
}

/* Divides one row of outputs; LANES zeros come before the quotients, and zeros behind them. */
static inline void divide_row(const struct quotients *k, const element *grad, float *to) {
  const int64_t stride = k->args->out_strides.of[PG_W], count = pg_length(k->divisors.ow);
  store_f32(to, zeros());
  to += LANES;
  if (stride == 1) {
    divide_contiguous(k, grad, count, to);
  } else {
    widen(grad, stride, count, 0, to);
    for (int64_t i = 0; i < count; i += LANES) store_f32(to + i, divided(k, load_f32(to + i), i));
  }
  for (int64_t i = count; i < k->pitch - LANES; i += LANES) store_f32(to + i, zeros());
}

/* Divides the outputs of a plane whose windows touch the box. */
static inline void divide_plane(struct quotients *k, int64_t plane) {
  const struct pg_strides *s = &k->args->out_strides;
  const int64_t n = plane / k->facts->pool.c, c = plane % k->facts->pool.c;
  struct divisors *v = &k->divisors;
  const int64_t depth = pg_length(v->od), height = pg_length(v->oh);
  const element *grad = (const element *)k->args->grad_out +
                        pg_offset(s, n, c, v->od.begin, v->oh.begin, v->ow.begin);
  float *to = k->quotient;
  if (k->one_piece) {
    make_all_divisors(k);
    divide_contiguous(k, grad, depth * height * pg_length(v->ow), to + LANES);
    return;
  }
  for (int64_t i = 0; i < depth; i++)
    for (int64_t j = 0; j < height; j++, to += k->pitch) {
      const int64_t outer = v->d_extent[i] * (int64_t)v->h_extent[j];
      if (v->outer != outer) make_divisors(k, outer, 0);
      v->outer = outer;
      divide_row(k, grad + i * s->of[PG_D] + j * s->of[PG_H], to);
    }
}

/* Does cell i of an axis lie in the same windows as the one before it? */
static inline bool in_same_windows(const struct pg_cover *m, int64_t i) {
  return i > 0 && m->first[i] == m->first[i - 1] && m->count[i] == m->count[i - 1];
}

/* Copies slice d - 1 to slice d, where both lie in the same windows. */
static inline void copy_slice(const struct destination *t, const struct pg_box *b, int64_t d) {
  for (int64_t h = 0; h < pg_length(b->h); h++) {
    element *to = t->plane + d * t->slice + h * t->row;
    memcpy(to, to - t->slice, (size_t)pg_length(b->w) * sizeof *to);
  }
}

/* --- Items --- */

static inline void begin_quotients(struct quotients *k, const struct pg_task *task) {
  k->args = &task->problem.args.avg_backward;
  k->facts = &task->problem.facts;
  k->grad_in = grad_in_of(k->facts, k->args->grad_in, &k->args->in_strides);
  k->by_reciprocal = k->facts->largest_divisor <= RECIPROCAL_MOST;
  k->ahead = pg_outputs_per_item(task);
  k->divisors.od = k->divisors.oh = k->divisors.ow = (struct pg_range){-1, -1};
  writer_clear(&k->writer);
  pg_box_cover_begin(&k->cover);
}

/* Makes what depends on the box alone: its cover, the extents of its windows, and the pitch. */
static inline void begin_box(struct quotients *k, const struct pg_box *b) {
  const struct pg_box_cover *m = &k->cover;
  pg_box_cover_make(&k->cover, &k->facts->pool, b, LANES);
  const int64_t rows = pg_length(m->d.outputs) * pg_length(m->h.outputs);
  const int64_t count = pg_length(m->w.outputs);
  k->one_piece =
      b->whole && k->facts->out.planes && !m->w.by_one && rows * count <= AVG_STAGED_WIDTH;
  k->pitch = k->one_piece ? count : count + m->w.most + (int64_t)4 * LANES;
  make_extents(k);
}

static inline void end_quotients(struct quotients *k) {
  writer_flush(&k->writer);
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- Tiling --- */

/* Is there room for the quotients of every box, and for the rows of cells that avg_rows.c expands
 * its rows of quotients to?  And can LANES cells get the quotients that they need with one load? */
static inline bool have_room(const struct pg_facts *f, const struct pg_tiling *t) {
  const struct pg_axis *w = &f->pool.w;
  const int64_t width = pg_most_touching(w, t->w), depth = pg_most_touching(&f->pool.d, t->d);
  const int64_t height = pg_most_touching(&f->pool.h, t->h), rows = depth * height;
  const bool slides_by_one = w->kernel > 0 && w->stride == 1 && w->kernel - 1 <= LANES;
  const int64_t windows = slides_by_one ? w->kernel : f->w_windows;
  if (!begin_in_lanes(w, t->w)) return false;
  if (width > AVG_STAGED_WIDTH || depth > AVG_STAGED_ROWS || height > AVG_STAGED_ROWS) return false;
  const bool one_piece =
      !pg_tiling_cuts(t) && f->out.planes && !slides_by_one && rows * width <= AVG_STAGED_WIDTH;
  const int64_t pitch = one_piece ? width : width + windows + (int64_t)4 * LANES;
  return rows * pitch <= AVG_STAGED && rows * round_up(t->w) <= AVG_STAGED;
}

/* Where windows overlap, boxes share outputs along their edges, and square boxes share the fewest.
 * Boxes are halved until there is room: where windows are large, many outputs belong to a box. */
static inline bool tile_quotients(const struct pg_facts *f, struct pg_tiling *tiling) {
  enum { SQUARE = 128, FROM = 256, LEAST = 256 };
  const struct pg_axis *w = &f->pool.w;
  const bool square = w->in > FROM && w->kernel > w->stride;
  if (f->outputs == 0 || f->largest_divisor == INT64_MAX) return false;
  for (int64_t cells = AVG_BOX_CELLS; cells >= LEAST; cells /= 2) {
    *tiling = square ? pg_tile_square(&f->pool, cells, SQUARE) : pg_tile_flat(&f->pool, cells);
    if (have_room(f, tiling)) return true;
  }
  return false;
}

#endif
