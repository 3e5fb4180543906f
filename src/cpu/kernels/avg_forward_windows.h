/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of average-forward `rows` (avg_forward_rows.c), which are made once and then used for
 * many rows of outputs: which cells the windows of a box hold along each axis, how the columns of
 * those along W are picked from a row of column sums (avg_forward_columns.h), and the divisors of a
 * row of outputs.  The limits that keep a box so small that its tables have room are here too. */
#ifndef PG_AVG_FORWARD_WINDOWS_H_
#define PG_AVG_FORWARD_WINDOWS_H_

#include "cpu/kernels/avg_forward_quotients.h"

enum {
  COLUMNS = 8192,         /* the most column sums of a row of outputs */
  BATCH_COLUMNS = 4096,   /* rows of outputs that have no more than these are computed together, */
  BATCH_ROWS = 32,        /* but not more rows than these */
  ROW_OUTPUTS = 4096,     /* the most elements of a row of outputs */
  ADAPTIVE_OUTPUTS = 512, /* the most outputs of a row with adaptive windows */
  DIVISOR_PLACES = 16384, /* of all tables of divisors together */
  TABLES = 16,            /* the most tables of divisors */
  BEHIND = 2 * LANES      /* places behind tables and sums, because vectors are loaded there */
};

/* How the columns of the windows of a row of outputs are added. */
enum way {
  BY_CELLS,    /* many channels whose windows share few columns: no column sums are kept */
  BY_CHANNELS, /* vectors of channels, output by output */
  BY_SHIFTS,   /* windows slide by one cell: vectors of neighbouring outputs are loaded */
  BY_PERMUTES, /* the columns of a group of outputs lie in two vectors, and permutes pick them */
  BY_PARTS     /* long windows of one channel: an output adds vectors of its columns */
};

/* The windows along W of the outputs of a box, and the row of column sums that they need.  A cell
 * is `unit` elements that follow each other, and so are a column sum and an output. */
struct windows {
  struct pg_range outputs;
  enum way way;
  int64_t unit;   /* elements of a cell */
  int64_t origin; /* the cell of the first column sum; it may lie in the padding, and be negative */
  int64_t length; /* columns, from the origin on */
  struct pg_range cells; /* those of the columns that do not lie in the padding */
  int64_t taps;          /* the most columns of a window */
  int64_t lead, pitch; /* where the first row of column sums begins, and the pitch of these rows */
  int64_t batch;       /* rows of outputs that are computed together */
  int64_t group;       /* BY_PERMUTES: the outputs of a group, if windows slide */
  int64_t groups;      /* BY_PERMUTES: how many groups the tables below have */
  int32_t first[ROW_OUTPUTS], count[ROW_OUTPUTS]; /* the columns of each window, from the origin */
  /* BY_PERMUTES: the first output of each group, and where the last group ends. */
  int32_t group_first[ADAPTIVE_OUTPUTS + 1];
  /* BY_PERMUTES: for each lane of each group the place of its first column sum, counted from the
   * first one of the group, and how many columns its window has. */
  int32_t offset[ADAPTIVE_OUTPUTS * LANES], taps_of[ADAPTIVE_OUTPUTS * LANES];
};

/* The windows of the outputs of a box along D or H: the first cell of each, how many cells it has
 * that do not lie in the padding, and its extent. */
struct axis_windows {
  struct pg_range outputs;
  int64_t first[PG_BOX_ROWS], count[PG_BOX_ROWS], extent[PG_BOX_ROWS];
};

/* The divisor of an output is the product of the extents of its window.  So rows of outputs whose
 * windows have the same product along D and H share a table, which has a divisor for each element
 * of the row, or for each output where an output is no shorter than a vector. */
struct tables {
  bool same;                   /* all outputs of the problem have one divisor */
  int64_t repeat;              /* places that the divisor of an output takes */
  int64_t pitch;               /* places of a table */
  int64_t count;               /* tables that were made */
  int64_t latest;              /* the one that was needed last */
  int64_t outer[TABLES];       /* for which product of extents along D and H each table is */
  int32_t extent[ROW_OUTPUTS]; /* of the windows along W */
  float divisor[DIVISOR_PLACES + BEHIND], high[DIVISOR_PLACES + BEHIND],
      low[DIVISOR_PLACES + BEHIND];
};

/* --- Windows --- */

/* The factor of the divisor that comes from this axis; 1 where the caller gave the divisor. */
static int64_t forward_extent(const struct pg_avg_forward *args, const struct pg_axis *axis,
                              int64_t o) {
  return args->divisor != 0 ? 1 : pg_window_extent(axis, o, args->count_include_pad);
}

