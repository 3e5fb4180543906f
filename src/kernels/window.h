/* SPDX-License-Identifier: Apache-2.0 */
/* Windows along one axis: which cells the window of an output holds, and in which windows cells
 * lie.  A window touches some cells if it holds one of them.
 *
 *   sliding    start = o * stride - pad, end = start + span + 1, span = (kernel - 1) * dilation
 *   adaptive   start = floor(o * in / out), end = ceil((o + 1) * in / out)
 *
 * Ranges are half open.  A sliding window may hang over either edge; pg_window_clip cuts it to the
 * axis.  Where it is dilated, its gaps count as its own.  All products of these functions were
 * checked for overflow when the axis was made. */
#ifndef PG_WINDOW_H_
#define PG_WINDOW_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PG_FUNCTION static inline __host__ __device__
#else
#define PG_FUNCTION static inline
#endif

struct pg_axis {
  int64_t in, out;                       /* the number of cells and of outputs along it */
  int64_t kernel, stride, pad, dilation; /* of the windows; kernel 0: adaptive */
};

struct pg_range {
  int64_t begin, end;
};

/* An axis of length 1 that windows do not move along: the depth of 2-D pooling. */
PG_FUNCTION struct pg_axis pg_axis_unit(void) {
  return (struct pg_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .pad = 0, .dilation = 1};
}

PG_FUNCTION int64_t pg_floor_div(int64_t a, int64_t b) { /* b > 0 */
  return a / b - (a % b < 0);
}

PG_FUNCTION int64_t pg_ceil_div(int64_t a, int64_t b) { /* b > 0 */
  return a / b + (a % b > 0);
}

/* The distance from the first to the last cell of a sliding window. */
PG_FUNCTION int64_t pg_window_span(const struct pg_axis *axis) {
  return (axis->kernel - 1) * axis->dilation;
}

/* The window of output o, not clipped. */
PG_FUNCTION struct pg_range pg_window(const struct pg_axis *axis, int64_t o) {
  if (axis->kernel == 0)
    return (struct pg_range){o * axis->in / axis->out, pg_ceil_div((o + 1) * axis->in, axis->out)};
  const int64_t start = o * axis->stride - axis->pad;
  return (struct pg_range){start, start + pg_window_span(axis) + 1};
}

PG_FUNCTION struct pg_range pg_window_clip(const struct pg_axis *axis, struct pg_range r) {
  return (struct pg_range){r.begin < 0 ? 0 : r.begin, r.end > axis->in ? axis->in : r.end};
}

/* The cells of the axis from which an output is computed: `count` of them, from `first` on, `step`
 * apart.  The gaps of a dilated window are not among them. */
struct pg_taps {
  int64_t first, count, step;
};

PG_FUNCTION struct pg_taps pg_window_taps(const struct pg_axis *axis, int64_t o) {
  const struct pg_range r = pg_window(axis, o);
  struct pg_taps taps = {r.begin, 0, axis->kernel == 0 ? 1 : axis->dilation};
  if (r.begin < 0) taps.first += pg_ceil_div(-r.begin, taps.step) * taps.step;
  const int64_t end = r.end < axis->in ? r.end : axis->in;
  if (end > taps.first) taps.count = pg_ceil_div(end - taps.first, taps.step);
  return taps;
}

/* How many cells of output o's window its divisor counts: those on the axis, or those on the axis
 * and its padding. */
PG_FUNCTION int64_t pg_window_extent(const struct pg_axis *axis, int64_t o, bool with_padding) {
  struct pg_range r = pg_window(axis, o);
  if (!with_padding)
    r = pg_window_clip(axis, r);
  else if (r.end > axis->in + axis->pad)
    r.end = axis->in + axis->pad;
  return r.end - r.begin;
}

/* The outputs whose windows touch the cells [begin, end); begin < end.  May be empty. */
PG_FUNCTION struct pg_range pg_touching(const struct pg_axis *axis, int64_t begin, int64_t end) {
  struct pg_range r;
  if (axis->kernel == 0) {
    r.begin = begin * axis->out / axis->in;
    r.end = pg_ceil_div(end * axis->out, axis->in);
    return r;
  }
  r.begin = pg_ceil_div(begin + axis->pad - pg_window_span(axis), axis->stride);
  r.end = pg_floor_div(end - 1 + axis->pad, axis->stride) + 1;
  if (r.begin < 0) r.begin = 0;
  if (r.end > axis->out) r.end = axis->out;
  if (r.end < r.begin) r.end = r.begin;
  return r;
}

#endif
