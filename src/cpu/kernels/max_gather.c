/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by comparing, for tensors whose channels are neighbours in memory and cells that lie
 * in few windows.
 *
 * LANES channels of a cell are computed at once: the indices that each output in whose window the
 * cell lies has in these channels are compared with the cell's position, and the gradients of those
 * that are equal to it are added.  A comparison costs two loads and two operations for LANES
 * channels, where scattering costs two or three cycles for each output of each channel.
 *
 * A box has some channels of whole rows.  Rows of outputs are staged when the first row of cells
 * needs them: the low halves of their indices, which are enough to tell the cells of a window
 * apart, and their gradients.  Of each slice of outputs in whose windows the cells lie there is
 * room for the rows that one row of cells needs, or, so that a box may have several slices of
 * cells, for all of its rows.
 *
 * Where the number of windows changes from cell to cell, all cells look at as many outputs as one
 * may need: an output in whose window a cell does not lie cannot name it.
 *
 * If an index lies outside its window, the box is scattered. */
#include "core/checked.h"
#include "cpu/kernels/max_staging.h"

/* So few windows of each cell always pay. */
#define MOST_MEAN_WINDOWS 2.5
#define TAPS_OF_AN_OUTPUT 20.0
/* With more windows of a cell along W, in the mean, the number of windows changes often. */
#define RUNS_ARE_SHORT 1.4

enum {
  PLACES = 76 << 10, /* for staged outputs, times channels */
  /* What a cell takes to begin must pay (measured).  Where there are few outputs, adding them costs
   * little, and least in FLOAT, where no sums are rounded. */
  DENSE = 5, /* cells for each output: outputs are not few */
  LEAST_CHANNELS = 56,
  LEAST_IF_FEW_OUTPUTS = ELEMENT_IS_FLOAT ? 512 : 160,
  CUT_CHANNELS = 32,             /* channels are cut into multiples of this: whole lines */
  MOST_CELLS = 8192,             /* of a box: so many can be scattered plane by plane */
  MOST_CELLS_OF_PLANE = 1 << 24, /* so large are numbers that remainder_of takes */
  LOW_HALVES = 65536,            /* numbers of 16 bits */
  MOST_SLICES = 64,              /* of outputs that are staged at once */
  MOST_SOURCES = 256,            /* the most outputs in whose windows a cell may lie */
  ITEMS = 16,                    /* that there should be, for threads to share */
  SOON = 1024                    /* outputs that are prefetched */
};

/* A slice of outputs of which rows are staged. */
struct staged_slice {
  int64_t od;   /* -1: none */
  int64_t rows; /* those before this one have been staged; the latest of them are there */
};

struct gather {
  const struct pg_task *task;
  const struct pg_scratch *scratch; /* the memory in which this struct is */
  const struct pg_pooling *pool;
  const struct pg_max_backward *args;
  struct grad_in grad_in;
  int64_t planes;       /* channels of the box */
  int64_t pitch;        /* the places of a row of outputs */
  int64_t slices, rows; /* of outputs for which there are places */
  int64_t cleared;      /* places that have a value, if only 0 */
  bool alike;           /* all cells are computed as if they lay in as many windows */
  struct staged_slice staged[MOST_SLICES];
  struct pg_box_cover cover;
  struct width_windows windows;
  struct line_writer writer;
  _Alignas(LINE) uint16_t index[PLACES + TWO_VECTORS];
  _Alignas(LINE) element grad[PLACES + TWO_VECTORS];
};
_Static_assert(sizeof(struct gather) <= PG_SCRATCH_METHOD, "gathering needs more scratch");

/* --- Windows --- */

/* The most cells of an axis that a window holds. */
static int64_t longest_window(const struct pg_axis *axis) {
  const int64_t length =
      axis->kernel == 0 ? pg_ceil_div(axis->in, axis->out) + 1 : pg_window_span(axis) + 1;
  return least(axis->in, length);
}

