/* SPDX-License-Identifier: Apache-2.0 */
/* The second part of average-backward (avg_rows.c): a row of quotients is expanded along W, to one
 * sum for each element of a row of cells.  How this is done best depends on the windows:
 *
 *   same    Each cell lies in one window, and each window holds one cell (or one band of cells that
 *           are stored as one): the quotients are the expanded row.
 *   shift   Windows slide by one cell: the quotients of neighbouring elements are neighbours.  The
 *           row of quotients has zeros before and behind it, for windows that do not exist.
 *   lanes   Units are shorter than a vector.  For each vector a table says which places its lanes
 *           read, so that they are permuted from two vectors of quotients.
 *   cells   All other problems, cell by cell. */
#ifndef PG_AVG_EXPAND_H_
#define PG_AVG_EXPAND_H_

#include "cpu/kernels/avg_quotients.h"

enum {
  AVG_ROW = 4096,      /* the most elements of a row of cells of a box */
  EXPAND_TABLE = 4096, /* the most elements that a table is for */
  EXPAND_RUN = 256,    /* a table for short rows is for so many elements, if there are so many, */
  EXPAND_VECTORS = 64, /* and for so many if rows are whole vectors */
  EXPAND_SHIFT = 32    /* so many elements of a row are worth the zeros around its quotients */
};

enum expand_kind { EXPAND_SAME, EXPAND_SHIFT_BY_ONE, EXPAND_LANES, EXPAND_CELLS };

struct expansion {
  enum expand_kind kind;
  bool compact;          /* rows follow each other without zeros */
  struct pg_range cells; /* that this is for */
  int64_t unit;          /* and with this unit */
  int64_t rows;          /* and so many rows of quotients at once */
  int64_t count;         /* elements of an expanded row */
  int64_t zeros_before,
      pitch;      /* of a row of quotients: zeros before it, and its distance to the next */
  int64_t shifts; /* windows that a cell lies in, where they slide by one cell */
  bool bands;     /* cells are bands: an expanded row has each band once */
  int64_t bands_count;
  const int32_t *first, *windows; /* of cells or bands: as in the cover */
  int32_t *repeat;                /* how many cells a band has */
  int32_t list[3][AVG_ROW / 4];   /* of bands, which are at least 4 elements long */
  bool near;                      /* the lanes of each vector read places of one vector only */
  int32_t base[EXPAND_TABLE / 4 + 1];
  uint8_t lane[EXPAND_TABLE + LANES], above[EXPAND_TABLE + LANES];
  int32_t place[EXPAND_TABLE + LANES]; /* of which the table is made */
};

/* Are rows of so many elements expanded by shifting? */
static inline bool is_shift(const struct pg_axis *axis, int64_t elements) {
  return axis->kernel > 1 && axis->stride == 1 && elements >= EXPAND_SHIFT;
}

static inline bool slides_by_one(const struct pg_axis *w) {
  return w->kernel > 0 && w->stride == 1;
}

/* Lists the cells of the row; where units are at least a vector long, bands of them. */
static inline void list_cells(struct expansion *x, const struct pg_cover *m) {
  int64_t n = 0;
  x->first = m->first;
  x->windows = m->count;
  x->bands = false;
  x->bands_count = pg_length(m->cells);
  x->count = x->bands_count * x->unit;
  if (x->unit < LANES) return;
  for (int64_t i = 0; i < pg_length(m->cells); i++) {
    if (in_same_windows(m, i)) {
      x->repeat[n - 1]++;
      continue;
    }
    x->list[0][n] = m->first[i];
    x->list[1][n] = m->count[i];
    x->repeat[n++] = 1;
  }
  x->first = x->list[0];
  x->windows = x->list[1];
  x->bands = n < x->bands_count;
  x->bands_count = n;
  x->count = n * x->unit;
}

static inline bool is_same(const struct expansion *x, int64_t outputs) {
  if (x->bands_count != outputs) return false;
  for (int64_t i = 0; i < outputs; i++)
    if (x->first[i] != i || x->windows[i] != 1) return false;
  return true;
}

/* Lists the places that the elements of an expanded row read first, and how many windows they lie
 * in, for x->rows rows that have so many outputs each. */
static inline void list_places(struct expansion *x, int64_t outputs) {
  const int64_t unit = x->unit, cells = x->bands_count;
  const int32_t *first = x->first, *windows = x->windows;
  int32_t *place = x->place;
  uint8_t *above = x->above;
  for (int64_t row = 0; row < x->rows; row++) {
    const int32_t before = (int32_t)(row * outputs);
    for (int64_t i = 0; i < cells && unit == 1; i++) place[i] = before + first[i];
    for (int64_t i = 0; i < cells && unit == 1; i++) above[i] = (uint8_t)windows[i];
    for (int64_t i = 0; i < cells && unit > 1; i++)
      for (int64_t j = 0; j < unit; j++) {
        place[i * unit + j] = (before + first[i]) * (int32_t)unit + (int32_t)j;
        above[i * unit + j] = (uint8_t)windows[i];
      }
    place += cells * unit;
    above += cells * unit;
  }
  memset(place, 0, LANES * sizeof *place);
  memset(above, 0, LANES * sizeof *above);
}

/* Makes the entry of the vector that begins with element `at`.  Lanes that lie in no window read
 * the first place.  False: the places are too far apart. */
