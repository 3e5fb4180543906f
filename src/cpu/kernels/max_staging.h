/* SPDX-License-Identifier: Apache-2.0 */
/* Staging for max-backward: rows of outputs are copied to scratch memory, their gradients as floats
 * and their indices as 32-bit numbers, and every index is checked to lie in its window. */
#ifndef PG_MAX_STAGING_H_
#define PG_MAX_STAGING_H_

#include "cpu/kernels/rows.h"
#include "cpu/max_plane.h"
#include "cpu/method.h"

enum {
  STAGED = 8192,       /* places for staged outputs */
  STAGED_WIDTH = 4096, /* the most outputs in one row */
  /* A smaller gradInput may be computed where it is: memory takes its zeros through the caches. */
  PATCHED_BYTES = 4 << 20,
  FEW_OUTPUTS = 32 /* or more cells for each of them: patching is then faster than gathering */
};

/* The most cells of a plane whose positions are compared as 32-bit numbers. */
#define MOST_POSITIONS ((int64_t)INT32_MAX - 8192)

/* Outputs that follow each other along W, or a whole plane of contiguous ones. */
struct output_row {
  const element *grad;
  const void *index;
  int64_t count;
};

/* The outputs `ow` of the row (od, oh). */
static inline struct output_row output_row_of(const struct pg_max_plane *t, int64_t od, int64_t oh,
                                              struct pg_range ow) {
  const struct pg_max_backward *a = &t->task->problem.args.max_backward;
  const int64_t grad = pg_offset(&a->out_strides, t->n, t->c, od, oh, ow.begin);
  const int64_t index = pg_offset(&a->index_strides, t->n, t->c, od, oh, ow.begin);
  return (struct output_row){.grad = (const element *)a->grad_out + grad,
                             .index = (const char *)a->index + index * a->index_bytes,
                             .count = pg_length(ow)};
}

/* Copies indices as 32-bit numbers; up to LANES places more are written.  False when one is
 * negative or above INT32_MAX. */
static inline bool narrow(const void *index, bool is_i64, int64_t stride, int64_t count,
                          int32_t *to) {
  const int64_t *x = index;
  const int32_t *y = index;
  bool fine = true;
  if (stride != 1) {
    for (int64_t i = 0; i < count; i++) {
      const int64_t value = is_i64 ? x[i * stride] : y[i * stride];
      to[i] = (int32_t)value;
      fine = fine && value >= 0 && value <= INT32_MAX;
    }
    return fine;
  }
  int64_t i = 0;
  for (; is_i64 && i + LANES <= count; i += LANES) {
    store_i32(to + i, load_i64(x + i));
    fine = in_31_bits(x + i, LANES) && fine;
  }
  for (; !is_i64 && i + LANES <= count; i += LANES) store_i32(to + i, load_i32(y + i));
  if (i == count) return fine;
  store_i32(to + i, is_i64 ? load_part_i64(x + i, count - i) : load_part_i32(y + i, count - i));
  return (!is_i64 || in_31_bits(x + i, count - i)) && fine;
}

/* Loads LANES indices from the i-th on, and prefetches those that lie `ahead` of them.  The high
 * halves of 64-bit indices are collected in *high. */
static inline ints load_index(const void *index, const bool is_i64, int64_t i, int64_t ahead,
                              ints *high) {
  const char *next = (const char *)index + (i + ahead) * (is_i64 ? 8 : 4);
  __builtin_prefetch(next);
  if (is_i64) __builtin_prefetch(next + sizeof(ints));
  return is_i64 ? load_i64_collecting((const int64_t *)index + i, high)
                : load_i32((const int32_t *)index + i);
}

/* Loads the last indices of a row, `part` of them and fewer than LANES; the other lanes are 0.
 * False when one needs more than 31 bits. */