static int64_t common_divisor(int64_t a, int64_t b) {
  return b == 0 ? a : common_divisor(b, a % b);
}

/* How many windows a cell lies in along an axis, in the mean.  Two adaptive windows share a cell
 * unless one ends where the other begins. */
static double mean_windows(const struct pg_axis *axis) {
  if (axis->kernel > 0) return (double)axis->out * (double)longest_window(axis) / (double)axis->in;
  const int64_t shared = axis->out - common_divisor(axis->in, axis->out);
  return (double)(axis->in + shared) / (double)axis->in;
}

/* --- Staging --- */

/* The channels of an output, and its window. */
struct output {
  const element *grad;
  const void *index;
  int32_t first; /* the position of the window's first cell */
  int32_t width; /* the cells that the window holds along W */
};

/* The windows of a row of outputs hold so many slices and rows.  What is left of an index less the
 * position of the window's first cell must be below the cells of these, and without whole slices
 * and whole rows, where it is the distance along W, below the width of the window. */
struct bounds {
  int64_t slices, rows;
  ints slice, row;           /* cells */
  ints in_slices, in_rows;   /* cells of all slices, and of all rows */
  floats per_slice, per_row; /* 1 / cells, or little less */
};

static struct bounds bounds_of(const struct pg_pooling *p, const struct pg_row_windows *r) {
  const float less = 1 - 0x1p-22f;
  const int64_t slice = p->h.in * p->w.in, slices = pg_length(r->d), rows = pg_length(r->h);
  return (struct bounds){.slices = slices,
                         .rows = rows,
                         .slice = all_i((int32_t)slice),
                         .row = all_i((int32_t)p->w.in),
                         .in_slices = all_i((int32_t)(slices * slice)),
                         .in_rows = all_i((int32_t)(rows * p->w.in)),
                         .per_slice = all(1 / (float)slice * less),
                         .per_row = all(1 / (float)p->w.in * less)};
}

/* Do indices lie in their window?  This is what is left of them.  In one slice and few rows, which
 * the compiler knows, multiples of rows are subtracted. */
static inline __attribute__((always_inline)) truths lie_in(const struct bounds *b, ints left,
                                                           ints width, const int64_t rows) {
  if (rows > 0) return below(folded(left, b->row, rows), width);
  truths fine = below(left, b->in_slices);
  if (b->slices > 1) left = remainder_of(left, b->per_slice, b->slice);
  if (b->rows > 1) {
    fine = both(fine, below(left, b->in_rows));
    left = remainder_of(left, b->per_row, b->row);
  }
  return both(fine, below(left, width));
}

/* Stages an output's channels.  0 is added to the gradients, which changes -0.  True in the lanes
 * whose indices all lie in the window; the high halves of 64-bit indices are collected. */
static inline __attribute__((always_inline)) truths stage_output(
    struct gather *k, const struct output *o, const struct bounds *b, const bool is_i64,
    const int64_t rows, int64_t at, ints *high) {
  const ints first = all_i(o->first), width = all_i(o->width);
  truths fine = below(all_i(0), all_i(1));
  int64_t c = 0;
  ints x;
  for (; c + LANES <= k->planes; c += LANES) {
    x = load_index(o->index, is_i64, c, SOON, high);
    __builtin_prefetch(o->grad + c + SOON);
    fine = both(fine, lie_in(b, sub_i(x, first), width, rows));
    store_words(k->index + at + c, x);
    store_packed(k->grad + at + c, pack_exact(add(zeros(), load_elements(o->grad + c))));
  }
  const int64_t left = k->planes - c;
  if (left == 0) return fine;
  if (!load_last_index(o->index, is_i64, c, left, &x)) return none();
  store_words(k->index + at + c, x);
  store_packed(k->grad + at + c, pack_exact(add(zeros(), load_part(o->grad + c, left))));
  return every(lie_in(b, sub_i(x, first), width, rows), left) ? fine : none();
}

