/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by comparing, for windows 2 cells wide that slide by 2 along W and do not overlap
 * along H, in wide rows: the pooling of many networks, where it takes three quarters of the time of
 * scattering.
 *
 * A cell lies in one window at most.  Cells are computed in pairs: the even cells of LANES pairs
 * look at LANES outputs that follow each other, and so do the odd ones.  Rows of outputs are staged
 * when the first row of cells needs them, so that reading, computing and writing overlap.
 *
 * If an index lies outside its window, the box is scattered from its plane on. */
#include "cpu/kernels/max_staging.h"

enum {
  BOX_CELLS = 4096,
  WIDE_BOX_CELLS = 8192,
  LEAST_WIDTH = 96, /* outputs in a row: what a row takes to begin must pay (measured) */
  MOST_CELLS_PER_OUTPUT = 16,
  WHOLE_LINES = TWO_VECTORS * sizeof(element) / LINE /* 0 where they do not fill a cache line */
};

struct pairs {
  struct staging staging;
  int64_t rows; /* of outputs that are staged; the first begins at place LANES */
  const struct pg_task *task;
  const struct pg_pooling *pool;
  struct grad_in grad_in;
  struct pg_box_cover cover;
  struct line_writer writer;
  _Alignas(LINE)
      element out[WIDE_BOX_CELLS + LANES]; /* boxes whose rows are not contiguous in gradInput */
};
_Static_assert(sizeof(struct pairs) <= PG_SCRATCH_METHOD, "pairs need more scratch");

/* Stages the rows of outputs before `end`.  False when an index lies outside its window. */
static inline bool stage_until(struct pairs *k, const struct pg_max_plane *t, int64_t end) {
  for (; k->rows < end; k->rows++) {
    const int64_t oh = k->cover.h.outputs.begin + k->rows;
    if (!stage_row(&k->staging, t, 0, oh, LANES + k->rows * k->staging.pitch)) return false;
  }
  return true;
}

/* --- A row of cells --- */

/* What the compiler knows of a row of cells. */
struct pair_shape {
  int pad;    /* of the windows along W */
  bool lines; /* whole cache lines are stored past the caches */
};

/* Where a row of cells goes, where its row of outputs is staged, and the position of its first cell
 * in the plane. */
struct pair_row {
  element *to;
  const element *end; /* of its destination */
  int64_t from;
  int32_t first;
};

/* LANES even cells (parity 0) or odd cells (parity 1).  Cell 2 i + parity lies in the window of
 * output i, or of the next one. */
static inline __attribute__((always_inline)) floats compare(const struct staging *s, int64_t from,
                                                            ints cell, const int parity,
                                                            const struct pair_shape shape) {
  const int64_t at = from + (parity + shape.pad) / 2;
  return add_equal(zeros(), load_f32(s->grad + at), load_i32(s->index + at), cell);
}

static inline __attribute__((always_inline)) void make_pairs(const struct staging *s, int64_t from,
                                                             ints even_cell, element *to,
                                                             const struct pair_shape shape) {
  const ints odd_cell = add_i(even_cell, all_i(1));
  store_exact_pairs(to, compare(s, from, even_cell, 0, shape),
                    compare(s, from, odd_cell, 1, shape));
}

static inline __attribute__((always_inline)) void make_row(const struct pairs *k,
                                                           const struct pair_row *r,
                                                           const struct pair_shape shape) {
  _Alignas(LINE) element some[TWO_VECTORS];
  const int64_t width = k->pool->w.in, whole = shape.lines ? width : most(width, r->end - r->to);
  const ints lanes = load_i32(lane_numbers), next = all_i(TWO_VECTORS);
  ints cell = add_i(all_i(r->first), add_i(lanes, lanes));
  int64_t w = 0, from = r->from;
  for (; w < width && w + TWO_VECTORS <= whole; w += TWO_VECTORS, from += LANES) {
    make_pairs(&k->staging, from, cell, shape.lines ? some : r->to + w, shape);
    for (int64_t i = 0; shape.lines && i < WHOLE_LINES; i++)
      store_line_nontemporal((char *)(r->to + w) + i * LINE, (char *)some + i * LINE);
    cell = add_i(cell, next);
  }
  if (w >= width) return;
  make_pairs(&k->staging, from, cell, some, shape);
  memcpy(r->to + w, some, (size_t)(width - w) * sizeof *some);
}

/* --- A plane --- */

