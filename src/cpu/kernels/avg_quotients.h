/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of average-backward, for the methods avg_columns.c and avg_rows.c: each output
 * that touches a box is divided by its divisor once, in vectors.  The quotients stand in scratch
 * memory row by row, between zeros.
 *
 * Sums begin at +0, so they are never -0.  Each quotient is added to +0 here, and no other sum has
 * to begin there. */
#ifndef PG_AVG_QUOTIENTS_H_
#define PG_AVG_QUOTIENTS_H_

#include "cpu/kernels/rows.h"
#include "cpu/method.h"

enum {
  AVG_BOX_CELLS = 4096,
  AVG_STAGED = 16384,      /* quotients of a box */
  AVG_STAGED_WIDTH = 4096, /* of one row */
  AVG_STAGED_ROWS = 1024,  /* rows, slices */
  EASY_DIVISOR = 1 << 20   /* up to here a quotient is two products: see divide() */
};

/* Windows and divisors of the outputs that touch a box, for one row of them or, where a plane is
 * divided in one piece, for all. */
struct divisors {
  struct pg_range od, oh, ow; /* the outputs that the three tables of window lengths are for */
  int32_t deep[AVG_STAGED_ROWS], tall[AVG_STAGED_ROWS]; /* lengths along D and along H */
  float wide[AVG_STAGED_WIDTH + LANES];                 /* lengths along W */
  /* by[] has the divisors of one row of outputs, whose deep * tall is `outer`; if that is -1, of
   * all outputs of the plane; if it is 0, nothing yet. */
  int64_t outer;
  _Alignas(LINE) float by[AVG_STAGED_WIDTH + LANES];
  _Alignas(LINE) float one_over[AVG_STAGED_WIDTH + LANES];
};

struct quotients {
  const struct pg_avg_backward *args;
  const struct pg_facts *facts;
  struct grad_in grad_in;
  bool easy;      /* all divisors are whole numbers up to EASY_DIVISOR */
  bool one_piece; /* the outputs of the box are contiguous and divided in one piece */
  int64_t pitch;  /* between rows of quotients */
  int64_t ahead;  /* prefetch distance, in outputs */
  struct pg_box_cover cover;
  struct divisors divisors;
  _Alignas(LINE) float quotient[AVG_STAGED + 4 * LANES];
  struct line_writer writer;
  _Alignas(LINE)
      element out[AVG_BOX_CELLS + 4 * LANES]; /* boxes whose rows are not contiguous in gradInput */
};

static inline floats quotient_of(bool easy, floats grad, floats by, floats one_over) {
  return add(zeros(), easy ? divide(grad, by, one_over) : over(grad, by));
}

static inline int64_t extent_of(const struct pg_avg_backward *a, const struct pg_axis *axis,
                                int64_t o) {
  return pg_window_extent(axis, o, a->count_include_pad);
}

static inline bool is_same_range(struct pg_range a, struct pg_range b) {
  return a.begin == b.begin && a.end == b.end;
}

/* Lengths of the windows of the outputs that touch the box; all 1 if the divisor is given. */
static inline void know_lengths(struct quotients *k) {
  struct divisors *v = &k->divisors;
  const struct pg_avg_backward *a = k->args;
  const struct pg_pooling *p = &k->facts->pool;
  const struct pg_range d = k->cover.d.outputs, h = k->cover.h.outputs, w = k->cover.w.outputs;
  if (is_same_range(v->od, d) && is_same_range(v->oh, h) && is_same_range(v->ow, w)) return;
  const bool matter = a->divisor == 0;
  for (int64_t i = 0; i < pg_length(d); i++)
    v->deep[i] = matter ? (int32_t)extent_of(a, &p->d, d.begin + i) : 1;
  for (int64_t i = 0; i < pg_length(h); i++)
    v->tall[i] = matter ? (int32_t)extent_of(a, &p->h, h.begin + i) : 1;
  for (int64_t i = 0; i < pg_length(w) + LANES; i++)
    v->wide[i] = matter && i < pg_length(w) ? (float)extent_of(a, &p->w, w.begin + i) : 1;
  v->od = d;
  v->oh = h;
  v->ow = w;
  v->outer = 0;
}

static inline void make_divisors(struct quotients *k, int64_t outer, int64_t at) {
  struct divisors *v = &k->divisors;
  const int64_t given = k->args->divisor;
  const floats factor = all(given != 0 ? (float)given : (float)outer);
  for (int64_t i = 0; i < pg_length(v->ow); i += LANES) {
    const floats by = times(factor, load_f32(v->wide + i));
    store_f32(v->by + at + i, by);
    store_f32(v->one_over + at + i, over(all(1), by));
  }
}

/* Makes the divisors of all outputs of the plane, one row behind the other. */
static inline void make_all_divisors(struct quotients *k) {
  struct divisors *v = &k->divisors;
  const int64_t depth = pg_length(v->od), height = pg_length(v->oh);
  if (v->outer == -1) return;
  for (int64_t i = 0; i < depth * height; i++)
    make_divisors(k, v->deep[i / height] * (int64_t)v->tall[i % height], i * pg_length(v->ow));
  v->outer = -1;
}

