/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward for windows of one cell that slide by one: gradInput is gradOutput divided by
 * one number.  Both tensors are contiguous in the same order, planar or channels last, so this is
 * one loop over their elements, which writes whole lines as fast as memory takes them. */
#include "cpu/kernels/avg_quotients.h"

enum { ITEM = 8192 /* elements of an item, about */ };

/* Divides a few elements, at most `count`; returns how many. */
static inline int64_t divide_part(const element *from, element *to, int64_t count,
                                  const struct divisor_run *by) {
  const int64_t part = least(count, LANES);
  const floats quotient = quotient_of(load_part(from, part), all(by->divisor[0]), all(by->high),
                                      all(by->low), division_of(by));
  store_part(to, pack(quotient), part);
  return part;
}

static inline __attribute__((always_inline)) void divide_elements(const element *from, element *to,
                                                                  int64_t count,
                                                                  const struct divisor_run *by,
                                                                  const enum division how,
                                                                  const bool nontemporal) {
  const int64_t line = most(LINE, TWO_VECTORS * (int64_t)sizeof *to) / (int64_t)sizeof *to;
  const int64_t beyond = (int64_t)((uintptr_t)to / sizeof *to) % line;
  const int64_t head = least(count, (line - beyond) % line);
  const floats divisor = all(by->divisor[0]), high = all(by->high), low = all(by->low);
  int64_t i = 0;
  while (i < head) i += divide_part(from + i, to + i, head - i, by);
  for (; i + TWO_VECTORS <= count; i += TWO_VECTORS) {
    __builtin_prefetch(from + i + by->ahead);
    const floats v = quotient_of(load_elements(from + i), divisor, high, low, how);
    const floats w = quotient_of(load_elements(from + i + LANES), divisor, high, low, how);
    if (nontemporal)
      store_two_nontemporal(to + i, v, w);
    else
      store_two(to + i, v, to + i + LANES, w);
  }
  while (i < count) i += divide_part(from + i, to + i, count - i, by);
}

static void divide_run_of(const element *from, element *to, int64_t count,
                          const struct divisor_run *by, bool nontemporal) {
  const enum division how = division_of(by);
  if (how == BY_PRODUCTS && nontemporal)
    divide_elements(from, to, count, by, BY_PRODUCTS, true);
  else if (how == BY_PRODUCTS)
    divide_elements(from, to, count, by, BY_PRODUCTS, false);
  else if (how == BY_RECIPROCAL && nontemporal)
    divide_elements(from, to, count, by, BY_RECIPROCAL, true);
  else if (how == BY_RECIPROCAL)
    divide_elements(from, to, count, by, BY_RECIPROCAL, false);
  else
    divide_elements(from, to, count, by, BY_ONE, false);
}

static void one_cell_items(const void *args, int64_t begin, int64_t end,
                           struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *f = &task->problem.facts;
  const struct pg_avg_backward *a = &task->problem.args.avg_backward;
  const float divisor = a->divisor != 0 ? (float)a->divisor : 1;
  const struct divisor_run by = one_divisor(&divisor, AVG_AHEAD);
  const bool aligned = (uintptr_t)a->grad_in % sizeof(element) == 0;
  const bool nontemporal = aligned && pg_prefers_nontemporal(f->grad_in_bytes);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box b = pg_box_of(&task->choice.tiling, &f->pool, item);
    const int64_t at = pg_offset(&a->in_strides, b.first / f->pool.c, b.first % f->pool.c,
                                 b.d.begin, b.h.begin, b.w.begin); /* in both tensors */
    divide_run_of((const element *)a->grad_out + at, (element *)a->grad_in + at, b.planes * b.cells,
                  &by, nontemporal);
  }
  if (nontemporal) fence_nontemporal();
}

/* --- The method --- */

static bool has_own_cell(const struct pg_axis *axis) {
  return axis->kernel == 1 && axis->stride == 1 && axis->pad == 0 && axis->in == axis->out;
}

static bool one_cell_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  const struct pg_pooling *p = &f->pool;
  const struct pg_avg_backward *a = &problem->args.avg_backward;
  const bool interleaved = !(f->in.all && f->out.all);
  if (!has_own_cell(&p->d) || !has_own_cell(&p->h) || !has_own_cell(&p->w)) return false;
  if (f->largest_divisor == INT64_MAX) return false;
  if (interleaved && (!is_interleaved(a) || !layout_of(&a->in_strides, p, false, true).all ||
                      !layout_of(&a->out_strides, p, true, true).all))
    return false;
  struct pg_pooling units = *p; /* of all channels of a cell, if these are neighbours */
  if (interleaved) units.c = 1;
  struct pg_tiling t = pg_tile_flat(&units, most(1, ITEM / (p->c / units.c)));
  t.interleaved = interleaved;
  t.planes *= p->c / units.c;
  *tiling = pg_tile_boxes(p, &t);
  return true;
}

const struct pg_cpu_method VARIANT(avg_one_cell) = {
    .name = "one_cell", .fits = one_cell_fits, .run = one_cell_items};