static inline bool load_last_index(const void *index, const bool is_i64, int64_t i, int64_t part,
                                   ints *loaded) {
  *loaded = is_i64 ? load_part_i64((const int64_t *)index + i, part)
                   : load_part_i32((const int32_t *)index + i, part);
  return !is_i64 || in_31_bits((const int64_t *)index + i, part);
}

/* t modulo `length` if t < times * length, else a number that is no less than `length`.  All
 * numbers are unsigned, and where a subtraction wraps around, its result is huge and the least
 * number is the one before it. */
static inline ints folded(ints t, ints length, int64_t times) {
  for (int64_t i = 1; i < times; i++) t = least_u(t, sub_i(t, length));
  return t;
}

/* --- Rows of outputs in scratch memory --- */

/* The windows of some outputs along W, clipped to the plane. */
struct width_windows {
  struct pg_range outputs;
  bool regular; /* all windows have the same length, and each begins `stride` cells further on */
  int32_t stride;
  _Alignas(LINE) int32_t start[STAGED_WIDTH + LANES];
  _Alignas(LINE) int32_t length[STAGED_WIDTH + LANES];
};

/* Staged outputs, row by row: their indices and gradients, in rows that are `pitch` places apart.
 * Behind each row come at least LANES places whose index, -1, names no cell. */
struct staging {
  _Alignas(LINE) int32_t index[STAGED + 4 * LANES];
  _Alignas(LINE) float grad[STAGED + 4 * LANES];
  int64_t pitch;
  int64_t ahead; /* prefetch distance, in outputs */
  struct width_windows windows;
};

static inline void clear_windows(struct width_windows *w) {
  w->outputs = (struct pg_range){-1, -1};
}

/* Makes the table for `outputs`, at most STAGED_WIDTH, unless it is there. */
static inline void make_windows(struct width_windows *w, const struct pg_axis *axis,
                                struct pg_range outputs) {
  if (w->outputs.begin == outputs.begin && w->outputs.end == outputs.end) return;
  w->outputs = outputs;
  w->regular = axis->kernel > 0;
  w->stride = (int32_t)least(axis->stride, INT32_MAX / LANES); /* else one vector has all outputs */
  for (int64_t i = 0; i < pg_length(outputs); i++) {
    const struct pg_range window = pg_window_clip(axis, pg_window(axis, outputs.begin + i));
    w->start[i] = (int32_t)window.begin;
    w->length[i] = (int32_t)pg_length(window);
    w->regular = w->regular && w->length[i] == w->length[0];
  }
}

static inline void begin_staging(struct staging *s, const struct pg_task *task) {
  s->ahead = pg_outputs_per_item(task);
  clear_windows(&s->windows);
}

/* The rows to be staged consist of these outputs. */
static inline void begin_staged_rows(struct staging *s, const struct pg_axis *axis,
                                     struct pg_range outputs) {
  make_windows(&s->windows, axis, outputs);
  s->pitch = round_up(pg_length(outputs)) + LANES;
}

/* A row of outputs: where its indices are, and its windows along depth and height. */
struct index_row {
  const void *index;
  int64_t count;
  const struct pg_pooling *pool;
  struct pg_row_windows windows;
};

/* What the compiler knows of a row; its windows have so many slices and rows. */
struct index_shape {
  bool is_i64, regular;
  int64_t slices, rows;
};

/* Copies indices.  False when one lies outside its window.  To see that, the position of the first
 * cell of the window is subtracted from an index; what is left, folded by the lengths of slices and
 * rows, is the distance of the index from the start of its window along W. */
