/* SPDX-License-Identifier: Apache-2.0 */
/* Average-forward of windows of any kind, planar or channels last.
 *
 * A row of outputs is computed in two steps: the sums of all columns that its windows hold, and
 * then for each output the sum of its columns, divided (avg_forward_columns.h).  The column sums
 * are floats in scratch memory, which has zeros where windows hang over the edges.  Several rows of
 * outputs are a batch: the first step is done for all of them before the second.
 *
 * A cell is `unit` elements that follow each other: the channels of an interleaved box, else one.
 * So a row of cells is a run of elements in either layout, and so is a row of outputs.  How columns
 * are added depends on the windows along W (enum way in avg_forward_windows.h).  Where cells have
 * more than a vector of channels and windows share no columns, both steps are done in registers,
 * one output after the other.  Small planes are computed as if they were channels
 * (avg_forward_bundles.h). */
#include "cpu/kernels/avg_forward_bundles.h"
#include "cpu/kernels/avg_forward_columns.h"

enum { ITEM = 16384 /* about so many elements of cells belong to an item */ };

/* A row of outputs that is being computed: where it goes, and its divisors.  Vectors may be stored
 * up to `end`, because what they overwrite behind the row is computed later. */
struct output_row {
  element *to;
  const element *end;
  struct parts parts;
  element *scattered; /* where its outputs belong, if they are not contiguous */
};

/* What a thread has in scratch memory. */
struct rows {
  const struct pg_avg_forward *args;
  const struct pg_avg_forward *whole; /* those of the problem; args may be those of a bundle */
  struct pg_avg_forward bundle_args;
  const struct pg_facts *facts;
  bool products;    /* see divides_by_products */
  bool interleaved; /* boxes are channels that are neighbours */
  bool nontemporal; /* rows of outputs are stored past the caches */
  bool scatters;    /* outputs of a row are not contiguous */
  bool bundles;
  bool past_caches;  /* the outputs of the problem are stored past the caches */
  struct layout out; /* of the outputs of the problem */
  int64_t batched;   /* rows of outputs that the batch has so far */
  struct output_row row[BATCH_ROWS];
  struct axis_windows d, h;
  struct windows w;
  struct tables tables;
  struct line_writer writer;
  /* The sums of a row of outputs, the column sums of a batch, and its outputs if they have to be
   * copied to where they belong. */
  _Alignas(LINE) float sums[ROW_OUTPUTS + BEHIND];
  _Alignas(LINE) float columns[COLUMNS + 2 * LANES + BEHIND];
  _Alignas(LINE) element room[COLUMNS + BEHIND];
  struct bundle bundle;
};

_Static_assert(sizeof(struct rows) <= PG_SCRATCH_BYTES, "scratch memory is too small");

/* The column sums of row i of the batch. */
static inline float *columns_of(struct rows *k, int64_t i) {
  return k->columns + k->w.lead + i * k->w.pitch;
}

/* --- The ways of adding columns --- */

/* Stores the first `count` lanes of a vector of outputs; the others too where there is room. */
static inline void store_outputs(const struct output_row *row, int64_t at, floats v,
                                 int64_t count) {
  if (row->to + at + LANES <= row->end)
    store_packed(row->to + at, pack(v));
  else
    store_part(row->to + at, pack(v), count);
}

/* BY_CHANNELS: the channels of one output, from the element `at` of its row on.  Where they are
 * LANES or more, the last vector of them ends with the last one; where they are fewer, the next
 * output overwrites what is stored behind them. */
static inline __attribute__((always_inline)) void make_channels(const struct rows *k,
                                                                const struct output_row *row,
                                                                const float *columns, int64_t at,
                                                                const struct part_vectors *parts,
                                                                const int64_t taps) {
  const int64_t unit = k->w.unit;
  int64_t c = 0;
  for (; c + TWO_VECTORS <= unit; c += TWO_VECTORS) {
    element *to = row->to + at + c;
    store_two(to, average(add_channels(columns + c, unit, taps), parts, k->products), to + LANES,
              average(add_channels(columns + c + LANES, unit, taps), parts, k->products));
  }
  for (; c < unit; c += LANES) {
    if (unit >= LANES) c = least(c, unit - LANES);
    const floats sum = add_channels(columns + c, unit, taps);
    store_outputs(row, at + c, average(sum, parts, k->products), unit - c);
  }
}

