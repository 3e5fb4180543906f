/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward, planar and with channels as neighbours: a row is a run of elements in either
 * case (avg_quotients.h).
 *
 * The sum over the windows of a cell is a sum along D of sums along H of sums along W.  So each
 * output is divided once, each row of quotients is expanded along W (avg_expand.h), and a row of
 * cells adds the expanded rows that it needs along H and D.  Rows of cells that lie in the same
 * windows are computed once, and so are slices.
 *
 * A box is computed from top to bottom.  Rows of outputs are divided and expanded when the first
 * row of cells needs them, and take turns in as many places as a cell needs.  Small planes are
 * piled: a box is several of them, whose outputs are divided as one run and expanded together. */
#include "cpu/kernels/avg_tiling.h"

enum {
  CHUNK = 512,                     /* elements that are computed between two writes */
  LONG_ROW = 256 / sizeof(element) /* elements of a row that is copied rather than computed again */
};

struct avg_rows {
  struct quotients q;
  struct expansion x; /* along W */
  struct expansion y; /* in flat piles: along H, or along all axes at once */
  struct layout in;
  bool pile, compact;         /* compact: expanded rows follow each other */
  bool flat;                  /* a pile whose cells are all expanded before the first is rounded */
  bool at_a_time;             /* and along all axes at once */
  const element *grad;        /* the first output of the plane that is computed */
  element *to;                /* and its first cell */
  int64_t pitch;              /* between expanded rows */
  int64_t d_places, h_places; /* slices of expanded rows, and rows of a slice */
  int64_t group;              /* so many rows of outputs are divided before they are expanded */
  int64_t at_once;            /* the most rows of cells that are computed together */
  struct row_bands of_rows;
  /* Where cells lie in several windows along H and along D, or rows are short, the sums along W and
   * H of a slice of outputs are a sheet, which is made once for all slices of cells that need it.
   */
  bool deep;
  bool slices_are_runs;      /* of outputs */
  bool by_lanes;             /* sheets are expanded along H like rows along W */
  bool full;                 /* sheets have all rows, so that a slice is one run */
  struct row_bands of_sheet; /* where each of them is needed */
  struct band adds;          /* the rows of cells that are computed now */
  struct pg_cover plane;     /* of a plane, as if it were one row */
  int32_t plane_first[PILE + PG_COVER_SLACK], plane_count[PILE + PG_COVER_SLACK];
  int64_t slice[AVG_WINDOWS]; /* which slice of outputs is in a place, or its sheet */
  int64_t done[AVG_WINDOWS];  /* and how many of its rows are expanded */
  _Alignas(LINE) float quotient[AVG_OUTPUTS + 4 * LANES];
  _Alignas(LINE) float expanded[AVG_EXPANDED + EXPAND_RUN + 4 * LANES];
  _Alignas(LINE) float sheet[AVG_SHEETS + EXPAND_RUN + 4 * LANES];
  _Alignas(LINE) element row[AVG_ROW + 4 * LANES]; /* of cells that do not follow each other */
  struct slab_writer writer;
};
_Static_assert(sizeof(struct avg_rows) <= PG_SCRATCH_BYTES, "rows need more scratch");

/* --- Expanding along W --- */

static const element *first_output(const struct avg_rows *k, const struct pg_box *b,
                                   int64_t plane) {
  const struct pg_avg_backward *a = k->q.args;
  const int64_t p = b->first + plane * k->q.unit, c = a->pool.c;
  return (const element *)a->grad_out +
         pg_offset(&a->out_strides, p / c, p % c, k->q.cover.d.outputs.begin,
                   k->q.cover.h.outputs.begin, k->q.cover.w.outputs.begin);
}