static inline bool make_lanes(struct expansion *x, int64_t at) {
  const int32_t *place = x->place + at;
  const uint8_t *above = x->above + at;
  int32_t base = INT32_MAX, last = 0;
  for (int i = 0; i < LANES; i++) {
    const int32_t from = above[i] > 0 ? place[i] : INT32_MAX, to = above[i] > 0 ? place[i] : 0;
    base = from < base ? from : base;
    last = to > last ? to : last;
  }
  if (base > last) base = last; /* no lane lies in a window */
  x->base[at / LANES] = base;
  for (int i = 0; i < LANES; i++) x->lane[at + i] = (uint8_t)(above[i] > 0 ? place[i] - base : 0);
  if (last - base >= LANES) x->near = false;
  return last - base < TWO_VECTORS;
}

/* Makes the table for x->rows rows that have so many outputs each. */
static inline bool make_table(struct expansion *x, int64_t outputs) {
  x->near = true;
  list_places(x, outputs);
  for (int64_t at = 0; at < x->rows * x->count; at += LANES)
    if (!make_lanes(x, at)) return false;
  return true;
}

/* Prepares for rows with this cover along an axis and this unit.  Compact: the rows follow each
 * other without zeros, and several short ones are expanded at once. */
static inline void make_expansion(struct expansion *x, const struct pg_cover *m,
                                  const struct pg_axis *axis, int64_t unit, bool compact) {
  if (is_same_range(x->cells, m->cells) && x->unit == unit && x->compact == compact) return;
  const int64_t outputs = pg_length(m->outputs), span = pg_window_span(axis);
  x->cells = m->cells;
  x->unit = unit;
  x->compact = compact;
  x->rows = 1;
  x->zeros_before = 0;
  x->pitch = outputs * x->unit;
  x->repeat = x->list[2];
  list_cells(x, m);
  x->kind = EXPAND_CELLS;
  if (is_same(x, outputs)) {
    x->kind = EXPAND_SAME;
  } else if (is_shift(axis, x->count) && !x->bands) {
    x->kind = EXPAND_SHIFT_BY_ONE;
    x->zeros_before = (m->outputs.begin - (m->cells.begin + axis->pad - span)) * x->unit;
    x->pitch = (pg_length(m->cells) + span) * x->unit;
    x->shifts = span + 1;
  } else if (x->unit < LANES) {
    const int64_t run = x->count % LANES == 0 ? EXPAND_VECTORS : EXPAND_RUN;
    if (compact)
      x->rows = most(1, least(run / most(1, x->count), EXPAND_TABLE / most(1, x->pitch)));
    x->kind = m->most <= UINT8_MAX && make_table(x, outputs) ? EXPAND_LANES : EXPAND_CELLS;
    if (x->kind == EXPAND_CELLS) x->rows = 1;
  }
}

/* --- Expanding --- */

static inline void expand_shift(const struct expansion *x, const float *from, float *to) {
  const int64_t windows = x->shifts, unit = x->unit;
  for (int64_t i = 0; i < x->count; i += LANES) {
    floats sum = load_f32(from + i);
    for (int64_t j = 1; j < windows; j++) sum = add(sum, load_f32(from + i + j * unit));
    store_f32(to + i, sum);
  }
}

static inline __attribute__((always_inline)) void expand_lanes(const struct expansion *x,
                                                               const float *from,
                                                               const int64_t windows,
                                                               const bool near, float *to) {
  const int64_t end = x->rows * x->count, unit = x->unit;
  for (int64_t i = 0; i < end; i += LANES) {
    const float *place = from + x->base[i / LANES];
    const ints lane = load_u8(x->lane + i), above = load_u8(x->above + i);
    floats sum = zeros();
    for (int64_t j = 0; j < windows; j++, place += unit) {
      const floats low = load_f32(place);
      const floats term =
          near ? permute(low, lane) : permute_two(low, load_f32(place + LANES), lane);
      sum = add_above(sum, term, above, all_i((int32_t)j));
    }
    store_f32(to + i, sum);
  }
}

static inline void expand_by_lanes(const struct expansion *x, const float *from, int64_t windows,
                                   float *to) {
  if (!x->near)
    expand_lanes(x, from, windows, false, to);
  else if (windows == 1)
    expand_lanes(x, from, 1, true, to);
  else if (windows == 2)
    expand_lanes(x, from, 2, true, to);
  else
    expand_lanes(x, from, windows, true, to);
}

/* The sums of a cell that lies in so many windows. */
static inline __attribute__((always_inline)) void expand_cell(const float *from, int64_t unit,
                                                              const int64_t windows, float *to) {
  for (int64_t i = 0; i < unit; i += LANES) {
    floats sum = windows > 0 ? load_f32(from + i) : zeros();
    for (int64_t j = 1; j < windows; j++) sum = add(sum, load_f32(from + i + j * unit));
    store_f32(to + i, sum);
  }
}

/* What a vector stores behind its cell is overwritten by the next cell. */
static inline void expand_cells(const struct expansion *x, const float *from, float *to) {
  const int64_t unit = x->unit;
  for (int64_t i = 0; i < x->bands_count; i++, to += unit) {
    const float *first = from + x->first[i] * unit;
    if (x->windows[i] == 1)
      expand_cell(first, unit, 1, to);
    else if (x->windows[i] == 2)
      expand_cell(first, unit, 2, to);
    else
      expand_cell(first, unit, x->windows[i], to);
  }
}

/* Expands x->rows rows of quotients; up to LANES floats behind them are overwritten. */
static inline void expand(const struct expansion *x, const float *from, int64_t most_windows,
                          float *to) {
  if (x->kind == EXPAND_SHIFT_BY_ONE)
    expand_shift(x, from, to);
  else if (x->kind == EXPAND_LANES)
    expand_by_lanes(x, from, most_windows, to);
  else
    expand_cells(x, from, to);
}

#endif