/* Does this axis give the divisors of all outputs the same factor? */
static bool has_one_extent(const struct pg_avg_forward *args, const struct pg_axis *axis) {
  if (args->divisor != 0 || axis->out == 1) return true;
  return axis->kernel > 0 && forward_extent(args, axis, 0) == axis->kernel &&
         forward_extent(args, axis, axis->out - 1) == axis->kernel;
}

/* Makes the table of windows along D or H, unless it is for these outputs already. */
static void make_axis_windows(const struct pg_avg_forward *args, const struct pg_axis *axis,
                              struct pg_range outputs, struct axis_windows *to) {
  if (is_same_range(outputs, to->outputs)) return;
  to->outputs = outputs;
  for (int64_t i = 0; i < pg_length(outputs); i++) {
    const struct pg_taps taps = pg_window_taps(axis, outputs.begin + i);
    to->first[i] = taps.first;
    to->count[i] = taps.count;
    to->extent[i] = forward_extent(args, axis, outputs.begin + i);
  }
}

/* Divides the outputs of a row into groups: an output has a lane for each of its channels, and all
 * columns of a group lie in the two vectors that begin with its first column.  Where windows slide,
 * all groups look alike and the tables have the first one alone. */
static void make_groups(struct windows *w, bool sliding, int64_t stride) {
  const int64_t most_outputs = LANES / w->unit, reach = TWO_VECTORS / w->unit - w->taps;
  const int64_t outputs = pg_length(w->outputs);
  w->groups = 0;
  w->group = sliding ? least(most_outputs, reach / stride + 1) : 1; /* else groups differ */
  for (int64_t i = 0; i < outputs && (!sliding || i == 0); w->groups++) {
    int64_t n = 0;
    int32_t *offset = w->offset + w->groups * LANES, *taps_of = w->taps_of + w->groups * LANES;
    for (int j = 0; j < LANES; j++) offset[j] = taps_of[j] = 0;
    for (; n < most_outputs; n++) {
      const int64_t from_first = sliding           ? n * stride
                                 : i + n < outputs ? w->first[i + n] - w->first[i]
                                                   : reach + 1;
      if (from_first > reach) break;
      for (int64_t c = 0; c < w->unit; c++) {
        offset[n * w->unit + c] = (int32_t)(from_first * w->unit + c);
        taps_of[n * w->unit + c] = sliding ? (int32_t)w->taps : w->count[i + n];
      }
    }
    w->group_first[w->groups] = (int32_t)i;
    i += n;
    w->group_first[w->groups + 1] = (int32_t)i;
  }
}

/* Are cells of more than LANES channels added up without column sums?  Windows share no columns if
 * they slide, and few if they are adaptive and not short, and have up to PG_PARTIAL_SUMS.  With one
 * vector of channels, as bundles have them, batches of column sums are faster. */
static bool adds_by_cells(const struct pg_axis *axis, int64_t unit) {
  if (unit <= LANES) return false;
  if (axis->kernel == 0) return axis->in / axis->out >= 4 && axis->in / axis->out < 15;
  return axis->kernel <= axis->stride && axis->kernel <= PG_PARTIAL_SUMS;
}

/* How columns are added best, for windows of this axis. */
static enum way way_of(const struct windows *w, const struct pg_axis *axis) {
  if (adds_by_cells(axis, w->unit)) return BY_CELLS;
  if (w->unit >= LANES) return BY_CHANNELS;
  if (w->taps > PG_PARTIAL_SUMS) return w->unit == 1 ? BY_PARTS : BY_CHANNELS;
  if (axis->kernel > 0 && axis->stride == 1) return BY_SHIFTS;
  if (w->taps * w->unit <= TWO_VECTORS) return BY_PERMUTES;
  return w->unit == 1 ? BY_PARTS : BY_CHANNELS;
}

/* A row of column sums has places for the padding too, so all windows that slide have the same
 * number of columns there.  It begins so that the column sum of its first cell begins a vector. */
static void make_windows(struct windows *w, const struct pg_axis *axis, struct pg_range outputs,
                         int64_t unit) {
  const int64_t last = outputs.end - 1;
  w->outputs = outputs;
  w->unit = unit;
  w->origin = pg_window(axis, outputs.begin).begin;
  w->length = pg_window(axis, last).end - w->origin;
  w->cells = (struct pg_range){most(0, w->origin), least(axis->in, w->origin + w->length)};
  w->taps = axis->kernel;
  for (int64_t i = 0; i < pg_length(outputs); i++) {
    const struct pg_taps taps = pg_window_taps(axis, outputs.begin + i);
    w->first[i] = (int32_t)(taps.first - w->origin);
    w->count[i] = (int32_t)taps.count;
    if (axis->kernel == 0) w->taps = most(w->taps, taps.count);
  }
  w->way = way_of(w, axis);
  if (w->way == BY_PERMUTES) make_groups(w, axis->kernel > 0, axis->stride);
  w->lead = (w->origin - w->cells.begin) * unit % LANES;
  w->lead += w->lead < 0 ? LANES : 0;
  w->pitch = round_up(w->length * unit);
  w->batch = least(BATCH_COLUMNS / w->pitch, COLUMNS / (pg_length(outputs) * unit));
  w->batch = most(1, least(w->batch, BATCH_ROWS));
  if (w->way == BY_CELLS) w->pitch = 0, w->batch = 1;
}

