/* SPDX-License-Identifier: Apache-2.0 */
#include "ordered_sums.h"

#include <stdlib.h>
#include <string.h>

void ordered_max_backward(const struct reference_pooling *pool, const double *grad_out,
                          const int64_t *index, float *sum) {
  const int64_t in = reference_in_cells(pool), out = reference_out_cells(pool);
  memset(sum, 0, (size_t)(pool->planes * in) * sizeof *sum);
  for (int64_t i = 0; i < pool->planes * out; i++)
    if (index[i] >= 0 && index[i] < in) sum[i / out * in + index[i]] += (float)grad_out[i];
}

/* One plane, and room for what is not yet added to it. */
struct plane {
  const struct reference_pooling *pool;
  const double *grad_out;
  float *row, *slice, *sum;
};

static void clear(float *sums, int64_t count) { memset(sums, 0, (size_t)count * sizeof *sums); }

static void add(float *to, const float *from, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

/* row[w]: one row of outputs. */
static void sum_along_w(const struct plane *p, int64_t od, int64_t oh) {
  const struct reference_axis *axis = p->pool->axis;
  const double *grad = p->grad_out + (od * axis[1].out + oh) * axis[2].out;
  clear(p->row, axis[2].in);
  for (int64_t ow = 0; ow < axis[2].out; ow++) {
    const struct reference_span w = reference_window(&axis[2], ow);
    const double divisor = reference_divisor(p->pool, (const int64_t[]){od, oh, ow});
    for (int64_t i = w.first; i <= w.last; i++) p->row[i] += (float)grad[ow] / (float)divisor;
  }
}

/* slice[h][w]: one slice of outputs. */
static void sum_along_h(const struct plane *p, int64_t od) {
  const struct reference_axis *axis = p->pool->axis;
  clear(p->slice, axis[1].in * axis[2].in);
  for (int64_t oh = 0; oh < axis[1].out; oh++) {
    const struct reference_span h = reference_window(&axis[1], oh);
    sum_along_w(p, od, oh);
    for (int64_t i = h.first; i <= h.last; i++) add(p->slice + i * axis[2].in, p->row, axis[2].in);
  }
}

static void sum_along_d(const struct plane *p) {
  const struct reference_axis *axis = p->pool->axis;
  const int64_t slice = axis[1].in * axis[2].in;
  clear(p->sum, axis[0].in * slice);
  for (int64_t od = 0; od < axis[0].out; od++) {
    const struct reference_span d = reference_window(&axis[0], od);
    sum_along_h(p, od);
    for (int64_t i = d.first; i <= d.last; i++) add(p->sum + i * slice, p->slice, slice);
  }
}

bool ordered_avg_backward(const struct reference_pooling *pool, const double *grad_out,
                          float *sum) {
  const struct reference_axis *axis = pool->axis;
  struct plane p = {.pool = pool,
                    .row = malloc((size_t)axis[2].in * sizeof(float) + 1),
                    .slice = malloc((size_t)(axis[1].in * axis[2].in) * sizeof(float) + 1)};
  const bool room = p.row != NULL && p.slice != NULL;
  for (int64_t i = 0; room && i < pool->planes; i++) {
    p.grad_out = grad_out + i * reference_out_cells(pool);
    p.sum = sum + i * reference_in_cells(pool);
    sum_along_d(&p);
  }
  free(p.row);
  free(p.slice);
  return room;
}