static inline __attribute__((always_inline)) bool stage_shape(const struct staging *s,
                                                              const struct index_row *o,
                                                              int32_t *to,
                                                              const struct index_shape shape) {
  const struct pg_pooling *p = o->pool;
  const struct pg_row_windows *r = &o->windows;
  const int32_t *start = s->windows.start, *length = s->windows.length;
  const ints row = all_i((int32_t)p->w.in), slice = all_i((int32_t)(p->h.in * p->w.in));
  const ints top = all_i((int32_t)((r->d.begin * p->h.in + r->h.begin) * p->w.in));
  const ints further = all_i(LANES * s->windows.stride), same = all_i(length[0]);
  ints high = all_i(0), first = add_i(top, load_i32(start)), x;
  truths fine = below(high, all_i(1));
  int64_t i = 0;
  for (; i + LANES <= o->count; i += LANES) {
    x = load_index(o->index, shape.is_i64, i, s->ahead, &high);
    if (!shape.regular) first = add_i(top, load_i32(start + i));
    const ints along = folded(folded(sub_i(x, first), slice, shape.slices), row, shape.rows);
    fine = both(fine, below(along, shape.regular ? same : load_i32(length + i)));
    store_i32(to + i, x);
    first = add_i(first, further);
  }
  if (!every(fine, LANES) || !high_halves_are_zero(high)) return false;
  if (i == o->count) return true;
  if (!load_last_index(o->index, shape.is_i64, i, o->count - i, &x)) return false;
  store_i32(to + i, x);
  first = add_i(top, load_i32(start + i));
  const ints along = folded(folded(sub_i(x, first), slice, shape.slices), row, shape.rows);
  return every(below(along, load_i32(length + i)), o->count - i);
}

/* The same; for the usual windows the compiler knows more. */
static inline __attribute__((always_inline)) bool stage_index_row(const struct staging *s,
                                                                  const struct index_row *o,
                                                                  const bool is_i64, int32_t *to) {
  const int64_t slices = pg_length(o->windows.d), rows = pg_length(o->windows.h);
  const bool regular = s->windows.regular && slices == 1;
  if (slices < 1 || rows < 1) return false; /* the windows of this row lie in the padding */
  if (regular && rows == 2) return stage_shape(s, o, to, (struct index_shape){is_i64, true, 1, 2});
  if (regular && rows == 3) return stage_shape(s, o, to, (struct index_shape){is_i64, true, 1, 3});
  if (slices == 1 && rows == 3)
    return stage_shape(s, o, to, (struct index_shape){is_i64, false, 1, 3});
  return stage_shape(s, o, to, (struct index_shape){is_i64, false, slices, rows});
}

/* Stages the row (od, oh) of outputs from place `at` on.  False when an index lies outside its
 * window. */
static inline bool stage_row(struct staging *s, const struct pg_max_plane *t, int64_t od,
                             int64_t oh, int64_t at) {
  const struct pg_max_backward *a = &t->task->problem.args.max_backward;
  const struct pg_pooling *p = &t->task->problem.facts.pool;
  const struct output_row o = output_row_of(t, od, oh, s->windows.outputs);
  const int64_t stride = a->index_strides.of[PG_W];
  bool is_i64 = a->index_bytes == 8;
  int32_t *index = s->index + at;
  struct index_row r = {o.index, o.count, p, pg_row_windows_of(p, od, oh)};
  widen(o.grad, a->out_strides.of[PG_W], o.count, s->ahead, s->grad + at);
  if (stride != 1) {
    if (!narrow(o.index, is_i64, stride, o.count, index)) return false;
    r.index = index;
    is_i64 = false;
  }
  if (!(is_i64 ? stage_index_row(s, &r, true, index) : stage_index_row(s, &r, false, index)))
    return false;
  store_i32(index + o.count, all_i(-1));
  store_i32(index + s->pitch - LANES, all_i(-1));
  return true;
}

/* --- What every method falls back to --- */

/* Computes a box by scattering (max_scatter.c), whatever its indices say. */
void VARIANT(scatter_box)(const struct pg_task *task, const struct pg_box *box,
                          struct pg_scratch *scratch);

/* Computes the items again that have a flag. */
void VARIANT(mend_flagged)(const void *task, int64_t begin, int64_t end,
                           struct pg_scratch *scratch);

#endif
