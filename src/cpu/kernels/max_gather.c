/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by gathering: each cell looks at the outputs in whose windows it lies, at most two
 * along each axis, and adds those whose index names it.
 *
 * This is right only if every index lies in its window.  That is checked while the outputs of a box
 * are staged; if one does not, the box is scattered from its plane on.  LANES neighbouring cells
 * are computed at once, and the method walks down columns of them with the latest rows of outputs
 * in registers.  So every cell costs the same, and no addition waits for another.  Where outputs
 * are few, or cells lie in many windows, scattering does less. */
#include "cpu/kernels/max_staging.h"

enum { BOX_CELLS = 4096, WIDE_BOX_CELLS = 8192, LEAST_OUTPUTS = 64, MOST_CELLS_PER_OUTPUT = 16 };

/* Small whole planes whose outputs are contiguous are staged in one piece, one row directly behind
 * the other: the last cells of a row then look at the first output of the next row as well, whose
 * window is too far left to name them. */
struct gather {
  struct staging staging;
  const struct pg_task *task;
  const struct pg_facts *facts;
  const struct pg_max_backward *args;
  struct grad_in grad_in;
  bool one_piece;
  bool close; /* the outputs that LANES neighbouring cells look at are in LANES places */
  /* In one piece, staging.windows has the windows of all outputs of the plane: `start` is the
   * position of a window's first cell in the plane, and end[] and height are used as well. */
  int32_t end[STAGED_WIDTH + LANES]; /* the position behind the last cell of each window */
  int64_t height;                    /* the number of rows of the highest window */
  struct pg_box_cover cover;
  struct line_writer writer;
  _Alignas(LINE)
      element out[WIDE_BOX_CELLS + LANES]; /* boxes whose rows are not contiguous in gradInput */
};
_Static_assert(sizeof(struct gather) <= PG_SCRATCH_METHOD, "gathering needs more scratch");

/* --- Staging --- */

static bool stages_in_one_piece(const struct pg_facts *f) {
  return f->out.planes && !f->has_depth && f->pool.w.out >= 2 && f->outputs <= STAGED_WIDTH;
}

static void make_all_windows(struct gather *k) {
  const struct pg_pooling *p = &k->facts->pool;
  k->height = 0;
  for (int64_t oh = 0, i = 0; oh < p->h.out; oh++) {
    const struct pg_range h = pg_window_clip(&p->h, pg_window(&p->h, oh));
    k->height = most(k->height, pg_length(h));
    for (int64_t ow = 0; ow < p->w.out; ow++, i++) {
      const struct pg_range w = pg_window_clip(&p->w, pg_window(&p->w, ow));
      k->staging.windows.start[i] = (int32_t)(h.begin * p->w.in + w.begin);
      k->staging.windows.length[i] = (int32_t)pg_length(w);
      k->end[i] = (int32_t)((h.end - 1) * p->w.in + w.end);
    }
  }
}

/* Which of LANES indices lie in the windows of the outputs from i on?  As in stage_shape, but each
 * lane has its own first row, and `end` stops what lies below the last row of a clipped window. */
static inline truths in_known_windows(const struct gather *k, ints index, int64_t i) {
  const ints width = all_i((int32_t)k->facts->pool.w.in);
  const struct width_windows *windows = &k->staging.windows;
  const ints along = folded(sub_i(index, load_i32(windows->start + i)), width, k->height);
  return both(below(along, load_i32(windows->length + i)), below(index, load_i32(k->end + i)));
}

