/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by scattering: each output is added, in fp32, to the cell that it names, in a box of
 * zeros in the caches, which is then rounded and written once.
 *
 * This computes every problem, whatever its windows, and is what the other methods fall back to
 * when an index lies outside its window.  An output costs two or three cycles, a cell next to
 * nothing.
 *
 * A box is a number of whole planes or, of large planes, some rows or slices.  If the windows of a
 * row of outputs lie inside the box, its indices need no other check than that they do so too.
 * Where windows hang over the box, the indices are staged first (max_staging.h), because there
 * those that point out of the box may be right. */
#include "core/checked.h"
#include "cpu/kernels/max_staging.h"
#include "cpu/method.h"

enum {
  MOST_CELLS = 65536, /* of a box: 256 KiB of sums, a quarter of a second-level cache */
  /* The least cells of a box where windows overlap: the more rows it has, the fewer outputs are
   * read for two boxes. */
  LEAST_CELLS = 16384,
  CELLS_AT_ONCE = 4096, /* smaller planes are computed several at once */
  BLOCK = 256,          /* outputs that are widened at once */
  AHEAD = 4096,         /* bytes of prefetching */
  FEW = 32,             /* cells for each output: few of them are named */
  LEAST_PLANES = 16,    /* for threads to share, else they are cut */
  /* What is written at once, past the caches: whole cache lines, and two vectors. */
  UNIT = TWO_VECTORS * (int)sizeof(element) > LINE ? TWO_VECTORS : LINE / (int)sizeof(element)
};

struct scatter {
  struct staging staging;
  const struct pg_task *task;
  const struct pg_facts *facts;
  const struct pg_max_backward *args;
  const struct pg_scratch *scratch; /* the memory in which this struct is */
  struct grad_in grad_in;
  bool in_lines;         /* gradInput is written past the caches, in whole lines */
  int64_t zeros;         /* between two boxes the first so many sums are 0 */
  int64_t rounded_zeros; /* the same of rounded[] */
  element *next;         /* in_lines: where the next cells go, if they follow the last ones */
  int64_t leftover;      /* cells before `next` that are still to be written */
  float *sum;            /* where sums are made: in sums[], or in gradInput itself */
  _Alignas(LINE) float grad[BLOCK + LANES];
  _Alignas(LINE) element some[BLOCK]; /* cells that are not contiguous in gradInput */
  /* The rounded cells of whole planes in which outputs name few cells; all others stay 0. */
  _Alignas(LINE) element rounded[ELEMENT_IS_FLOAT ? 1 : MOST_CELLS];
  /* Before the sums of a box are those of the leftover. */
  _Alignas(LINE) float sums[UNIT + MOST_CELLS + TWO_VECTORS];
};
_Static_assert(sizeof(struct scatter) <= PG_SCRATCH_FALLBACK, "scattering needs more scratch");

static bool names_few_cells(const struct pg_facts *f) { return f->outputs <= f->cells / FEW; }

static struct scatter *begin_scatter(const struct pg_task *task, const struct pg_scratch *scratch) {
  struct scatter *k = pg_fallback_room(scratch);
  k->task = task;
  k->facts = &task->problem.facts;
  k->args = &task->problem.args.max_backward;
  k->scratch = scratch;
  k->grad_in = grad_in_of(k->facts, k->args->grad_in, &k->args->in_strides);
  k->in_lines = k->grad_in.nontemporal && k->facts->in.planes &&
                (uintptr_t)k->grad_in.address % sizeof(element) == 0;
  k->zeros = k->rounded_zeros = k->leftover = 0;
  k->next = NULL;
  begin_staging(&k->staging, task);
  return k;
}

static inline int64_t read_index(const void *index, const bool is_i64, int64_t i) {
  return is_i64 ? ((const int64_t *)index)[i] : ((const int32_t *)index)[i];
}

/* The i-th index of a row, whatever its stride. */
static inline int64_t index_at(const struct pg_max_backward *a, const void *index, int64_t i) {
  return read_index(index, a->index_bytes == 8, i * a->index_strides.of[PG_W]);
}

/* --- Adding outputs to sums --- */

/* Cells that follow each other: where their sums are, the position of the first one in its plane,
 * and their number. */
struct cell_run {
  float *sum;
  int64_t begin;
  uint64_t count;
};

