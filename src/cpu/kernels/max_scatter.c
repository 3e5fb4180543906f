/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by scattering: each output goes to the cell that it names (max_cells.h), in a box
 * of zeros in the caches.
 *
 * This computes every problem, whatever its windows, and is what the other methods fall back to
 * when an index lies outside its window.  An output costs about three cycles, a cell next to
 * nothing.
 *
 * A box is a number of whole planes or, of large planes, some rows or slices.  If the windows of a
 * row of outputs lie inside the box, its indices need no other check than that they do so too.
 * Where windows hang over the box, the indices are staged first (max_staging.h), because there
 * those that point out of the box may be right.
 *
 * Where gradInput is written through the caches, and the cells of a box follow each other there,
 * they are computed in gradInput itself, so that nothing is copied. */
#include "core/checked.h"
#include "cpu/kernels/max_cells.h"
#include "cpu/method.h"

enum {
  /* The least cells of a box where windows overlap: the more rows it has, the fewer outputs are
   * read for two boxes. */
  LEAST_CELLS = 16384,
  /* The least cells of a box elsewhere.  Smaller planes are computed several at once: so many that
   * they, their sums and what is written fit into a first-level cache together. */
  LEAST_CELLS_APART = 4096,
  CELLS_AT_ONCE = ELEMENT_IS_FLOAT ? 4096 : 2048,
  FEW = 32,          /* cells for each output: few of them are named */
  LEAST_PLANES = 16, /* for threads to share, else they are cut */
  /* What is written at once, past the caches: whole cache lines, and two vectors. */
  UNIT = TWO_VECTORS * (int)sizeof(element) > LINE ? TWO_VECTORS : LINE / (int)sizeof(element)
};

struct scatter {
  struct staging staging;
  struct cells cells;
  const struct pg_task *task;
  const struct pg_facts *facts;
  const struct pg_max_backward *args;
  const struct pg_scratch *scratch; /* the memory in which this struct is */
  struct grad_in grad_in;
  bool in_lines;       /* gradInput is written past the caches, in whole lines */
  int64_t zeros;       /* between two boxes the first so many sums are 0 */
  int64_t moved_zeros; /* the same of moved[] */
  element *next;       /* in_lines: where the next cells go, if they follow the last ones */
  int64_t leftover;    /* cells before `next` that are still to be written */
  _Alignas(LINE) element some[BLOCK]; /* cells that are not contiguous in gradInput */
  _Alignas(LINE) element moved[ELEMENT_IS_FLOAT ? 1 : MOST_CELLS];
  /* Before the sums of a box are those of the leftover. */
  _Alignas(LINE) float sums[UNIT + MOST_CELLS + TWO_VECTORS];
};
_Static_assert(sizeof(struct scatter) <= PG_SCRATCH_FALLBACK, "scattering needs more scratch");

/* About how many windows a cell lies in along an axis, in the mean. */
static double windows_of(const struct pg_axis *axis) {
  const double in = (double)axis->in, out = (double)axis->out;
  return axis->kernel > 0 ? (double)axis->kernel * out / in : (in + out) / in;
}

/* Are so few cells named that it pays to handle these alone, and to move elements to them?  The
 * oftener outputs meet, the fewer (measured): each then waits until the one before it is in its
 * cell.  And the fewer where moved elements must then be copied past the caches. */
static bool names_few(const struct pg_facts *f) {
  if (ELEMENT_IS_FLOAT || f->outputs == 0) return f->outputs <= f->cells / FEW;
  const double windows = windows_of(&f->pool.d) * windows_of(&f->pool.h) * windows_of(&f->pool.w);
  const int alone = pg_prefers_nontemporal(f->grad_in_bytes) ? 16 : 12;
  return (double)f->cells >= (alone + 4 * windows) * (double)f->outputs;
}

static struct scatter *begin_scatter(const struct pg_task *task, const struct pg_scratch *scratch) {
  struct scatter *k = pg_fallback_room(scratch);
  k->task = task;
  k->facts = &task->problem.facts;
  k->args = &task->problem.args.max_backward;
  k->scratch = scratch;
  k->grad_in = grad_in_of(k->facts, k->args->grad_in, &k->args->in_strides);
  k->in_lines = k->grad_in.nontemporal && k->facts->in.planes &&
                (uintptr_t)k->grad_in.address % sizeof(element) == 0;
  k->zeros = k->moved_zeros = k->leftover = 0;
  k->next = NULL;
  begin_staging(&k->staging, task);
  begin_cells(&k->cells, task);
  return k;
}

