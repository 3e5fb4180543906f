/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/box.h"

#include "core/checked.h"

static struct pg_range cut(int64_t item, int64_t size, int64_t end) {
  const int64_t begin = item * size;
  return (struct pg_range){begin, end - begin < size ? end : begin + size};
}

struct pg_box pg_box_of(const struct pg_tiling *t, const struct pg_pooling *p, int64_t item) {
  struct pg_box box;
  int64_t i = item;
  const int64_t w = i % t->w_items;
  i /= t->w_items;
  const int64_t h = i % t->h_items;
  i /= t->h_items;
  const int64_t d = i % t->d_items;
  i /= t->d_items;
  if (t->interleaved) { /* groups of channels begin anew with every n */
    const int64_t groups = t->plane_items / p->n;
    const struct pg_range c = cut(i % groups, t->planes, p->c);
    box.first = i / groups * p->c + c.begin;
    box.planes = pg_length(c);
  } else {
    const struct pg_range planes = cut(i, t->planes, p->n * p->c);
    box.first = planes.begin;
    box.planes = pg_length(planes);
  }
  box.d = cut(d, t->d, p->d.in);
  box.h = cut(h, t->h, p->h.in);
  box.w = cut(w, t->w, p->w.in);
  box.cells = pg_length(box.d) * pg_length(box.h) * pg_length(box.w);
  box.whole = t->d_items == 1 && t->h_items == 1 && t->w_items == 1;
  return box;
}

static bool make_steady(struct pg_map *m, const struct pg_axis *axis, int64_t reach) {
  m->steady = true;
  m->terms = reach + 1;
  const int64_t start = m->cells.begin + axis->pad - reach - m->outputs.begin + m->front;
  for (int64_t i = 0; i < pg_length(m->cells) + PG_MAP_SLACK; i++) {
    m->first[i] = (int32_t)(start + i);
    m->count[i] = (int32_t)m->terms;
  }
  return true;
}

/* The window of output o + 1, given that of o. */
static struct pg_range next_window(const struct pg_axis *axis, int64_t o, struct pg_range w) {
  if (axis->kernel == 0) return pg_window(axis, o + 1);
  return (struct pg_range){w.begin + axis->stride, w.end + axis->stride};
}

/* Windows begin and end in the order of their outputs, so both ends only move on. */
static bool make_by_sweep(struct pg_map *m, const struct pg_axis *axis) {
  const int64_t length = pg_length(m->cells), last = m->outputs.end;
  struct pg_range live = {m->outputs.begin, m->outputs.begin};
  struct pg_range oldest = pg_window(axis, live.begin), newest = oldest; /* the next one to come */
  m->steady = false;
  m->terms = 0;
  if (pg_length(m->outputs) > INT32_MAX - m->front) return false;
  for (int64_t i = 0; i < length; i++) {
    const int64_t cell = m->cells.begin + i;
    for (; live.end < last && newest.begin <= cell; live.end++)
      newest = next_window(axis, live.end, newest);
    for (; live.begin < live.end && oldest.end <= cell; live.begin++)
      oldest = next_window(axis, live.begin, oldest);
    m->first[i] = (int32_t)(live.begin - m->outputs.begin + m->front);
    m->count[i] = (int32_t)pg_length(live);
    if (m->count[i] > m->terms) m->terms = m->count[i];
  }
  for (int64_t i = length; i < length + PG_MAP_SLACK; i++) {
    m->first[i] = m->first[length - 1];
    m->count[i] = 0;
  }
  return true;
}

bool pg_map_make(struct pg_map *m, const struct pg_axis *axis, struct pg_range cells,
                 int64_t front) {
  if (m->cells.begin == cells.begin && m->cells.end == cells.end) return true;
  m->cells = cells;
  m->outputs = pg_touching(axis, cells.begin, cells.end);
  if (m->outputs.begin > axis->out) m->outputs.begin = m->outputs.end = axis->out;
  m->front = front;
  const int64_t reach = (axis->kernel - 1) * axis->dilation;
  if (axis->kernel > 0 && axis->stride == 1 && reach <= front && pg_length(m->outputs) > 0)
    return make_steady(m, axis, reach);
  return make_by_sweep(m, axis);
}

void pg_maps_begin(struct pg_maps *maps) {
  const struct pg_range nothing = {-1, -1};
  const int64_t rows = PG_BOX_ROWS + PG_MAP_SLACK, width = PG_BOX_WIDTH + PG_MAP_SLACK;
  int32_t *room = maps->room;
  maps->d = (struct pg_map){.cells = nothing, .first = room, .count = room + rows};
  maps->h = (struct pg_map){.cells = nothing, .first = room + 2 * rows, .count = room + 3 * rows};
  room += 4 * rows;
  maps->w = (struct pg_map){.cells = nothing, .first = room, .count = room + width};
}

bool pg_maps_of(struct pg_maps *maps, const struct pg_pooling *p, const struct pg_box *box,
                int64_t front) {
  return pg_map_make(&maps->d, &p->d, box->d, 0) && pg_map_make(&maps->h, &p->h, box->h, 0) &&
         pg_map_make(&maps->w, &p->w, box->w, front);
}

struct pg_runs pg_runs_of(const struct pg_pooling *p, const struct pg_strides *in) {
  const int64_t row = p->w.in, slice = row * p->h.in, plane = slice * p->d.in, *s = in->of;
  struct pg_runs runs;
  runs.rows = (s[PG_W] == 1 || p->w.in == 1) && (s[PG_H] == row || p->h.in == 1) &&
              (s[PG_D] == slice || p->d.in == 1);
  runs.planes =
      runs.rows && (s[PG_C] == plane || p->c == 1) && (s[PG_N] == plane * p->c || p->n == 1);
  return runs;
}

/* What 64 bits cannot hold counts as the most they can: strides of 0 get there. */
static int64_t product(int64_t a, int64_t b) {
  int64_t ab;
  return pg_mul(a, b, &ab) ? ab : INT64_MAX;
}

int64_t pg_plane_outputs(const struct pg_pooling *p) {
  return product(product(p->d.out, p->h.out), p->w.out);
}

bool pg_is_flat(const struct pg_pooling *p, const struct pg_strides *out) {
  const int64_t row = p->w.out, slice = product(row, p->h.out), *s = out->of;
  return (s[PG_W] == 1 || p->w.out == 1) && (s[PG_H] == row || p->h.out == 1) &&
         (s[PG_D] == slice || p->d.out == 1);
}

int64_t pg_outputs_per_item(const struct pg_tiling *t, const struct pg_pooling *p) {
  const int64_t cuts = t->d_items * t->h_items * t->w_items;
  const int64_t outputs = product(pg_plane_outputs(p), t->planes) / cuts;
  return outputs < 1 << 20 ? outputs : 0; /* too far to be fetched ahead */
}

bool pg_planes_follow(const struct pg_pooling *p, const struct pg_strides *out) {
  const int64_t plane = pg_plane_outputs(p), *s = out->of;
  return (s[PG_C] == plane || p->c == 1) && (s[PG_N] == product(plane, p->c) || p->n == 1);
}