/* Divides a row of outputs; where windows slide by one cell, zeros come before and behind it. */
static void divide_output_row(struct avg_rows *k, const element *grad, int64_t outer, float *to) {
  const struct expansion *x = &k->x;
  divide_row(&k->q, grad, divisors_of(&k->q.divisors, outer), to + x->zeros_before);
  if (x->kind != EXPAND_SHIFT_BY_ONE) return;
  for (int64_t i = 0; i < x->zeros_before; i++) to[i] = 0;
  for (int64_t i = x->zeros_before + pg_length(k->q.cover.w.outputs) * x->unit; i < x->pitch;
       i += LANES)
    store_f32(to + i, zeros());
}

/* The expanded rows that a slice of cells needs: where the slices of them begin, the first of which
 * is that of output slice `od`; and in which place of a slice row `oh` is. */
struct turn {
  float *slice[AVG_WINDOWS];
  int64_t od, depth;
  int64_t oh, place;
  int64_t done; /* rows that all slices have */
};

/* The place of row oh, which is not before the last one that was asked for. */
static inline int64_t place_of(const struct avg_rows *k, struct turn *t, int64_t oh) {
  t->place += oh - t->oh;
  t->oh = oh;
  while (t->place >= k->h_places) t->place -= k->h_places;
  return t->place;
}

/* Divides and expands `count` rows of outputs, which begin with row oh of slice od.  All are
 * divided before the first is expanded, because what was stored just now cannot be loaded at other
 * addresses without waiting. */
static void expand_group(struct avg_rows *k, int64_t od, int64_t oh, int64_t count, float *slice) {
  const struct expansion *x = &k->x;
  const struct divisors *v = &k->q.divisors;
  const int64_t *s = k->q.args->out_strides.of;
  const bool run = k->compact && v->same && k->q.out.slices && k->q.unit == k->q.out.unit &&
                   pg_length(k->q.cover.w.outputs) == k->q.args->pool.w.out &&
                   x->kind != EXPAND_SHIFT_BY_ONE;
  if (run)
    divide_run(k->grad + od * s[PG_D] + oh * s[PG_H], count * x->pitch, k->q.one,
               x->kind == EXPAND_SAME ? slice + oh * k->pitch : k->quotient);
  for (int64_t i = 0; i < count && !run; i++) {
    float *to = x->kind == EXPAND_SAME ? slice + (oh + i) % k->h_places * k->pitch
                                       : k->quotient + i * x->pitch;
    divide_output_row(k, k->grad + od * s[PG_D] + (oh + i) * s[PG_H],
                      v->same ? 0 : v->d_extent[od] * (int64_t)v->h_extent[oh + i], to);
  }
  for (int64_t i = 0; i < count && x->kind != EXPAND_SAME; i += x->rows)
    expand(x, k->quotient + i * x->pitch, k->q.cover.w.most,
           slice + (oh + i) % k->h_places * k->pitch);
}

static void expand_all(const struct expansion *x, int64_t rows, const float *from, float *to,
                       int64_t most_windows) {
  for (int64_t i = 0; i < rows; i += x->rows)
    expand(x, from + i * x->pitch, most_windows, to + i * x->count);
}

/* Divides and expands slice od of the outputs, whose rows follow each other. */
static void expand_slice(struct avg_rows *k, int64_t od) {
  const int64_t rows = pg_length(k->q.cover.h.outputs);
  float *to = k->x.kind == EXPAND_SAME ? k->expanded : k->quotient;
  divide_run(k->grad + od * k->q.args->out_strides.of[PG_D], rows * k->x.pitch,
             divisors_of_slice(&k->q, od), to);
  if (k->x.kind != EXPAND_SAME) expand_all(&k->x, rows, to, k->expanded, k->q.cover.w.most);
}