/* Divides contiguous outputs. */
static inline void divide_contiguous(const struct quotients *k, const element *grad, int64_t count,
                                     float *to) {
  const struct divisors *v = &k->divisors;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    __builtin_prefetch(grad + i + k->ahead);
    store_f32(to + i, quotient_of(k->easy, load_elements(grad + i), load_f32(v->by + i),
                                  load_f32(v->one_over + i)));
  }
  if (i < count)
    store_f32(to + i, quotient_of(k->easy, load_part(grad + i, count - i), load_f32(v->by + i),
                                  load_f32(v->one_over + i)));
}

/* Divides one row of outputs: LANES zeros, the quotients, zeros. */
static inline void divide_row(const struct quotients *k, const element *grad, float *to) {
  const struct divisors *v = &k->divisors;
  const int64_t step = k->args->out_strides.of[PG_W], count = pg_length(v->ow);
  store_f32(to, zeros());
  to += LANES;
  if (step == 1) {
    divide_contiguous(k, grad, count, to);
  } else {
    widen(grad, step, count, 0, to);
    for (int64_t i = 0; i < count; i += LANES)
      store_f32(to + i, quotient_of(k->easy, load_f32(to + i), load_f32(v->by + i),
                                    load_f32(v->one_over + i)));
  }
  for (int64_t i = count; i < k->pitch - LANES; i += LANES) store_f32(to + i, zeros());
}

/* Divides the outputs of a plane that touch the box. */
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
      const int64_t outer = v->deep[i] * (int64_t)v->tall[j];
      if (v->outer != outer) make_divisors(k, outer, 0);
      v->outer = outer;
      divide_row(k, grad + i * s->of[PG_D] + j * s->of[PG_H], to);
    }
}

/* Does cell i of an axis lie in the same windows as the one before it? */
static inline bool in_same_windows(const struct pg_cover *m, int64_t i) {
  return i > 0 && m->first[i] == m->first[i - 1] && m->count[i] == m->count[i - 1];
}

/* A slice in the same windows as the one before is a copy of it. */
static inline void copy_slice(const struct destination *t, const struct pg_box *b, int64_t d) {
  for (int64_t h = 0; h < pg_length(b->h); h++) {
    element *to = t->plane + d * t->slice + h * t->row;
    memcpy(to, to - t->slice, (size_t)pg_length(b->w) * sizeof *to);
  }
}

/* --- A run over items --- */

static inline void begin_quotients(struct quotients *k, const struct pg_task *task) {
  k->args = &task->problem.args.avg_backward;
  k->facts = &task->problem.facts;
  k->grad_in = grad_in_of(k->facts, k->args->grad_in, &k->args->in_strides);
  k->easy = k->facts->largest_divisor <= EASY_DIVISOR;
  k->ahead = pg_outputs_per_item(task);
  k->divisors.od = k->divisors.oh = k->divisors.ow = (struct pg_range){-1, -1};
  writer_clear(&k->writer);
  pg_box_cover_begin(&k->cover);
}

/* The covers, windows and pitch of a box. */
static inline void begin_box(struct quotients *k, const struct pg_box *b) {
  const struct pg_box_cover *m = &k->cover;
  pg_box_cover_make(&k->cover, &k->facts->pool, b, LANES);
  const int64_t rows = pg_length(m->d.outputs) * pg_length(m->h.outputs);
  const int64_t count = pg_length(m->w.outputs);
  k->one_piece =
      b->whole && k->facts->out.planes && !m->w.by_one && rows * count <= AVG_STAGED_WIDTH;
  k->pitch = k->one_piece ? count : count + m->w.most + (int64_t)4 * LANES;
  know_lengths(k);
}

static inline void end_quotients(struct quotients *k) {
  writer_flush(&k->writer);
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- Tiles --- */

/* Do the quotients, and as many expanded rows, of every box fit?  LANES cells look at quotients in
 * LANES places if no two windows begin at one cell. */
static inline bool quotients_fit(const struct pg_facts *f, const struct pg_tiling *t) {
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

/* Where windows overlap a square box reads the fewest outputs twice.  Large windows need smaller
 * boxes. */
static inline bool tile_quotients(const struct pg_facts *f, struct pg_tiling *tiling) {
  enum { SQUARE = 128, FROM = 256, LEAST = 256 };
  const struct pg_axis *w = &f->pool.w;
  const bool square = w->in > FROM && w->kernel > w->stride;
  if (f->outputs == 0 || f->largest_divisor == INT64_MAX) return false;
  for (int64_t cells = AVG_BOX_CELLS; cells >= LEAST; cells /= 2) {
    *tiling = square ? pg_tile_square(&f->pool, cells, SQUARE) : pg_tile_flat(&f->pool, cells);
    if (quotients_fit(f, tiling)) return true;
  }
  return false;
}

#endif
