/* SPDX-License-Identifier: Apache-2.0 */
/* The first part of average-backward (avg_columns.c, avg_rows.c): outputs are divided by their
 * divisors, once for each box, in vectors.
 *
 * A cell or an output is `unit` elements that follow each other in memory: the channels of an
 * interleaved box, else one.  So a row is a run of elements, whatever the layout is.
 *
 * Sums begin at +0, so they are never -0.  Here each quotient is added to +0, so that all further
 * sums may begin with their first quotient. */
#ifndef PG_AVG_QUOTIENTS_H_
#define PG_AVG_QUOTIENTS_H_

#include "core/checked.h"
#include "cpu/kernels/rows.h"
#include "cpu/method.h"

enum {
  AVG_OUTPUTS = 12288,               /* elements of the outputs that are divided together */
  AVG_OUTPUT_ROWS = 1024,            /* the most rows, and the most slices, of outputs of a box */
  AVG_DIVISORS = 8192,               /* floats for tables of divisors */
  DIVISOR_TABLES = 8,                /* the most tables */
  PRODUCTS_FROM = 8 * LANES,         /* elements from which on the two parts of a reciprocal pay */
  AVG_AHEAD = 2048 / sizeof(element) /* the least distance at which outputs are prefetched */
};

/* Which elements of a tensor follow each other if a cell is `unit` elements. */
struct layout {
  int64_t unit; /* of a whole cell: all channels, or 1 */
  bool rows, slices, planes, all;
};

/* The divisor of an output is the product of the extents of its window along D, H and W, or a
 * number that is given. */
struct divisors {
  bool same;                  /* all outputs have one divisor, which is table[0] */
  struct pg_range od, oh, ow; /* the outputs that the extents are for */
  int64_t repeat;             /* so many neighbouring places of a table are for one output */
  int32_t d_extent[AVG_OUTPUT_ROWS], h_extent[AVG_OUTPUT_ROWS];
  float w_extent[AVG_DIVISORS + LANES];
  /* A table has the divisors of a row of outputs, and 1 behind them; `outer` says for which extent
   * along D times H.  Or of a slice, and `outer` is the extent along D.  In a pile there is one
   * table, for all outputs of the box. */
  int64_t pitch, tables, latest;
  struct pg_range slice; /* the rows that tables of slices are for */
  int64_t outer[DIVISOR_TABLES];
  _Alignas(LINE) float table[AVG_DIVISORS + LANES];
};

/* The next float towards 0; x is positive and normal. */
static inline float previous_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits--;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The divisors of a run of outputs. */
struct divisor_run {
  const float *divisor;
  bool one;        /* all outputs have the first one */
  int64_t ahead;   /* the outputs so many elements further on are needed soon */
  float high, low; /* one: its reciprocal in two parts; 0: outputs are divided */
};

/* Dividing takes as long as four products, so outputs with one divisor d are multiplied.
 *
 * high is 1 / d rounded towards 0, and low the rest, rounded.  With the roundings of low and of
 * g * low, the sum g * high + g * low differs from g / d by less than 2^-46 of it before it is
 * rounded, once, by the fused addition.  The result is then wrong only if a boundary between two
 * roundings, m, lies between the two.  m has 25 bits, the last of them 1.  g - m * d is not 0,
 * because m times the odd part D of d, which is 3 or more, has more bits than g.  So it is at least
 * the last bit of m, and g / d differs from m by at least 1 / (2^25 * D) of it: for d < 2^21 that
 * is more.  All of this needs quotients and g * low that are no subnormal numbers, or 0: that is so
 * from |g| >= 2^-60 on, and other vectors are divided.  If d is a power of two the quotient is the
 * product with 1 / d whatever g is, and low is 0. */
static inline struct divisor_run one_divisor(const float *divisor, int64_t ahead) {
  struct divisor_run run = {.divisor = divisor, .one = true, .ahead = ahead};
  const double reciprocal = 1 / (double)*divisor;
  if (*divisor < 1 || *divisor >= 0x1p21f) return run;
  run.high = (float)reciprocal;
  if (run.high > reciprocal) run.high = previous_float(run.high);
  run.low = (float)(reciprocal - run.high);
  return run;
}

struct quotients {
  const struct pg_avg_backward *args;
  const struct pg_facts *facts;
  struct layout out;
  int64_t unit;  /* of the box */
  int64_t ahead; /* prefetch distance, in elements */
  struct pg_box_cover cover;
  struct divisors divisors;
  struct divisor_run one; /* if all outputs have one divisor */
};