/* A row of outputs BY_CHANNELS where there are LANES channels, as bundles have them. */
static void make_by_lanes(const struct rows *k, const struct output_row *row,
                          const float *columns) {
  const struct windows *w = &k->w;
  struct part_vectors parts = parts_of_one(&row->parts, 0);
  for (int64_t i = 0; i < pg_length(w->outputs); i++) {
    const float *from = columns + (int64_t)w->first[i] * LANES;
    if (!k->tables.same) parts = parts_of_one(&row->parts, i);
    const floats sum = w->count[i] == 2   ? add_taps(from, LANES, 2)
                       : w->count[i] == 3 ? add_taps(from, LANES, 3)
                                          : add_channels(from, LANES, w->count[i]);
    store_packed(row->to + i * LANES, pack(average(sum, &parts, k->products)));
  }
}

/* A row of outputs BY_CHANNELS for any number of channels. */
static void make_by_channels(const struct rows *k, const struct output_row *row,
                             const float *columns) {
  const struct windows *w = &k->w;
  struct part_vectors parts = parts_of_one(&row->parts, 0);
  for (int64_t i = 0; i < pg_length(w->outputs); i++) {
    const float *from = columns + w->first[i] * w->unit;
    const int64_t at = i * w->unit;
    if (!k->tables.same) parts = parts_of_one(&row->parts, i * k->tables.repeat);
    if (w->count[i] == 2)
      make_channels(k, row, from, at, &parts, 2);
    else if (w->count[i] == 3)
      make_channels(k, row, from, at, &parts, 3);
    else
      make_channels(k, row, from, at, &parts, w->count[i]);
  }
}

/* BY_CELLS: the channels of one output, from the element `at` of its row on. */
static inline __attribute__((always_inline)) void make_window(
    const struct rows *k, const struct output_row *row, const struct source *s, const element *from,
    int64_t at, const struct part_vectors *parts, const int64_t taps, const int64_t depth,
    const int64_t height) {
  enum { FOUR_VECTORS = 4 * LANES };
  const int64_t unit = k->w.unit, stride = k->args->in_strides.of[PG_W];
  floats sum[4];
  int64_t c = 0;
  for (; c + FOUR_VECTORS <= unit; c += FOUR_VECTORS) {
    element *to = row->to + at + c;
    add_window(s, from + c, stride, taps, depth, height, 4, sum);
    store_two(to, average(sum[0], parts, k->products), to + LANES,
              average(sum[1], parts, k->products));
    store_two(to + TWO_VECTORS, average(sum[2], parts, k->products), to + TWO_VECTORS + LANES,
              average(sum[3], parts, k->products));
  }
  for (; c < unit; c += LANES) {
    c = least(c, unit - LANES);
    add_window(s, from + c, stride, taps, depth, height, 1, sum);
    store_packed(row->to + at + c, pack(average(sum[0], parts, k->products)));
  }
}

/* A row of outputs BY_CELLS. */
static void make_by_cells(const struct rows *k, const struct output_row *row,
                          const struct source *s) {
  const struct windows *w = &k->w;
  const int64_t stride = k->args->in_strides.of[PG_W];
  struct part_vectors parts = parts_of_one(&row->parts, 0);
  for (int64_t i = 0; i < pg_length(w->outputs); i++) {
    const element *from = s->first + (w->first[i] + w->origin - w->cells.begin) * stride;
    const int64_t at = i * w->unit;
    if (!k->tables.same) parts = parts_of_one(&row->parts, i);
    if (w->count[i] == 2 && s->height == 2 && s->depth == 1)
      make_window(k, row, s, from, at, &parts, 2, 1, 2);
    else
      make_window(k, row, s, from, at, &parts, w->count[i], s->depth, s->height);
  }
}

/* A row of outputs BY_SHIFTS: the first columns of neighbouring outputs are neighbours, so a vector
 * of outputs is the sum of vectors that begin one column further each. */