static inline __attribute__((always_inline)) bool make_rows(struct pairs *k,
                                                            const struct pg_max_plane *plane,
                                                            struct destination *t,
                                                            const struct pair_shape shape) {
  const struct pg_cover *m = &k->cover.h;
  const int64_t width = k->pool->w.in;
  for (int64_t h = 0; h < pg_length(m->cells); h++) {
    const int64_t end = m->first[h] + m->count[h];
    if (!stage_until(k, plane, end)) return false;
    begin_rows(t, 0, h);
    const struct pair_row r = {.to = t->at,
                               .end = t->end,
                               .from = LANES + (end - 1) * k->staging.pitch,
                               .first = (int32_t)((m->cells.begin + h) * width)};
    if (m->count[h] == 1)
      make_row(k, &r, shape);
    else
      memset(r.to, 0, (size_t)width * sizeof *r.to);
    end_rows(t, width);
  }
  return stage_until(k, plane, pg_length(m->outputs));
}

/* Are rows stored in whole cache lines directly from registers?  They must begin with a line. */
static bool stores_lines(const struct destination *t) {
  return t->writer != NULL && WHOLE_LINES > 0 && (uintptr_t)t->plane % LINE == 0 &&
         t->row * (int64_t)sizeof(element) % LINE == 0;
}

/* Computes the box in one plane.  False when an index lies outside its window. */
static bool make_plane(struct pairs *k, const struct pg_max_plane *plane, struct destination *t) {
  const struct pg_axis *w = &k->pool->w;
  store_i32(k->staging.index, all_i(-1)); /* before the first row */
  k->rows = 0;
  if (w->pad == 0 && stores_lines(t)) {
    t->writer = NULL;
    return make_rows(k, plane, t, (struct pair_shape){0, true});
  }
  if (w->pad == 0) return make_rows(k, plane, t, (struct pair_shape){0, false});
  return make_rows(k, plane, t, (struct pair_shape){1, false});
}

/* --- Items --- */

static void make_box(struct pairs *k, struct pg_box box, struct pg_scratch *scratch) {
  struct pg_box done = box;
  pg_box_cover_make(&k->cover, k->pool, &box, 0);
  begin_staged_rows(&k->staging, &k->pool->w, k->cover.w.outputs);
  for (done.planes = 0; done.planes < box.planes; done.planes++) {
    const struct pg_max_plane t = pg_max_plane_of(k->task, &box, box.first + done.planes, false);
    struct destination to = destination_of(&k->grad_in, &box, done.planes, &k->writer, k->out);
    if (!make_plane(k, &t, &to)) break;
  }
  if (!k->grad_in.contiguity.rows) write_box(&k->grad_in, &done, k->out);
  box.first += done.planes;
  box.planes -= done.planes;
  if (box.planes == 0) return;
  writer_flush(&k->writer); /* the same cells are now written again */
  if (k->grad_in.nontemporal) fence_nontemporal();
  VARIANT(scatter_box)(k->task, &box, scratch);
}

static void pairs_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *facts = &task->problem.facts;
  const struct pg_max_backward *a = &task->problem.args.max_backward;
  struct pairs *k = scratch->room;
  k->task = task;
  k->pool = &facts->pool;
  k->grad_in = grad_in_of(facts, a->grad_in, &a->in_strides);
  begin_staging(&k->staging, task);
  writer_clear(&k->writer);
  pg_box_cover_begin(&k->cover);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++)
    make_box(k, pg_box_of(&task->choice.tiling, k->pool, item), scratch);
  writer_flush(&k->writer);
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* --- The method --- */

static bool pairs_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_axis *w = &f->pool.w;
  if (f->has_depth || w->stride != 2 || w->kernel != 2 || w->pad > 1 || w->dilation != 1 ||
      f->h_windows > 1)
    return false;
  if (w->out < LEAST_WIDTH || f->cells > MOST_POSITIONS ||
      f->cells / MOST_CELLS_PER_OUTPUT >= f->outputs)
    return false;
  *tiling = pg_tile_flat(&f->pool, w->in > BOX_CELLS / 4 ? WIDE_BOX_CELLS : BOX_CELLS);
  const int64_t rows = pg_most_touching(&f->pool.h, tiling->h);
  return tiling->w == w->in && rows <= STAGED && w->out <= STAGED_WIDTH &&
         rows * (round_up(w->out) + LANES) <= STAGED;
}

const struct pg_cpu_method VARIANT(max_pairs) = {.name = "pairs",
                                                 .fits = pairs_fits,
                                                 .workspace = pg_flags_bytes,
                                                 .run = pairs_items,
                                                 .mend = VARIANT(mend_flagged)};