/* --- Divisors --- */

/* Forgets all tables, because the outputs along W are others now. */
static void begin_tables(struct tables *t, const struct pg_avg_forward *args,
                         const struct pg_axis *axis, const struct windows *w) {
  for (int64_t i = 0; i < pg_length(w->outputs); i++)
    t->extent[i] = (int32_t)forward_extent(args, axis, w->outputs.begin + i);
  t->repeat = w->unit < LANES ? w->unit : 1;
  t->pitch = t->same ? 1 : pg_length(w->outputs) * t->repeat;
  t->count = t->latest = 0;
}

/* Makes the table for this product of extents along D and H, at this place. */
static void make_table(struct tables *t, int64_t divisor, int64_t outer, int64_t at) {
  for (int64_t i = 0; i < t->pitch; i++) {
    const int64_t counted = outer * t->extent[i / t->repeat];
    const float value = (float)(divisor != 0 ? divisor : counted);
    set_parts(value, &t->divisor[at + i], &t->high[at + i], &t->low[at + i]);
  }
  /* Vectors of divisors are loaded beyond the end of the table. */
  for (int64_t i = at + t->pitch; i < at + t->pitch + LANES; i++)
    t->divisor[i] = t->high[i] = t->low[i] = 1;
}

/* Makes the table for this product of extents along D and H the latest one.  False: it does not
 * exist, and there is no room for another. */
static bool find_table(struct tables *t, int64_t divisor, int64_t outer) {
  int64_t i = 0;
  while (i < t->count && t->outer[i] != outer) i++;
  if (i == t->count) {
    if (i == TABLES || (i + 1) * t->pitch > DIVISOR_PLACES) return false;
    make_table(t, divisor, outer, i * t->pitch);
    t->outer[i] = outer;
    t->count = i + 1;
  }
  t->latest = i;
  return true;
}

/* --- Limits --- */

/* No fewer than the cells that so many neighbouring windows have together, with the padding. */
static int64_t cells_of(const struct pg_axis *axis, int64_t outputs) {
  if (axis->kernel == 0) return least(axis->in, pg_mul_or_most(outputs, axis->in) / axis->out + 2);
  const int64_t before = pg_mul_or_most(outputs - 1, axis->stride);
  return before < INT64_MAX - axis->kernel ? before + axis->kernel : INT64_MAX;
}

/* Does a row of so many outputs need no more than so many column sums, and have its tables room?
 * BY_CELLS has none, but the last box of a row may have so few channels that it does. */
static bool has_room(const struct pg_axis *axis, int64_t outputs, int64_t unit, int64_t columns) {
  if (adds_by_cells(axis, unit) && (axis->kernel > 0 || outputs <= ADAPTIVE_OUTPUTS))
    return pg_mul_or_most(outputs, unit) <= COLUMNS &&
           pg_mul_or_most(cells_of(axis, outputs), LANES) <= columns;
  return pg_mul_or_most(cells_of(axis, outputs), unit) <= columns &&
         pg_mul_or_most(outputs, unit) <= ROW_OUTPUTS &&
         (axis->kernel > 0 || outputs <= ADAPTIVE_OUTPUTS);
}

/* Cuts long rows of outputs into parts.  Neighbouring parts need some columns both, so very short
 * parts are bad; boxes get fewer channels before parts become very short.  False: even then there
 * is no room. */
static bool cut_rows(const struct pg_axis *axis, bool interleaved, struct pg_tiling *t) {
  enum { WIDTH = 8, CHANNELS = 64 };
  while (t->w > WIDTH && !has_room(axis, t->w, t->planes, COLUMNS)) t->w = (t->w + 1) / 2;
  while (interleaved && t->planes > CHANNELS && !has_room(axis, t->w, t->planes, COLUMNS))
    t->planes = (t->planes / 2 + 31) / 32 * 32;
  while (t->w > 1 && !has_room(axis, t->w, t->planes, COLUMNS)) t->w = (t->w + 1) / 2;
  return has_room(axis, t->w, t->planes, COLUMNS);
}

#endif