static inline __attribute__((always_inline)) void shift_row(const struct rows *k,
                                                            const struct output_row *row,
                                                            const float *columns,
                                                            const int64_t taps, const bool same) {
  const int64_t unit = k->w.unit, count = pg_length(k->w.outputs) * unit;
  struct part_vectors one = parts_of_one(&row->parts, 0), two = one;
  int64_t at = 0;
  for (; at + TWO_VECTORS <= count; at += TWO_VECTORS) {
    if (!same) one = parts_at(&row->parts, at), two = parts_at(&row->parts, at + LANES);
    store_two(row->to + at, average(add_taps(columns + at, unit, taps), &one, k->products),
              row->to + at + LANES,
              average(add_taps(columns + at + LANES, unit, taps), &two, k->products));
  }
  for (; at < count; at += LANES) {
    if (!same) one = parts_at(&row->parts, at);
    const floats v = average(add_taps(columns + at, unit, taps), &one, k->products);
    store_outputs(row, at, v, least(LANES, count - at));
  }
}

static inline __attribute__((always_inline)) void shift_rows(struct rows *k, const int64_t taps,
                                                             const bool same) {
  for (int64_t i = 0; i < k->batched; i++) shift_row(k, &k->row[i], columns_of(k, i), taps, same);
}

static void make_by_shifts(struct rows *k) {
  const int64_t taps = k->w.taps;
  if (taps == 3 && k->tables.same)
    shift_rows(k, 3, true);
  else if (taps == 3)
    shift_rows(k, 3, false);
  else
    shift_rows(k, taps, k->tables.same);
}

/* A row of outputs BY_PERMUTES where windows slide: all groups have the same offsets. */
static inline __attribute__((always_inline)) void pick_sliding(const struct rows *k,
                                                               const struct output_row *row,
                                                               const float *columns,
                                                               const int64_t taps) {
  const struct windows *w = &k->w;
  const ints offset = load_i32(w->offset);
  const int64_t count = pg_length(w->outputs) * w->unit, group = w->group * w->unit;
  const int64_t step = w->group * k->facts->pool.w.stride * w->unit;
  struct part_vectors parts = parts_of_one(&row->parts, 0);
  for (int64_t at = 0; at < count; at += group, columns += step) {
    if (!k->tables.same) parts = parts_at(&row->parts, at);
    const floats sum = add_picked(columns, offset, offset, w->unit, taps, true);
    store_outputs(row, at, average(sum, &parts, k->products), least(group, count - at));
  }
}

/* The same where windows are adaptive: each group has its own offsets. */
static void pick_adaptive(const struct rows *k, const struct output_row *row,
                          const float *columns) {
  const struct windows *w = &k->w;
  struct part_vectors parts = parts_of_one(&row->parts, 0);
  for (int64_t g = 0; g < w->groups; g++) {
    const int64_t first = w->group_first[g], at = first * w->unit;
    if (!k->tables.same) parts = parts_at(&row->parts, at);
    const floats sum =
        add_picked(columns + w->first[first] * w->unit, load_i32(w->offset + g * LANES),
                   load_i32(w->taps_of + g * LANES), w->unit, w->taps, false);
    store_outputs(row, at, average(sum, &parts, k->products),
                  (w->group_first[g + 1] - first) * w->unit);
  }
}

static inline __attribute__((always_inline)) void pick_rows(struct rows *k, const int64_t taps) {
  for (int64_t i = 0; i < k->batched; i++) pick_sliding(k, &k->row[i], columns_of(k, i), taps);
}

static void make_by_permutes(struct rows *k) {
  if (k->facts->pool.w.kernel == 0)
    for (int64_t i = 0; i < k->batched; i++) pick_adaptive(k, &k->row[i], columns_of(k, i));
  else if (k->w.taps == 2)
    pick_rows(k, 2);
  else if (k->w.taps == 3)
    pick_rows(k, 3);
  else
    pick_rows(k, k->w.taps);
}