/* The i-th index of a row, whatever its stride. */
static inline int64_t index_at(const struct pg_max_backward *a, const void *index, int64_t i) {
  return read_index(index, a->index_bytes == 8, i * a->index_strides.of[PG_W]);
}

/* Adds any outputs, one at a time. */
static void add_one_by_one(struct scatter *k, struct pg_max_plane *t,
                           const struct pg_row_windows *row, const struct output_row *o,
                           int64_t place) {
  const int64_t stride = k->args->out_strides.of[PG_W];
  for (int64_t i = 0; i < o->count; i++) {
    if (i % STAGED == 0 && pg_is_stopped(k->scratch)) return;
    const int64_t index = index_at(k->args, o->index, i), at = pg_position_in_box(t, index);
    if (at >= 0)
      give_one(&k->cells, place + at, o->grad[i * stride]);
    else
      pg_index_elsewhere(t, row, t->ow.begin + i, index);
  }
}

/* --- One plane --- */

static bool lies_in(struct pg_range a, struct pg_range b) {
  return a.begin >= b.begin && a.end <= b.end;
}

/* For each of the outputs that names no cell of the box. */
static void report_row(const struct scatter *k, struct pg_max_plane *t,
                       const struct pg_row_windows *row, const struct output_row *o) {
  for (int64_t i = 0; i < o->count; i++) {
    const int64_t index = index_at(k->args, o->index, i);
    if (i % STAGED == 0 && pg_is_stopped(k->scratch)) return;
    if (pg_position_in_box(t, index) < 0) pg_index_elsewhere(t, row, t->ow.begin + i, index);
  }
}

/* The cells of a box, if they follow each other. */
static struct cell_run cells_of(const struct pg_pooling *p, const struct pg_box *b, int64_t place) {
  const int64_t begin = (b->d.begin * p->h.in + b->h.begin) * p->w.in + b->w.begin;
  return (struct cell_run){place, begin, b->cells};
}

/* Adds the rows `oh` of outputs, whose windows lie inside the box. */
static void add_inside(struct scatter *k, struct pg_max_plane *t, int64_t od, struct pg_range oh,
                       int64_t place) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct cell_run to = cells_of(p, t->box, place);
  struct output_row o = output_row_of(t, od, oh.begin, t->ow);
  o.count *= pg_length(oh);
  if (give_contiguous(&k->cells, &o, o.count, k->args->index_bytes == 8, &to, k->scratch)) return;
  for (; oh.begin < oh.end; oh.begin++) {
    const struct pg_row_windows row = pg_row_windows_of(p, od, oh.begin);
    o = output_row_of(t, od, oh.begin, t->ow);
    report_row(k, t, &row, &o);
  }
}

/* Adds any row of outputs. */
static void add_any_row(struct scatter *k, struct pg_max_plane *t, int64_t od, int64_t oh,
                        int64_t place) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct output_row o = output_row_of(t, od, oh, t->ow);
  const struct cell_run to = cells_of(p, t->box, place);
  const bool looks = t->box->whole || !t->every_output; /* only at windows that touch the box */
  if (looks && is_run(p, t->box) && k->facts->cells <= MOST_POSITIONS && o.count <= STAGED_WIDTH) {
    begin_staged_rows(&k->staging, &p->w, t->ow);
    if (stage_row(&k->staging, t, od, oh, 0)) {
      give_staged(&k->cells, &k->staging, o.count, &to);
      return;
    }
  }
  const struct pg_row_windows row = pg_row_windows_of(p, od, oh);
  add_one_by_one(k, t, &row, &o, place);
}

/* Those of some outputs whose windows lie inside these cells. */
static struct pg_range windows_inside(const struct pg_axis *axis, struct pg_range outputs,
                                      struct pg_range cells) {
  while (outputs.begin < outputs.end &&
         !lies_in(pg_window_clip(axis, pg_window(axis, outputs.begin)), cells))
    outputs.begin++;
  while (outputs.begin < outputs.end &&
         !lies_in(pg_window_clip(axis, pg_window(axis, outputs.end - 1)), cells))
    outputs.end--;
  return outputs;
}

/* Outputs are added in ascending order: the rows before those whose windows lie inside the box,
 * these, and the rows behind them. */
