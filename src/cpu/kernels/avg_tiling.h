/* SPDX-License-Identifier: Apache-2.0 */
/* How average-backward (avg_rows.c) cuts a problem into boxes. */
#ifndef PG_AVG_TILING_H_
#define PG_AVG_TILING_H_

#include "cpu/kernels/avg_bands.h"
#include "cpu/kernels/slab_writer.h"

enum {
  AVG_EXPANDED = 32768, /* floats of the expanded rows */
  AVG_SHEETS = 32768,   /* floats of the sheets */
  PILE = 4096,          /* the most elements of the planes of a pile, which have twice as many
                           outputs at most */
  GROUP = 1024          /* outputs are divided in groups of rows with about so many elements */
};

/* How many rows of outputs are divided before they are expanded. */
static inline int64_t group_of(int64_t row) { return least(16, most(1, GROUP / most(1, row))); }

enum {
  AVG_ITEM = 16384, /* elements of an item, about */
  AVG_ITEM_ROWS =
      16, /* so many rows at least, if there is room; twice as many if windows overlap */
  AVG_CHANNELS = 128, /* so many channels at least, if there are so many */
  AVG_ITEMS = 16      /* so many items at least, if there are enough cells */
};

/* Are sheets made? */
static inline bool is_deep(const struct pg_facts *f, bool interleaved) {
  const int64_t unit = interleaved ? f->pool.c : 1;
  const bool is_short = f->pool.w.in < TWO_VECTORS && f->pool.w.in * unit < TWO_VECTORS &&
                        f->pool.h.in / 4 <= f->pool.h.out; /* else rows are copied */
  return f->has_depth && (is_short || (f->d_windows > 1 && f->h_windows > 1));
}

/* How many planes (of all channels, if they are neighbours) a pile has; false if planes are not
 * piled: they are too large, or their outputs do not follow each other. */
static inline bool is_pile(const struct pg_problem *problem, int64_t *planes) {
  const struct pg_avg_backward *a = &problem->args.avg_backward;
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool;
  const bool interleaved = is_interleaved(a);
  const int64_t unit = interleaved ? p->c : 1, units = interleaved ? p->n : f->planes;
  if (unit >= LANES || f->cells > PILE || f->outputs > INT64_C(2) * PILE) return false;
  if (is_shift(&p->w, p->w.in * unit)) return false;
  if (p->d.in > PG_BOX_ROWS || p->h.in > PG_BOX_ROWS) return false;
  if (p->d.out > AVG_OUTPUT_ROWS || p->h.out > AVG_OUTPUT_ROWS) return false;
  if (!layout_of(&a->out_strides, p, true, interleaved).all) return false;
  const int64_t expanded = p->d.out * p->h.out * p->w.in;
  const int64_t sheets = is_deep(f, interleaved) ? p->d.out * p->h.in * p->w.in : 0;
  const int64_t largest =
      most(most(f->cells, pg_ceil_div(f->outputs, 2)), pg_ceil_div(most(expanded, sheets), 8));
  *planes = least(PILE / most(1, unit * largest),
                  most(pg_ceil_div(units, AVG_ITEMS), PILE / 4 / most(1, unit * f->cells)));
  return *planes > 0;
}

/* Is there room for what a box needs? */
static inline bool have_room(const struct pg_facts *f, const struct pg_tiling *t, int64_t unit) {
  const struct pg_axis *w = &f->pool.w;
  const int64_t depth = pg_most_touching(&f->pool.d, t->d);
  const int64_t height = pg_most_touching(&f->pool.h, t->h);
  const int64_t width = pg_most_touching(w, t->w);
  const int64_t group = group_of(width * unit);
  const int64_t slices = is_deep(f, t->interleaved) ? 1 : f->d_windows; /* of expanded rows */
  const int64_t rows =
      slices *
      (t->d > 1 || is_deep(f, t->interleaved) ? height : least(height, f->h_windows + group));
  const int64_t zeros_around = slides_by_one(w) ? 2 * pg_window_span(w) : 0;
  if (depth > AVG_OUTPUT_ROWS || height > AVG_OUTPUT_ROWS || width > AVG_OUTPUTS) return false;
  if (zeros_around > AVG_OUTPUTS || f->w_windows > AVG_OUTPUTS) return false;
  if (is_deep(f, t->interleaved) && f->d_windows * (t->h * t->w * unit + LANES) > AVG_SHEETS)
    return false;
  return (width + zeros_around + f->w_windows) * unit + TWO_VECTORS <= AVG_OUTPUTS &&
         round_up(width * (unit < LANES ? unit : 1)) <= AVG_DIVISORS &&
         rows * (round_up(t->w * unit) + LANES) <= AVG_EXPANDED;
}