/* A row of outputs BY_PARTS: the sums of all windows first, then vectors of them are divided. */
static void make_by_parts(struct rows *k, const struct output_row *row, const float *columns) {
  const struct windows *w = &k->w;
  const int64_t count = pg_length(w->outputs);
  for (int64_t i = 0; i < count; i++)
    k->sums[i] = add_part_vectors(columns + w->first[i], w->count[i]);
  struct part_vectors parts = parts_of_one(&row->parts, 0);
  for (int64_t at = 0; at < count; at += LANES) {
    if (!k->tables.same) parts = parts_at(&row->parts, at);
    const int64_t some = least(LANES, count - at);
    store_outputs(row, at, average(load_part_f32(k->sums + at, some), &parts, k->products), some);
  }
}

/* Copies outputs that are not contiguous to where they belong. */
static void scatter_outputs(const struct rows *k, const struct output_row *row) {
  const int64_t stride = k->args->out_strides.of[PG_W], unit = k->w.unit;
  for (int64_t i = 0; i < pg_length(k->w.outputs); i++)
    memcpy(row->scattered + i * stride, row->to + i * unit, (size_t)unit * sizeof(element));
}

/* Computes the rows of outputs of the batch from the sums of their columns, unless they were
 * computed BY_CELLS, and empties it. */
static void make_batch(struct rows *k) {
  const struct windows *w = &k->w;
  const int64_t count = k->batched;
  if (count == 0) return;
  if (w->way == BY_SHIFTS)
    make_by_shifts(k);
  else if (w->way == BY_PERMUTES)
    make_by_permutes(k);
  else if (w->way != BY_CELLS)
    for (int64_t i = 0; i < count; i++) {
      if (w->way == BY_CHANNELS && w->unit == LANES)
        make_by_lanes(k, &k->row[i], columns_of(k, i));
      else if (w->way == BY_CHANNELS)
        make_by_channels(k, &k->row[i], columns_of(k, i));
      else
        make_by_parts(k, &k->row[i], columns_of(k, i));
    }
  if (k->scatters)
    for (int64_t i = 0; i < count; i++) scatter_outputs(k, &k->row[i]);
  if (k->nontemporal)
    writer_advance(&k->writer, count * pg_length(w->outputs) * w->unit * (int64_t)sizeof(element));
  k->batched = 0;
}

/* --- Rows of outputs --- */

/* The divisors of a row of outputs whose windows have this product of extents along D and H.  Where
 * there is no room for another table, the rows that use the old ones are computed first. */
static inline struct parts table_of(struct rows *k, int64_t outer) {
  struct tables *t = &k->tables;
  if ((t->count == 0 || t->outer[t->latest] != outer) && !find_table(t, k->args->divisor, outer)) {
    make_batch(k);
    t->count = 0;
    find_table(t, k->args->divisor, outer);
  }
  const int64_t at = t->latest * t->pitch;
  return (struct parts){t->divisor + at, t->high + at, t->low + at};
}

/* Are all outputs of the box contiguous, and those of the next box behind them? */
static bool is_one_run(const struct rows *k, const struct pg_box *b) {
  return k->out.all && k->w.unit == k->out.unit && pg_length(b->w) == k->facts->pool.w.out;
}

/* Decides where a row of outputs that belong at `to` is computed: there, or in scratch memory if it
 * is then copied, or where the writer of whole lines wants it. */
static inline void place_row(struct rows *k, struct output_row *row, element *to,
                             const element *end) {
  const int64_t count = pg_length(k->w.outputs) * k->w.unit;
  row->to = row->scattered = to;
  row->end = end != NULL ? end : to + count;
  if (!k->nontemporal && !k->scatters) return;
  if (!k->nontemporal)
    row->to = k->room + k->batched * count;
  else if (k->batched > 0)
    row->to = k->row[k->batched - 1].to + count;
  else
    row->to = (element *)(void *)writer_place(&k->writer, to);
  row->end = row->to + count + LANES;
}

/* The rows of outputs of one plane, or of the channels of a box. */
struct plane_rows {
  const element *in;
  element *out;
  const element *end; /* of the outputs of the box if they are one run, else NULL */
};