static void scatter_plane(struct scatter *k, struct pg_max_plane *t, int64_t place) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct pg_box *b = t->box;
  const bool in_rows = k->facts->out.planes && pg_length(t->ow) == p->w.out &&
                       pg_length(b->w) == p->w.in && is_run(p, b) && (b->whole || !t->every_output);
  const struct pg_range d = windows_inside(&p->d, t->od, b->d);
  const struct pg_range h = windows_inside(&p->h, t->oh, b->h);
  for (int64_t od = t->od.begin; od < t->od.end && !pg_is_stopped(k->scratch); od++)
    for (int64_t oh = t->oh.begin; oh < t->oh.end && !pg_is_stopped(k->scratch); oh++)
      if (in_rows && oh == h.begin && oh < h.end && od >= d.begin && od < d.end) {
        add_inside(k, t, od, h, place);
        oh = h.end - 1;
      } else {
        add_any_row(k, t, od, oh, place);
      }
}

/* --- The planes of a box --- */

/* With every output, a flagged box is computed again: a part of a plane, whose indices were
 * reported before. */
static void scatter_planes(struct scatter *k, const struct pg_box *box, bool every_output) {
  for (int64_t i = 0; i < box->planes; i++) {
    struct pg_max_plane t = pg_max_plane_of(k->task, box, box->first + i, every_output);
    scatter_plane(k, &t, i * box->cells);
    if (!every_output) pg_max_plane_report(&t);
  }
}

/* The outputs of whole planes, if they are contiguous. */
static struct output_row outputs_of(const struct scatter *k, const struct pg_box *box) {
  const struct pg_max_backward *a = k->args;
  const int64_t outputs = k->facts->outputs, from = box->first * outputs;
  return (struct output_row){.grad = (const element *)a->grad_out + from,
                             .index = (const char *)a->index + from * a->index_bytes,
                             .count = box->planes * outputs};
}

/* The same for whole planes whose outputs are contiguous. */
static void scatter_whole_planes(struct scatter *k, const struct pg_box *box) {
  const struct output_row o = outputs_of(k, box);
  const struct cell_run to = {0, 0, box->cells};
  if (give_contiguous(&k->cells, &o, k->facts->outputs, k->args->index_bytes == 8, &to, k->scratch))
    return;
  for (int64_t i = 0; i < box->planes; i++) {
    struct pg_max_plane t = pg_max_plane_of(k->task, box, box->first + i, false);
    for (int64_t od = 0; od < t.od.end; od++)
      for (int64_t oh = 0; oh < t.oh.end && !pg_is_stopped(k->scratch); oh++) {
        const struct output_row row = output_row_of(&t, od, oh, t.ow);
        report_row(k, &t, &(struct pg_row_windows){.od = od, .oh = oh}, &row);
      }
    pg_max_plane_report(&t);
  }
}

/* --- Writing --- */

/* Rounds sums, stores them past the caches and sets them to 0; both `to` and the count are whole
 * units.  Ordinary stores between those past the caches would halve the speed, so the sums become 0
 * in a loop of its own. */
static void stream_sums(float *sum, int64_t count, element *to) {
  for (int64_t at = 0, end; at < count; at = end) {
    end = least(at + LEAST_CELLS_APART, count);
    for (int64_t i = at; i < end; i += TWO_VECTORS)
      store_two_nontemporal(to + i, load_f32(sum + i), load_f32(sum + i + LANES));
    memset(sum + at, 0, (size_t)(end - at) * sizeof *sum);
  }
}

/* Writes what is left of the last unit. */
static void write_leftover(struct scatter *k) {
  if (k->leftover == 0) return;
  store_sums(k->next - k->leftover, k->sums + UNIT - k->leftover, k->leftover);
  k->leftover = 0;
}

/* Writes the sums of cells that are contiguous in gradInput, past the caches.  Cells that do not
 * fill a unit wait for those that follow them: their sums are kept in front of the next ones. */
static void append_sums(struct scatter *k, int64_t count, element *to) {
  if (to != k->next) write_leftover(k);
  float *sum = k->cells.box.sum - k->leftover;
  to -= k->leftover;
  count += k->leftover;
  const int64_t beyond = (int64_t)((uintptr_t)to % (UNIT * sizeof(element)) / sizeof(element));
  const int64_t head = beyond == 0 ? 0 : least(UNIT - beyond, count);
  const int64_t body = (count - head) / UNIT * UNIT;
  store_sums(to, sum, head);
  stream_sums(sum + head, body, to + head);
  k->leftover = count - head - body;
  k->next = to + count;
  for (int64_t i = 0; i < k->leftover; i++) {
    k->sums[UNIT - k->leftover + i] = sum[head + body + i];
    sum[head + body + i] = 0;
  }
}

/* Writes the sums of a row of cells, whatever their stride. */
static void write_row(struct scatter *k, float *sum, int64_t width, element *to) {
  const int64_t stride = k->grad_in.strides->of[PG_W];
  if (stride == 1) store_sums(to, sum, width);
  for (int64_t at = 0; stride != 1 && at < width; at += BLOCK) {
    const int64_t count = least(BLOCK, width - at);
    store_sums(k->some, sum + at, count);
    for (int64_t i = 0; i < count; i++) to[(at + i) * stride] = k->some[i];
  }
}

