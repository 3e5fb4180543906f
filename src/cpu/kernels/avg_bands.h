/* SPDX-License-Identifier: Apache-2.0 */
/* The third part of average-backward (avg_rows.c): a row of cells adds the expanded rows that it
 * needs along H and D, and is rounded. */
#ifndef PG_AVG_BANDS_H_
#define PG_AVG_BANDS_H_

#include "cpu/kernels/avg_expand.h"

enum { AVG_WINDOWS = 256 /* the most rows of outputs in whose windows a cell lies */ };

/* Rows of cells of the box that are computed together: each lies in the windows of `height` rows of
 * outputs.  They are a band, or windows slide by one row from each to the next; if expanded rows
 * follow each other, such rows are one run. */
struct row_band {
  int32_t first, height, count;
  bool slides;
};

struct row_bands {
  struct pg_range cells; /* that these are for */
  bool slides;           /* and where windows slide by one row, they were looked for */
  int64_t count;
  struct row_band band[PG_BOX_ROWS];
  int64_t rows; /* of a sheet (avg_rows.c): those of a band once, unless it is full */
};

/* Where expanded rows follow each other, up to SLIDES rows from each to the next of which windows
 * slide by one row are computed together. */
static inline void make_row_bands(struct row_bands *all, const struct pg_cover *m, bool slides) {
  enum { SLIDES = 8 };
  if (is_same_range(all->cells, m->cells) && all->slides == slides) return;
  all->cells = m->cells;
  all->slides = slides;
  all->count = 0;
  for (int64_t h = 0; h < pg_length(m->cells); h++) {
    struct row_band *b = all->count > 0 ? &all->band[all->count - 1] : NULL;
    const bool same_height = b != NULL && m->count[h] == b->height;
    if (in_same_windows(m, h) && !b->slides)
      b->count++;
    else if (slides && same_height && (b->slides || b->count == 1) && b->count < SLIDES &&
             m->first[h] == b->first + b->count) {
      b->slides = true;
      b->count++;
    } else
      all->band[all->count++] = (struct row_band){m->first[h], m->count[h], 1, false};
  }
}

/* Where the rows of a sheet are needed.  A full one has all rows of cells; else it has those of a
 * band once, and the others follow each other like rows between which windows slide (`runs`: and
 * are one run). */
static inline void make_sheet_bands(struct row_bands *all, const struct row_bands *of_rows,
                                    bool full, bool runs) {
  all->count = all->rows = 0;
  if (full) {
    all->rows = pg_length(of_rows->cells);
    all->band[all->count++] = (struct row_band){0, 1, (int32_t)all->rows, true};
    return;
  }
  for (int64_t i = 0; i < of_rows->count; i++) {
    const struct row_band *b = &of_rows->band[i];
    struct row_band *last = all->count > 0 ? &all->band[all->count - 1] : NULL;
    const bool slides = (b->slides || b->count == 1) && runs;
    if (slides && last != NULL && last->slides)
      last->count += b->count;
    else
      all->band[all->count++] = (struct row_band){(int32_t)all->rows, 1, b->count, slides};
    all->rows += b->slides ? b->count : 1;
  }
}

/* Rows of cells that lie in the same windows, or some of them. */
struct band {
  const float *rows[AVG_WINDOWS]; /* the expanded rows: `height` for each of `depth` slices */
  int64_t depth, height;
  int64_t count; /* rows of cells */
  int64_t width; /* elements of each, which is also their distance */
  int64_t pitch; /* from the expanded rows of a row of cells to those of the next one */
};

/* The sums of LANES elements. */
static inline __attribute__((always_inline)) floats add_rows(const struct band *b, int64_t at,
                                                             const int64_t depth,
                                                             const int64_t height) {
  floats total = zeros();
  for (int64_t d = 0; d < depth; d++) {
    floats sum = load_f32(b->rows[d * height] + at);
    for (int64_t h = 1; h < height; h++) sum = add(sum, load_f32(b->rows[d * height + h] + at));
    total = d == 0 ? sum : add(total, sum);
  }
  return total;
}

