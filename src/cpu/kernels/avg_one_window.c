/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward where one window holds the whole plane (global average pooling): every cell of a
 * plane is the same quotient, so a plane is one division and one fill.
 *
 * Items are whole planes.  If there are only a few, which may be large, they are left to the other
 * methods, which cut them into parts for several threads. */
#include <string.h>

#include "cpu/box.h"
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

enum { LEAST_PLANES = 64, PLANES_CELLS = 4096 };

/* Fills cells in blocks.  The last block may end behind them, among cells that are filled later:
 * `writable` cells may be overwritten. */
static inline void fill_plane(element *to, int64_t cells, int64_t writable, element value) {
  enum { BLOCK = 64 / sizeof(element) };
  element block[BLOCK];
  for (int i = 0; i < BLOCK; i++) block[i] = value;
  int64_t i = 0;
  for (; i < cells && i + BLOCK <= writable; i += BLOCK) memcpy(to + i, block, sizeof block);
  for (; i < cells; i++) to[i] = value;
}

static void one_window_items(const void *args, int64_t begin, int64_t end,
                             struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  const struct pg_facts *f = &task->problem.facts;
  const struct pg_avg_backward *a = &task->problem.args.avg_backward;
  const struct pg_pooling *p = &f->pool;
  const bool pad = a->count_include_pad;
  const int64_t counted = pg_window_extent(&p->d, 0, pad) * pg_window_extent(&p->h, 0, pad) *
                          pg_window_extent(&p->w, 0, pad);
  const sum_type divisor = (sum_type)(a->divisor != 0 ? a->divisor : counted);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, p, item);
    for (int64_t i = 0; i < box.planes; i++) {
      const int64_t n = (box.first + i) / p->c, c = (box.first + i) % p->c;
      const int64_t at = pg_offset(&a->out_strides, n, c, 0, 0, 0);
      const sum_type grad = widen_one(((const element *)a->grad_out)[at]);
      element *to = (element *)a->grad_in + pg_offset(&a->in_strides, n, c, 0, 0, 0);
      fill_plane(to, box.cells, (f->in.all ? box.planes - i : 1) * box.cells,
                 round_one(0 + grad / divisor));
    }
  }
}

static bool one_window_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  const struct pg_facts *f = &problem->facts;
  *tiling = pg_tile_planes(&f->pool, PLANES_CELLS);
  return pg_is_one_window(&f->pool.d) && pg_is_one_window(&f->pool.h) &&
         pg_is_one_window(&f->pool.w) && f->in.planes && f->planes >= LEAST_PLANES;
}

const struct pg_cpu_method VARIANT(avg_one_window) = {
    .name = "one_window", .fits = one_window_fits, .run = one_window_items};