static inline __attribute__((always_inline)) bool stage_plane(struct gather *k,
                                                              const struct output_row *o,
                                                              const bool is_i64) {
  ints high = all_i(0), x;
  truths fine = below(high, all_i(1));
  int64_t i = 0;
  for (; i + LANES <= o->count; i += LANES) {
    x = load_index(o->index, is_i64, i, k->staging.ahead, &high);
    fine = both(fine, in_known_windows(k, x, i));
    store_i32(k->staging.index + i, x);
  }
  if (!every(fine, LANES) || !high_halves_are_zero(high)) return false;
  if (i < o->count) {
    if (!load_last_index(o->index, is_i64, i, o->count - i, &x)) return false;
    if (!every(in_known_windows(k, x, i), o->count - i)) return false;
    store_i32(k->staging.index + i, x);
  }
  widen(o->grad, 1, o->count, k->staging.ahead, k->staging.grad);
  store_i32(k->staging.index + o->count, all_i(-1)); /* these places name no cell */
  store_i32(k->staging.index + o->count + LANES, all_i(-1));
  return true;
}

/* Stages all outputs of a plane whose windows touch the box.  False when an index lies outside its
 * window. */
static bool stage_box(struct gather *k, const struct pg_max_plane *t) {
  const struct pg_box_cover *m = &k->cover;
  if (k->one_piece) {
    struct output_row o = output_row_of(t, 0, 0, t->ow);
    o.count = k->facts->outputs;
    return k->args->index_bytes == 8 ? stage_plane(k, &o, true) : stage_plane(k, &o, false);
  }
  int64_t at = 0;
  for (int64_t od = m->d.outputs.begin; od < m->d.outputs.end; od++)
    for (int64_t oh = m->h.outputs.begin; oh < m->h.outputs.end; oh++, at += k->staging.pitch)
      if (!stage_row(&k->staging, t, od, oh, at)) return false;
  return true;
}

/* --- Computing --- */

/* What the compiler knows of a column: the most windows that its cells lie in along each axis, and
 * whether the outputs are close. */
struct column_shape {
  int depth, height, width;
  bool close;
};

/* The cells w to w + LANES - 1 of the rows [begin, end) of slice d. */
struct column {
  int64_t d, begin, end, w;
};

/* The latest rows of outputs that a column has taken, in each of the slices that its cells look at:
 * indices and gradients, in the lanes of the cells that look at them. */
struct latest_outputs {
  ints named[2][2][2];
  floats value[2][2][2];
};

/* Takes the next row of outputs. */
static inline __attribute__((always_inline)) void take_row(const struct gather *k,
                                                           const struct column_shape shape,
                                                           const ints lane, int64_t from,
                                                           struct latest_outputs *r) {
  const int64_t slice = pg_length(k->cover.h.outputs) * k->staging.pitch;
  const int last = shape.height - 1;
  for (int i = 0; i < shape.depth; i++, from += slice) {
    for (int j = 0; j < last; j++)
      for (int x = 0; x < shape.width; x++) {
        r->named[i][j][x] = r->named[i][j + 1][x];
        r->value[i][j][x] = r->value[i][j + 1][x];
      }
    const ints index = load_i32(k->staging.index + from);
    const floats grad = load_f32(k->staging.grad + from);
    r->named[i][last][0] = permute_i(index, lane);
    r->value[i][last][0] = permute(grad, lane);
    if (shape.width == 1) continue;
    const ints next = shape.close ? add_i(lane, all_i(1)) : lane;
    r->named[i][last][1] =
        permute_i(shape.close ? index : load_i32(k->staging.index + from + 1), next);
    r->value[i][last][1] = permute(shape.close ? grad : load_f32(k->staging.grad + from + 1), next);
  }
}

/* An output whose window does not hold a cell does not name it either, so looking at too many
 * outputs does no harm. */
static inline __attribute__((always_inline)) floats add_named(const struct latest_outputs *r,
                                                              const struct column_shape shape,
                                                              int32_t count, ints cell) {
  floats sum = zeros();
  for (int i = 0; i < shape.depth; i++)
    for (int j = 0; j < shape.height; j++)
      if (j == shape.height - 1 || count > shape.height - 1 - j)
        for (int x = 0; x < shape.width; x++)
          sum = add_equal(sum, r->value[i][j][x], r->named[i][j][x], cell);
  return sum;
}