static inline __attribute__((always_inline)) bool stage_outputs_of_type(
    struct gather *k, const struct output_row *row, const struct pg_row_windows *r, int64_t at,
    const bool is_i64, const int64_t rows) {
  const struct pg_pooling *p = k->pool;
  const struct bounds b = bounds_of(p, r);
  const int64_t top = (r->d.begin * p->h.in + r->h.begin) * p->w.in;
  const int64_t grad = k->args->out_strides.of[PG_W];
  const int64_t index = k->args->index_strides.of[PG_W] * (is_i64 ? 8 : 4);
  struct output o = {.grad = row->grad, .index = row->index};
  truths fine = below(all_i(0), all_i(1));
  ints high = all_i(0);
  for (int64_t ow = 0; ow < p->w.out; ow++, at += k->planes) {
    o.first = (int32_t)top + k->windows.start[ow];
    o.width = k->windows.length[ow];
    fine = both(fine, stage_output(k, &o, &b, is_i64, rows, at, &high));
    o.grad += grad;
    o.index = (const char *)o.index + index;
  }
  return every(fine, LANES) && high_halves_are_zero(high);
}

static inline __attribute__((always_inline)) bool stage_outputs_of_rows(
    struct gather *k, const struct output_row *row, const struct pg_row_windows *r, int64_t at,
    const bool is_i64) {
  const int64_t rows = pg_length(r->d) == 1 ? pg_length(r->h) : 0;
  return rows == 1   ? stage_outputs_of_type(k, row, r, at, is_i64, 1)
         : rows == 2 ? stage_outputs_of_type(k, row, r, at, is_i64, 2)
         : rows == 3 ? stage_outputs_of_type(k, row, r, at, is_i64, 3)
                     : stage_outputs_of_type(k, row, r, at, is_i64, 0);
}

/* Stages the row (od, oh) of outputs.  False when an index lies outside its window. */
static bool stage_outputs(struct gather *k, const struct pg_max_plane *t, int64_t od, int64_t oh) {
  const struct pg_row_windows r = pg_row_windows_of(k->pool, od, oh);
  const struct output_row row = output_row_of(t, od, oh, (struct pg_range){0, k->pool->w.out});
  const int64_t at = (od % k->slices * k->rows + oh % k->rows) * k->pitch;
  if (pg_length(r.d) < 1 || pg_length(r.h) < 1) return false; /* windows in the padding */
  return k->args->index_bytes == 8 ? stage_outputs_of_rows(k, &row, &r, at, true)
                                   : stage_outputs_of_rows(k, &row, &r, at, false);
}

/* Stages the rows of outputs, from the first to the one before `end`, in whose windows a row of
 * cells lies, unless they are there. */
static bool stage_rows(struct gather *k, const struct pg_max_plane *t, int64_t od, int64_t first,
                       int64_t end) {
  struct staged_slice *s = &k->staged[od % k->slices];
  if (s->od != od) *s = (struct staged_slice){od, first};
  for (; s->rows < end; s->rows++)
    if (!stage_outputs(k, t, od, s->rows)) return false;
  return true;
}

/* --- Cells --- */

/* Outputs that are staged soon, and how much of them is prefetched for each cell: memory is read
 * while cells are computed, too. */
struct soon {
  const char *grad, *index;
  int64_t grad_bytes, index_bytes;
};

static inline void prefetch_soon(const struct soon *s, int64_t w) {
  if (s->grad == NULL) return; /* nothing is prefetched in this way */
  const char *grad = s->grad + w * s->grad_bytes, *index = s->index + w * s->index_bytes;
  for (int64_t i = 0; i < s->grad_bytes; i += LINE) __builtin_prefetch(grad + i, 0, 2);
  for (int64_t i = 0; i < s->index_bytes; i += LINE) __builtin_prefetch(index + i, 0, 2);
}

/* The outputs in whose windows a row of cells lies: where each row of them is staged, and how many
 * channels they have. */
struct row_sources {
  const element *grad;
  const uint16_t *index;
  int64_t planes, rows;
  int64_t last; /* the last output of a row that may be the first of a cell */
  struct soon soon;
  int32_t at[MOST_SOURCES];
};

