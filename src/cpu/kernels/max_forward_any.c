/* SPDX-License-Identifier: Apache-2.0 */
/* Max-forward of any problem, in plain C: each output looks at the cells of its window one by one.
 * It is used for integers and doubles, and for what no other method fits. */
#include "cpu/box.h"
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

enum { ANY_OUTPUTS = 1024 };

/* The greatest cell so far.  It begins with the first cell of the window. */
struct greatest {
  element cell;
  int64_t position;
};

/* Does x replace the greatest cell so far?  A NaN does, and only a NaN replaces a NaN. */
static bool replaces(element x, element greatest) {
  const sum_type a = widen_one(x), b = widen_one(greatest);
  return a > b || is_nan(a);
}

/* Looks at one row of the window. */
static void look_at_row(const struct pg_max_forward *a, const element *row, struct pg_taps w,
                        int64_t position, struct greatest *g) {
  for (int64_t i = 0; i < w.count; i++) {
    const int64_t at = w.first + i * w.step;
    const element x = row[at * a->in_strides.of[PG_W]];
    if (g->position >= 0 && !replaces(x, g->cell)) continue;
    g->cell = x;
    g->position = position + at;
  }
}

static void make_output(const struct pg_task *task, int64_t plane, const int64_t o[3],
                        const struct pg_scratch *scratch) {
  const struct pg_max_forward *a = &task->problem.args.max_forward;
  const struct pg_pooling *p = &task->problem.facts.pool;
  const struct pg_taps d = pg_window_taps(&p->d, o[0]), h = pg_window_taps(&p->h, o[1]),
                       w = pg_window_taps(&p->w, o[2]);
  const int64_t n = plane / p->c, c = plane % p->c;
  struct greatest g = {.position = -1};
  for (int64_t i = 0; i < d.count; i++)
    for (int64_t j = 0; j < h.count; j++) {
      const int64_t id = d.first + i * d.step, ih = h.first + j * h.step;
      if (pg_is_stopped(scratch)) return;
      look_at_row(a, (const element *)a->in + pg_offset(&a->in_strides, n, c, id, ih, 0), w,
                  (id * p->h.in + ih) * p->w.in, &g);
    }
  ((element *)a->out)[pg_offset(&a->out_strides, n, c, o[0], o[1], o[2])] = g.cell;
  if (a->index_bytes == 0) return;
  const int64_t at = pg_offset(&a->index_strides, n, c, o[0], o[1], o[2]);
  if (a->index_bytes == 8)
    ((int64_t *)a->index)[at] = g.position;
  else
    ((int32_t *)a->index)[at] = (int32_t)g.position;
}

static void any_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_pooling grid = pg_output_grid(&task->problem.facts.pool);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box b = pg_box_of(&task->choice.tiling, &grid, item);
    for (int64_t plane = b.first; plane < b.first + b.planes; plane++)
      for (int64_t od = b.d.begin; od < b.d.end; od++)
        for (int64_t oh = b.h.begin; oh < b.h.end; oh++)
          for (int64_t ow = b.w.begin; ow < b.w.end; ow++)
            make_output(task, plane, (const int64_t[]){od, oh, ow}, scratch);
  }
}

static bool any_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_pooling grid = pg_output_grid(&problem->facts.pool);
  *tiling = pg_tile_flat(&grid, ANY_OUTPUTS);
  return true;
}

const struct pg_cpu_method VARIANT(max_forward_any) = {
    .name = "any", .fits = any_fits, .run = any_items};