static inline __attribute__((always_inline)) void gather_column(const struct gather *k,
                                                                const struct destination *t,
                                                                ints cell, const struct column c,
                                                                const struct column_shape shape) {
  const struct pg_cover *mh = &k->cover.h, *mw = &k->cover.w;
  const int32_t *first = mh->first, *count = mh->count;
  const int64_t pitch = k->staging.pitch, stride = t->row, slice = pg_length(mh->outputs) * pitch;
  const int64_t left = pg_length(mw->cells) - c.w;
  const ints lane = sub_i(load_i32(mw->first + c.w), all_i(mw->first[c.w]));
  const ints row = all_i((int32_t)k->facts->pool.w.in);
  int64_t taken = first[c.begin]; /* rows of outputs */
  int64_t from = k->cover.d.first[c.d] * slice + taken * pitch + mw->first[c.w];
  const element *end = t->end;
  element *to = t->at + c.w;
  struct latest_outputs r;
  for (int i = 0; i < 8; i++) {
    r.named[i / 4][i / 2 % 2][i % 2] = all_i(-1);
    r.value[i / 4][i / 2 % 2][i % 2] = zeros();
  }
  for (int64_t h = c.begin; h < c.end; h++, cell = add_i(cell, row), to += stride) {
    for (; taken < first[h] + count[h]; taken++, from += pitch) take_row(k, shape, lane, from, &r);
    const floats sum = add_named(&r, shape, count[h], cell);
    const bool one = shape.depth * shape.height * shape.width == 1; /* nothing was added up */
    store_cells(end, to, one ? pack_exact(sum) : pack(sum), left);
  }
}

/* Columns are computed from right to left, so that what a vector stores beyond the end of its row
 * is overwritten: by the next row, or by a column further left. */
static inline __attribute__((always_inline)) void gather_rows(const struct gather *k,
                                                              const struct pg_box *b,
                                                              const struct destination *t,
                                                              struct column c,
                                                              const struct column_shape shape) {
  const struct pg_pooling *p = &k->facts->pool;
  const int64_t row = (b->d.begin + c.d) * p->h.in + b->h.begin + c.begin;
  const int64_t first = row * p->w.in + b->w.begin;
  for (c.w = round_up(pg_length(b->w)) - LANES; c.w >= 0; c.w -= LANES) {
    const ints cell = add_i(all_i((int32_t)(first + c.w)), load_i32(lane_numbers));
    gather_column(k, t, cell, c, shape);
  }
}

static void gather_some_rows(const struct gather *k, const struct pg_box *b,
                             const struct destination *t, const struct column *rows) {
  const struct column c = *rows;
  const struct pg_box_cover *m = &k->cover;
  if (m->d.count[c.d] > 1)
    gather_rows(k, b, t, c, (struct column_shape){2, 2, 2, false});
  else if (m->h.most == 1 && m->w.most == 1)
    gather_rows(k, b, t, c, (struct column_shape){1, 1, 1, true});
  else if (k->close)
    gather_rows(k, b, t, c, (struct column_shape){1, 2, 2, true});
  else
    gather_rows(k, b, t, c, (struct column_shape){1, 2, 2, false});
}

/* Computes the box in one plane.  False when an index lies outside its window. */
static bool gather_plane(struct gather *k, const struct pg_max_plane *plane,
                         struct destination *t) {
  const struct pg_box *b = plane->box;
  const int64_t rows = rows_at_once(b);
  if (!stage_box(k, plane)) return false;
  for (int64_t d = 0; d < pg_length(b->d); d++)
    for (int64_t h = 0; h < pg_length(b->h); h += rows) {
      const struct column c = {.d = d, .begin = h, .end = least(h + rows, pg_length(b->h))};
      begin_rows(t, d, h);
      gather_some_rows(k, b, t, &c);
      end_rows(t, (c.end - h) * pg_length(b->w));
    }
  return true;
}

/* Are the outputs that LANES neighbouring cells look at, at most two for each, in LANES places? */
static bool are_close(const struct pg_cover *m) {
  for (int64_t i = 0; i < pg_length(m->cells); i += LANES)
    if (m->first[i + LANES - 1] - m->first[i] + 1 >= LANES) return false;
  return true;
}

