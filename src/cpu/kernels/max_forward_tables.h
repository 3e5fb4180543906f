/* SPDX-License-Identifier: Apache-2.0 */
/* What max-forward `rows` (max_forward_rows.c) has in scratch memory, and its tables, which are
 * made once for outputs along W and then used for many rows of them: which columns the outputs of a
 * pile need for each tap, and how these are loaded. */
#ifndef PG_MAX_FORWARD_TABLES_H_
#define PG_MAX_FORWARD_TABLES_H_

#include <stddef.h>

#include "cpu/kernels/max_forward_keys.h"

enum {
  PILE_ROWS = 16,      /* the most rows of outputs in a pile */
  PILE_OUTPUTS = 1024, /* the most outputs, */
  PILE_COLUMNS = 2048, /* and of columns, if it has more than one row */
  COLUMNS = 8192,      /* the most columns */
  TABLE = 32 << 10,    /* the most entries of the table */
  MOST_CHANNELS = 4 * LANES
};

/* How LANES columns are loaded: they follow each other, they are within two vectors or four, or
 * anywhere. */
enum reach { ONE_LOAD, TWO_VECTORS_WIDE, FOUR_VECTORS_WIDE, ANYWHERE };

/* The rows of cells from which a row of columns is computed. */
struct source {
  const element *plane;         /* where the plane begins, and */
  const element *first;         /* the first of the rows, at the first column */
  int64_t d, h, d_step, h_step; /* how many there are, and how far apart */
  int32_t at, d_at, h_at;       /* the position of the first column, if it were column 0 */
  bool goes_on;                 /* a whole vector may be read, though the row is shorter */
};

/* The outputs of a plane: where its cells are, the offsets of its first output in the tensors, and
 * the slices of the window. */
struct outputs {
  const element *cells;
  int64_t out, index;
  struct pg_taps d;
};

struct max_rows {
  const struct pg_scratch *scratch;
  const struct pg_task *task;
  const struct pg_pooling *pool;
  const struct pg_max_forward *args;
  int64_t unit;          /* elements of a cell: channels, or 1 */
  bool dense;            /* all outputs follow each other */
  bool keys;             /* elements are compared as keys */
  const element *in_end; /* the end of all cells if they follow each other, else NULL */
  struct pg_range h;     /* outputs along H, */
  struct pg_taps h_taps[PG_BOX_ROWS]; /* and the rows of their windows */
  /* Of a table. */
  struct pg_range w;       /* the outputs along W that it is for */
  struct pg_range columns; /* those of their windows */
  int64_t width, outputs;  /* elements of these columns and outputs in a row */
  int64_t pitch;           /* from one row of columns to the next: whole vectors */
  int64_t taps;            /* the most columns of a window */
  int64_t most_rows;       /* in a pile */
  /* Of a pile. */
  int64_t rows;
  int64_t out, index; /* offsets of its first output */
  struct source source[PILE_ROWS];
  enum reach reach[PILE_OUTPUTS];     /* of each vector of outputs */
  int32_t base[TABLE / LANES];        /* of each tap of a vector: the least of its columns */
  _Alignas(LINE) int32_t lane[TABLE]; /* the columns, less their base */
  _Alignas(LINE) int32_t column[COLUMNS + TWO_VECTORS]; /* of each element */
  uint16_t number[COLUMNS + 2 * TWO_VECTORS];           /* of the column of each element, from 0 */
  _Alignas(LINE) float value[COLUMNS + 4 * LANES];
  _Alignas(LINE) int32_t position[COLUMNS + 4 * LANES]; /* or key */
  int32_t found[PILE_OUTPUTS + LANES];
  int32_t origin[PILE_OUTPUTS + LANES]; /* of the positions in keys */
  struct results results;
};
_Static_assert(sizeof(struct max_rows) <= PG_SCRATCH_METHOD, "rows need more scratch");

/* --- Tables --- */

/* Writes the columns of one output, which is an element of the pile, for each tap. */
static void set_lane(struct max_rows *k, int64_t output, struct pg_taps t, int64_t begin) {
  int32_t *lane = k->lane + output / LANES * k->taps * LANES + output % LANES;
  for (int64_t tap = 0; tap < k->taps; tap++, lane += LANES) {
    const int64_t column = t.first + least(tap, t.count - 1) * t.step - k->columns.begin;
    *lane = (int32_t)(begin + column * k->unit);
  }
}