/* Are the channels of a cell neighbours in both tensors? */
static inline bool is_interleaved(const struct pg_avg_backward *a) {
  return a->pool.c > 1 && a->in_strides.of[PG_C] == 1 && a->out_strides.of[PG_C] == 1;
}

static inline struct layout layout_of(const struct pg_strides *strides, const struct pg_pooling *p,
                                      bool outputs, bool interleaved) {
  const int64_t *s = strides->of;
  const int64_t w = outputs ? p->w.out : p->w.in, h = outputs ? p->h.out : p->h.in;
  const int64_t d = outputs ? p->d.out : p->d.in;
  struct layout l = {.unit = interleaved ? p->c : 1};
  const int64_t row = pg_mul_or_most(l.unit, w), slice = pg_mul_or_most(row, h);
  const int64_t plane = pg_mul_or_most(slice, d); /* outputs may be very many, if strides are 0 */
  l.rows = w == 1 || s[PG_W] == l.unit;
  l.slices = l.rows && (h == 1 || s[PG_H] == row);
  l.planes = l.slices && (d == 1 || s[PG_D] == slice);
  l.all = l.planes && (interleaved || p->c == 1 || s[PG_C] == plane) &&
          (p->n == 1 || s[PG_N] == (interleaved ? plane : pg_mul_or_most(plane, p->c)));
  return l;
}

/* --- Divisors --- */

static inline int64_t extent_of(const struct pg_avg_backward *a, const struct pg_axis *axis,
                                int64_t o) {
  return a->divisor != 0 ? 1 : pg_window_extent(axis, o, a->count_include_pad);
}

/* Sliding windows are cut at the ends of the axis, if at all. */
static inline bool extents_are_same(const struct quotients *k, const struct pg_axis *axis) {
  if (k->args->divisor != 0 || axis->out <= 1) return true;
  const int64_t length = axis->kernel > 0 ? pg_window_span(axis) + 1 : -1;
  return extent_of(k->args, axis, 0) == length && extent_of(k->args, axis, axis->out - 1) == length;
}

static inline bool is_same_range(struct pg_range a, struct pg_range b) {
  return a.begin == b.begin && a.end == b.end;
}

/* Makes the extents of the outputs whose windows touch the box. */
static inline void make_extents(struct quotients *k) {
  struct divisors *v = &k->divisors;
  const struct pg_pooling *p = &k->facts->pool;
  const struct pg_range d = k->cover.d.outputs, h = k->cover.h.outputs, w = k->cover.w.outputs;
  const int64_t repeat = k->unit < LANES ? k->unit : 1;
  if (v->same) return;
  if (!is_same_range(v->od, d))
    for (int64_t i = 0; i < pg_length(d); i++)
      v->d_extent[i] = (int32_t)extent_of(k->args, &p->d, d.begin + i);
  if (!is_same_range(v->oh, h))
    for (int64_t i = 0; i < pg_length(h); i++)
      v->h_extent[i] = (int32_t)extent_of(k->args, &p->h, h.begin + i);
  v->od = d;
  v->oh = h;
  if (is_same_range(v->ow, w) && v->repeat == repeat) return;
  for (int64_t i = 0, at = 0; i < pg_length(w); i++) {
    const float extent = (float)extent_of(k->args, &p->w, w.begin + i);
    for (int64_t j = 0; j < repeat; j++) v->w_extent[at++] = extent;
  }
  store_f32(v->w_extent + pg_length(w) * repeat, all(1));
  v->ow = w;
  v->repeat = repeat;
  v->pitch = round_up(pg_length(w) * repeat);
  v->tables = v->latest = 0;
}

/* Makes the divisors of a row of outputs. */
static inline void make_divisors(const struct divisors *v, int64_t outer, float *to) {
  for (int64_t i = 0; i < pg_length(v->ow) * v->repeat; i += LANES)
    store_f32(to + i, times(all((float)outer), load_f32(v->w_extent + i)));
}