/* Adds outputs to the cells that they name.  False when one names none of these cells. */
static inline __attribute__((always_inline)) bool add_some(const void *index, const float *grad,
                                                           const int64_t count, const bool is_i64,
                                                           const struct cell_run to) {
  bool fine = true;
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i++) {
    const uint64_t at = (uint64_t)read_index(index, is_i64, i) - (uint64_t)to.begin;
    if (__builtin_expect(at < to.count, 1))
      to.sum[at] += grad[i];
    else
      fine = false;
  }
  return fine;
}

static inline __attribute__((always_inline)) bool add_block(const void *index, const float *grad,
                                                            int64_t count, const bool is_i64,
                                                            const struct cell_run to) {
  enum { STEP = 8 };
  const int64_t bytes = is_i64 ? 8 : 4;
  const char *x = index;
  bool fine = true;
  for (; count >= STEP; count -= STEP, x += STEP * bytes, grad += STEP) {
    __builtin_prefetch(x + AHEAD);
    if (ELEMENT_IS_FLOAT) __builtin_prefetch((const char *)grad + AHEAD / 2);
    fine &= add_some(x, grad, STEP, is_i64, to);
  }
  return add_some(x, grad, count, is_i64, to) && fine;
}

/* Adds the contiguous outputs of planes that follow each other, each of which has `outputs` of
 * them, or of a part of one plane.  False when one names none of the cells. */
static inline __attribute__((always_inline)) bool add_contiguous_of_type(struct scatter *k,
                                                                         const struct output_row *o,
                                                                         int64_t outputs,
                                                                         const bool is_i64,
                                                                         struct cell_run to) {
  int64_t left = outputs; /* in the current plane */
  bool fine = true;
  for (int64_t at = 0; at < o->count && !pg_is_stopped(k->scratch); at += BLOCK) {
    const int64_t count = least(o->count - at, BLOCK);
    const char *index = (const char *)o->index + at * (is_i64 ? 8 : 4);
    const float *grad = widened(o->grad + at, count, AHEAD / 2, k->grad);
    for (int64_t i = 0, part; i < count; i += part) {
      part = least(count - i, left);
      fine &= add_block(index + i * (is_i64 ? 8 : 4), grad + i, part, is_i64, to);
      left -= part;
      if (left > 0) continue;
      left = outputs;
      to.sum += to.count;
    }
  }
  return fine;
}

static bool add_contiguous(struct scatter *k, const struct output_row *o, int64_t outputs,
                           const struct cell_run *to) {
  return k->args->index_bytes == 8 ? add_contiguous_of_type(k, o, outputs, true, *to)
                                   : add_contiguous_of_type(k, o, outputs, false, *to);
}

/* Adds staged outputs, many of which may name cells of other boxes; these are added to the place
 * behind the sums, which nobody reads, so that no branch has to be predicted. */
static void add_staged(const struct staging *s, int64_t count, const struct cell_run *to) {
  const uint32_t cells = (uint32_t)to->count;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t there = (uint32_t)s->index[i] - (uint32_t)to->begin;
    to->sum[there < cells ? there : cells] += s->grad[i];
  }
}