/* Adds a row of outputs to the batch: adds up its columns. */
static inline void add_row(struct rows *k, const struct plane_rows *p, int64_t od, int64_t oh) {
  const int64_t *is = k->args->in_strides.of, *os = k->args->out_strides.of;
  const struct axis_windows *d = &k->d, *h = &k->h;
  const struct source s = {.first = p->in + d->first[od] * is[PG_D] + h->first[oh] * is[PG_H] +
                                    k->w.cells.begin * is[PG_W],
                           .depth = d->count[od],
                           .height = h->count[oh],
                           .d_stride = is[PG_D],
                           .h_stride = is[PG_H],
                           .ahead = k->bundles ? 0 : AHEAD};
  element *to = p->out + (d->outputs.begin + od) * os[PG_D] + (h->outputs.begin + oh) * os[PG_H] +
                k->w.outputs.begin * os[PG_W];
  const struct parts parts = table_of(k, d->extent[od] * h->extent[oh]);
  struct output_row *row = &k->row[k->batched];
  place_row(k, row, to, p->end);
  row->parts = parts;
  if (k->w.way == BY_CELLS)
    make_by_cells(k, row, &s);
  else
    add_columns(&k->w, &s, is[PG_W], k->interleaved, columns_of(k, k->batched));
  if (++k->batched == k->w.batch) make_batch(k);
}

static void make_plane(struct rows *k, const struct plane_rows *p,
                       const struct pg_scratch *scratch) {
  for (int64_t od = 0; od < pg_length(k->d.outputs); od++)
    for (int64_t oh = 0; oh < pg_length(k->h.outputs) && !pg_is_stopped(scratch); oh++)
      add_row(k, p, od, oh);
}

/* --- Boxes --- */

/* Computes the outputs of a bundle of planes. */
static void make_bundle(struct rows *k, const struct pg_range *planes,
                        const struct pg_scratch *scratch) {
  const struct pg_facts *f = k->facts;
  struct bundle *b = &k->bundle;
  const struct plane_rows bundle = {b->cells, b->outputs, b->outputs + f->outputs * LANES};
  int64_t begin[LANES];
  find_planes(&k->whole->in_strides, &f->pool, planes, begin);
  bundle_cells(b, k->whole->in, f->cells, begin);
  make_plane(k, &bundle, scratch);
  make_batch(k);
  find_planes(&k->whole->out_strides, &f->pool, planes, begin);
  write_bundle(b, k->whole->out, f->outputs, pg_length(*planes), begin, k->past_caches);
}

/* Computes the planes of a box one after the other, or together if they are interleaved. */
static void make_planes_of(struct rows *k, const struct pg_box *b,
                           const struct pg_scratch *scratch) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct pg_strides *in = &k->args->in_strides, *out = &k->args->out_strides;
  const element *end = NULL;
  for (int64_t i = 0; i < b->planes && !pg_is_stopped(scratch); i += k->w.unit) {
    const int64_t n = (b->first + i) / p->c, c = (b->first + i) % p->c;
    struct plane_rows plane = {(const element *)k->args->in + pg_offset(in, n, c, 0, 0, 0),
                               (element *)k->args->out + pg_offset(out, n, c, 0, 0, 0), NULL};
    if (i == 0 && is_one_run(k, b))
      end = plane.out + pg_offset(out, 0, 0, b->d.begin, b->h.begin, b->w.begin) +
            b->planes * b->cells;
    plane.end = end;
    make_plane(k, &plane, scratch);
  }
  make_batch(k);
}

/* Makes the tables for the outputs of a box along W. */
static void begin_width(struct rows *k, struct pg_range outputs, int64_t unit) {
  const struct pg_axis *axis = &k->facts->pool.w;
  struct windows *w = &k->w;
  make_windows(w, axis, outputs, unit);
  memset(k->columns, 0, (size_t)(w->batch * w->pitch + LANES + BEHIND) * sizeof *k->columns);
  begin_tables(&k->tables, k->args, axis, w);
  k->scatters = pg_length(outputs) > 1 && k->args->out_strides.of[PG_W] != unit;
}