/* A cell: its position, and the place in each row of the first output in whose window it lies. */
struct cell {
  words position;
  int64_t place;
};

/* Adds LANES channels, from `c` on, of the outputs that name the cell. */
static inline __attribute__((always_inline)) floats sum_of(const struct row_sources *r,
                                                           const struct cell *x, const int64_t rows,
                                                           const int64_t count, int64_t c) {
  floats sum = zeros();
  for (int64_t i = 0; i < rows; i++) {
    int64_t at = r->at[i] + x->place + c;
    for (int64_t j = 0; j < count; j++, at += r->planes)
      sum = add_equal_words(sum, load_elements(r->grad + at), r->index + at, x->position);
  }
  return sum;
}

/* Computes TWO_VECTORS channels from `c` on.  What one output gives is neither added nor rounded.
 */
static inline __attribute__((always_inline)) void make_channels(const struct row_sources *r,
                                                                const struct cell *x,
                                                                const int64_t rows,
                                                                const int64_t count, int64_t c,
                                                                element *to) {
  const int64_t at = r->at[0] + x->place + c;
  if (rows == 1 && count == 1)
    move_equal(to, r->grad + at, r->index + at, x->position);
  else
    store_two(to, sum_of(r, x, rows, count, c), to + LANES, sum_of(r, x, rows, count, c + LANES));
}

/* Computes the channels of a cell; so many elements from `to` on may be written. */
static inline __attribute__((always_inline)) void make_cell(const struct row_sources *r,
                                                            const struct cell *x,
                                                            const int64_t rows, const int64_t count,
                                                            element *to, int64_t room) {
  int64_t c = 0;
  for (; c < r->planes && c + TWO_VECTORS <= room; c += TWO_VECTORS)
    make_channels(r, x, rows, count, c, to + c);
  for (; c < r->planes; c += LANES)
    store_channels(to + c, pack(sum_of(r, x, rows, count, c)), least(LANES, r->planes - c));
}

/* Where cells of a row go: what lies behind a cell is stored later, if it is the next one, or there
 * is room behind the last one. */
struct cells_to {
  element *to;
  int64_t stride, room;
};

/* Computes the cells `w` of a row, which lie in as many windows.  The first cell of the row has
 * this position. */
static inline __attribute__((always_inline)) void make_run(const struct row_sources *r,
                                                           const int32_t *first, int64_t position,
                                                           struct pg_range w, struct cells_to t,
                                                           const int64_t rows,
                                                           const int64_t count) {
  const int64_t planes = r->planes;
  for (; w.begin < w.end; w.begin++, t.to += t.stride) {
    const struct cell x = {all_words((int32_t)(position + w.begin)),
                           least(first[w.begin], r->last) * planes};
    const int64_t cells = t.stride == planes ? pg_length(w) : 1;
    prefetch_soon(&r->soon, w.begin);
    if (rows * count == 0)
      memset(t.to, 0, (size_t)planes * sizeof *t.to);
    else
      make_cell(r, &x, rows, count, t.to, cells * planes + t.room);
  }
}

/* The same; of the usual numbers of windows the compiler knows which they are. */
static void make_usual_run(const struct row_sources *r, const int32_t *first, int64_t position,
                           struct pg_range w, struct cells_to t, int64_t count) {
  const int64_t rows = r->rows;
  if (rows == 1 && count == 1)
    make_run(r, first, position, w, t, 1, 1);
  else if (rows == 1 && count == 2)
    make_run(r, first, position, w, t, 1, 2);
  else if (rows == 2 && count == 1)
    make_run(r, first, position, w, t, 2, 1);
  else if (rows == 2 && count == 2)
    make_run(r, first, position, w, t, 2, 2);
  else if (rows == 3 && count == 3)
    make_run(r, first, position, w, t, 3, 3);
  else
    make_run(r, first, position, w, t, rows, count);
}