/* Writes the columns of all outputs.  Lanes behind the last output have its columns. */
static void set_lanes(struct max_rows *k) {
  const int64_t outputs = k->most_rows * k->outputs;
  for (int64_t w = 0; w < pg_length(k->w); w++) {
    const struct pg_taps t = pg_window_taps(&k->pool->w, k->w.begin + w);
    for (int64_t row = 0; row < k->most_rows; row++)
      for (int64_t c = 0; c < k->unit; c++)
        set_lane(k, row * k->outputs + w * k->unit + c, t, row * k->pitch + c);
    for (int64_t i = outputs; w == pg_length(k->w) - 1 && i < round_up(outputs); i++)
      set_lane(k, i, t, (k->most_rows - 1) * k->pitch + k->unit - 1);
  }
}

/* Finds out how far apart the columns of a tap are, and writes them less their base. */
static enum reach set_base(struct max_rows *k, int64_t tap) {
  int32_t *lane = k->lane + tap * LANES, base = lane[0], last = lane[0];
  bool follow = true;
  for (int64_t i = 1; i < LANES; i++) {
    base = lane[i] < base ? lane[i] : base;
    last = lane[i] > last ? lane[i] : last;
    follow = follow && lane[i] == lane[i - 1] + 1;
  }
  for (int64_t i = 0; i < LANES; i++) lane[i] -= base;
  k->base[tap] = base;
  if (follow) return ONE_LOAD;
  return last - base < TWO_VECTORS       ? TWO_VECTORS_WIDE
         : last - base < 2 * TWO_VECTORS ? FOUR_VECTORS_WIDE
                                         : ANYWHERE;
}

/* The last vector of a pile may have lanes behind its last output, whose columns were not written
 * then.  Nobody uses what comes of them, but it must come of numbers. */
static void clear_columns(struct max_rows *k) {
  const size_t columns = (size_t)(k->most_rows * k->pitch + 4 * (int64_t)LANES);
  memset(k->value, 0, columns * sizeof *k->value);
  memset(k->position, 0, columns * sizeof *k->position);
  memset(k->origin, 0, sizeof k->origin);
}

static void make_table(struct max_rows *k) {
  const int64_t vectors = pg_ceil_div(k->most_rows * k->outputs, LANES);
  clear_columns(k);
  for (int64_t i = 0, c = 0, column = k->columns.begin; i < k->width + TWO_VECTORS; i++) {
    k->column[i] = (int32_t)column;
    k->number[i] = (uint16_t)(column - k->columns.begin);
    if (++c < k->unit) continue;
    c = 0;
    column++;
  }
  set_lanes(k);
  for (int64_t vector = 0; vector < vectors; vector++) {
    k->reach[vector] = ONE_LOAD;
    for (int64_t tap = 0; tap < k->taps; tap++) {
      const enum reach reach = set_base(k, vector * k->taps + tap);
      if (reach > k->reach[vector]) k->reach[vector] = reach;
    }
  }
}

/* The columns from the first of the windows of some outputs to the last. */
static struct pg_range columns_of(const struct pg_axis *axis, struct pg_range outputs) {
  const struct pg_range all = {pg_window(axis, outputs.begin).begin,
                               pg_window(axis, outputs.end - 1).end};
  return pg_window_clip(axis, all);
}

/* Can a pile have so many rows of so many outputs, with so many columns? */
static bool is_in_limits(int64_t rows, int64_t outputs, int64_t columns, int64_t taps) {
  return rows * outputs <= PILE_OUTPUTS && rows * columns <= (rows > 1 ? PILE_COLUMNS : COLUMNS) &&
         round_up(rows * outputs) <= TABLE / taps;
}

/* As many rows as fill vectors, and more if these are few. */
static int64_t rows_of_pile(const struct max_rows *k) {
  enum { FEW = 8 }; /* vectors */
  int64_t rows = 1;
  while (rows < PILE_ROWS &&
         (rows * k->outputs < FEW * (int64_t)LANES || rows * k->outputs % LANES > 0) &&
         is_in_limits(2 * rows, k->outputs, k->pitch, k->taps))
    rows *= 2;
  return rows;
}

static void set_width(struct max_rows *k, struct pg_range w) {
  if (k->w.begin == w.begin && k->w.end == w.end) return;
  k->w = w;
  k->columns = columns_of(&k->pool->w, w);
  k->width = pg_length(k->columns) * k->unit;
  k->pitch = round_up(k->width);
  k->outputs = pg_length(w) * k->unit;
  k->taps = most_taps(&k->pool->w);
  k->most_rows = k->dense && pg_length(w) == k->pool->w.out ? rows_of_pile(k) : 1;
  make_table(k);
}

static void set_height(struct max_rows *k, struct pg_range h) {
  if (k->h.begin == h.begin && k->h.end == h.end) return;
  k->h = h;
  for (int64_t oh = h.begin; oh < h.end; oh++)
    k->h_taps[oh - h.begin] = pg_window_taps(&k->pool->h, oh);
}

#endif