/* Gathers planes up to the first that has an index outside its window, and returns their number. */
static int64_t gather_planes(struct gather *k, const struct pg_box *box) {
  struct pg_box done = *box;
  for (done.planes = 0; done.planes < box->planes; done.planes++) {
    const struct pg_max_plane t = pg_max_plane_of(k->task, box, box->first + done.planes, false);
    struct destination to = destination_of(&k->grad_in, box, done.planes, &k->writer, k->out);
    if (!gather_plane(k, &t, &to)) {
      writer_flush(&k->writer); /* before the same cells are written again */
      break;
    }
  }
  if (!k->grad_in.contiguity.rows) write_box(&k->grad_in, &done, k->out);
  return done.planes;
}

static void gather_box(struct gather *k, struct pg_box box, struct pg_scratch *scratch) {
  const struct pg_box_cover *m = &k->cover;
  pg_box_cover_make(&k->cover, &k->facts->pool, &box, 0);
  k->close = are_close(&m->w);
  if (k->one_piece)
    k->staging.pitch = k->facts->pool.w.out;
  else
    begin_staged_rows(&k->staging, &k->facts->pool.w, m->w.outputs);
  const int64_t done = gather_planes(k, &box);
  box.first += done;
  box.planes -= done;
  if (box.planes > 0) VARIANT(scatter_box)(k->task, &box, scratch);
}

static void gather_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  struct gather *k = scratch->room;
  k->task = task;
  k->facts = &task->problem.facts;
  k->args = &task->problem.args.max_backward;
  k->grad_in = grad_in_of(k->facts, k->args->grad_in, &k->args->in_strides);
  begin_staging(&k->staging, task);
  k->one_piece = !pg_tiling_cuts(&task->choice.tiling) && stages_in_one_piece(k->facts);
  if (k->one_piece) make_all_windows(k);
  writer_clear(&k->writer);
  pg_box_cover_begin(&k->cover);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++)
    gather_box(k, pg_box_of(&task->choice.tiling, &k->facts->pool, item), scratch);
  writer_flush(&k->writer);
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

/* With fewer outputs than a 16th of the cells the few additions of scattering are cheaper, and with
 * fewer than 64 what gathering takes to begin does not pay (measured).
 *
 * Floats are scattered faster (measured), because their sums need no rounding and may be made in
 * gradInput itself.  The exception are boxes that are one slice or less of a plane with depth:
 * scattering would look at an output again for every slice of its window. */
static bool gather_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  if (f->cells > MOST_POSITIONS || f->outputs < LEAST_OUTPUTS ||
      f->cells / MOST_CELLS_PER_OUTPUT >= f->outputs)
    return false;
  if (f->d_windows > 2 || f->h_windows > 2 || f->w_windows > 2) return false;
  *tiling = pg_tile_flat(&f->pool, f->pool.w.in > BOX_CELLS / 4 ? WIDE_BOX_CELLS : BOX_CELLS);
  if (ELEMENT_IS_FLOAT && !(f->has_depth && tiling->d == 1)) return false;
  if (!begin_in_lanes(&f->pool.w, tiling->w)) return false;
  if (!pg_tiling_cuts(tiling) && stages_in_one_piece(f)) return true;
  const int64_t width = pg_most_touching(&f->pool.w, tiling->w);
  const int64_t depth = pg_most_touching(&f->pool.d, tiling->d);
  const int64_t height = pg_most_touching(&f->pool.h, tiling->h);
  return width <= STAGED_WIDTH && depth <= STAGED && height <= STAGED &&
         depth * height * (width + LANES + LANES) <= STAGED;
}

const struct pg_cpu_method VARIANT(max_gather) = {.name = "gather",
                                                  .fits = gather_fits,
                                                  .workspace = pg_flags_bytes,
                                                  .run = gather_items,
                                                  .mend = VARIANT(mend_flagged)};