/* Makes the sheet of slice od of the outputs. */
static float *make_sheet(struct avg_rows *k, int64_t plane, int64_t od) {
  const int64_t rows = pg_length(k->q.cover.h.outputs), width = k->x.count;
  const int64_t number = plane * pg_length(k->q.cover.d.outputs) + od, place = od % k->d_places;
  if (k->by_lanes && k->pile) return k->sheet + number * k->of_sheet.rows * width;
  float *sheet = k->sheet + place * (k->of_sheet.rows * width + LANES), *to = sheet;
  if (k->slice[place] == od) return sheet;
  k->slice[place] = od;
  if (k->slices_are_runs && !k->pile) expand_slice(k, od);
  for (int64_t oh = 0, count; oh < rows && !k->pile && !k->slices_are_runs; oh += count) {
    count = least(k->group, rows - oh);
    expand_group(k, od, oh, count, k->expanded);
  }
  const float *from = k->expanded + (k->pile ? number * rows * k->pitch : 0);
  if (k->by_lanes) expand(&k->y, from, k->q.cover.h.most, to);
  for (int64_t i = 0; i < k->of_rows.count && !k->by_lanes; i++) {
    const struct row_band *b = &k->of_rows.band[i];
    const int64_t length = (b->slides ? b->count : 1) * width;
    for (int64_t j = k->full && !b->slides ? b->count : 1; j > 0; j--, to += length)
      add_run(from + b->first * k->pitch, k->pitch, b->height, length, to);
  }
  return sheet;
}

static void begin_turn(struct avg_rows *k, int64_t plane, int64_t d, struct turn *t) {
  const int64_t size = k->h_places * k->pitch + (k->pile ? 0 : LANES);
  t->od = k->q.cover.d.first[d];
  t->depth = k->q.cover.d.count[d];
  t->oh = t->place = t->done = 0;
  for (int64_t i = 0; i < t->depth && k->deep; i++) t->slice[i] = make_sheet(k, plane, t->od + i);
  for (int64_t i = 0; i < t->depth && !k->deep; i++) {
    const int64_t place = k->pile ? plane * k->d_places + t->od + i : (t->od + i) % k->d_places;
    t->slice[i] = k->expanded + place * size;
  }
}

/* Expands the rows of outputs up to `end` of the slices that are needed, and from `begin` on where
 * none are expanded yet. */
static void expand_needed(struct avg_rows *k, struct turn *t, int64_t begin, int64_t end) {
  const int64_t rows = pg_length(k->q.cover.h.outputs);
  t->done = rows;
  for (int64_t i = 0; i < t->depth; i++) {
    const int64_t od = t->od + i, place = od % k->d_places;
    if (k->slice[place] != od) k->done[place] = begin;
    k->slice[place] = od;
    while (k->done[place] < end) {
      const int64_t count = least(k->group, rows - k->done[place]);
      expand_group(k, od, k->done[place], count, t->slice[i]);
      k->done[place] += count;
    }
    t->done = least(t->done, k->done[place]);
  }
}

/* Makes the cover of a plane whose windows do not overlap.  What a vector stores behind its row is
 * overwritten by the next one. */
static void make_plane_cover(struct avg_rows *k) {
  const struct pg_cover *md = &k->q.cover.d, *mh = &k->q.cover.h, *mw = &k->q.cover.w;
  struct pg_cover *m = &k->plane;
  const int64_t width = pg_length(mw->cells);
  int64_t at = 0;
  *m = (struct pg_cover){.first = k->plane_first, .count = k->plane_count, .most = 1};
  for (int64_t d = 0; d < pg_length(md->cells); d++)
    for (int64_t h = 0; h < pg_length(mh->cells); h++) {
      const int32_t slice = md->first[d] * (int32_t)pg_length(mh->outputs);
      const int32_t row = (slice + mh->first[h]) * (int32_t)pg_length(mw->outputs);
      const int32_t count = md->count[d] * mh->count[h];
      for (int64_t w = 0; w < width; w += LANES) {
        store_i32(m->first + at + w, add_i(all_i(row), load_i32(mw->first + w)));
        store_i32(m->count + at + w, times_i(all_i(count), load_i32(mw->count + w)));
      }
      at += width;
    }
  m->cells.end = at;
  m->outputs.end = pg_length(md->outputs) * pg_length(mh->outputs) * pg_length(mw->outputs);
}

