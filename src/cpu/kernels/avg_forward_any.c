/* SPDX-License-Identifier: Apache-2.0 */
/* Average-forward of any problem, in plain C: each output adds the cells of its window column by
 * column, in the order that kernels.h states. */
#include "cpu/box.h"
#include "cpu/kernels/variant.h"
#include "cpu/method.h"

enum { ANY_OUTPUTS = 1024 };

/* The window of an output: its cells along each axis, in the plane that begins at `plane`. */
struct any_window {
  const element *plane;
  const int64_t *strides;
  struct pg_taps d, h, w;
};

static sum_type add_column(const struct any_window *v, int64_t w) {
  sum_type sum = 0;
  for (int64_t d = v->d.first; d < v->d.first + v->d.count; d++)
    for (int64_t h = v->h.first; h < v->h.first + v->h.count; h++)
      sum +=
          widen_one(v->plane[d * v->strides[PG_D] + h * v->strides[PG_H] + w * v->strides[PG_W]]);
  return sum;
}

/* Adds the partial sums, the upper half to the lower half each time. */
static sum_type add_partial_sums(sum_type partial[PG_PARTIAL_SUMS]) {
  for (int half = PG_PARTIAL_SUMS / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) partial[i] += partial[i + half];
  return partial[0];
}

static sum_type add_columns(const struct any_window *v, const struct pg_scratch *scratch) {
  sum_type partial[PG_PARTIAL_SUMS] = {0}, sum = 0;
  for (int64_t i = 0; i < v->w.count && !pg_is_stopped(scratch); i++) {
    const sum_type column = add_column(v, v->w.first + i);
    if (v->w.count <= PG_PARTIAL_SUMS)
      sum += column;
    else
      partial[i % PG_PARTIAL_SUMS] += column;
  }
  return v->w.count <= PG_PARTIAL_SUMS ? sum : add_partial_sums(partial);
}

/* All cells of the plane as one row. */
static sum_type add_plane(const struct any_window *v, const struct pg_scratch *scratch) {
  sum_type partial[PG_PARTIAL_SUMS] = {0}, sum = 0;
  const bool few = v->d.count * v->h.count * v->w.count <= PG_PARTIAL_SUMS;
  int64_t i = 0;
  for (int64_t d = 0; d < v->d.count; d++)
    for (int64_t h = 0; h < v->h.count && !pg_is_stopped(scratch); h++)
      for (int64_t w = 0; w < v->w.count; w++, i++) {
        const sum_type cell =
            widen_one(v->plane[d * v->strides[PG_D] + h * v->strides[PG_H] + w * v->strides[PG_W]]);
        if (few)
          sum += cell;
        else
          partial[i % PG_PARTIAL_SUMS] += cell;
      }
  return few ? sum : add_partial_sums(partial);
}

static int64_t divisor_of(const struct pg_avg_forward *a, const int64_t o[3]) {
  const struct pg_pooling *p = &a->pool;
  if (a->divisor != 0) return a->divisor;
  return pg_window_extent(&p->d, o[0], a->count_include_pad) *
         pg_window_extent(&p->h, o[1], a->count_include_pad) *
         pg_window_extent(&p->w, o[2], a->count_include_pad);
}

static void make_output(const struct pg_task *task, int64_t plane, const int64_t o[3],
                        const struct pg_scratch *scratch) {
  const struct pg_avg_forward *a = &task->problem.args.avg_forward;
  const struct pg_pooling *p = &task->problem.facts.pool;
  const int64_t n = plane / p->c, c = plane % p->c;
  const struct any_window v = {
      .plane = (const element *)a->in + pg_offset(&a->in_strides, n, c, 0, 0, 0),
      .strides = a->in_strides.of,
      .d = pg_window_taps(&p->d, o[0]),
      .h = pg_window_taps(&p->h, o[1]),
      .w = pg_window_taps(&p->w, o[2])};
  const sum_type sum = pg_is_global(p) ? add_plane(&v, scratch) : add_columns(&v, scratch);
  ((element *)a->out)[pg_offset(&a->out_strides, n, c, o[0], o[1], o[2])] =
      round_one(sum / (sum_type)divisor_of(a, o));
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

const struct pg_cpu_method VARIANT(avg_forward_any) = {
    .name = "any", .fits = any_fits, .run = any_items};
