/* SPDX-License-Identifier: Apache-2.0 */
/* What came out of a trial against the reference, and against what came out before. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "float_format.h"
#include "ordered_sums.h"
#include "trial.h"

/* One cell: its sum, and how far a sum in limited precision may be from it. */
struct expected {
  double sum, error;
  int64_t terms;
};

static struct expected expect_cell(const struct trial *t, const struct reference_sums *sums,
                                   int64_t cell) {
  const struct float_format *format = &float_formats[t->problem.type];
  const struct float_format *sum_format = &float_formats[t->problem.type == F64 ? F64 : F32];
  const double magnitude = sums->magnitude[cell];
  struct expected e = {.sum = sums->sum[cell], .terms = sums->terms[cell]};
  const bool exact_divisor = fabs((double)t->problem.divisor) <= 0x1p24;
  if (sums->whole && magnitude < 0x1p24) return e;
  if (e.terms <= 1 && (exact_divisor || problem_is_max(&t->problem))) {
    e.sum = float_round(sum_format, e.sum);
    return e;
  }
  /* each term may lose two roundings, each addition one; subnormal quotients lose absolutely */
  const double loss = ((double)e.terms + 2) * format->sum_unit;
  e.error = magnitude * loss * (1 + loss) + (double)e.terms * ldexp(1, sum_format->least);
  if (format->sum_unit < 0x1p-24) e.error *= 2; /* the reference has no more digits than this */
  return e;
}

static bool is_right(const struct trial *t, const struct expected *e, double found) {
  const struct float_format *format = &float_formats[t->problem.type];
  if (isnan(e->sum) || isnan(found)) return isnan(e->sum) && isnan(found);
  if (isinf(e->sum)) return found == e->sum;
  const double low = float_round(format, e->sum - e->error);
  const double high = float_round(format, e->sum + e->error);
  if (found < low || found > high) return false;
  const bool tiny_negative = format->bytes == 2 && e->sum - e->error < 0;
  return found != 0 || !signbit(found) || tiny_negative;
}

static void describe(struct trial *t, int64_t cell, const struct expected *e, const char *what) {
  const int64_t *in = t->problem.in, w = cell % in[2], h = cell / in[2] % in[1];
  const int64_t d = cell / in[2] / in[1] % in[0], plane = cell / in[2] / in[1] / in[0];
  snprintf(t->why, sizeof t->why,
           "gradInput[n=%" PRId64 " c=%" PRId64 " d=%" PRId64 " h=%" PRId64 " w=%" PRId64
           "] is %.9g (%a), expected %.9g (%a)%s",
           plane / t->problem.c, plane % t->problem.c, d, h, w, t->grad_in[cell], t->grad_in[cell],
           e->sum, e->sum, what);
}

static bool compare_report(struct trial *t) {
  const char *policy = getenv("POOLGRAD_INDEX_CHECK");
  const bool wanted = policy != NULL && policy[0] == 'e' && t->dropped > 0;
  if (wanted == t->bad_index_reported && (!wanted || t->reported == t->dropped)) return true;
  snprintf(t->why, sizeof t->why,
           "%" PRId64 " indices lie outside their plane, the stream %s and counted %" PRId64,
           t->dropped, t->bad_index_reported ? "failed" : "did not fail", t->reported);
  return false;
}

static bool compare_cells(struct trial *t, const struct reference_sums *sums) {
  t->dropped = sums->dropped;
  if (!compare_report(t)) return false;
  if (t->bad_index_reported) return true; /* a stream that failed owes no result */
  for (int64_t cell = 0; cell < t->cells; cell++) {
    const struct expected e = expect_cell(t, sums, cell);
    if (is_right(t, &e, t->grad_in[cell])) continue;
    char bound[96];
    snprintf(bound, sizeof bound, " +- %.3g, the sum of %" PRId64 " terms", e.error, e.terms);
    describe(t, cell, &e, bound);
    return false;
  }
  return true;
}

static bool same_bits(struct trial *t, int64_t cell, double expected, const char *what) {
  const struct expected e = {.sum = expected};
  const bool same = memcmp(&e.sum, &t->grad_in[cell], sizeof e.sum) == 0;
  if (same || (isnan(e.sum) && isnan(t->grad_in[cell]))) return true;
  describe(t, cell, &e, what);
  return false;
}

/* Already known to be near the sum; now to be the sum in its one order, a NaN's payload aside. */
static bool compare_order(struct trial *t, const float *ordered) {
  const struct float_format *format = &float_formats[t->problem.type];
  for (int64_t cell = 0; cell < t->cells; cell++)
    if (!same_bits(t, cell, float_round(format, ordered[cell]), ", the sum in ascending order"))
      return false;
  return true;
}

/* What has the bits of a right result is right. */
static bool compare_again(struct trial *t) {
  if (!compare_report(t)) return false;
  for (int64_t cell = 0; cell < t->cells && !t->bad_index_reported; cell++)
    if (!same_bits(t, cell, t->right[cell], ", as it was at first")) return false;
  return true;
}

static bool compare_bits(struct trial *t) {
  if (t->bad_index_reported || t->problem.type == F64) return true;
  float *ordered = malloc((size_t)t->cells * sizeof *ordered + 1);
  bool right = ordered != NULL;
  if (right && problem_is_max(&t->problem))
    ordered_max_backward(&t->pool, t->grad_out, t->index, ordered);
  else if (right)
    right = ordered_avg_backward(&t->pool, t->grad_out, ordered);
  if (!right) snprintf(t->why, sizeof t->why, "no memory for the reference");
  right = right && compare_order(t, ordered);
  free(ordered);
  return right;
}

static bool compare_first(struct trial *t) {
  const size_t cells = t->cells > 0 ? (size_t)t->cells : 1;
  struct reference_sums sums = {.sum = malloc(cells * sizeof *sums.sum),
                                .magnitude = malloc(cells * sizeof *sums.magnitude),
                                .terms = malloc(cells * sizeof *sums.terms)};
  bool right = false;
  if (sums.sum == NULL || sums.magnitude == NULL || sums.terms == NULL) {
    snprintf(t->why, sizeof t->why, "no memory for the reference");
  } else {
    if (problem_is_max(&t->problem))
      reference_max_backward(&t->pool, t->grad_out, t->index, &sums);
    else
      reference_avg_backward(&t->pool, t->grad_out, &sums);
    right = compare_cells(t, &sums) && compare_bits(t);
  }
  free(sums.sum);
  free(sums.magnitude);
  free(sums.terms);
  return right;
}

bool trial_compare(struct trial *t) {
  if (t->right != NULL) return compare_again(t);
  if (!compare_first(t)) return false;
  t->right = malloc((size_t)t->cells * sizeof *t->right + 1);
  if (t->right == NULL) {
    snprintf(t->why, sizeof t->why, "no memory for the result");
    return false;
  }
  memcpy(t->right, t->grad_in, (size_t)t->cells * sizeof *t->right);
  return true;
}