static void write_box_rows(struct scatter *k, const struct pg_box *b, float *sum, element *to) {
  const int64_t width = pg_length(b->w), *s = k->grad_in.strides->of;
  for (int64_t d = 0; d < pg_length(b->d); d++)
    for (int64_t h = 0; h < pg_length(b->h); h++, sum += width)
      write_row(k, sum, width, to + d * s[PG_D] + h * s[PG_H]);
}

static void write_sums(struct scatter *k, const struct pg_box *b) {
  const bool all = b->whole && k->facts->in.all; /* its planes follow each other */
  const bool run = is_run(&k->facts->pool, b) && k->facts->in.planes;
  const int64_t planes = all ? 1 : b->planes, cells = all ? b->planes * b->cells : b->cells;
  for (int64_t i = 0; i < planes; i++) {
    element *to = first_cell(&k->grad_in, b, i);
    float *sum = k->cells.box.sum + i * cells;
    if (run && k->in_lines && planes == 1)
      append_sums(k, cells, to);
    else if (run)
      store_sums(to, sum, cells);
    else
      write_box_rows(k, b, sum, to);
  }
}

/* --- Boxes --- */

/* Do all cells of a box follow each other in memory? */
static bool is_one_run(const struct scatter *k, const struct pg_box *b) {
  const struct pg_facts *f = k->facts;
  return (b->whole && f->in.all) || (b->planes == 1 && f->in.planes && is_run(&f->pool, b));
}

/* How many outputs does a box look at? */
static int64_t outputs_seen(const struct scatter *k, const struct pg_box *b) {
  if (b->whole) return b->planes * k->facts->outputs;
  const struct pg_max_plane t = pg_max_plane_of(k->task, b, b->first, false);
  return b->planes * pg_length(t.od) * pg_length(t.oh) * pg_length(t.ow);
}

/* Zeros for the cells of a box, in gradInput or in scratch memory. */
static void clear_box(struct scatter *k, const struct pg_box *b, bool in_place) {
  const int64_t cells = b->planes * b->cells;
  if (in_place) {
    k->cells.box.any = first_cell(&k->grad_in, b, 0);
    memset(k->cells.box.any, 0, (size_t)cells * sizeof(element));
  } else if (k->cells.moves) {
    k->cells.box.any = k->moved;
    if (k->moved_zeros < cells) memset(k->moved, 0, (size_t)cells * sizeof(element));
    k->moved_zeros = most(k->moved_zeros, cells);
  } else {
    float *sum = k->sums + UNIT;
    k->cells.box.any = sum;
    if (k->zeros < cells) memset(sum + k->zeros, 0, (size_t)(cells - k->zeros) * sizeof *sum);
    k->zeros = most(k->zeros, cells);
  }
}

/* Writes a box whose elements are in scratch memory as they will be in gradInput.  If few of them
 * are named, only these are cleared. */
static void write_elements(struct scatter *k, const struct pg_box *b) {
  const int64_t cells = b->planes * b->cells, bytes = cells * (int64_t)sizeof(element);
  element *from = k->cells.box.any;
  copy_bytes(first_cell(&k->grad_in, b, 0), from, bytes, k->grad_in.nontemporal);
  if (k->cells.named_count > cells / FEW)
    memset(from, 0, (size_t)bytes);
  else
    for (int64_t i = 0; i < k->cells.named_count; i++) from[k->cells.named[i]] = 0;
}

/* How the outputs of a box are given to its cells. */
static void begin_box(struct scatter *k, const struct pg_box *b, bool every_output) {
  struct cells *c = &k->cells;
  const bool few = names_few(k->facts) && !every_output && outputs_seen(k, b) <= MOST_NAMED;
  c->moves = !ELEMENT_IS_FLOAT && few && is_one_run(k, b);
  c->keeps = few && k->grad_in.nontemporal && is_one_run(k, b) && (ELEMENT_IS_FLOAT || c->moves);
  c->several = c->moves || k->facts->outputs <= SMALL;
  c->finds = c->several || c->keeps;
  c->late_count = c->named_count = 0;
}