/* How long the parts of a length are, at most `longest`, if they are about equally long. */
static inline int64_t part_of(int64_t length, int64_t longest) {
  return pg_ceil_div(length, pg_ceil_div(length, most(1, longest)));
}

/* The channels of a box.  All of them, since those of a cell then follow each other, unless rows
 * would have to be cut for that and cells lie in many windows along W: neighbours would compute the
 * same sums. */
static inline int64_t unit_of(const struct pg_facts *f) {
  const int64_t c = f->pool.c, whole = part_of(c, AVG_ROW);
  if (f->w_windows <= 2 || f->pool.w.in <= AVG_ROW / c)
    return whole < c ? least(c, (whole + 63) / 64 * 64) : c;
  const int64_t some = part_of(c, most(AVG_CHANNELS, AVG_ROW / f->pool.w.in));
  return least(c, (some + 31) / 32 * 32);
}

/* Boxes of whole rows if these are not too long.  With depth a box is some rows of many slices, so
 * that outputs are divided and expanded once for all slices; else it is many rows. */
static inline bool tile_rows(const struct pg_facts *f, bool interleaved, struct pg_tiling *t) {
  const struct pg_pooling *p = &f->pool;
  int64_t unit = interleaved ? unit_of(f) : 1;
  int64_t w = part_of(p->w.in, AVG_ROW / unit);
  const int64_t rows = (f->has_depth ? SLAB_ELEMENTS : AVG_ITEM) / (w * unit);
  int64_t h = part_of(p->h.in, most(rows, f->h_windows > 1 ? 2 * AVG_ITEM_ROWS : AVG_ITEM_ROWS));
  const int64_t columns = pg_ceil_div(f->planes, unit) * pg_ceil_div(p->w.in, w);
  if (!f->has_depth) {
    const int64_t enough = most(PILE / (w * unit), p->h.in * columns / AVG_ITEMS);
    h = part_of(p->h.in, most(1, least(h, enough)));
  }
  const int64_t items = columns * pg_ceil_div(p->h.in, h);
  const int64_t d = part_of(p->d.in, least(PG_BOX_ROWS, most(4, p->d.in * items / AVG_ITEMS)));
  for (;;) {
    *t = (struct pg_tiling){.interleaved = interleaved, .planes = unit, .w = w, .d = d};
    t->h = least(h, PG_BOX_ROWS);
    if (have_room(f, t, unit)) return true;
    if (unit > AVG_CHANNELS && f->w_windows > 2)
      unit = (unit / 2 + 31) / 32 * 32;
    else if (h > 1)
      h = (h + 1) / 2;
    else if (w > 1)
      w = (w + 1) / 2;
    else if (unit > 1 && interleaved)
      unit = (unit + 1) / 2;
    else
      return false;
  }
}

static inline bool rows_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool;
  const bool interleaved = is_interleaved(&problem->args.avg_backward);
  int64_t planes;
  if (f->outputs == 0 || f->largest_divisor == INT64_MAX) return false;
  if (f->d_windows > AVG_WINDOWS || f->h_windows > AVG_WINDOWS ||
      f->d_windows * f->h_windows > AVG_WINDOWS)
    return false;
  if (is_pile(problem, &planes)) {
    *tiling = (struct pg_tiling){.interleaved = interleaved,
                                 .planes = planes * (interleaved ? p->c : 1),
                                 .d = p->d.in,
                                 .h = p->h.in,
                                 .w = p->w.in};
  } else if (!tile_rows(f, interleaved, tiling)) {
    return false;
  }
  *tiling = pg_tile_boxes(p, tiling);
  return true;
}

#endif
