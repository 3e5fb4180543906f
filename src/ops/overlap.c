/* SPDX-License-Identifier: Apache-2.0 */
/* Two cells of a view share a place if their positions differ by an x, not all zero, with
 *
 *     x_0 * stride_0 + x_1 * stride_1 + ... = 0,    |x_i| < dim_i
 *
 * which is a bounded Diophantine equation, the one numpy.shares_memory solves.  It is searched for
 * axis by axis, largest stride first: what has been chosen must be in reach of the smaller strides,
 * and a multiple of what divides them all.  Nested views, whose every stride passes over all that
 * the smaller ones reach, leave nothing to choose.  In general the search is exponential (the
 * problem is NP-complete), so it gives up after a number of steps. */
#include "ops/overlap.h"

#include <stdbool.h>
#include <stddef.h>

enum { AXES_MAX = 25 };

struct axis {
  int64_t stride, most; /* most: the largest |x| */
  int64_t reach;        /* of the axes behind this one: the sum of most * stride */
  int64_t divisor;      /* of their strides, the greatest common one; behind the last its own */
  int64_t pace;         /* how much x grows until x * stride is a multiple of it again */
};

struct search {
  int count, steps;
  struct axis axes[AXES_MAX]; /* longer than 1, by falling stride */
};

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Chooses x of this axis and those behind it such that they and what is chosen already, which comes
 * to `sum`, give 0.  While all chosen are 0 (and sum is) only x >= 0 are tried: -x is a solution
 * where x is one. */
static enum pg_overlap choose(struct search *s, int axis, int64_t sum, bool all_zero) {
  if (axis == s->count) return all_zero ? PG_APART : PG_SHARED;
  const struct axis *a = &s->axes[axis];
  /* the divisions round towards 0: the bounds may be one too wide, never too narrow */
  const int64_t first = larger(-a->most, (-a->reach - sum) / a->stride - 1);
  const int64_t last = smaller(a->most, (a->reach - sum) / a->stride + 1);
  int64_t pace = 1;
  for (int64_t x = all_zero ? 0 : first; x <= last; x += pace) {
    const int64_t next = sum + x * a->stride;
    if (s->steps++ == PG_OVERLAP_STEPS) return PG_UNDECIDED;
    if (next > a->reach || next < -a->reach || next % a->divisor != 0) continue;
    pace = a->pace; /* from one multiple of the divisor to the next */
    const enum pg_overlap found = choose(s, axis + 1, next, all_zero && x == 0);
    if (found != PG_APART) return found;
  }
  return PG_APART;
}

/* In its place by falling stride. */
static void insert(struct search *s, int64_t stride, int64_t most) {
  int at = s->count++;
  for (; at > 0 && s->axes[at - 1].stride < stride; at--) s->axes[at] = s->axes[at - 1];
  s->axes[at] = (struct axis){.stride = stride, .most = most};
}

enum pg_overlap pg_overlap(int rank, const int64_t *dims, const int64_t *strides) {
  struct search s = {.count = 0, .steps = 0};
  for (int i = 0; i < rank; i++) {
    if (dims[i] > 1 && strides[i] == 0) return PG_SHARED;
    if (dims[i] > 1) insert(&s, strides[i], dims[i] - 1);
  }
  int64_t reach = 0, divisor = s.count == 0 ? 1 : s.axes[s.count - 1].stride;
  for (int i = s.count - 1; i >= 0; i--) {
    struct axis *a = &s.axes[i];
    a->reach = reach;
    a->divisor = divisor;
    divisor = greatest_common_divisor(a->stride, divisor);
    a->pace = a->divisor / divisor;
    if (a->most > (INT64_MAX / 2 - reach) / a->stride) return PG_UNDECIDED;
    reach += a->most * a->stride;
  }
  return choose(&s, 0, 0, true);
}
