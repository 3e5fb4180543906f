/* SPDX-License-Identifier: Apache-2.0 */
/* Max-backward by scattering: each output is added, in fp32, to the cell that it names, in a box of
 * zeros in the first-level cache, which is then rounded and written once.
 *
 * This computes every problem, and is what the other methods fall back to when an index lies
 * outside its window.  It is the fastest where outputs are few, because a cell that no output names
 * costs only the writing of its zero.  With many outputs, additions to the same cell wait for each
 * other, and nothing is computed in vectors.
 *
 * The planes of a box that have few outputs are added in one piece.  If few cells were changed,
 * only those are rounded and cleared afterwards.  Whole planes of floats that a cache will keep are
 * summed in gradInput itself. */
#include "cpu/kernels/max_staging.h"
#include "cpu/method.h"

enum {
  BOX_CELLS = 8192,
  SPARSE = 1024,     /* the most changed cells that are remembered one by one */
  PLANES_AT_ONCE = 3 /* planes whose outputs are added alternately */
};

struct scatter {
  struct staging staging;
  const struct pg_task *task;
  const struct pg_facts *facts;
  const struct pg_max_backward *args;
  const struct pg_scratch *scratch; /* the memory in which this struct is */
  struct grad_in grad_in;
  int32_t changed[SPARSE]; /* positions in sum[] that were added to */
  int64_t changes;         /* how many; more than SPARSE: any position may have been changed */
  float *sum;              /* where sums are made: in sums[], or in gradInput itself */
  int64_t zeros;           /* between two boxes the first so many of sums[] are 0 */
  bool out_is_zero;        /* all of out[] is known to be 0 */
  _Alignas(LINE) float sums[BOX_CELLS + LANES];
  _Alignas(LINE) element out[BOX_CELLS + LANES]; /* rounded */
};
_Static_assert(sizeof(struct scatter) <= PG_SCRATCH_FALLBACK, "scattering needs more scratch");

static struct scatter *begin_scatter(const struct pg_task *task, const struct pg_scratch *scratch) {
  struct scatter *k = pg_fallback_room(scratch);
  k->task = task;
  k->facts = &task->problem.facts;
  k->args = &task->problem.args.max_backward;
  k->scratch = scratch;
  k->grad_in = grad_in_of(k->facts, k->args->grad_in, &k->args->in_strides);
  begin_staging(&k->staging, task);
  k->zeros = 0;
  k->out_is_zero = false;
  return k;
}

static inline int64_t index_at(const struct pg_max_backward *a, const void *index, int64_t i) {
  const int64_t at = i * a->index_strides.of[PG_W];
  return a->index_bytes == 8 ? ((const int64_t *)index)[at] : ((const int32_t *)index)[at];
}

/* --- Adding outputs to sums --- */

/* Adds contiguous outputs to the sums of a whole plane.  False when one names no cell. */
static inline __attribute__((always_inline)) bool add_to_whole(struct scatter *k,
                                                               const struct output_row *o,
                                                               const float *grad, const bool is_i64,
                                                               float *sum) {
  const uint64_t cells = (uint64_t)k->facts->cells;
  const int32_t base = (int32_t)(sum - k->sum);
  const bool sparse = k->changes + o->count <= SPARSE;
  int64_t changes = k->changes;
  bool fine = true;
  for (int64_t i = 0; i < o->count; i++) {
    const uint64_t at =
        (uint64_t)(is_i64 ? ((const int64_t *)o->index)[i] : ((const int32_t *)o->index)[i]);
    if (__builtin_expect(at >= cells, 0)) {
      fine = false;
      continue;
    }
    sum[at] += grad[i];
    if (sparse) k->changed[changes++] = base + (int32_t)at;
  }
  k->changes = sparse ? changes : SPARSE + 1;
  return fine;
}