/* Very short rows would be computed with mostly empty vectors.  So if no windows overlap, planes
 * that follow each other are expanded as if they were rows. */
static bool flatten_planes(struct avg_rows *k) {
  const struct pg_box_cover *m = &k->q.cover;
  const struct pg_axis axis = pg_axis_unit();
  if (!k->pile || !k->in.all || m->d.most > 1 || m->h.most > 1 || m->w.most > 1) return false;
  if (k->y.cells.begin != 0) make_plane_cover(k);
  make_expansion(&k->y, &k->plane, &axis, k->q.unit, true);
  return k->y.kind == EXPAND_LANES || k->y.kind == EXPAND_SAME;
}

/* If they do, but rows are shorter than a vector, planes without depth, and sheets, are expanded
 * along H in the same way as rows along W. */
static bool expand_h_by_lanes(struct avg_rows *k) {
  const struct pg_box_cover *m = &k->q.cover;
  const struct pg_axis axis = pg_axis_unit();
  const bool flat = k->pile && k->in.all && !k->q.facts->has_depth;
  if (!(flat || (k->deep && k->compact)) || k->x.count >= LANES) return false;
  make_expansion(&k->y, &m->h, &axis, k->x.count, k->pile);
  return k->y.kind == EXPAND_LANES || k->y.kind == EXPAND_SAME;
}

/* Divides and expands all outputs of a pile of planes, and makes their sheets if that is done for
 * all at once.  Returns the expanded rows, or the sums of all cells in flat piles. */
static float *expand_pile(struct avg_rows *k, const struct pg_box *b, int64_t planes) {
  const struct pg_box_cover *m = &k->q.cover;
  const int64_t rows = planes * pg_length(m->d.outputs) * pg_length(m->h.outputs);
  const int64_t outputs = rows * pg_length(m->w.outputs) * k->q.unit;
  const struct divisor_run by = divisors_of_rows(&k->q, rows);
  float *from = k->quotient, *to = k->expanded;
  if (!k->at_a_time && k->x.kind == EXPAND_SAME) {
    from = k->expanded;
    to = k->quotient;
  }
  divide_run(first_output(k, b, 0), outputs, by, from);
  if (!k->at_a_time && k->x.kind != EXPAND_SAME) {
    expand_all(&k->x, rows, from, to, m->w.most);
    from = k->expanded;
    to = k->quotient;
  }
  if (k->by_lanes) expand_all(&k->y, planes * pg_length(m->d.outputs), from, k->sheet, m->h.most);
  if (!k->flat || k->y.kind == EXPAND_SAME) return from;
  expand_all(&k->y, planes, from, to, k->at_a_time ? 1 : m->h.most);
  return to;
}

/* --- Writing --- */

/* Copies a row of cells that do not follow each other in gradInput. */
static void copy_cells(const struct avg_rows *k, element *to) {
  const int64_t stride = k->q.args->in_strides.of[PG_W], unit = k->q.unit;
  const int64_t width = pg_length(k->q.cover.w.cells);
  for (int64_t w = 0; w < width && unit == 1; w++) to[w * stride] = k->row[w];
  for (int64_t w = 0; w < width && unit > 1; w++)
    copy_bytes(to + w * stride, k->row + w * unit, unit * (int64_t)sizeof *to,
               k->writer.nontemporal);
}

/* Where the rows of a slice go that follow each other in gradInput. */
struct cursor {
  element *at; /* in the writer's room; NULL: nowhere yet */
  int64_t filled;
};

static void cursor_end(struct avg_rows *k, struct cursor *c) {
  if (c->at != NULL) slab_advance(&k->writer, c->filled * (int64_t)sizeof *c->at);
  c->at = NULL;
  c->filled = 0;
}