/* The same for cells that lie in any number of windows.  If `alike`, they are computed as if they
 * all lay in as many windows as one can: what outputs name no cell of their windows costs less than
 * runs of one or two cells. */
static void make_cells(const struct pg_cover *m, bool alike, struct row_sources *r,
                       int64_t position, struct pg_range w, struct cells_to t) {
  const int64_t end = w.end;
  r->last = pg_length(m->outputs) - (alike ? m->most : 0);
  if (alike) {
    make_usual_run(r, m->first, position, w, t, m->most);
    return;
  }
  for (; w.begin < end; t.to += pg_length(w) * t.stride, w.begin = w.end) {
    const int64_t count = m->count[w.begin];
    for (w.end = w.begin + 1; w.end < end && m->count[w.end] == count;) w.end++;
    make_usual_run(r, m->first, position, w, t, count);
  }
}

/* Computes the row of cells that begins at `to`, past the caches: some at once in the room of the
 * writer. */
static void make_cells_nontemporal(struct gather *k, struct row_sources *r, int64_t position,
                                   element *to) {
  const int64_t width = k->pool->w.in, stride = k->grad_in.strides->of[PG_W];
  const int64_t bytes = r->planes * (int64_t)sizeof(element);
  const int64_t at_once = stride == r->planes ? most(1, WRITER_FULL / 2 / bytes) : 1;
  for (int64_t w = 0; w < width; w += at_once) {
    const struct pg_range some = {w, least(width, w + at_once)};
    element *room = (element *)(void *)writer_place(&k->writer, to + w * stride);
    make_cells(&k->cover.w, k->alike, r, position, some,
               (struct cells_to){room, r->planes, TWO_VECTORS});
    writer_advance(&k->writer, pg_length(some) * bytes);
  }
}

/* The part of the row of outputs behind this one that is prefetched with row h of cells. */
static struct soon soon_of(const struct gather *k, const struct pg_max_plane *t, int64_t od,
                           int64_t oh, int64_t h) {
  const struct pg_pooling *p = k->pool;
  const int64_t parts = most(1, p->h.in / p->h.out), cells = p->w.in * parts;
  const int64_t outputs = p->w.out * k->planes;
  const int64_t bytes = outputs * k->args->index_bytes;
  if (oh >= p->h.out || outputs <= SOON || bytes < cells * LINE) return (struct soon){.grad = NULL};
  const struct output_row o = output_row_of(t, od, oh, (struct pg_range){0, p->w.out});
  const int64_t grad = pg_ceil_div(outputs * (int64_t)sizeof *o.grad, cells);
  const int64_t index = pg_ceil_div(bytes, cells), at = h % parts;
  return (struct soon){.grad = (const char *)o.grad + at * p->w.in * grad,
                       .index = (const char *)o.index + at * p->w.in * index,
                       .grad_bytes = grad,
                       .index_bytes = index};
}

/* Computes row h of slice d of the box, counted from its first.  False when an index lies outside
 * its window. */
static bool make_row(struct gather *k, const struct pg_max_plane *t, int64_t d, int64_t h,
                     element *to) {
  const struct pg_pooling *p = k->pool;
  const struct pg_cover *md = &k->cover.d, *mh = &k->cover.h;
  const int64_t first = mh->outputs.begin + mh->first[h], end = first + mh->count[h];
  struct row_sources r = {.grad = k->grad, .index = k->index, .planes = k->planes, .rows = 0};
  for (int64_t i = 0; i < md->count[d]; i++) {
    const int64_t od = md->outputs.begin + md->first[d] + i;
    if (!stage_rows(k, t, od, first, end)) return false;
    for (int64_t oh = first; oh < end; oh++)
      r.at[r.rows++] = (int32_t)((od % k->slices * k->rows + oh % k->rows) * k->pitch);
  }
  if (md->count[d] > 0 && p->d.out == 1) r.soon = soon_of(k, t, md->outputs.begin, end, h);
  const int64_t row = (t->box->d.begin + d) * p->h.in + t->box->h.begin + h;
  const int64_t position = row * p->w.in;
  if (k->grad_in.nontemporal)
    make_cells_nontemporal(k, &r, position, to);
  else
    make_cells(&k->cover.w, k->alike, &r, position, k->cover.w.cells,
               (struct cells_to){to, k->grad_in.strides->of[PG_W], 0});
  return true;
}