/* The same, in blocks of gradients that are widened first. */
static bool add_contiguous(struct scatter *k, const struct output_row *o, float *sum) {
  const bool is_i64 = k->args->index_bytes == 8;
  bool fine = true;
  for (int64_t done = 0; done < o->count && !pg_is_stopped(k->scratch); done += STAGED) {
    const struct output_row block = {.grad = o->grad + done,
                                     .index = (const char *)o->index + done * k->args->index_bytes,
                                     .count = least(o->count - done, STAGED)};
    const float *grad = widened(block.grad, block.count, k->staging.grad);
    fine = (is_i64 ? add_to_whole(k, &block, grad, true, sum)
                   : add_to_whole(k, &block, grad, false, sum)) &&
           fine;
  }
  return fine;
}

/* Adds staged outputs to the sums of a part of a plane, which begins at position `begin`.  Many of
 * them may name cells of other boxes; these are added to sum[cells], which nobody reads, so that no
 * branch has to be predicted. */
static void add_to_part(struct scatter *k, int64_t count, int32_t begin, uint32_t cells) {
  const bool sparse = k->changes + count < SPARSE;
  int64_t changes = k->changes;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t there = (uint32_t)k->staging.index[i] - (uint32_t)begin;
    const uint32_t at = there < cells ? there : cells;
    k->sum[at] += k->staging.grad[i];
    if (sparse) {
      k->changed[changes] = (int32_t)at;
      changes += there < cells;
    }
  }
  k->changes = sparse ? changes : SPARSE + 1;
}

/* Adds any outputs, one at a time.  Where the box is a whole plane, indices outside it are reported
 * later, by report_indices, once it is known that there are some. */
static void add_one_by_one(struct scatter *k, struct pg_max_plane *t,
                           const struct pg_row_windows *row, const struct output_row *o,
                           float *sum) {
  const int64_t stride = k->args->out_strides.of[PG_W];
  k->changes = SPARSE + 1;
  for (int64_t i = 0; i < o->count; i++) {
    if (i % STAGED == 0 && pg_is_stopped(k->scratch)) return;
    const int64_t index = index_at(k->args, o->index, i), at = pg_position_in_box(t, index);
    if (at >= 0)
      sum[at] += widen_one(o->grad[i * stride]);
    else if (!t->box->whole)
      pg_index_elsewhere(t, row, t->ow.begin + i, index);
  }
}

/* --- One plane --- */

/* Adds a row of outputs to a whole plane.  False when one names no cell. */
static bool add_row_to_whole(struct scatter *k, struct pg_max_plane *t, int64_t od, int64_t oh,
                             float *sum) {
  const struct pg_max_backward *a = k->args;
  const struct output_row o = output_row_of(t, od, oh, t->ow);
  const int64_t stride = a->out_strides.of[PG_W], index_stride = a->index_strides.of[PG_W];
  if (stride == 1 && index_stride == 1) return add_contiguous(k, &o, sum);
  if (o.count > STAGED ||
      !narrow(o.index, a->index_bytes == 8, index_stride, o.count, k->staging.index)) {
    add_one_by_one(k, t, &(struct pg_row_windows){.od = od, .oh = oh}, &o, sum);
    return false;
  }
  widen(o.grad, stride, o.count, k->staging.ahead, k->staging.grad);
  const struct output_row staged = {.index = k->staging.index, .count = o.count};
  return add_to_whole(k, &staged, k->staging.grad, false, sum);
}

/* Adds a row of outputs to a part of a plane. */
static void add_row_to_part(struct scatter *k, struct pg_max_plane *t, int64_t od, int64_t oh,
                            float *sum) {
  const struct pg_pooling *p = &k->facts->pool;
  const struct pg_box *b = t->box;
  const int64_t count = pg_length(t->ow);
  const bool near = !t->every_output && !k->task->choice.tiling.interleaved &&
                    k->facts->cells <= MOST_POSITIONS && count <= STAGED_WIDTH;
  if (near) begin_staged_rows(&k->staging, &p->w, t->ow);
  if (!near || !stage_row(&k->staging, t, od, oh, 0)) {
    const struct output_row o = output_row_of(t, od, oh, t->ow);
    const struct pg_row_windows row = pg_row_windows_of(p, od, oh);
    add_one_by_one(k, t, &row, &o, sum);
    return;
  }
  const int64_t begin = (b->d.begin * p->h.in + b->h.begin) * p->w.in + b->w.begin;
  add_to_part(k, count, (int32_t)begin, (uint32_t)b->cells);
}

