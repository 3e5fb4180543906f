/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of average-forward `rows` (avg_forward_rows.c).  The cells of a column of a window,
 * those with the same w, are added first: a row of column sums is an addition of whole rows of
 * cells, in vectors, and a column that lies in several windows is added up once.  Then the sum of a
 * window is the sum of its columns, for which there are several ways.
 *
 * Cells and columns are added in the order that kernels.h states: more than PG_PARTIAL_SUMS columns
 * are dealt out to as many partial sums, which are then added by halves. */
#ifndef PG_AVG_FORWARD_COLUMNS_H_
#define PG_AVG_FORWARD_COLUMNS_H_

#include "cpu/kernels/avg_forward_windows.h"

enum { AHEAD = 4096 / (int)sizeof(element) /* how far cells are prefetched */ };

/* --- Column sums --- */

/* The cells that the windows of a row of outputs hold: `height` rows in each of `depth` slices. */
struct source {
  const element *first; /* the first cell of the first row */
  int64_t depth, height, d_stride, h_stride;
  int64_t ahead; /* how far cells are prefetched, in elements */
};

static inline __attribute__((always_inline)) void fetch_ahead(const element *from,
                                                              const int64_t vectors) {
  enum { IN_LINE = LINE / (int)sizeof(element) };
  for (int64_t i = 0; i < vectors * LANES; i += IN_LINE) __builtin_prefetch(from + i);
}

/* Adds up so many vectors of columns, from the element `at` on.  While a batch of rows of outputs
 * is computed no cells are read, so those of the next batch are prefetched here (`fetch`).  Where
 * windows have many rows, the hardware does that better. */
static inline __attribute__((always_inline)) void add_cells(const struct source *s, int64_t at,
                                                            const int64_t vectors, float *to,
                                                            const int64_t depth,
                                                            const int64_t height,
                                                            const bool fetch) {
  floats sum[4];
  if (fetch && height <= 2) fetch_ahead(s->first + at + s->ahead, vectors);
  for (int64_t v = 0; v < vectors; v++) sum[v] = load_elements(s->first + at + v * LANES);
  for (int64_t d = 0; d < depth; d++)
    for (int64_t h = d == 0; h < height; h++) {
      const element *from = s->first + d * s->d_stride + h * s->h_stride + at;
      if (fetch) fetch_ahead(from + s->ahead, vectors);
      for (int64_t v = 0; v < vectors; v++) sum[v] = add(sum[v], load_elements(from + v * LANES));
    }
  for (int64_t v = 0; v < vectors; v++) store_f32(to + at + v * LANES, sum[v]);
}

/* Adds up the columns of at least LANES elements.  The last vector ends with the last of them, so
 * the sums of some columns may be computed twice. */
static inline __attribute__((always_inline)) void add_long_run(const struct source *s,
                                                               int64_t count, float *to,
                                                               const int64_t depth,
                                                               const int64_t height,
                                                               const bool fetch) {
  int64_t at = 0;
  for (; at + 4 * (int64_t)LANES <= count; at += 4 * (int64_t)LANES)
    add_cells(s, at, 4, to, depth, height, fetch);
  for (; at + LANES <= count; at += LANES) add_cells(s, at, 1, to, depth, height, fetch);
  if (at < count) add_cells(s, count - LANES, 1, to, depth, height, fetch);
}

/* Adds up the columns of fewer than LANES elements, and stores zeros behind them. */
static inline __attribute__((always_inline)) void add_short_run(const struct source *s,
                                                                int64_t count, float *to,
                                                                const int64_t depth,
                                                                const int64_t height) {
  floats sum = load_part(s->first, count);
  for (int64_t d = 0; d < depth; d++)
    for (int64_t h = d == 0; h < height; h++)
      sum = add(sum, load_part(s->first + d * s->d_stride + h * s->h_stride, count));
  store_f32(to, sum);
}

/* Adds up the columns of a run of elements. */
static inline __attribute__((always_inline)) void add_run_of(const struct source *s, int64_t count,
                                                             float *to, const int64_t depth,
                                                             const int64_t height,
                                                             const bool fetch) {
  if (count < LANES)
    add_short_run(s, count, to, depth, height);
  else
    add_long_run(s, count, to, depth, height, fetch);
}

/* Adds up the columns of a run of elements.  The usual windows have loops of their own. */
static inline void add_run_of_cells(const struct source *s, int64_t count, float *to) {
  if (s->depth == 1 && s->height == 1)
    add_run_of(s, count, to, 1, 1, true);
  else if (s->depth == 1 && s->height == 2)
    add_run_of(s, count, to, 1, 2, true);
  else if (s->depth == 1 && s->height == 3)
    add_run_of(s, count, to, 1, 3, true);
  else
    add_run_of(s, count, to, s->depth, s->height, false);
}

/* Adds up the columns of cells of one element that do not follow each other. */
static void add_strided_columns(const struct source *s, int64_t count, int64_t stride, float *to) {
  for (int64_t i = 0; i < count; i++) {
    sum_type sum = 0;
    for (int64_t d = 0; d < s->depth; d++)
      for (int64_t h = 0; h < s->height; h++)
        sum += widen_one(s->first[d * s->d_stride + h * s->h_stride + i * stride]);
    to[i] = sum;
  }
}