/* --- Boxes --- */

/* Vectors at the end of a row read what lies behind it; plain C even decides by it. */
static void clear_places(struct gather *k) {
  const int64_t end = k->slices * k->rows * k->pitch + TWO_VECTORS;
  if (end <= k->cleared) return;
  memset(k->grad + k->cleared, 0, (size_t)(end - k->cleared) * sizeof *k->grad);
  memset(k->index + k->cleared, 0, (size_t)(end - k->cleared) * sizeof *k->index);
  k->cleared = end;
}

/* False when an index lies outside its window. */
static bool gather_box(struct gather *k, const struct pg_box *box) {
  const struct pg_max_plane t = pg_max_plane_of(k->task, box, box->first, false);
  const int64_t *s = k->grad_in.strides->of;
  pg_box_cover_make(&k->cover, k->pool, box, 0);
  k->planes = box->planes;
  k->pitch = k->pool->w.out * k->planes + LANES;
  for (int64_t i = 0; i < k->slices; i++) k->staged[i].od = -1;
  clear_places(k);
  element *to = first_cell(&k->grad_in, box, 0);
  for (int64_t d = 0; d < pg_length(box->d); d++)
    for (int64_t h = 0; h < pg_length(box->h) && !pg_is_stopped(k->scratch); h++)
      if (!make_row(k, &t, d, h, to + d * s[PG_D] + h * s[PG_H])) return false;
  return true;
}

/* Are all rows of a slice of outputs staged, so that a box may have several slices of cells? */
static bool stages_slices(const struct pg_facts *f, int64_t planes) {
  const int64_t rows = pg_mul_or_most(f->d_windows, f->pool.h.out);
  return f->pool.h.in <= PG_BOX_ROWS &&
         pg_mul_or_most(rows, pg_mul_or_most(f->pool.w.out, planes) + LANES) <= PLACES;
}

static void gather_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  struct gather *k = scratch->room;
  k->task = task;
  k->scratch = scratch;
  k->pool = &facts->pool;
  k->args = &task->problem.args.max_backward;
  k->grad_in = grad_in_of(facts, k->args->grad_in, &k->args->in_strides);
  k->cleared = 0;
  k->slices = most(1, facts->d_windows);
  k->rows =
      stages_slices(facts, task->choice.tiling.planes) ? k->pool->h.out : most(1, facts->h_windows);
  k->alike = facts->cells <= LOW_HALVES && mean_windows(&k->pool->w) >= RUNS_ARE_SHORT;
  writer_clear(&k->writer);
  pg_box_cover_begin(&k->cover);
  clear_windows(&k->windows);
  make_windows(&k->windows, &k->pool->w, (struct pg_range){0, k->pool->w.out});
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, k->pool, item);
    if (gather_box(k, &box)) continue;
    writer_flush(&k->writer); /* the same cells are now written again */
    if (k->grad_in.nontemporal) fence_nontemporal();
    VARIANT(scatter_box)(task, &box, scratch);
  }
  writer_flush(&k->writer);
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

/* Have the positions of a window's cells different low halves?  Those of one slice do if there are
 * fewer than 65536 from the first to the last, and those of two slices if the slices are further
 * apart than that, seen in their low halves. */
static bool low_halves_differ(const struct pg_pooling *p) {
  const int64_t span = (longest_window(&p->h) - 1) * p->w.in + longest_window(&p->w);
  if (span > LOW_HALVES) return false;
  for (int64_t apart = 1; apart < longest_window(&p->d); apart++) {
    const int64_t distance = apart * p->h.in * p->w.in % LOW_HALVES;
    if (least(distance, LOW_HALVES - distance) < span) return false;
  }
  return true;
}