/* Adds up rows that have this pitch, to floats; so many, and with so many elements. */
static inline __attribute__((always_inline)) void add_rows_of(const float *from, int64_t pitch,
                                                              const int64_t height, int64_t count,
                                                              float *to) {
  for (int64_t i = 0; i < count; i += LANES) {
    floats sum = height > 0 ? load_f32(from + i) : zeros();
    for (int64_t j = 1; j < height; j++) sum = add(sum, load_f32(from + j * pitch + i));
    store_f32(to + i, sum);
  }
}

static inline void add_run(const float *from, int64_t pitch, int64_t height, int64_t count,
                           float *to) {
  if (height == 1)
    add_rows_of(from, pitch, 1, count, to);
  else if (height == 2)
    add_rows_of(from, pitch, 2, count, to);
  else if (height == 3)
    add_rows_of(from, pitch, 3, count, to);
  else
    add_rows_of(from, pitch, height, count, to);
}

/* Computes one row.  What the last vector stores beyond its end is overwritten later.  Its lanes
 * there may have any values, and store_two looks at the values of all lanes, so it stores alone. */
static inline __attribute__((always_inline)) void make_run(const struct band *b, element *to,
                                                           const int64_t depth,
                                                           const int64_t height) {
  int64_t at = 0;
  for (; at <= b->width - TWO_VECTORS; at += TWO_VECTORS)
    store_two(to + at, add_rows(b, at, depth, height), to + at + LANES,
              add_rows(b, at + LANES, depth, height));
  for (; at < b->width; at += LANES) store_packed(to + at, pack(add_rows(b, at, depth, height)));
}

/* Computes several rows that are the same, from right to left, so that what a vector stores beyond
 * the end of its row is overwritten by the row behind it. */
static inline __attribute__((always_inline)) void make_copies(const struct band *b, element *to,
                                                              const int64_t depth,
                                                              const int64_t height) {
  for (int64_t at = round_up(b->width) - LANES; at >= 0; at -= LANES) {
    const packed v = pack(add_rows(b, at, depth, height));
    for (int64_t i = 0; i < b->count; i++) store_packed(to + i * b->width + at, v);
  }
}

/* The same where cells along W are bands as well. */
static inline __attribute__((always_inline)) void make_cells(const struct expansion *x,
                                                             const struct band *b, element *to,
                                                             const int64_t depth,
                                                             const int64_t height) {
  const int64_t unit = x->unit;
  for (int64_t i = 0; i < x->bands_count; to += x->repeat[i++] * unit)
    for (int64_t n = 0; n < unit; n += LANES) {
      const int64_t c = least(n, unit - LANES);
      const packed v = pack(add_rows(b, i * unit + c, depth, height));
      for (int64_t j = 0; j < b->count; j++)
        for (int64_t w = 0; w < x->repeat[i]; w++)
          store_packed(to + j * b->width + w * unit + c, v);
    }
}

static inline void make_band(const struct expansion *x, const struct band *b, element *to) {
  if (x->bands && b->depth == 1 && b->height == 1)
    make_cells(x, b, to, 1, 1);
  else if (x->bands)
    make_cells(x, b, to, b->depth, b->height);
  else if (b->count > 1 && b->depth == 1 && b->height == 1)
    make_copies(b, to, 1, 1);
  else if (b->count > 1)
    make_copies(b, to, b->depth, b->height);
  else if (b->depth == 1 && b->height == 1)
    make_run(b, to, 1, 1);
  else if (b->depth == 1 && b->height == 2)
    make_run(b, to, 1, 2);
  else if (b->depth == 1 && b->height == 3)
    make_run(b, to, 1, 3);
  else
    make_run(b, to, b->depth, b->height);
}

#endif
