/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/scatter.h"

#include <stddef.h>

static int64_t plane_size(const struct pg_pooling *p) { return p->d.in * p->h.in * p->w.in; }

/* The outputs whose windows touch [lo, hi).  A tile that spans rows or slices looks at whole rows
 * or slices of outputs. */
static void look_near(struct pg_scatter_tile *t) {
  const struct pg_pooling *p = &t->args->pool;
  const int64_t first_row = t->lo / p->w.in, last_row = (t->hi - 1) / p->w.in;
  const int64_t first_d = first_row / p->h.in, last_d = last_row / p->h.in;
  t->od = pg_touching(&p->d, first_d, last_d + 1);
  if (first_d == last_d)
    t->oh = pg_touching(&p->h, first_row - first_d * p->h.in, last_row - first_d * p->h.in + 1);
  if (first_row == last_row)
    t->ow = pg_touching(&p->w, t->lo - first_row * p->w.in, t->hi - first_row * p->w.in);
}

struct pg_scatter_tile pg_scatter_begin(const struct pg_scatter_args *args, int64_t item,
                                        bool every_output) {
  const struct pg_pooling *p = &args->pool;
  const int64_t size = plane_size(p);
  struct pg_scatter_tile t = {.args = args,
                              .plane = item,
                              .all = every_output || args->tiles == 1,
                              .od = {0, p->d.out},
                              .oh = {0, p->h.out},
                              .ow = {0, p->w.out},
                              .bad = {.count = 0, .position = INT64_MAX}};
  if (args->tiles > 1) {
    t.plane = item / args->tiles;
    t.lo = item % args->tiles * args->tile;
  }
  t.n = t.plane / p->c;
  t.c = t.plane - t.n * p->c;
  t.hi = t.lo + args->tile < size ? t.lo + args->tile : size;
  if (!t.all) look_near(&t);
  return t;
}

static void note_bad(struct pg_scatter_tile *t, int64_t od, int64_t oh, int64_t ow, int64_t i) {
  const struct pg_pooling *p = &t->args->pool;
  const int64_t position = ((t->plane * p->d.out + od) * p->h.out + oh) * p->w.out + ow;
  t->bad.count++;
  if (position < t->bad.position) {
    t->bad.position = position;
    t->bad.value = i;
  }
}

/* An output is at home in the tile that holds the first cell of its window. */
static bool is_home(const struct pg_scatter_tile *t, const struct pg_scatter_row *row,
                    const struct pg_range *w) {
  const struct pg_pooling *p = &t->args->pool;
  const int64_t first = (row->d.begin * p->h.in + row->h.begin) * p->w.in + w->begin;
  return first >= t->lo && first < t->hi;
}

struct pg_scatter_row pg_scatter_row(const struct pg_scatter_tile *t, int64_t od, int64_t oh) {
  const struct pg_pooling *p = &t->args->pool;
  struct pg_scatter_row row = {.od = od, .oh = oh, .may_be_home = true};
  if (t->all) return row;
  row.d = pg_window_clip(&p->d, pg_window(&p->d, od));
  row.h = pg_window_clip(&p->h, pg_window(&p->h, oh));
  const int64_t start = (row.d.begin * p->h.in + row.h.begin) * p->w.in;
  row.may_be_home = start < t->hi && start + p->w.in > t->lo;
  return row;
}

static bool in_window(const struct pg_pooling *p, int64_t i, const struct pg_range *d,
                      const struct pg_range *h, const struct pg_range *w) {
  const int64_t iw = i % p->w.in, row = i / p->w.in, ih = row % p->h.in, id = row / p->h.in;
  return iw >= w->begin && iw < w->end && ih >= h->begin && ih < h->end && id >= d->begin &&
         id < d->end;
}

void pg_scatter_elsewhere(struct pg_scatter_tile *t, const struct pg_scatter_row *row, int64_t ow,
                          int64_t i) {
  const struct pg_pooling *p = &t->args->pool;
  const bool outside = i < 0 || i >= plane_size(p);
  if (t->all) {
    if (outside) note_bad(t, row->od, row->oh, ow, i);
    return;
  }
  const struct pg_range w = pg_window_clip(&p->w, pg_window(&p->w, ow));
  if (!is_home(t, row, &w)) return;
  if (outside)
    note_bad(t, row->od, row->oh, ow, i);
  else if (!in_window(p, i, &row->d, &row->h, &w))
    __atomic_store_n(&t->args->stray[t->plane * t->args->tiles + i / t->args->tile], 1,
                     __ATOMIC_RELAXED);
}

void pg_scatter_end(const struct pg_scatter_tile *t) {
  if (t->bad.count > 0 && t->args->report != NULL) pg_index_report_merge(t->args->report, &t->bad);
}