static void scatter_one_box(struct scatter *k, const struct pg_box *box, bool every_output) {
  begin_box(k, box, every_output);
  const bool in_place =
      is_one_run(k, box) && !k->grad_in.nontemporal && (ELEMENT_IS_FLOAT || k->cells.moves);
  clear_box(k, box, in_place);
  if (box->whole && k->facts->out.all)
    scatter_whole_planes(k, box);
  else
    scatter_planes(k, box, every_output);
  if (k->cells.late_count > 0) {
    settle_latecomers(&k->cells, k->sums + UNIT);
    k->zeros = 0;
  }
  if (in_place) return;
  if (k->cells.keeps)
    write_elements(k, box);
  else
    write_sums(k, box);
}

/* Computes the planes of a box one by one: of interleaved boxes, and of flagged ones. */
static void scatter_plane_by_plane(struct scatter *k, struct pg_box box, bool every_output) {
  const int64_t end = box.first + box.planes;
  for (box.planes = 1; box.first < end; box.first++) scatter_one_box(k, &box, every_output);
}

static void end_scatter(struct scatter *k) {
  write_leftover(k);
  if (k->grad_in.nontemporal) fence_nontemporal();
}

void VARIANT(scatter_box)(const struct pg_task *task, const struct pg_box *box,
                          struct pg_scratch *scratch) {
  struct scatter *k = begin_scatter(task, scratch);
  if (task->choice.tiling.interleaved)
    scatter_plane_by_plane(k, *box, false);
  else
    scatter_one_box(k, box, false);
  end_scatter(k);
}

void VARIANT(mend_flagged)(const void *args, int64_t begin, int64_t end,
                           struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const int32_t *flags = task->problem.args.max_backward.flags;
  struct scatter *k = begin_scatter(task, scratch);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++)
    if (flags[item] != 0)
      scatter_plane_by_plane(k, pg_box_of(&task->choice.tiling, &task->problem.facts.pool, item),
                             true);
  end_scatter(k);
}

static void scatter_items(const void *args, int64_t begin, int64_t end,
                          struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  struct scatter *k = begin_scatter(task, scratch);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, &task->problem.facts.pool, item);
    scatter_one_box(k, &box, false);
  }
  end_scatter(k);
}

/* --- The method --- */

/* The most cells from the first to the last one of a window, in the order of the plane. */
static int64_t window_cells(const struct pg_pooling *p) {
  const struct pg_range d = pg_window_clip(&p->d, pg_window(&p->d, p->d.out / 2));
  const struct pg_range h = pg_window_clip(&p->h, pg_window(&p->h, p->h.out / 2));
  return (pg_length(d) > 1 ? pg_length(d) * p->h.in : pg_length(h)) * p->w.in;
}

/* How many cells boxes of whole planes should have. */
static int64_t cells_at_once(const struct pg_facts *f) {
  const int64_t shared = pg_mul_or_most(f->planes, f->cells) / LEAST_PLANES;
  if (names_few(f)) return most(CELLS_AT_ONCE, least(LEAST_CELLS, shared));
  return ELEMENT_IS_FLOAT ? CELLS_AT_ONCE : most(CELLS_AT_ONCE / 2, least(CELLS_AT_ONCE, shared));
}

/* The most cells of a box.  FLOAT that is computed in gradInput needs no scratch memory.  There
 * each of two threads has a box: with more of them, the outputs whose windows hang over a box would
 * cost more than further threads gain. */
static int64_t most_cells(const struct pg_facts *f) {
  const bool in_place =
      ELEMENT_IS_FLOAT && f->in.planes && !pg_prefers_nontemporal(f->grad_in_bytes);
  return in_place ? most(MOST_CELLS, pg_mul_or_most(f->planes, f->cells) / 2) : MOST_CELLS;
}

/* Boxes of whole planes fit into the first-level cache, unless the planes do not.  Where few cells
 * are named nothing is done in most of them, and the largest planes are not cut.  Where windows
 * overlap, boxes are many times as high as windows, so that few windows hang over them. */
static bool scatter_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  int64_t cells = LEAST_CELLS_APART;
  if (f->outputs > 0 && (f->d_windows > 1 || f->h_windows > 1)) cells = LEAST_CELLS;
  if (names_few(f) && f->planes >= LEAST_PLANES) cells = MOST_CELLS;
  if (f->outputs > 0) cells = least(most_cells(f), most(cells, 8 * window_cells(&f->pool)));
  *tiling = f->cells <= cells ? pg_tile_planes(&f->pool, cells_at_once(f))
                              : pg_tile_flat(&f->pool, cells);
  return true;
}

const struct pg_cpu_method VARIANT(max_scatter) = {.name = "scatter",
                                                   .fits = scatter_fits,
                                                   .workspace = pg_flags_bytes,
                                                   .run = scatter_items,
                                                   .mend = VARIANT(mend_flagged)};