/* As many channels as there are places for; 0 where these are too few. */
static int64_t channels_at_once(const struct pg_facts *f) {
  const int64_t rows = pg_mul_or_most(f->d_windows, f->h_windows);
  const int64_t most_channels = (PLACES / most(1, rows) - LANES) / f->pool.w.out;
  if (f->pool.c <= most_channels) return f->pool.c;
  const int64_t parts = pg_ceil_div(f->pool.c, most(1, most_channels));
  const int64_t even = pg_ceil_div(pg_ceil_div(f->pool.c, parts), CUT_CHANNELS) * CUT_CHANNELS;
  return even <= most_channels ? even : most_channels / CUT_CHANNELS * CUT_CHANNELS;
}

static struct pg_tiling gather_tiling(const struct pg_facts *f, int64_t channels) {
  const struct pg_pooling *p = &f->pool;
  struct pg_tiling t = {
      .interleaved = true, .planes = channels, .d = 1, .h = p->h.in, .w = p->w.in};
  const int64_t groups = pg_mul_or_most(p->n, pg_ceil_div(p->c, channels));
  const int64_t parts = pg_ceil_div(ITEMS, most(1, groups));
  if (stages_slices(f, channels)) t.d = most(1, pg_ceil_div(p->d.in, parts));
  const int64_t items = pg_mul_or_most(groups, pg_ceil_div(p->d.in, t.d));
  if (p->d.in == 1 || t.d == 1)
    t.h = most(least(4 * most(1, f->h_windows), p->h.in),
               pg_ceil_div(p->h.in, pg_ceil_div(ITEMS, most(1, items))));
  t.h = least(t.h, most(1, MOST_CELLS / p->w.in));
  t.d = least(t.d, most(1, MOST_CELLS / (p->w.in * t.h)));
  return pg_tile_boxes(p, &t);
}

/* Is this faster than adding each output where it belongs?  That costs as much as looking at about
 * TAPS_OF_AN_OUTPUT windows of a cell (measured). */
static bool pays(const struct pg_facts *f) {
  const struct pg_pooling *p = &f->pool;
  const bool patched = f->grad_in_bytes < PATCHED_BYTES, dense = f->cells <= DENSE * f->outputs;
  if (p->c < (dense ? LEAST_CHANNELS : LEAST_IF_FEW_OUTPUTS)) return false;
  if (patched && (ELEMENT_IS_FLOAT || f->cells / f->outputs >= FEW_OUTPUTS)) return false;
  if (mean_windows(&p->d) * mean_windows(&p->h) * mean_windows(&p->w) <= MOST_MEAN_WINDOWS)
    return true;
  const double taps = (double)(f->d_windows * f->h_windows * f->w_windows);
  return taps <= 1 + TAPS_OF_AN_OUTPUT * (double)f->outputs / (double)f->cells;
}

static bool gather_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool;
  if (!f->neighbours || f->cells > MOST_CELLS_OF_PLANE || f->outputs == 0 ||
      p->w.in > PG_BOX_WIDTH || p->w.out > STAGED_WIDTH || p->h.in > PG_BOX_ROWS ||
      p->d.in > PG_BOX_ROWS || f->d_windows > MOST_SLICES)
    return false;
  if (pg_mul_or_most(f->d_windows, pg_mul_or_most(f->h_windows, f->w_windows)) > MOST_SOURCES)
    return false;
  if (!low_halves_differ(p) || !pays(f)) return false;
  const int64_t channels = channels_at_once(f);
  if (channels < least(p->c, CUT_CHANNELS)) return false;
  *tiling = gather_tiling(f, channels);
  return true;
}

const struct pg_cpu_method VARIANT(max_gather) = {.name = "gather",
                                                  .fits = gather_fits,
                                                  .workspace = pg_flags_bytes,
                                                  .run = gather_items,
                                                  .mend = VARIANT(mend_flagged)};
