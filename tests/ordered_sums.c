/* SPDX-License-Identifier: Apache-2.0 */
#include "ordered_sums.h"

#include <stdlib.h>
#include <string.h>

#include "float_format.h"

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

/* --- forward -----------------------------------------------------------------------------------
 */

enum { PARTIAL_SUMS = 16 };

/* The columns of one window, in the order in which they come. */
struct column_sums {
  int64_t count;
  float ascending, partial[PARTIAL_SUMS];
};

static void take_column(struct column_sums *s, float column) {
  s->ascending += column;
  s->partial[s->count % PARTIAL_SUMS] += column;
  s->count++;
}

static float sum_of_columns(struct column_sums *s) {
  if (s->count <= PARTIAL_SUMS) return s->ascending;
  for (int half = PARTIAL_SUMS / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) s->partial[i] += s->partial[i + half];
  return s->partial[0];
}

static void locate(const struct reference_pooling *pool, int64_t output, int64_t at[3]) {
  for (int i = 2; i >= 0; i--) {
    at[i] = output % pool->axis[i].out;
    output /= pool->axis[i].out;
  }
}

static bool is_whole(const struct reference_axis *axis) {
  const struct reference_span window = reference_window(axis, 0);
  return axis->out == 1 && window.first == 0 && window.last == axis->in - 1 && window.step == 1;
}

static float sum_of_plane(const double *in, int64_t cells) {
  struct column_sums sums = {.count = 0};
  for (int64_t i = 0; i < cells; i++) take_column(&sums, 0 + (float)in[i]);
  return sum_of_columns(&sums);
}

static float sum_of_window(const struct reference_pooling *pool, const double *in,
                           const int64_t at[3]) {
  const struct reference_axis *axis = pool->axis;
  const struct reference_span d = reference_window(&axis[0], at[0]),
                              h = reference_window(&axis[1], at[1]),
                              w = reference_window(&axis[2], at[2]);
  struct column_sums sums = {.count = 0};
  for (int64_t k = w.first; k <= w.last; k++) {
    float column = 0;
    for (int64_t i = d.first; i <= d.last; i++)
      for (int64_t j = h.first; j <= h.last; j++)
        column += (float)in[(i * axis[1].in + j) * axis[2].in + k];
    take_column(&sums, column);
  }
  return sum_of_columns(&sums);
}

void ordered_avg_forward(const struct reference_pooling *pool, const double *in, float *out) {
  const int64_t cells = reference_in_cells(pool), outputs = reference_out_cells(pool);
  const bool one_row =
      is_whole(&pool->axis[0]) && is_whole(&pool->axis[1]) && is_whole(&pool->axis[2]);
  for (int64_t i = 0; i < pool->planes * outputs; i++) {
    const double *plane = in + i / outputs * cells;
    int64_t at[3];
    locate(pool, i % outputs, at);
    const float sum = one_row ? sum_of_plane(plane, cells) : sum_of_window(pool, plane, at);
    out[i] = sum / (float)reference_divisor(pool, at);
  }
}

/* The position of the cell that counts in one window of a plane. */
static int64_t pick(const struct reference_pooling *pool, int type, const char *in,
                    const int64_t at[3]) {
  const int64_t bytes = (int64_t)float_formats[type].bytes;
  const struct reference_span d = reference_window(&pool->axis[0], at[0]),
                              h = reference_window(&pool->axis[1], at[1]),
                              w = reference_window(&pool->axis[2], at[2]);
  int64_t best = -1;
  for (int64_t i = d.first; i <= d.last; i += d.step)
    for (int64_t j = h.first; j <= h.last; j += h.step)
      for (int64_t k = w.first; k <= w.last; k += w.step) {
        const int64_t cell = (i * pool->axis[1].in + j) * pool->axis[2].in + k;
        if (best < 0 || element_is_nan(type, in + cell * bytes) ||
            element_exceeds(type, in + cell * bytes, in + best * bytes))
          best = cell;
      }
  return best;
}

void ordered_max_forward(const struct reference_pooling *pool, int type, const char *in, char *out,
                         int64_t *index) {
  const int64_t cells = reference_in_cells(pool), outputs = reference_out_cells(pool);
  const size_t bytes = float_formats[type].bytes;
  for (int64_t i = 0; i < pool->planes * outputs; i++) {
    const char *plane = in + i / outputs * cells * (int64_t)bytes;
    int64_t at[3];
    locate(pool, i % outputs, at);
    index[i] = pick(pool, type, plane, at);
    memcpy(out + i * (int64_t)bytes, plane + index[i] * (int64_t)bytes, bytes);
  }
}