/* Reports every index that lies outside a whole plane. */
static void report_indices(const struct scatter *k, struct pg_max_plane *t) {
  for (int64_t od = t->od.begin; od < t->od.end && !pg_is_stopped(k->scratch); od++)
    for (int64_t oh = t->oh.begin; oh < t->oh.end && !pg_is_stopped(k->scratch); oh++) {
      const struct pg_row_windows row = {.od = od, .oh = oh};
      const struct output_row o = output_row_of(t, od, oh, t->ow);
      for (int64_t i = 0; i < o.count; i++) {
        if (i % STAGED == 0 && pg_is_stopped(k->scratch)) return;
        pg_index_elsewhere(t, &row, i, index_at(k->args, o.index, i));
      }
    }
}

/* All outputs of a plane, which are contiguous. */
static struct output_row outputs_of_plane(const struct scatter *k, const struct pg_max_plane *t) {
  struct output_row o = output_row_of(t, 0, 0, t->ow);
  o.count = k->facts->outputs;
  return o;
}

static void scatter_plane(struct scatter *k, struct pg_max_plane *t, float *sum) {
  const bool whole = t->box->whole;
  bool fine = true;
  if (whole && k->facts->out.planes) {
    const struct output_row o = outputs_of_plane(k, t);
    fine = add_contiguous(k, &o, sum);
  } else {
    for (int64_t od = t->od.begin; od < t->od.end && !pg_is_stopped(k->scratch); od++)
      for (int64_t oh = t->oh.begin; oh < t->oh.end && !pg_is_stopped(k->scratch); oh++)
        if (whole)
          fine = add_row_to_whole(k, t, od, oh, sum) && fine;
        else
          add_row_to_part(k, t, od, oh, sum);
  }
  if (!fine) report_indices(k, t);
}

/* --- Several planes alternately --- */

/* False when an output names no cell. */
static inline __attribute__((always_inline)) bool add_alternately(const struct output_row *o,
                                                                  const float *const *grad,
                                                                  const bool is_i64, float *sum,
                                                                  uint64_t cells) {
  bool fine = true;
  for (int64_t i = 0; i < o->count; i++)
    for (int plane = 0; plane < PLANES_AT_ONCE; plane++) {
      const uint64_t at = (uint64_t)(is_i64 ? ((const int64_t *)o[plane].index)[i]
                                            : ((const int32_t *)o[plane].index)[i]);
      if (__builtin_expect(at < cells, 1))
        sum[(uint64_t)plane * cells + at] += grad[plane][i];
      else
        fine = false;
    }
  return fine;
}

/* Neighbouring outputs often name the same cell, and a sum that was just stored is not ready for
 * the next addition.  The sums of the other planes are. */
static void scatter_alternately(struct scatter *k, const struct pg_box *box, int64_t first) {
  const uint64_t cells = (uint64_t)k->facts->cells;
  float *sum = k->sum + first * box->cells;
  struct pg_max_plane t[PLANES_AT_ONCE];
  struct output_row o[PLANES_AT_ONCE];
  const float *grad[PLANES_AT_ONCE];
  for (int i = 0; i < PLANES_AT_ONCE; i++) {
    t[i] = pg_max_plane_of(k->task, box, box->first + first + i, false);
    o[i] = outputs_of_plane(k, &t[i]);
    grad[i] =
        widened(o[i].grad, o[i].count, k->staging.grad + (int64_t)i * (STAGED / PLANES_AT_ONCE));
  }
  const bool fine = k->args->index_bytes == 8 ? add_alternately(o, grad, true, sum, cells)
                                              : add_alternately(o, grad, false, sum, cells);
  k->changes = SPARSE + 1;
  for (int i = 0; i < PLANES_AT_ONCE && !fine; i++) {
    report_indices(k, &t[i]);
    pg_max_plane_report(&t[i]);
  }
}

