/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward of any problem, in plain C.  It is used for doubles, for windows so long that
 * scratch memory cannot hold what a row of cells needs, for divisors that fp32 may not represent,
 * and for an empty gradOutput, which leaves zeros.
 *
 * The sum over windows is taken axis by axis, as in avg_rows.c: a row of outputs is divided and
 * expanded along W, the expanded row is added to every row of its windows, and the slices that this
 * gives are added along D.  Any number of outputs may belong to a box, so the loops over them look
 * at `stop` themselves; nobody uses the results of a task that was stopped. */
#include "cpu/box.h"
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

enum { ANY_BOX_CELLS = 4096, LOOK_EVERY = 4096 /* outputs between two looks at stop */ };

struct any {
  const struct pg_avg_backward *args;
  const struct pg_pooling *pool;
  const struct pg_scratch *scratch; /* the memory in which this struct is */
  sum_type sum[ANY_BOX_CELLS], slice[ANY_BOX_CELLS], row[ANY_BOX_CELLS];
};
_Static_assert(sizeof(struct any) <= PG_SCRATCH_METHOD, "doubles need more scratch");

static int64_t any_extent(const struct any *k, const struct pg_axis *axis, int64_t o) {
  return pg_window_extent(axis, o, k->args->count_include_pad);
}

/* row[w] = the sum of the quotients whose windows hold cell w.  `outer` is the extent of the
 * windows along D times that along H. */
static void expand_any_row(struct any *k, const struct pg_box *b, const element *grad,
                           int64_t outer) {
  const struct pg_axis *axis = &k->pool->w;
  const struct pg_range outputs = pg_touching(axis, b->w.begin, b->w.end);
  const int64_t given = k->args->divisor;
  memset(k->row, 0, (size_t)pg_length(b->w) * sizeof *k->row);
  for (int64_t ow = outputs.begin; ow < outputs.end; ow++) {
    if (ow % LOOK_EVERY == 0 && pg_is_stopped(k->scratch)) return;
    const struct pg_range cells = pg_window_clip(axis, pg_window(axis, ow));
    const int64_t from = cells.begin > b->w.begin ? cells.begin : b->w.begin;
    const int64_t to = cells.end < b->w.end ? cells.end : b->w.end;
    const int64_t divisor = given != 0 ? given : outer * any_extent(k, axis, ow);
    const sum_type quotient =
        widen_one(grad[ow * k->args->out_strides.of[PG_W]]) / (sum_type)divisor;
    for (int64_t w = from; w < to; w++) k->row[w - b->w.begin] += quotient;
  }
}

/* slice[h][w] = the sum over oh of the expanded rows, for one od. */
static void add_any_slice(struct any *k, const struct pg_box *b, const element *grad, int64_t od) {
  const struct pg_axis *axis = &k->pool->h;
  const struct pg_range outputs = pg_touching(axis, b->h.begin, b->h.end);
  const int64_t width = pg_length(b->w);
  memset(k->slice, 0, (size_t)(width * pg_length(b->h)) * sizeof *k->slice);
  for (int64_t oh = outputs.begin; oh < outputs.end; oh++) {
    if (pg_is_stopped(k->scratch)) return;
    const struct pg_range cells = pg_window_clip(axis, pg_window(axis, oh));
    const int64_t from = cells.begin > b->h.begin ? cells.begin : b->h.begin;
    const int64_t to = cells.end < b->h.end ? cells.end : b->h.end;
    expand_any_row(k, b, grad + oh * k->args->out_strides.of[PG_H],
                   any_extent(k, &k->pool->d, od) * any_extent(k, axis, oh));
    for (int64_t h = from; h < to; h++)
      for (int64_t w = 0; w < width; w++) k->slice[(h - b->h.begin) * width + w] += k->row[w];
  }
}

/* Computes slice d of the box in one plane. */
static void make_any_slice(struct any *k, const struct pg_box *b, int64_t plane, int64_t d) {
  const struct pg_avg_backward *a = k->args;
  const int64_t *s = a->in_strides.of, n = plane / k->pool->c, c = plane % k->pool->c;
  const int64_t width = pg_length(b->w), cells = width * pg_length(b->h);
  const struct pg_range outputs = pg_touching(&k->pool->d, d, d + 1);
  const bool exist = k->pool->h.out > 0 && k->pool->w.out > 0; /* outputs; else no address */
  memset(k->sum, 0, (size_t)cells * sizeof *k->sum);
  for (int64_t od = outputs.begin; od < outputs.end && exist; od++) {
    if (pg_is_stopped(k->scratch)) return;
    const int64_t at = pg_offset(&a->out_strides, n, c, od, 0, 0);
    add_any_slice(k, b, (const element *)a->grad_out + at, od);
    for (int64_t i = 0; i < cells; i++) k->sum[i] += k->slice[i];
  }
  element *to = (element *)a->grad_in + pg_offset(&a->in_strides, n, c, d, b->h.begin, b->w.begin);
  for (int64_t i = 0; i < cells; i += width, to += s[PG_H])
    for (int64_t w = 0; w < width; w++) to[w * s[PG_W]] = round_one(k->sum[i + w]);
}

static void any_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  struct any *k = scratch->room;
  k->args = &task->problem.args.avg_backward;
  k->pool = &task->problem.facts.pool;
  k->scratch = scratch;
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, k->pool, item);
    for (int64_t i = 0; i < box.planes; i++)
      for (int64_t d = box.d.begin; d < box.d.end; d++) make_any_slice(k, &box, box.first + i, d);
  }
}

static bool any_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  *tiling = pg_tile_flat(&problem->facts.pool, ANY_BOX_CELLS);
  return true;
}

const struct pg_cpu_method VARIANT(avg_any) = {.name = "any", .fits = any_fits, .run = any_items};
