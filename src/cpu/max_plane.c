/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/max_plane.h"

#include "cpu/bad_indices.h"
#include "kernels/tiling.h"

struct pg_max_plane pg_max_plane_of(const struct pg_task *task, const struct pg_box *box,
                                    int64_t plane, bool every_output) {
  const struct pg_pooling *p = &task->problem.facts.pool;
  struct pg_max_plane t = {.task = task,
                           .box = box,
                           .plane = plane,
                           .n = plane / p->c,
                           .c = plane % p->c,
                           .every_output = every_output || box->whole,
                           .od = {0, p->d.out},
                           .oh = {0, p->h.out},
                           .ow = {0, p->w.out},
                           .report = pg_no_bad_indices()};
  if (t.every_output) return t;
  t.od = pg_touching(&p->d, box->d.begin, box->d.end);
  t.oh = pg_touching(&p->h, box->h.begin, box->h.end);
  t.ow = pg_touching(&p->w, box->w.begin, box->w.end);
  return t;
}

struct pg_row_windows pg_row_windows_of(const struct pg_pooling *p, int64_t od, int64_t oh) {
  return (struct pg_row_windows){.od = od,
                                 .oh = oh,
                                 .d = pg_window_clip(&p->d, pg_window(&p->d, od)),
                                 .h = pg_window_clip(&p->h, pg_window(&p->h, oh))};
}

struct cell {
  int64_t d, h, w;
};

static struct cell cell_of(const struct pg_pooling *p, int64_t index) {
  const int64_t row = index / p->w.in;
  return (struct cell){row / p->h.in, row % p->h.in, index % p->w.in};
}

static bool holds(struct pg_range r, int64_t x) { return x >= r.begin && x < r.end; }

static bool is_in_plane(const struct pg_max_plane *t, int64_t index) {
  return index >= 0 && index < t->task->problem.facts.cells;
}

int64_t pg_position_in_box(const struct pg_max_plane *t, int64_t index) {
  const struct pg_box *b = t->box;
  if (!is_in_plane(t, index)) return -1;
  const struct cell at = cell_of(&t->task->problem.facts.pool, index);
  if (!holds(b->d, at.d) || !holds(b->h, at.h) || !holds(b->w, at.w)) return -1;
  return ((at.d - b->d.begin) * pg_length(b->h) + at.h - b->h.begin) * pg_length(b->w) + at.w -
         b->w.begin;
}

static void report_index(struct pg_max_plane *t, const struct pg_row_windows *row, int64_t ow,
                         int64_t index) {
  const struct pg_pooling *p = &t->task->problem.facts.pool;
  const int64_t position = ((t->plane * p->d.out + row->od) * p->h.out + row->oh) * p->w.out + ow;
  pg_note_bad_index(&t->report, position, index);
}

/* The item of this plane in which a cell lies. */
static int64_t item_of(const struct pg_max_plane *t, struct cell at) {
  const struct pg_tiling *g = &t->task->choice.tiling;
  const int64_t n = t->task->problem.facts.pool.n, groups = n > 0 ? g->plane_items / n : 1;
  const int64_t group = g->interleaved ? t->n * groups + t->c / g->planes : t->plane / g->planes;
  return ((group * g->d_items + at.d / g->d) * g->h_items + at.h / g->h) * g->w_items + at.w / g->w;
}

void pg_index_elsewhere(struct pg_max_plane *t, const struct pg_row_windows *row, int64_t ow,
                        int64_t index) {
  const struct pg_pooling *p = &t->task->problem.facts.pool;
  const struct pg_box *b = t->box;
  if (t->every_output) {
    if (!is_in_plane(t, index)) report_index(t, row, ow, index);
    return;
  }
  const struct pg_range w = pg_window_clip(&p->w, pg_window(&p->w, ow));
  if (!holds(b->d, row->d.begin) || !holds(b->h, row->h.begin) || !holds(b->w, w.begin)) return;
  if (!is_in_plane(t, index)) {
    report_index(t, row, ow, index);
    return;
  }
  const struct cell at = cell_of(p, index);
  int32_t *flag = &t->task->problem.args.max_backward.flags[item_of(t, at)];
  if (!holds(row->d, at.d) || !holds(row->h, at.h) || !holds(w, at.w))
    __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

void pg_max_plane_report(const struct pg_max_plane *t) {
  pg_report_bad_indices(t->task->problem.args.max_backward.report, &t->report);
}

int64_t pg_flags_bytes(const struct pg_problem *problem, const struct pg_tiling *tiling) {
  (void)problem;
  return pg_tiling_cuts(tiling) ? pg_tiling_items(tiling) * (int64_t)sizeof(int32_t) : 0;
}