/* With every output, a flagged box is computed again: a part of a plane, whose indices were
 * reported before. */
static void scatter_planes(struct scatter *k, const struct pg_box *box, bool every_output) {
  const int64_t outputs = k->facts->outputs;
  const bool alternately = box->whole && k->facts->out.planes && outputs >= SPARSE / 4 &&
                           outputs <= STAGED / PLANES_AT_ONCE - LANES;
  int64_t i = 0;
  for (; alternately && i + PLANES_AT_ONCE <= box->planes; i += PLANES_AT_ONCE)
    scatter_alternately(k, box, i);
  for (; i < box->planes; i++) {
    struct pg_max_plane t = pg_max_plane_of(k->task, box, box->first + i, every_output);
    scatter_plane(k, &t, k->sum + i * box->cells);
    if (!every_output) pg_max_plane_report(&t);
  }
}

/* --- All planes of a box in one piece --- */

/* Are the planes of the box whole, with few outputs, which are all contiguous? */
static bool is_one_piece(const struct scatter *k, const struct pg_box *box) {
  return box->whole && k->facts->out.all && k->facts->outputs <= SPARSE / box->planes;
}

/* False, with nothing added, when an output names no cell. */
static bool scatter_one_piece(struct scatter *k, const struct pg_box *box) {
  const struct pg_max_backward *a = k->args;
  const int64_t outputs = k->facts->outputs;
  const int64_t count = outputs * box->planes, from = box->first * outputs;
  const void *index = (const char *)a->index + from * a->index_bytes;
  const float *grad = widened((const element *)a->grad_out + from, count, k->staging.grad);
  if (!narrow(index, a->index_bytes == 8, 1, count, k->staging.index)) return false;
  for (int64_t i = 0; i < count; i += LANES)
    if (!every(below(load_i32(k->staging.index + i), all_i((int32_t)box->cells)),
               least(count - i, LANES)))
      return false;
  int32_t base = 0;
  for (int64_t i = 0, end = outputs; i < count; end += outputs, base += (int32_t)box->cells)
    for (; i < end; i++) {
      k->changed[i] = base + k->staging.index[i];
      k->sum[k->changed[i]] += grad[i];
    }
  k->changes = count;
  return true;
}

/* The same in gradInput itself, where it does not matter which cells were changed.  False when an
 * output names no cell; others may have been added. */
static inline __attribute__((always_inline)) bool scatter_one_piece_in_place(
    const struct scatter *k, const struct pg_box *box, const bool is_i64) {
  const int64_t outputs = k->facts->outputs, from = box->first * outputs;
  const float *grad = (const float *)k->args->grad_out + from;
  const int64_t *x = (const int64_t *)k->args->index + from;
  const int32_t *y = (const int32_t *)k->args->index + from;
  const uint64_t cells = (uint64_t)box->cells;
  float *sum = k->sum;
  bool fine = true;
  for (int64_t plane = 0; plane < box->planes; plane++, sum += cells)
    for (int64_t i = 0; i < outputs; i++, grad++) {
      const uint64_t at = (uint64_t)(is_i64 ? *x++ : *y++);
      if (__builtin_expect(at < cells, 1))
        sum[at] += *grad;
      else
        fine = false;
    }
  return fine;
}

/* --- A box --- */

static void scatter_in_place(struct scatter *k, const struct pg_box *box, bool every_output) {
  const size_t bytes = (size_t)(box->planes * box->cells) * sizeof *k->sum;
  memset(k->sum, 0, bytes);
  k->changes = SPARSE + 1;
  if (is_one_piece(k, box)) {
    if (k->args->index_bytes == 8 ? scatter_one_piece_in_place(k, box, true)
                                  : scatter_one_piece_in_place(k, box, false))
      return;
    memset(k->sum, 0, bytes);
  }
  scatter_planes(k, box, every_output);
}

