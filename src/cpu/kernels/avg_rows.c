/* SPDX-License-Identifier: Apache-2.0 */
/* Average-backward for cells that lie in many windows, or in high ones.
 *
 * The sum over the windows of a cell is a sum along D of sums along H of sums along W.  So a cell
 * costs as many additions as the sum of the numbers of windows that it lies in along the axes, and
 * not their product.  Each output is divided once.  Each row of quotients is expanded along W: the
 * quotients that a cell needs are added up, one float per cell.  The expanded rows that a row of
 * cells needs are added along H, and those sums along D.  Of rows of cells that lie in the same
 * windows one is computed, and copied.  With few windows per cell avg_columns.c is faster, because
 * it does not store expanded rows. */
#include "cpu/kernels/avg_quotients.h"

struct avg_rows {
  struct quotients q;
  int64_t pitch; /* between expanded rows */
  _Alignas(LINE) float expanded[AVG_STAGED + 2 * LANES];
  _Alignas(LINE) element row[PG_BOX_WIDTH + LANES]; /* the latest row of cells */
};
_Static_assert(sizeof(struct avg_rows) <= PG_SCRATCH_BYTES, "rows need more scratch");

static inline __attribute__((always_inline)) void expand_row(const struct pg_cover *m,
                                                             const float *quotient,
                                                             const bool by_one, float *to) {
  for (int64_t w = 0; w < pg_length(m->cells); w += LANES) {
    const float *from = quotient + m->first[w];
    floats sum = zeros();
    if (by_one) {
      sum = load_f32(from);
      for (int64_t i = 1; i < m->most; i++) sum = add(sum, load_f32(from + i));
    } else {
      const ints lane = sub_i(load_i32(m->first + w), all_i(m->first[w]));
      const ints count = load_i32(m->count + w);
      for (int64_t i = 0; i < m->most; i++)
        sum = add_above(sum, permute(load_f32(from + i), lane), count, all_i((int32_t)i));
    }
    store_f32(to + w, sum);
  }
}

/* Expands all rows of quotients of a plane. */
static void expand_plane(struct avg_rows *k) {
  const struct pg_box_cover *m = &k->q.cover;
  const int64_t rows = pg_length(m->d.outputs) * pg_length(m->h.outputs);
  for (int64_t i = 0; i < rows; i++) {
    const float *quotient = k->q.quotient + i * k->q.pitch;
    float *to = k->expanded + i * k->pitch;
    if (m->w.by_one)
      expand_row(&m->w, quotient, true, to);
    else
      expand_row(&m->w, quotient, false, to);
  }
}

/* Computes a row of cells: the sum over `depth` slices of the sums of `height` expanded rows. */
static inline void add_expanded(const struct avg_rows *k, const float *first, int64_t depth,
                                int64_t height, element *to) {
  const struct pg_box_cover *m = &k->q.cover;
  const int64_t slice = pg_length(m->h.outputs) * k->pitch;
  for (int64_t w = 0; w < pg_length(m->w.cells); w += LANES) {
    floats total = zeros();
    for (int64_t d = 0; d < depth; d++) {
      const float *row = first + d * slice + w;
      floats sum = load_f32(row);
      for (int64_t h = 1; h < height; h++) sum = add(sum, load_f32(row + h * k->pitch));
      total = d == 0 ? sum : add(total, sum);
    }
    store_packed(to + w, pack(total));
  }
}

/* Computes the rows [begin, end) of slice d. */
static void add_slice_rows(struct avg_rows *k, const struct destination *t, int64_t d,
                           int64_t begin, int64_t end) {
  const struct pg_cover *mh = &k->q.cover.h, *md = &k->q.cover.d;
  const int64_t width = pg_length(k->q.cover.w.cells);
  const float *slice = k->expanded + md->first[d] * pg_length(mh->outputs) * k->pitch;
  for (int64_t h = begin; h < end; h++) {
    const int64_t depth = mh->count[h] > 0 ? md->count[d] : 0;
    if (h == begin || !in_same_windows(mh, h))
      add_expanded(k, slice + mh->first[h] * k->pitch, depth, mh->count[h], k->row);
    memcpy(t->at + (h - begin) * t->row, k->row, (size_t)width * sizeof *k->row);
  }
}

static void make_plane_of_rows(struct avg_rows *k, const struct pg_box *b, struct destination *t) {
  const int64_t rows = rows_at_once(b);
  for (int64_t d = 0; d < pg_length(b->d); d++) {
    if (t->writer == NULL && in_same_windows(&k->q.cover.d, d)) {
      copy_slice(t, b, d);
      continue;
    }
    for (int64_t h = 0; h < pg_length(b->h); h += rows) {
      const int64_t end = least(h + rows, pg_length(b->h));
      begin_rows(t, d, h);
      add_slice_rows(k, t, d, h, end);
      end_rows(t, (end - h) * pg_length(b->w));
    }
  }
}

static void rows_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch) {
  const struct pg_task *task = args;
  struct avg_rows *k = scratch->room;
  begin_quotients(&k->q, task);
  for (int64_t item = begin; item < end && !pg_is_stopped(scratch); item++) {
    const struct pg_box box = pg_box_of(&task->choice.tiling, &k->q.facts->pool, item);
    begin_box(&k->q, &box);
    k->pitch = round_up(pg_length(box.w));
    for (int64_t i = 0; i < box.planes; i++) {
      struct destination t = destination_of(&k->q.grad_in, &box, i, &k->q.writer, k->q.out);
      divide_plane(&k->q, box.first + i);
      expand_plane(k);
      make_plane_of_rows(k, &box, &t);
    }
    if (!k->q.grad_in.contiguity.rows) write_box(&k->q.grad_in, &box, k->q.out);
  }
  end_quotients(&k->q);
}

static bool rows_fits(const struct pg_problem *problem, struct pg_tiling *tiling) {
  return tile_quotients(&problem->facts, tiling);
}

const struct pg_cpu_method VARIANT(avg_rows) = {
    .name = "rows", .fits = rows_fits, .run = rows_items};