/* Computes the rows of a band, of which the first belongs at `to`. */
static inline void write_band(struct avg_rows *k, struct band *b, const struct row_band *rows,
                              struct cursor *c, element *to) {
  const int64_t width = b->width, stride = k->q.args->in_strides.of[PG_H];
  if (rows->count > 1 && !rows->slides && width >= LONG_ROW && !k->writer.held) {
    b->count = 1;
    make_band(&k->x, b, k->row);
    cursor_end(k, c);
    for (int64_t i = 0; i < rows->count; i++)
      slab_append(&k->writer, to + i * stride, (const char *)k->row, width * (int64_t)sizeof *to);
    return;
  }
  for (int64_t left = rows->count, count; left > 0; left -= count, to += count * stride) {
    count = least(left, k->at_once);
    b->count = rows->slides ? 1 : count;
    b->width = rows->slides ? count * width : width;
    if (c->at == NULL) c->at = (element *)(void *)slab_place(&k->writer, to);
    make_band(&k->x, b, c->at);
    c->at += count * width;
    c->filled += count * width;
    if (stride != width || c->filled > CHUNK) cursor_end(k, c);
    if (left == count) break;
    for (int64_t i = 0; rows->slides && i < b->depth * b->height; i++)
      b->rows[i] += count * b->pitch;
  }
  b->width = width;
}

/* The same where the cells of a row do not follow each other in gradInput. */
static void scatter_band(struct avg_rows *k, struct band *b, const struct row_band *rows,
                         element *to) {
  const int64_t stride = k->q.args->in_strides.of[PG_H];
  b->count = 1;
  for (int64_t i = 0; i < rows->count; i++) {
    if (i == 0 || rows->slides) make_band(&k->x, b, k->row);
    copy_cells(k, to + i * stride);
    for (int64_t j = 0; rows->slides && j < b->depth * b->height; j++) b->rows[j] += b->pitch;
  }
}

/* Rounds and writes the cells of a flat pile. */
static void write_flat(struct avg_rows *k, const float *from, int64_t count) {
  struct band b;
  b.depth = b.height = b.count = 1;
  for (int64_t i = 0; i < count; i += CHUNK) {
    b.width = least(CHUNK, count - i);
    b.rows[0] = from + i;
    make_run(&b, (element *)(void *)slab_place(&k->writer, k->to + i), 1, 1);
    slab_advance(&k->writer, b.width * (int64_t)sizeof(element));
  }
}

/* Finds the expanded rows of a band, the first of which are in this place. */
static inline void find_rows(const struct avg_rows *k, const struct turn *t, int64_t place,
                             struct band *b) {
  const int64_t places = k->h_places, pitch = b->pitch, height = b->height;
  const float **row = b->rows;
  for (int64_t i = 0; i < b->depth; i++) {
    const float *slice = t->slice[i];
    for (int64_t j = 0; j < height; j++)
      *row++ = slice + (place + j < places ? place + j : place + j - places) * pitch;
  }
}

/* Computes slice d of the plane. */
static void make_slice(struct avg_rows *k, int64_t plane, int64_t d) {
  const int64_t stride = k->q.args->in_strides.of[PG_H];
  const bool follow = k->in.rows && k->q.unit == k->in.unit;
  element *to = k->to + d * k->q.args->in_strides.of[PG_D];
  struct turn t;
  struct band *band = &k->adds;
  struct cursor cursor = {NULL, 0};
  const struct row_bands *all = k->deep ? &k->of_sheet : &k->of_rows;
  begin_turn(k, plane, d, &t);
  band->width = pg_length(k->q.cover.w.cells) * k->q.unit;
  band->pitch = k->deep ? k->x.count : k->pitch;
  for (const struct row_band *b = all->band; b < all->band + all->count;
       to += b++->count * stride) {
    const int64_t end = b->first + b->height + (b->slides ? b->count - 1 : 0);
    if (!k->pile && !k->deep && b->height > 0 && t.done < end) expand_needed(k, &t, b->first, end);
    if (k->deep) { /* one row of each sheet; a slice between windows has none */
      band->depth = t.depth > 0 ? 1 : 0;
      band->height = t.depth;
      for (int64_t i = 0; i < t.depth; i++) band->rows[i] = t.slice[i] + b->first * band->pitch;
    } else {
      band->height = b->height;
      band->depth = b->height > 0 ? t.depth : 0;
      find_rows(k, &t, place_of(k, &t, b->first), band);
    }
    if (follow)
      write_band(k, band, b, &cursor, to);
    else
      scatter_band(k, band, b, to);
  }
  cursor_end(k, &cursor);
}

