/* SPDX-License-Identifier: Apache-2.0 */
/* Staging for max-backward: rows of outputs are copied to scratch memory, their gradients as floats
 * and their indices as 32-bit numbers, and it is seen whether every index lies in its window. */
#ifndef PG_MAX_STAGING_H_
#define PG_MAX_STAGING_H_

#include "cpu/kernels/rows.h"
#include "cpu/max_plane.h"
#include "cpu/method.h"

enum {
  STAGED = 8192,      /* outputs that are staged together */
  STAGED_WIDTH = 4096 /* outputs of one row */
};

/* Methods that compare positions as 32-bit numbers need all of them below this. */
#define MOST_POSITIONS ((int64_t)INT32_MAX - 8192)

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
 * negative or does not fit. */
static inline bool narrow(const void *index, bool wide, int64_t step, int64_t count, int32_t *to) {
  const int64_t *x = index;
  const int32_t *y = index;
  bool fine = true;
  if (step != 1) {
    for (int64_t i = 0; i < count; i++) {
      const int64_t value = wide ? x[i * step] : y[i * step];
      to[i] = (int32_t)value;
      fine = fine && value >= 0 && value <= INT32_MAX;
    }
    return fine;
  }
  int64_t i = 0;
  for (; wide && i + LANES <= count; i += LANES) {
    store_i32(to + i, load_i64(x + i));
    fine = fit_i32(x + i, LANES) && fine;
  }
  for (; !wide && i + LANES <= count; i += LANES) store_i32(to + i, load_i32(y + i));
  if (i == count) return fine;
  store_i32(to + i, wide ? load_part_i64(x + i, count - i) : load_part_i32(y + i, count - i));
  return (!wide || fit_i32(x + i, count - i)) && fine;
}

/* LANES indices from the i-th on; those `ahead` are prefetched.  What 32 bits do not hold is
 * collected in *high. */
static inline ints load_index(const void *index, const bool wide, int64_t i, int64_t ahead,
                              ints *high) {
  const char *next = (const char *)index + (i + ahead) * (wide ? 8 : 4);
  __builtin_prefetch(next);
  if (wide) __builtin_prefetch(next + sizeof(ints));
  return wide ? load_i64_collecting((const int64_t *)index + i, high)
              : load_i32((const int32_t *)index + i);
}

/* The last indices of a row, `part` of them and fewer than LANES; the other lanes are 0.  False
 * when 32 bits do not hold one. */
static inline bool load_last_index(const void *index, const bool wide, int64_t i, int64_t part,
                                   ints *loaded) {
  *loaded = wide ? load_part_i64((const int64_t *)index + i, part)
                 : load_part_i32((const int32_t *)index + i, part);
  return !wide || fit_i32((const int64_t *)index + i, part);
}

/* The windows of some outputs along W, clipped. */
struct width_windows {
  struct pg_range outputs;
  _Alignas(LINE) int32_t start[STAGED_WIDTH + LANES];
  _Alignas(LINE) int32_t length[STAGED_WIDTH + LANES];
};

static inline void forget_windows(struct width_windows *w) {
  w->outputs = (struct pg_range){-1, -1};
}

/* Makes the table for `outputs`, at most STAGED_WIDTH. */
static inline void know_windows(struct width_windows *w, const struct pg_axis *axis,
                                struct pg_range outputs) {
  if (w->outputs.begin == outputs.begin && w->outputs.end == outputs.end) return;
  w->outputs = outputs;
  for (int64_t i = 0; i < pg_length(outputs); i++) {
    const struct pg_range window = pg_window_clip(axis, pg_window(axis, outputs.begin + i));
    w->start[i] = (int32_t)window.begin;
    w->length[i] = (int32_t)pg_length(window);
  }
}

/* A row of outputs that is being staged. */
struct staged_row {
  const struct pg_max_backward *args;
  const struct pg_pooling *pool;
  const struct width_windows *windows;
  struct pg_row_windows row;
  int64_t ahead; /* prefetch distance */
};

/* Which indices lie in their windows?  `along` is the distance of each index from the start of its
 * window along W, as if it were in the first row of the plane.  Subtracting the begin of each row
 * of the window in turn leaves the distance inside that row; from rows that are further down it
 * wraps to a huge unsigned number.  So the least of all these numbers decides. */
static inline truths in_windows(const struct staged_row *s, ints along, ints length) {
  const struct pg_pooling *p = s->pool;
  const ints width = all_i((int32_t)p->w.in);
  ints nearest = all_i(-1);
  for (int64_t d = s->row.d.begin; d < s->row.d.end; d++) {
    ints rest = sub_i(along, all_i((int32_t)((d * p->h.in + s->row.h.begin) * p->w.in)));
    for (int64_t h = s->row.h.begin; h < s->row.h.end; h++) {
      nearest = least_u(nearest, rest);
      rest = sub_i(rest, width);
    }
  }
  return below(nearest, length);
}

static inline __attribute__((always_inline)) bool stage_contiguous(const struct staged_row *s,
                                                                   const void *from,
                                                                   const bool wide, int64_t count,
                                                                   int32_t *to) {
  const int32_t *start = s->windows->start, *length = s->windows->length;
  ints high = all_i(0), x;
  truths fine = below(high, all_i(1));
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    x = load_index(from, wide, i, s->ahead, &high);
    fine = both(fine, in_windows(s, sub_i(x, load_i32(start + i)), load_i32(length + i)));
    store_i32(to + i, x);
  }
  if (!every(fine, LANES) || !high_halves_are_zero(high)) return false;
  if (i == count) return true;
  if (!load_last_index(from, wide, i, count - i, &x)) return false;
  store_i32(to + i, x);
  return every(in_windows(s, sub_i(x, load_i32(start + i)), load_i32(length + i)), count - i);
}

/* Copies the indices of a row, whose windows the table knows, as 32-bit numbers.  False when one
 * lies outside its window. */
static inline bool stage_indices(const struct staged_row *s, const struct output_row *o,
                                 int32_t *to) {
  const int64_t step = s->args->index_strides.of[PG_W];
  const bool wide = s->args->index_bytes == 8;
  if (step == 1 && wide) return stage_contiguous(s, o->index, true, o->count, to);
  if (step == 1) return stage_contiguous(s, o->index, false, o->count, to);
  return narrow(o->index, wide, step, o->count, to) && stage_contiguous(s, to, false, o->count, to);
}

/* --- What every method falls back to --- */

/* Computes a box by scattering (max_scatter.c), whatever its indices say. */
void VARIANT(scatter_box)(const struct pg_task *task, const struct pg_box *box,
                          struct pg_scratch *scratch);

/* Computes the items again that have a flag. */
void VARIANT(mend_flagged)(const void *task, int64_t begin, int64_t end,
                           struct pg_scratch *scratch);

#endif
