/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#include <math.h>
#include <string.h>

struct reference_axis reference_unit_axis(void) {
  return (struct reference_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
}

static int64_t floor_of_ratio(int64_t a, int64_t b) { /* b > 0 */
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

int64_t reference_sliding_out(const struct reference_axis *axis, bool ceil_mode) {
  const int64_t room =
      axis->in + axis->pad + axis->pad_behind - axis->dilation * (axis->kernel - 1) - 1;
  const int64_t out = floor_of_ratio(room + (ceil_mode ? axis->stride - 1 : 0), axis->stride) + 1;
  const bool starts_in_padding = (out - 1) * axis->stride >= axis->in + axis->pad;
  return ceil_mode && starts_in_padding ? out - 1 : out;
}

int64_t reference_in_cells(const struct reference_pooling *pool) {
  return pool->axis[0].in * pool->axis[1].in * pool->axis[2].in;
}

int64_t reference_out_cells(const struct reference_pooling *pool) {
  return pool->axis[0].out * pool->axis[1].out * pool->axis[2].out;
}

/* May hang over the edges. */
static struct reference_span window_of(const struct reference_axis *axis, int64_t o) {
  if (axis->kernel == 0) {
    const int64_t end = (o + 1) * axis->in;
    return (struct reference_span){o * axis->in / axis->out,
                                   end / axis->out + (end % axis->out != 0 ? 1 : 0) - 1, 1};
  }
  const int64_t start = o * axis->stride - axis->pad;
  return (struct reference_span){start, start + (axis->kernel - 1) * axis->dilation,
                                 axis->dilation};
}

/* The positions on the axis; none when first > last, which dilation can bring about. */
static struct reference_span cut(struct reference_span s, int64_t length) {
  if (s.first < 0) s.first += (-s.first + s.step - 1) / s.step * s.step;
  if (s.last >= length) s.last -= (s.last - length + s.step) / s.step * s.step;
  return s;
}

struct reference_span reference_window(const struct reference_axis *axis, int64_t o) {
  return cut(window_of(axis, o), axis->in);
}

/* How many positions of the axis count for the divisor; averages have no dilation. */
static int64_t counted(const struct reference_pooling *pool, const struct reference_axis *axis,
                       int64_t o) {
  struct reference_span s = pool->include_pad ? window_of(axis, o) : reference_window(axis, o);
  if (s.last > axis->in + axis->pad - 1) s.last = axis->in + axis->pad - 1;
  return s.last - s.first + 1;
}

double reference_divisor(const struct reference_pooling *pool, const int64_t at[3]) {
  double product = 1;
  if (pool->divisor != 0) return (double)pool->divisor;
  for (int i = 0; i < 3; i++) product *= (double)counted(pool, &pool->axis[i], at[i]);
  return product;
}

static void clear(struct reference_sums *sums, int64_t count) {
  memset(sums->sum, 0, (size_t)count * sizeof *sums->sum);
  memset(sums->magnitude, 0, (size_t)count * sizeof *sums->magnitude);
  memset(sums->terms, 0, (size_t)count * sizeof *sums->terms);
  sums->whole = true;
  sums->dropped = 0;
}

static void add(struct reference_sums *sums, int64_t cell, double term) {
  sums->sum[cell] += term;
  sums->magnitude[cell] += fabs(term);
  sums->terms[cell]++;
  if (term != nearbyint(term)) sums->whole = false;
}

void reference_max_backward(const struct reference_pooling *pool, const double *grad_out,
                            const int64_t *index, struct reference_sums *sums) {
  const int64_t in = reference_in_cells(pool), out = reference_out_cells(pool);
  clear(sums, pool->planes * in);
  for (int64_t i = 0; i < pool->planes * out; i++)
    if (index[i] >= 0 && index[i] < in)
      add(sums, i / out * in + index[i], grad_out[i]);
    else
      sums->dropped++;
}

/* Walks over the outputs of one plane: `at` counts up, false after the last. */
static bool next_output(const struct reference_pooling *pool, int64_t at[3]) {
  for (int i = 2; i >= 0; i--) {
    if (++at[i] < pool->axis[i].out) return true;
    at[i] = 0;
  }
  return false;
}

struct window {
  struct reference_span d, h, w;
};

static struct window window_at(const struct reference_pooling *pool, const int64_t at[3]) {
  return (struct window){reference_window(&pool->axis[0], at[0]),
                         reference_window(&pool->axis[1], at[1]),
                         reference_window(&pool->axis[2], at[2])};
}

/* The cells of window `v` in flat order; `cell` is the position in the plane. */
#define FOR_CELLS(pool, v, cell)                                                                  \
  for (int64_t d = (v).d.first; d <= (v).d.last; d += (v).d.step)                                 \
    for (int64_t h = (v).h.first; h <= (v).h.last; h += (v).h.step)                               \
      for (int64_t w = (v).w.first, cell = (d * (pool)->axis[1].in + h) * (pool)->axis[2].in + w; \
           w <= (v).w.last; w += (v).w.step, cell += (v).w.step)

void reference_avg_backward(const struct reference_pooling *pool, const double *grad_out,
                            struct reference_sums *sums) {
  const int64_t in = reference_in_cells(pool);
  clear(sums, pool->planes * in);
  if (reference_out_cells(pool) == 0) return;
  for (int64_t plane = 0; plane < pool->planes; plane++) {
    int64_t at[3] = {0};
    do {
      const double term = *grad_out++ / reference_divisor(pool, at);
      const struct window v = window_at(pool, at);
      FOR_CELLS(pool, v, cell) add(sums, plane * in + cell, term);
    } while (next_output(pool, at));
  }
}

void reference_avg_forward(const struct reference_pooling *pool, const double *in,
                           struct reference_sums *sums) {
  const int64_t outputs = pool->planes * reference_out_cells(pool);
  int64_t at[3] = {0};
  clear(sums, outputs);
  for (int64_t o = 0; o < outputs; o++) {
    const struct window v = window_at(pool, at);
    FOR_CELLS(pool, v, cell) add(sums, o, in[cell]);
    sums->sum[o] /= reference_divisor(pool, at);
    if (!next_output(pool, at)) in += reference_in_cells(pool);
  }
}

void reference_max_forward(const struct reference_pooling *pool, const double *in, double *out,
                           int64_t *index) {
  for (int64_t plane = 0; plane < pool->planes; plane++, in += reference_in_cells(pool)) {
    int64_t at[3] = {0};
    do {
      const struct window v = window_at(pool, at);
      int64_t best = -1;
      double most = -INFINITY;
      FOR_CELLS(pool, v, cell) {
        if (best >= 0 && !(in[cell] > most) && !isnan(in[cell])) continue;
        most = in[cell];
        best = cell;
      }
      *out++ = most;
      *index++ = best;
    } while (next_output(pool, at));
  }
}