/* Writes the slices [d, end), which are the same, and the first of which is in the writer's room:
 * in its last `bytes`. */
static void repeat_slice(struct avg_rows *k, struct pg_range d, int64_t bytes) {
  struct slab_writer *w = &k->writer;
  const char *from = w->room[w->which] + w->end - bytes;
  for (d.begin++; d.begin < d.end; d.begin++)
    slab_append(w, k->to + d.begin * k->q.args->in_strides.of[PG_D], from, bytes);
}

static void make_plane(struct avg_rows *k, const struct pg_box *b, int64_t plane) {
  const struct pg_cover *m = &k->q.cover.d;
  const int64_t slice = pg_length(b->w) * pg_length(b->h) * k->q.unit;
  const bool follow =
      k->in.slices && k->q.unit == k->in.unit && pg_length(b->w) == k->q.args->pool.w.in;
  const bool together =
      follow && slice <= SLAB_ELEMENTS && slice >= (int64_t)(LINE / sizeof(element));
  for (int64_t i = 0; i < k->d_places && (k->deep || !k->pile); i++) k->slice[i] = -1;
  for (int64_t d = 0, end; d < pg_length(b->d); d = end) {
    for (end = d + 1; together && end < pg_length(b->d) && in_same_windows(m, end);) end++;
    k->writer.held = end > d + 1;
    if (k->writer.held && k->writer.end >= SLAB_FULL) slab_turn(&k->writer);
    make_slice(k, plane, d);
    k->writer.held = false;
    if (end > d + 1) repeat_slice(k, (struct pg_range){d, end}, slice * (int64_t)sizeof(element));
  }
}

static element *first_cell_of(const struct avg_rows *k, const struct pg_box *b, int64_t plane) {
  const struct pg_avg_backward *a = k->q.args;
  const int64_t p = b->first + plane * k->q.unit, c = a->pool.c;
  return (element *)a->grad_in +
         pg_offset(&a->in_strides, p / c, p % c, b->d.begin, b->h.begin, b->w.begin);
}

/* --- Items --- */

/* How the expanded rows of a box are arranged. */
static void arrange_rows(struct avg_rows *k, int64_t unit) {
  const struct pg_box_cover *m = &k->q.cover;
  const struct pg_pooling *p = &k->q.facts->pool;
  const int64_t rows = most(1, pg_length(m->h.outputs)), width = pg_length(m->w.cells) * unit;
  const bool deep = pg_length(m->d.cells) > 1;
  k->d_places = k->pile && !k->deep ? pg_length(m->d.outputs) : most(1, m->d.most);
  const int64_t slices = k->deep ? 1 : k->d_places; /* of expanded rows */
  k->compact = k->pile || rows * width * slices + EXPAND_RUN <= AVG_EXPANDED;
  make_expansion(&k->x, &m->w, &p->w, unit, k->pile || (k->compact && slices == 1));
  k->group = group_of(k->x.pitch);
  if (k->group > k->x.rows) k->group -= k->group % k->x.rows;
  k->pitch = k->compact ? k->x.count : round_up(k->x.count) + LANES;
  k->h_places = k->compact || deep ? rows : least(rows, most(1, m->h.most) + k->group - 1);
  k->at_once = 1;
  if (k->q.args->in_strides.of[PG_H] == width)
    k->at_once = most(1, (SLAB_ELEMENTS - CHUNK) / width);
  k->slices_are_runs = k->compact && k->x.kind != EXPAND_SHIFT_BY_ONE && are_slices_runs(&k->q);
  make_row_bands(&k->of_rows, &m->h, k->compact && !k->x.bands);
}