/* The table for rows of outputs whose windows have this extent along D times H. */
static inline const float *divisors_of(struct divisors *v, int64_t outer) {
  if (v->same) return v->table;
  if (v->slice.begin >= 0) v->tables = 0; /* tables of slices are no tables of rows */
  v->slice.begin = -1;
  if (v->tables > 0 && v->outer[v->latest] == outer) return v->table + v->latest * v->pitch;
  int64_t i = 0;
  while (i < v->tables && v->outer[i] != outer) i++;
  if (i == v->tables) {
    if (i == DIVISOR_TABLES || (i + 1) * v->pitch > AVG_DIVISORS) i = v->tables = 0;
    make_divisors(v, outer, v->table + i * v->pitch);
    v->outer[i] = outer;
    v->tables = i + 1;
  }
  v->latest = i;
  return v->table + i * v->pitch;
}

/* The divisors of so many rows of outputs that follow each other: the rows of the box, of one plane
 * behind the other.  They have at most AVG_DIVISORS elements. */
static inline struct divisor_run divisors_of_rows(struct quotients *k, int64_t rows) {
  struct divisors *v = &k->divisors;
  const int64_t depth = pg_length(v->od), height = pg_length(v->oh);
  const int64_t row = pg_length(v->ow) * v->repeat;
  if (v->same) return k->one;
  if (v->tables != rows)
    for (int64_t i = 0; i < rows; i++)
      make_divisors(v, v->d_extent[i / height % depth] * (int64_t)v->h_extent[i % height],
                    v->table + i * row);
  v->tables = rows;
  return (struct divisor_run){.divisor = v->table, .ahead = k->ahead};
}

/* May the rows of outputs of a slice be divided as one run?  They follow each other then. */
static inline bool are_slices_runs(const struct quotients *k) {
  const struct pg_box_cover *m = &k->cover;
  const int64_t row = pg_length(m->w.outputs) * k->unit;
  return k->out.slices && k->unit == k->out.unit &&
         pg_length(m->w.outputs) == k->facts->pool.w.out && (k->divisors.same || k->unit < LANES) &&
         pg_length(m->h.outputs) * row <= AVG_DIVISORS / 2;
}

/* The divisors of slice od of such outputs. */
static inline struct divisor_run divisors_of_slice(struct quotients *k, int64_t od) {
  struct divisors *v = &k->divisors;
  const int64_t rows = pg_length(v->oh), row = pg_length(v->ow) * v->repeat;
  if (v->same) return k->one;
  if (!is_same_range(v->slice, v->oh)) v->tables = 0;
  v->slice = v->oh;
  int64_t i = 0;
  while (i < v->tables && v->outer[i] != v->d_extent[od]) i++;
  if (i == 2) i = v->tables = 0;
  float *table = v->table + i * (AVG_DIVISORS / 2);
  if (i == v->tables) {
    for (int64_t j = 0; j < rows; j++)
      make_divisors(v, v->d_extent[od] * (int64_t)v->h_extent[j], table + j * row);
    v->outer[i] = v->d_extent[od];
    v->tables = i + 1;
  }
  return (struct divisor_run){.divisor = table, .ahead = k->ahead};
}

/* --- Dividing --- */

enum division { BY_TABLE, BY_ONE, BY_PRODUCTS, BY_RECIPROCAL };

static inline enum division division_of(const struct divisor_run *run) {
  if (!run->one) return BY_TABLE;
  return run->high == 0 ? BY_ONE : run->low == 0 ? BY_RECIPROCAL : BY_PRODUCTS;
}

static inline __attribute__((always_inline)) floats quotient_of(floats g, floats divisor,
                                                                floats high, floats low,
                                                                const enum division how) {
  floats quotient;
  if (how == BY_RECIPROCAL)
    quotient = times(g, high);
  else if (how == BY_PRODUCTS && !(ELEMENT_MAY_BE_TINY && __builtin_expect(any_tiny(g), 0)))
    quotient = over_one(g, divisor, high, low);
  else
    quotient = over(g, divisor);
  return add(zeros(), quotient);
}

static inline __attribute__((always_inline)) void divide_by(const element *grad, int64_t count,
                                                            const struct divisor_run *run,
                                                            const enum division how, float *to) {
  const floats high = all(run->high), low = all(run->low);
  floats divisor = all(run->divisor[0]);
  for (int64_t i = 0; i < count; i += LANES) {
    if (how == BY_TABLE) divisor = load_f32(run->divisor + i);
    __builtin_prefetch(grad + i + run->ahead);
    const floats g = count - i >= LANES ? load_elements(grad + i) : load_part(grad + i, count - i);
    store_f32(to + i, quotient_of(g, divisor, high, low, how));
  }
}