/* The sums as elements. */
static const element *rounded(struct scatter *k, int64_t cells) {
  if (ELEMENT_IS_FLOAT) return (const element *)(const void *)k->sum;
  if (k->changes > SPARSE) {
    for (int64_t i = 0; i < cells; i += LANES) store_packed(k->out + i, pack(load_f32(k->sum + i)));
    k->out_is_zero = false;
    return k->out;
  }
  if (!k->out_is_zero) memset(k->out, 0, sizeof k->out);
  k->out_is_zero = true;
  for (int64_t i = 0; i < k->changes; i++) k->out[k->changed[i]] = round_one(k->sum[k->changed[i]]);
  return k->out;
}

/* Sets the sums of a box to 0 for the next one.  If all of out[] was 0 but for the changed cells,
 * those are set to 0 too. */
static void clear_sums(struct scatter *k, int64_t cells) {
  k->sums[cells] = 0; /* what add_to_part added for other boxes */
  if (k->changes > SPARSE) {
    memset(k->sum, 0, (size_t)cells * sizeof *k->sum);
    return;
  }
  for (int64_t i = 0; i < k->changes; i++) k->sum[k->changed[i]] = 0;
  for (int64_t i = 0; i < k->changes && !ELEMENT_IS_FLOAT; i++) k->out[k->changed[i]] = 0;
}

static void scatter_one_box(struct scatter *k, const struct pg_box *box, bool every_output) {
  const int64_t cells = box->planes * box->cells;
  if (ELEMENT_IS_FLOAT && !k->grad_in.nontemporal && box->whole && k->facts->in.all) {
    k->sum = (float *)(void *)k->grad_in.address + box->first * box->cells;
    scatter_in_place(k, box, every_output);
    return;
  }
  k->sum = k->sums;
  if (k->zeros < cells + 1) {
    memset(k->sums + k->zeros, 0, (size_t)(cells + LANES - k->zeros) * sizeof *k->sums);
    k->zeros = cells + LANES;
  }
  k->changes = 0;
  if (!is_one_piece(k, box) || !scatter_one_piece(k, box)) scatter_planes(k, box, every_output);
  write_box(&k->grad_in, box, rounded(k, cells));
  clear_sums(k, cells);
}

/* Computes the planes of a box one by one: of interleaved boxes, and of flagged ones. */
static void scatter_plane_by_plane(struct scatter *k, struct pg_box box, bool every_output) {
  const int64_t end = box.first + box.planes;
  for (box.planes = 1; box.first < end; box.first++) scatter_one_box(k, &box, every_output);
}

void VARIANT(scatter_box)(const struct pg_task *task, const struct pg_box *box,
                          struct pg_scratch *scratch) {
  struct scatter *k = begin_scatter(task, scratch);
  if (task->choice.tiling.interleaved)
    scatter_plane_by_plane(k, *box, false);
  else
    scatter_one_box(k, box, false);
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
  if (k->grad_in.nontemporal) fence_nontemporal();
}

/* A box looks at all outputs whose windows touch it.  So that few outputs are looked at twice,
 * boxes are larger where rows are is_i64. */
static bool scatter_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_pooling *p = &problem->facts.pool;
  *tiling = pg_tile_flat(p, p->w.in > BOX_CELLS / 8 ? BOX_CELLS : BOX_CELLS / 2);
  return true;
}

static void scatter_items(const void *args, int64_t begin, int64_t end,
                          struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  struct scatter *k = begin_scatter(task, scratch);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, &task->problem.facts.pool, item);
    scatter_one_box(k, &box, false);
  }
  if (k->grad_in.nontemporal) fence_nontemporal();
}

const struct pg_cpu_method VARIANT(max_scatter) = {.name = "scatter",
                                                   .fits = scatter_fits,
                                                   .workspace = pg_flags_bytes,
                                                   .run = scatter_items,
                                                   .mend = VARIANT(mend_flagged)};
