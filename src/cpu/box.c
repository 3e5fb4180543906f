/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/box.h"

#include "core/checked.h"

/* The item-th part of [0, end), if parts have this size. */
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
  if (t->interleaved && t->planes < p->c) { /* groups of channels begin anew with every n */
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

static void cover_by_one(struct pg_cover *m, const struct pg_axis *axis) {
  const int64_t span = pg_window_span(axis);
  m->by_one = true;
  m->most = span + 1;
  const int64_t start = m->cells.begin + axis->pad - span - m->outputs.begin + m->front;
  for (int64_t i = 0; i < pg_length(m->cells) + PG_COVER_SLACK; i++) {
    m->first[i] = (int32_t)(start + i);
    m->count[i] = (int32_t)m->most;
  }
}

/* The window of output o + 1, given that of o. */
static struct pg_range next_window(const struct pg_axis *axis, int64_t o, struct pg_range w) {
  if (axis->kernel == 0) return pg_window(axis, o + 1);
  return (struct pg_range){w.begin + axis->stride, w.end + axis->stride};
}

/* Windows begin and end in the order of their outputs.  So from cell to cell both ends of `live`,
 * the range of outputs in whose windows a cell lies, only move on. */
static void cover_by_sweep(struct pg_cover *m, const struct pg_axis *axis) {
  const int64_t length = pg_length(m->cells), last = m->outputs.end;
  struct pg_range live = {m->outputs.begin, m->outputs.begin};
  struct pg_range oldest = pg_window(axis, live.begin); /* the window of output live.begin */
  struct pg_range next = oldest;                        /* and of output live.end */
  m->by_one = false;
  m->most = 0;
  for (int64_t i = 0; i < length; i++) {
    const int64_t cell = m->cells.begin + i;
    for (; live.end < last && next.begin <= cell; live.end++)
      next = next_window(axis, live.end, next);
    for (; live.begin < live.end && oldest.end <= cell; live.begin++)
      oldest = next_window(axis, live.begin, oldest);
    m->first[i] = (int32_t)(live.begin - m->outputs.begin + m->front);
    m->count[i] = (int32_t)pg_length(live);
    if (m->count[i] > m->most) m->most = m->count[i];
  }
  for (int64_t i = length; i < length + PG_COVER_SLACK; i++) {
    m->first[i] = m->first[length - 1];
    m->count[i] = 0;
  }
}

static void make_cover(struct pg_cover *m, const struct pg_axis *axis, struct pg_range cells,
                       int64_t front) {
  if (m->cells.begin == cells.begin && m->cells.end == cells.end) return;
  m->cells = cells;
  m->outputs = pg_touching(axis, cells.begin, cells.end);
  if (m->outputs.begin > axis->out) m->outputs.begin = m->outputs.end = axis->out;
  m->front = front;
  if (axis->kernel > 0 && axis->stride == 1 && pg_window_span(axis) <= front &&
      pg_length(m->outputs) > 0)
    cover_by_one(m, axis);
  else
    cover_by_sweep(m, axis);
}

void pg_box_cover_begin(struct pg_box_cover *cover) {
  const struct pg_range nothing = {-1, -1};
  const int64_t rows = PG_BOX_ROWS + PG_COVER_SLACK, width = PG_BOX_WIDTH + PG_COVER_SLACK;
  int32_t *room = cover->room;
  cover->d = (struct pg_cover){.cells = nothing, .first = room, .count = room + rows};
  cover->h =
      (struct pg_cover){.cells = nothing, .first = room + 2 * rows, .count = room + 3 * rows};
  room += 4 * rows;
  cover->w = (struct pg_cover){.cells = nothing, .first = room, .count = room + width};
}

void pg_box_cover_make(struct pg_box_cover *cover, const struct pg_pooling *p,
                       const struct pg_box *box, int64_t front) {
  make_cover(&cover->d, &p->d, box->d, 0);
  make_cover(&cover->h, &p->h, box->h, 0);
  make_cover(&cover->w, &p->w, box->w, front);
}

int64_t pg_outputs_per_item(const struct pg_task *task) {
  const struct pg_tiling *t = &task->choice.tiling;
  int64_t outputs;
  if (!pg_mul(task->problem.facts.outputs, t->planes, &outputs)) return 0;
  outputs /= t->d_items * t->h_items * t->w_items;
  return outputs < 1 << 20 ? outputs : 0;
}