/* Divides a run of elements.  Behind the last quotient up to LANES - 1 zeros are stored. */
static inline void divide_run(const element *grad, int64_t count, const struct divisor_run run,
                              float *to) {
  switch (division_of(&run)) {
    case BY_TABLE:
      divide_by(grad, count, &run, BY_TABLE, to);
      break;
    case BY_ONE:
      divide_by(grad, count, &run, BY_ONE, to);
      break;
    case BY_PRODUCTS:
      divide_by(grad, count, &run, BY_PRODUCTS, to);
      break;
    default:
      divide_by(grad, count, &run, BY_RECIPROCAL, to);
  }
}

/* Divides outputs of one element each that do not follow each other. */
static inline void divide_strided(const struct quotients *k, const element *grad, int64_t count,
                                  const struct divisor_run run, float *to) {
  widen(grad, k->args->out_strides.of[PG_W], count, 0, to);
  for (int64_t i = 0; i < count; i += LANES) {
    const floats g = count - i >= LANES ? load_f32(to + i) : load_part_f32(to + i, count - i);
    store_f32(to + i,
              add(zeros(), over(g, run.one ? all(run.divisor[0]) : load_f32(run.divisor + i))));
  }
}

/* The divisor of an output with so many elements. */
static inline struct divisor_run divisor_at(const float *divisor, int64_t unit, int64_t ahead) {
  if (unit >= PRODUCTS_FROM) return one_divisor(divisor, ahead);
  return (struct divisor_run){.divisor = divisor, .one = true, .ahead = ahead};
}

/* Divides a row of outputs, of which `table` has the divisors. */
static inline void divide_row(const struct quotients *k, const element *grad, const float *table,
                              float *to) {
  const struct divisors *v = &k->divisors;
  const int64_t count = pg_length(k->cover.w.outputs), stride = k->args->out_strides.of[PG_W];
  const bool run = k->out.rows && k->unit == k->out.unit; /* the row is one run */
  if (run && v->same) {
    divide_run(grad, count * k->unit, k->one, to);
  } else if (run && v->repeat == k->unit) {
    divide_run(grad, count * k->unit, (struct divisor_run){.divisor = table, .ahead = k->ahead},
               to);
  } else if (k->unit == 1) {
    divide_strided(k, grad, count, (struct divisor_run){.divisor = table, .one = v->same}, to);
  } else {
    for (int64_t i = 0; i < count; i++) {
      struct divisor_run by = k->one;
      if (!v->same) by = divisor_at(table + i * v->repeat, k->unit, k->ahead);
      divide_run(grad + i * stride, k->unit, by, to + i * k->unit);
    }
  }
}

/* --- Boxes --- */

static inline void begin_quotients(struct quotients *k, const struct pg_task *task) {
  const struct pg_pooling *p = &task->problem.facts.pool;
  struct divisors *v = &k->divisors;
  k->args = &task->problem.args.avg_backward;
  k->facts = &task->problem.facts;
  k->out = layout_of(&k->args->out_strides, p, true, task->choice.tiling.interleaved);
  v->od = v->oh = v->ow = v->slice = (struct pg_range){-1, -1};
  v->same = extents_are_same(k, &p->d) && extents_are_same(k, &p->h) && extents_are_same(k, &p->w);
  if (v->same) {
    const int64_t counted =
        extent_of(k->args, &p->d, 0) * extent_of(k->args, &p->h, 0) * extent_of(k->args, &p->w, 0);
    v->table[0] = (float)(k->args->divisor != 0 ? k->args->divisor : counted);
  }
  k->ahead = most(AVG_AHEAD, least(pg_outputs_per_item(task), (int64_t)4 * AVG_AHEAD));
  if (v->same) k->one = one_divisor(v->table, k->ahead);
  pg_box_cover_begin(&k->cover);
}

/* Makes what depends on the box alone: its cover, with `front` places in front along W, and the
 * extents of its windows. */
static inline void begin_box(struct quotients *k, const struct pg_box *b, int64_t unit,
                             int64_t front) {
  pg_box_cover_make(&k->cover, &k->facts->pool, b, front);
  k->unit = unit;
  make_extents(k);
}

/* Does cell i of an axis lie in the same windows as the one before it? */
static inline bool in_same_windows(const struct pg_cover *m, int64_t i) {
  return i > 0 && m->first[i] == m->first[i - 1] && m->count[i] == m->count[i - 1];
}

#endif