/* Adds any outputs, one at a time. */
static void add_one_by_one(struct scatter *k, struct pg_max_plane *t,
                           const struct pg_row_windows *row, const struct output_row *o,
                           float *sum) {
  const int64_t stride = k->args->out_strides.of[PG_W];
  for (int64_t i = 0; i < o->count; i++) {
    if (i % STAGED == 0 && pg_is_stopped(k->scratch)) return;
    const int64_t index = index_at(k->args, o->index, i), at = pg_position_in_box(t, index);
    if (at >= 0)
      sum[at] += widen_one(o->grad[i * stride]);
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
static struct cell_run cells_of(const struct pg_pooling *p, const struct pg_box *b, float *sum) {
  const int64_t begin = (b->d.begin * p->h.in + b->h.begin) * p->w.in + b->w.begin;
  return (struct cell_run){sum, begin, (uint64_t)b->cells};
}

/* Adds the rows `oh` of outputs, whose windows lie inside the box. */
static void add_inside(struct scatter *k, struct pg_max_plane *t, int64_t od, struct pg_range oh,
                       float *sum) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct cell_run to = cells_of(p, t->box, sum);
  struct output_row o = output_row_of(t, od, oh.begin, t->ow);
  o.count *= pg_length(oh);
  if (add_contiguous(k, &o, o.count, &to)) return;
  for (; oh.begin < oh.end; oh.begin++) {
    const struct pg_row_windows row = pg_row_windows_of(p, od, oh.begin);
    o = output_row_of(t, od, oh.begin, t->ow);
    report_row(k, t, &row, &o);
  }
}

/* Adds any row of outputs. */
static void add_any_row(struct scatter *k, struct pg_max_plane *t, int64_t od, int64_t oh,
                        float *sum) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct output_row o = output_row_of(t, od, oh, t->ow);
  const struct cell_run to = cells_of(p, t->box, sum);
  const bool looks = t->box->whole || !t->every_output; /* only at windows that touch the box */
  if (looks && is_run(p, t->box) && k->facts->cells <= MOST_POSITIONS && o.count <= STAGED_WIDTH) {
    begin_staged_rows(&k->staging, &p->w, t->ow);
    if (stage_row(&k->staging, t, od, oh, 0)) {
      add_staged(&k->staging, o.count, &to);
      return;
    }
  }
  const struct pg_row_windows row = pg_row_windows_of(p, od, oh);
  add_one_by_one(k, t, &row, &o, sum);
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
static void scatter_plane(struct scatter *k, struct pg_max_plane *t, float *sum) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct pg_box *b = t->box;
  const bool in_rows = k->facts->out.planes && pg_length(t->ow) == p->w.out &&
                       pg_length(b->w) == p->w.in && is_run(p, b) && (b->whole || !t->every_output);
  const struct pg_range d = windows_inside(&p->d, t->od, b->d);
  const struct pg_range h = windows_inside(&p->h, t->oh, b->h);
  for (int64_t od = t->od.begin; od < t->od.end && !pg_is_stopped(k->scratch); od++)
    for (int64_t oh = t->oh.begin; oh < t->oh.end && !pg_is_stopped(k->scratch); oh++)
      if (in_rows && oh == h.begin && oh < h.end && od >= d.begin && od < d.end) {
        add_inside(k, t, od, h, sum);
        oh = h.end - 1;
      } else {
        add_any_row(k, t, od, oh, sum);
      }
}

/* --- The planes of a box --- */

/* With every output, a flagged box is computed again: a part of a plane, whose indices were
 * reported before. */
static void scatter_planes(struct scatter *k, const struct pg_box *box, bool every_output) {
  for (int64_t i = 0; i < box->planes; i++) {
    struct pg_max_plane t = pg_max_plane_of(k->task, box, box->first + i, every_output);
    scatter_plane(k, &t, k->sum + i * box->cells);
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
  if (add_contiguous(k, &o, k->facts->outputs, &(struct cell_run){k->sum, 0, (uint64_t)box->cells}))
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
    end = least(at + CELLS_AT_ONCE, count);
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
  float *sum = k->sum - k->leftover;
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
    if (run && k->in_lines && planes == 1)
      append_sums(k, cells, to);
    else if (run)
      store_sums(to, k->sum + i * cells, cells);
    else
      write_box_rows(k, b, k->sum + i * cells, to);
  }
}

/* --- Few outputs --- */

/* Are few cells of the box named, so that they can be found again?  Its cells and its outputs are
 * contiguous, in all of its planes or in its only one. */
static bool names_few(const struct scatter *k, const struct pg_box *b) {
  const struct pg_facts *f = k->facts;
  if (!names_few_cells(f)) return false;
  if (b->whole && f->in.all && f->out.all) return true;
  return b->planes == 1 && f->in.planes && f->out.planes && is_run(&f->pool, b);
}

/* What becomes of the cells that outputs name. */
struct named {
  element *round_to; /* their sums are rounded to this place, or, if it is NULL, set to 0 */
  element *clear;    /* NULL, or where they are set to 0 as well */
};

/* The cells are those of planes with `outputs` outputs each, or some of one plane. */
static inline __attribute__((always_inline)) void finish_named(const struct output_row *o,
                                                               int64_t outputs, const bool is_i64,
                                                               struct cell_run cells,
                                                               struct named n) {
  int64_t plane = 0; /* where its cells begin */
  for (int64_t i = 0, end = outputs; i < o->count; end += outputs, plane += (int64_t)cells.count)
    for (; i < end; i++) {
      const uint64_t there = (uint64_t)read_index(o->index, is_i64, i) - (uint64_t)cells.begin;
      if (there >= cells.count) continue;
      const int64_t at = plane + (int64_t)there;
      if (n.round_to != NULL)
        n.round_to[at] = round_one(cells.sum[at]);
      else
        cells.sum[at] = 0;
      if (n.clear != NULL) n.clear[at] = 0;
    }
}

static void finish_outputs(const struct scatter *k, const struct output_row *o, int64_t outputs,
                           struct cell_run cells, struct named n) {
  if (k->args->index_bytes == 8)
    finish_named(o, outputs, true, cells, n);
  else
    finish_named(o, outputs, false, cells, n);
}

