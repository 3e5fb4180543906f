/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/scatter.h"

#include <stddef.h>

static int64_t plane_size(const struct pg_pooling *p) { return p->d.in * p->h.in * p->w.in; }

struct pg_scatter_plane pg_scatter_begin(const struct pg_scatter_args *args,
                                         const struct pg_box *box, int64_t plane,
                                         bool every_output) {
  const struct pg_pooling *p = &args->pool;
  struct pg_scatter_plane t = {.args = args,
                               .box = box,
                               .plane = plane,
                               .n = plane / p->c,
                               .c = plane % p->c,
                               .all = every_output || box->whole,
                               .od = {0, p->d.out},
                               .oh = {0, p->h.out},
                               .ow = {0, p->w.out},
                               .bad = {.count = 0, .position = INT64_MAX}};
  if (t.all) return t;
  t.od = pg_touching(&p->d, box->d.begin, box->d.end);
  t.oh = pg_touching(&p->h, box->h.begin, box->h.end);
  t.ow = pg_touching(&p->w, box->w.begin, box->w.end);
  return t;
}

struct pg_scatter_row pg_scatter_row(const struct pg_scatter_plane *t, int64_t od, int64_t oh) {
  const struct pg_pooling *p = &t->args->pool;
  return (struct pg_scatter_row){.od = od,
                                 .oh = oh,
                                 .d = pg_window_clip(&p->d, pg_window(&p->d, od)),
                                 .h = pg_window_clip(&p->h, pg_window(&p->h, oh))};
}

struct cell {
  int64_t d, h, w;
};

static struct cell cell_of(const struct pg_pooling *p, int64_t i) {
  const int64_t row = i / p->w.in;
  return (struct cell){row / p->h.in, row % p->h.in, i % p->w.in};
}

static bool holds(struct pg_range r, int64_t x) { return x >= r.begin && x < r.end; }

int64_t pg_scatter_at(const struct pg_scatter_plane *t, int64_t i) {
  const struct pg_box *b = t->box;
  if (i < 0 || i >= plane_size(&t->args->pool)) return -1;
  const struct cell at = cell_of(&t->args->pool, i);
  if (!holds(b->d, at.d) || !holds(b->h, at.h) || !holds(b->w, at.w)) return -1;
  return ((at.d - b->d.begin) * pg_length(b->h) + at.h - b->h.begin) * pg_length(b->w) + at.w -
         b->w.begin;
}

static void note_bad(struct pg_scatter_plane *t, int64_t od, int64_t oh, int64_t ow, int64_t i) {
  const struct pg_pooling *p = &t->args->pool;
  const int64_t position = ((t->plane * p->d.out + od) * p->h.out + oh) * p->w.out + ow;
  t->bad.count++;
  if (position < t->bad.position) {
    t->bad.position = position;
    t->bad.value = i;
  }
}

/* The item of this plane that holds a cell. */
static int64_t item_of(const struct pg_scatter_plane *t, struct cell at) {
  const struct pg_tiling *g = &t->args->tiling;
  const int64_t groups = t->args->pool.n > 0 ? g->plane_items / t->args->pool.n : 1;
  const int64_t group = g->interleaved ? t->n * groups + t->c / g->planes : t->plane / g->planes;
  return ((group * g->d_items + at.d / g->d) * g->h_items + at.h / g->h) * g->w_items + at.w / g->w;
}

/* An output is at home in the box that holds the first cell of its window. */
void pg_scatter_elsewhere(struct pg_scatter_plane *t, const struct pg_scatter_row *row, int64_t ow,
                          int64_t i) {
  const struct pg_pooling *p = &t->args->pool;
  const struct pg_box *b = t->box;
  const bool outside = i < 0 || i >= plane_size(p);
  if (t->all) {
    if (outside) note_bad(t, row->od, row->oh, ow, i);
    return;
  }
  const struct pg_range w = pg_window_clip(&p->w, pg_window(&p->w, ow));
  if (!holds(b->d, row->d.begin) || !holds(b->h, row->h.begin) || !holds(b->w, w.begin)) return;
  if (outside) {
    note_bad(t, row->od, row->oh, ow, i);
    return;
  }
  const struct cell at = cell_of(p, i);
  if (!holds(row->d, at.d) || !holds(row->h, at.h) || !holds(w, at.w))
    __atomic_store_n(&t->args->stray[item_of(t, at)], 1, __ATOMIC_RELAXED);
}

void pg_scatter_end(const struct pg_scatter_plane *t) {
  if (t->bad.count > 0 && t->args->report != NULL) pg_index_report_merge(t->args->report, &t->bad);
}

static bool can_slide(const struct pg_axis *a) {
  return a->kernel == 0 && a->out > 0 && a->in > 0 && a->in % a->out == 0;
}

static void slide(struct pg_axis *a) {
  if (!can_slide(a)) return;
  a->kernel = a->stride = a->in / a->out;
  a->dilation = 1;
}

const struct pg_scatter_args *pg_scatter_sliding(const struct pg_scatter_args *args,
                                                 struct pg_scatter_args *room) {
  if (!can_slide(&args->pool.h) || !can_slide(&args->pool.w)) return args;
  *room = *args;
  slide(&room->pool.d);
  slide(&room->pool.h);
  slide(&room->pool.w);
  return room;
}

/* Measured: with fewer outputs than a 16th of the cells the scatter's few additions are cheaper,
 * and with fewer than 64 what a gather takes to begin is not worth it. */
bool pg_prefers_gather(const struct pg_scatter_args *a) {
  const struct pg_pooling *p = &a->pool;
  const int64_t outputs = pg_plane_outputs(p);
  return outputs >= 64 && plane_size(p) / 16 < outputs;
}