static void make_box(struct avg_rows *k, const struct pg_tiling *t, const struct pg_box *b) {
  const int64_t unit = t->interleaved ? least(b->planes, k->in.unit) : 1;
  const int64_t planes = b->planes / unit;
  begin_box(&k->q, b, unit, 0);
  k->by_lanes = false;
  k->flat = k->at_a_time = flatten_planes(k);
  if (!k->flat) {
    arrange_rows(k, unit);
    const bool by_lanes = expand_h_by_lanes(k);
    k->flat = by_lanes && !k->deep;
    k->by_lanes = by_lanes && k->deep;
    k->full = k->by_lanes || (k->x.count < TWO_VECTORS && !k->x.bands);
    if (k->deep) make_sheet_bands(&k->of_sheet, &k->of_rows, k->full, !k->x.bands);
  }
  const float *sums = k->pile ? expand_pile(k, b, planes) : NULL;
  if (k->flat) {
    k->to = first_cell_of(k, b, 0);
    write_flat(k, sums, b->planes * b->cells);
    return;
  }
  for (int64_t i = 0; i < planes; i++) {
    k->to = k->in.all && b->whole && i > 0 ? k->to + b->cells * unit : first_cell_of(k, b, i);
    if (!k->pile) k->grad = first_output(k, b, i);
    make_plane(k, b, i);
  }
}

/* Are the cells of a box written in short runs, with gaps between them? */
static bool is_scattered(const struct pg_tiling *t, const struct pg_pooling *p) {
  enum { SHORT_RUN = 16384 / sizeof(element) };
  const int64_t unit = t->interleaved ? least(t->planes, p->c) : 1;
  if (t->interleaved && t->planes < p->c) return unit < SHORT_RUN;
  if (t->w < p->w.in) return t->h * t->d > 1 && t->w * unit < SHORT_RUN;
  return t->h < p->h.in && t->d > 1 && t->h * t->w * unit < SHORT_RUN;
}

/* Past the caches, if gradInput is large.  Caches are slow at fetching lines for runs that are
 * scattered (measured: 5.5 ns for a line, and 2.9 in order), so a quarter of that is large then. */
static bool prefers_nontemporal(const struct pg_task *task) {
  const int64_t bytes = task->problem.facts.grad_in_bytes;
  const bool scattered = is_scattered(&task->choice.tiling, &task->problem.facts.pool);
  return pg_prefers_nontemporal(scattered ? pg_mul_or_most(4, bytes) : bytes);
}

static void rows_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_tiling *t = &task->choice.tiling;
  const struct pg_facts *f = &task->problem.facts;
  struct avg_rows *k = scratch->room;
  int64_t planes;
  begin_quotients(&k->q, task);
  k->in = layout_of(&k->q.args->in_strides, &f->pool, false, t->interleaved);
  k->x.cells = k->y.cells = k->of_rows.cells = (struct pg_range){-1, -1};
  k->pile = is_pile(&task->problem, &planes);
  k->deep = is_deep(f, t->interleaved);
  slab_begin(&k->writer, prefers_nontemporal(task));
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(t, &f->pool, item);
    make_box(k, t, &box);
  }
  slab_flush(&k->writer);
  if (k->writer.nontemporal) fence_nontemporal();
}

const struct pg_cpu_method VARIANT(avg_rows) = {
    .name = "rows", .fits = rows_fits, .run = rows_items};
