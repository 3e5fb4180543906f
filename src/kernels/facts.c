/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/facts.h"

#include <stddef.h>

#include "core/checked.h"

enum { CHANNELS_LAST_LEAST = 4 }; /* with fewer channels a vector of them would be mostly empty */

static int64_t sum(int64_t a, int64_t b) {
  int64_t ab;
  return pg_add(a, b, &ab) ? ab : INT64_MAX;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int64_t windows_at(const struct pg_axis *axis, int64_t cell) {
  const struct pg_range r = pg_touching(axis, cell, cell + 1);
  return r.end - r.begin;
}

/* Sliding: a cell with which a window begins lies in at least as many windows as the cells before
 * the next such cell.  From one of them to the next the number grows until it is what all further
 * ones have, so that the first cell and the last one with which a window begins decide.
 *
 * Adaptive: cell x lies in ceil((x + 1) out / in) - floor(x out / in) windows.  With
 * t = x out mod in this is ceil((t + out) / in), and the largest t is in - gcd(in, out). */
int64_t pg_most_windows(const struct pg_axis *axis) {
  if (axis->out == 0 || axis->in == 0) return 0;
  if (axis->kernel == 0 && axis->in % axis->out == 0) return 1;
  if (axis->kernel == 0)
    return 1 + pg_ceil_div(axis->out - greatest_common_divisor(axis->in, axis->out), axis->in);
  if (pg_window_span(axis) < axis->stride) return 1;
  const int64_t last = least(axis->out - 1, (axis->in - 1 + axis->pad) / axis->stride);
  return most(windows_at(axis, 0), windows_at(axis, most(0, last * axis->stride - axis->pad)));
}

int64_t pg_most_touching(const struct pg_axis *axis, int64_t cells) {
  if (axis->out == 0) return 0;
  if (axis->kernel == 0) return least(axis->out, pg_mul_or_most(cells, axis->out) / axis->in + 2);
  return least(axis->out, (cells + pg_window_span(axis) - 1) / axis->stride + 1);
}

bool pg_is_one_window(const struct pg_axis *axis) {
  if (axis->out != 1) return false;
  const struct pg_range r = pg_window(axis, 0);
  return r.begin <= 0 && r.end >= axis->in;
}

static struct pg_axis grid_axis(const struct pg_axis *axis) {
  struct pg_axis grid = pg_axis_unit();
  grid.in = grid.out = axis->out;
  return grid;
}

struct pg_pooling pg_output_grid(const struct pg_pooling *p) {
  return (struct pg_pooling){p->n, p->c, grid_axis(&p->d), grid_axis(&p->h), grid_axis(&p->w)};
}

bool pg_is_global(const struct pg_pooling *p) {
  return pg_is_one_window(&p->d) && pg_is_one_window(&p->h) && pg_is_one_window(&p->w);
}

bool pg_is_tiled(const struct pg_axis *axis) {
  if (axis->kernel == 0) return axis->out > 0;
  return (axis->kernel == axis->stride || axis->out == 1) && axis->dilation == 1 &&
         axis->pad == 0 && pg_mul_or_most(axis->out, axis->kernel) == axis->in;
}

/* Where `out` divides `in`, adaptive windows have one length and follow each other. */
static struct pg_axis as_sliding(struct pg_axis axis) {
  if (axis.kernel != 0 || axis.out == 0 || axis.in == 0 || axis.in % axis.out != 0) return axis;
  axis.kernel = axis.stride = axis.in / axis.out;
  axis.pad = 0;
  axis.dilation = 1;
  return axis;
}

struct lengths {
  int64_t n, c, d, h, w;
};

/* Along an axis of length 1 nothing has a neighbour, so its stride does not matter. */
static struct pg_contiguity contiguity_of(const struct pg_strides *strides, struct lengths l) {
  const int64_t *s = strides->of, slice = pg_mul_or_most(l.w, l.h),
                plane = pg_mul_or_most(slice, l.d);
  struct pg_contiguity c;
  c.rows = s[PG_W] == 1 || l.w == 1;
  c.planes = c.rows && (s[PG_H] == l.w || l.h == 1) && (s[PG_D] == slice || l.d == 1);
  c.all = c.planes && (s[PG_C] == plane || l.c == 1) &&
          (s[PG_N] == pg_mul_or_most(plane, l.c) || l.n == 1);
  return c;
}

static struct pg_contiguity both(struct pg_contiguity a, struct pg_contiguity b) {
  return (struct pg_contiguity){a.rows && b.rows, a.planes && b.planes, a.all && b.all};
}

/* fp32 represents every whole number up to 2^24. */
static int64_t largest_divisor(const struct pg_pooling *p, int64_t divisor) {
  const struct pg_axis *axes[] = {&p->d, &p->h, &p->w};
  const int64_t most_exact = 1 << 24;
  int64_t largest = 1;
  if (divisor == INT64_MIN) return INT64_MAX;
  if (divisor != 0) return divisor < 0 ? -divisor : divisor; /* one number, rounded once */
  for (int i = 0; i < 3; i++) {
    const int64_t length = axes[i]->kernel == 0 ? axes[i]->in : axes[i]->kernel;
    largest = pg_mul_or_most(largest, length);
    if (largest > most_exact) return INT64_MAX;
  }
  return largest;
}

struct pg_facts pg_facts_of(const struct pg_subject *s) {
  const struct pg_pooling *p = s->pool;
  const struct lengths in = {p->n, p->c, p->d.in, p->h.in, p->w.in};
  const struct lengths out = {p->n, p->c, p->d.out, p->h.out, p->w.out};
  struct pg_facts f;
  f.pool = (struct pg_pooling){p->n, p->c, as_sliding(p->d), as_sliding(p->h), as_sliding(p->w)};
  f.planes = p->n * p->c;
  f.cells = p->d.in * p->h.in * p->w.in;
  f.outputs = pg_mul_or_most(pg_mul_or_most(p->d.out, p->h.out), p->w.out);
  f.d_windows = pg_most_windows(&f.pool.d);
  f.h_windows = pg_most_windows(&f.pool.h);
  f.w_windows = pg_most_windows(&f.pool.w);
  f.in = contiguity_of(s->in, in);
  f.out = contiguity_of(s->out, out);
  f.neighbours = p->c > 1 && s->in->of[PG_C] == 1 && s->out->of[PG_C] == 1;
  if (s->index != NULL) {
    f.out = both(f.out, contiguity_of(s->index, out));
    f.neighbours = f.neighbours && s->index->of[PG_C] == 1;
  }
  f.channels_last = f.neighbours && p->c >= CHANNELS_LAST_LEAST;
  f.has_depth = p->d.in > 1 || p->d.out > 1;
  f.grad_in_bytes = pg_mul_or_most(pg_mul_or_most(f.planes, f.cells), s->in_bytes);
  f.bytes = sum(f.grad_in_bytes,
                pg_mul_or_most(pg_mul_or_most(f.planes, f.outputs), s->out_bytes + s->index_bytes));
  f.largest_divisor = largest_divisor(p, s->divisor);
  return f;
}