static void make_box(struct rows *k, const struct pg_box *b, const struct pg_scratch *scratch) {
  const struct pg_pooling *p = &k->facts->pool;
  const int64_t unit = k->bundles ? LANES : k->interleaved ? b->planes : 1;
  make_axis_windows(k->args, &p->d, b->d, &k->d);
  make_axis_windows(k->args, &p->h, b->h, &k->h);
  if (!is_same_range(b->w, k->w.outputs) || unit != k->w.unit) begin_width(k, b->w, unit);
  if (!k->bundles) {
    make_planes_of(k, b, scratch);
    return;
  }
  for (int64_t i = 0; i < b->planes && !pg_is_stopped(scratch); i += LANES) {
    const struct pg_range planes = {b->first + i, b->first + least(i + LANES, b->planes)};
    make_bundle(k, &planes, scratch);
  }
}

/* --- The method --- */

static void rows_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  const struct pg_pooling *p = &facts->pool, grid = pg_output_grid(p);
  const int64_t out_bytes =
      pg_mul_or_most(pg_mul_or_most(facts->planes, facts->outputs), (int64_t)sizeof(element));
  struct rows *k = scratch->room;
  k->args = k->whole = &task->problem.args.avg_forward;
  k->facts = facts;
  k->products = divides_by_products(&task->problem);
  k->interleaved = task->choice.tiling.interleaved;
  k->out = layout_of(&k->args->out_strides, p, true, k->interleaved);
  k->nontemporal = pg_prefers_nontemporal(out_bytes) && k->out.all &&
                   task->choice.tiling.w == p->w.out &&
                   (!k->interleaved || task->choice.tiling.planes == p->c);
  k->bundles = task->choice.tiling.planes > 1 && !k->interleaved;
  k->past_caches = k->nontemporal;
  if (k->bundles) {
    k->nontemporal = false;
    k->bundle_args = *k->whole;
    k->bundle_args.in_strides = strides_of_bundle(&p->h, &p->w, false);
    k->bundle_args.out_strides = strides_of_bundle(&p->h, &p->w, true);
    k->args = &k->bundle_args;
  }
  k->batched = 0;
  k->d.outputs = k->h.outputs = k->w.outputs = (struct pg_range){-1, -1};
  k->tables.same = has_one_extent(k->args, &p->d) && has_one_extent(k->args, &p->h) &&
                   has_one_extent(k->args, &p->w);
  writer_clear(&k->writer);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, &grid, item);
    make_box(k, &box, scratch);
  }
  writer_flush(&k->writer);
  if (k->past_caches) fence_nontemporal();
}

/* How many of `length` rows or slices a box gets if about so many are wanted. */
static int64_t part_for(int64_t length, int64_t wanted) {
  return most(1, least(length, least(wanted, PG_BOX_ROWS)));
}

static bool slides_or_adapts(const struct pg_axis *axis) {
  return axis->kernel <= 1 || axis->dilation == 1;
}

static bool forward_rows_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool, grid = pg_output_grid(p);
  const bool interleaved = f->neighbours;
  if (pg_is_global(p) || !slides_or_adapts(&p->d) || !slides_or_adapts(&p->h) ||
      !slides_or_adapts(&p->w))
    return false;
  struct pg_tiling t = {.interleaved = interleaved, .planes = 1, .d = 1, .w = p->w.out};
  if (interleaved) t.planes = p->c;
  if (!cut_rows(&p->w, interleaved, &t)) return false;
  const int64_t row = cells_of(&p->w, t.w) * t.planes;
  const int64_t rows = ITEM / row;
  t.h = part_for(p->h.out, rows * p->h.out / p->h.in);
  if (f->h_windows > 1) t.h = part_for(p->h.out, most(t.h, 4));
  if (t.h == p->h.out && t.w == p->w.out)
    t.d = part_for(p->d.out, rows * p->d.out / (p->h.in * p->d.in));
  if (may_bundle(f)) {
    const int64_t bundles = most(1, ITEM / LANES / most(f->cells, f->outputs));
    t = (struct pg_tiling){.planes = bundles * LANES, .d = p->d.out, .h = p->h.out, .w = p->w.out};
  }
  *tiling = pg_tile_boxes(&grid, &t);
  return true;
}

const struct pg_cpu_method VARIANT(avg_forward_rows) = {
    .name = "rows", .fits = forward_rows_fits, .run = rows_items};