/* Adds up all columns that a row of outputs needs, of cells that lie `stride` elements apart. */
static inline void add_columns(const struct windows *w, const struct source *s, int64_t stride,
                               bool interleaved, float *to) {
  const int64_t cells = pg_length(w->cells);
  to += (w->cells.begin - w->origin) * w->unit;
  if (stride == w->unit || cells == 1) {
    add_run_of_cells(s, cells * w->unit, to);
  } else if (!interleaved) {
    add_strided_columns(s, cells, stride, to);
  } else {
    struct source cell = *s;
    for (int64_t i = 0; i < cells; i++, cell.first += stride)
      add_run_of_cells(&cell, w->unit, to + i * w->unit);
  }
}

/* --- Sums of windows --- */

/* Adds so many columns of a window, LANES elements of each.  Neighbouring columns lie `unit` places
 * apart. */
static inline __attribute__((always_inline)) floats add_taps(const float *columns, int64_t unit,
                                                             const int64_t taps) {
  floats sum = load_f32(columns);
  for (int64_t i = 1; i < taps; i++) sum = add(sum, load_f32(columns + i * unit));
  return sum;
}

/* The same for more than PG_PARTIAL_SUMS columns. */
static floats add_many_taps(const float *columns, int64_t unit, int64_t taps) {
  floats part[PG_PARTIAL_SUMS];
  for (int i = 0; i < PG_PARTIAL_SUMS; i++) part[i] = load_f32(columns + i * unit);
  for (int64_t i = PG_PARTIAL_SUMS; i < taps; i++)
    part[i % PG_PARTIAL_SUMS] = add(part[i % PG_PARTIAL_SUMS], load_f32(columns + i * unit));
  for (int half = PG_PARTIAL_SUMS / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) part[i] = add(part[i], part[i + half]);
  return part[0];
}

/* The same for any number of columns. */
static inline __attribute__((always_inline)) floats add_channels(const float *columns, int64_t unit,
                                                                 const int64_t taps) {
  return taps > PG_PARTIAL_SUMS ? add_many_taps(columns, unit, taps)
                                : add_taps(columns, unit, taps);
}

/* Adds up the cells of a window in so many vectors of channels; `from`: the first of them.  Its
 * columns lie `stride` elements apart. */
static inline __attribute__((always_inline)) void add_window(
    const struct source *s, const element *from, int64_t stride, const int64_t taps,
    const int64_t depth, const int64_t height, const int64_t vectors, floats sum[4]) {
  for (int64_t v = 0; v < vectors; v++) sum[v] = zeros();
  for (int64_t i = 0; i < taps; i++, from += stride) {
    floats column[4];
    for (int64_t v = 0; v < vectors; v++) column[v] = load_elements(from + v * LANES);
    for (int64_t d = 0; d < depth; d++)
      for (int64_t h = d == 0; h < height; h++) {
        const element *cell = from + d * s->d_stride + h * s->h_stride;
        for (int64_t v = 0; v < vectors; v++)
          column[v] = add(column[v], load_elements(cell + v * LANES));
      }
    for (int64_t v = 0; v < vectors; v++) sum[v] = add(sum[v], column[v]);
  }
}

/* Adds the columns of the windows of a group of outputs, all of which lie in the 2 * LANES places
 * from `columns` on.  Each lane begins at its offset and adds as many columns as it has; uniform:
 * all lanes have `taps`. */
static inline __attribute__((always_inline)) floats add_picked(const float *columns, ints offset,
                                                               ints taps_of, int64_t unit,
                                                               const int64_t taps,
                                                               const bool uniform) {
  const floats low = load_f32(columns), high = load_f32(columns + LANES);
  floats sum = permute_two(low, high, offset);
  for (int64_t i = 1; i < taps; i++) {
    offset = add_i(offset, all_i((int32_t)unit));
    const floats term = permute_two(low, high, offset);
    sum = uniform ? add(sum, term) : add_above(sum, term, taps_of, all_i((int32_t)i));
  }
  return sum;
}

/* Adds so many columns of one window whose cells are one element: vectors of neighbouring columns
 * are added, which are the partial sums. */
static float add_part_vectors(const float *columns, int64_t count) {
  enum { VECTORS = PG_PARTIAL_SUMS / LANES };
  floats part[VECTORS];
  if (count <= PG_PARTIAL_SUMS) {
    float sum = 0;
    for (int64_t i = 0; i < count; i++) sum += columns[i];
    return sum;
  }
  for (int v = 0; v < VECTORS; v++) part[v] = load_f32(columns + (int64_t)v * LANES);
  int64_t i = PG_PARTIAL_SUMS;
  for (; i + PG_PARTIAL_SUMS <= count; i += PG_PARTIAL_SUMS)
    for (int v = 0; v < VECTORS; v++)
      part[v] = add(part[v], load_f32(columns + i + (int64_t)v * LANES));
  for (int v = 0; v < VECTORS && i < count; v++, i += LANES)
    part[v] = add(part[v], load_part_f32(columns + i, least(LANES, count - i)));
  for (int half = VECTORS / 2; half > 0; half /= 2)
    for (int v = 0; v < half; v++) part[v] = add(part[v], part[v + half]);
  return sum_by_halves(part[0]);
}

#endif