/* For all outputs that a box looks at. */
static void finish(const struct scatter *k, const struct pg_box *box, struct named n) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct cell_run cells = cells_of(p, box, k->sum);
  if (box->whole && k->facts->out.all) {
    const struct output_row o = outputs_of(k, box);
    finish_outputs(k, &o, k->facts->outputs, cells, n);
    return;
  }
  const struct pg_max_plane t = pg_max_plane_of(k->task, box, box->first, false);
  for (int64_t od = t.od.begin; od < t.od.end; od++) {
    struct output_row o = output_row_of(&t, od, t.oh.begin, (struct pg_range){0, p->w.out});
    o.count *= pg_length(t.oh);
    finish_outputs(k, &o, o.count, cells, n);
  }
}

/* Few cells are named; the others are 0, so nothing but those has to be rounded and cleared. */
static void write_named(struct scatter *k, const struct pg_box *box) {
  const int64_t cells = box->planes * box->cells;
  const size_t bytes = (size_t)cells * sizeof(element);
  element *to = first_cell(&k->grad_in, box, 0);
  if (ELEMENT_IS_FLOAT) {
    copy_bytes(to, k->sum, (int64_t)bytes, k->grad_in.nontemporal);
  } else if (!k->grad_in.nontemporal) {
    memset(to, 0, bytes);
    finish(k, box, (struct named){.round_to = to});
  } else {
    if (k->rounded_zeros < cells) memset(k->rounded, 0, bytes);
    k->rounded_zeros = most(k->rounded_zeros, cells);
    finish(k, box, (struct named){.round_to = k->rounded});
    copy_bytes(to, k->rounded, (int64_t)bytes, true);
  }
  finish(k, box, (struct named){.clear = ELEMENT_IS_FLOAT ? NULL : k->rounded});
}

/* --- Boxes --- */

static void scatter_one_box(struct scatter *k, const struct pg_box *box, bool every_output) {
  const int64_t cells = box->planes * box->cells;
  const bool in_place =
      ELEMENT_IS_FLOAT && !k->grad_in.nontemporal && box->whole && k->facts->in.all;
  k->sum =
      in_place ? (float *)(void *)k->grad_in.address + box->first * box->cells : k->sums + UNIT;
  if (in_place) {
    memset(k->sum, 0, (size_t)cells * sizeof *k->sum);
  } else if (k->zeros < cells + 1) {
    memset(k->sum + k->zeros, 0, (size_t)(cells + 1 - k->zeros) * sizeof *k->sum);
    k->zeros = cells + 1;
  }
  const bool contiguous = box->whole && k->facts->out.all;
  if (contiguous)
    scatter_whole_planes(k, box);
  else
    scatter_planes(k, box, every_output);
  if (in_place) return;
  k->sum[cells] = 0; /* what add_staged added for other boxes */
  if (!every_output && names_few(k, box))
    write_named(k, box);
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

/* How many cells a box of whole planes should have of which few are named. */
static int64_t cells_of_few(const struct pg_facts *f) {
  const int64_t shared = pg_mul_or_most(f->planes, f->cells) / LEAST_PLANES;
  return most(CELLS_AT_ONCE, least(LEAST_CELLS, shared));
}

/* Where few cells are named, boxes are as large as can be, because nothing is done in them.  Where
 * windows do not overlap, they fit into the first-level cache.  Else they are larger, and
 * many times as high as windows, so that few windows hang over them. */
static bool scatter_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  int64_t cells = CELLS_AT_ONCE;
  if (names_few_cells(f) && f->planes >= LEAST_PLANES) cells = MOST_CELLS;
  if (f->outputs > 0 && cells < LEAST_CELLS && (f->d_windows > 1 || f->h_windows > 1))
    cells = LEAST_CELLS;
  if (f->outputs > 0) cells = least(MOST_CELLS, most(cells, 8 * window_cells(&f->pool)));
  if (f->cells <= cells)
    *tiling = pg_tile_planes(&f->pool, names_few_cells(f) ? cells_of_few(f) : CELLS_AT_ONCE);
  else
    *tiling = pg_tile_flat(&f->pool, cells);
  return true;
}

const struct pg_cpu_method VARIANT(max_scatter) = {.name = "scatter",
                                                   .fits = scatter_fits,
                                                   .workspace = pg_flags_bytes,
                                                   .run = scatter_items,
                                                   .mend = VARIANT(mend_flagged)};
