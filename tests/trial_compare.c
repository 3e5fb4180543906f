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

/* One cell or output: its sum, and how far a sum in limited precision may be from it. */
struct expected {
  double sum, error;
  int64_t terms;
};

/* One output of a forward average.  Whole numbers are added without a loss, and then divided. */
static struct expected expect_average(const struct trial *t, const struct reference_sums *sums,
                                      int64_t output) {
  int64_t at[3], rest = output;
  for (int i = 2; i >= 0; rest /= t->pool.axis[i].out, i--) at[i] = rest % t->pool.axis[i].out;
  const double divisor = fabs(reference_divisor(&t->pool, at)), magnitude = sums->magnitude[output];
  struct expected e = {.sum = sums->sum[output], .terms = sums->terms[output]};
  if (sums->whole && magnitude < 0x1p24 && divisor <= 0x1p24) {
    e.sum = float_round(&float_formats[F32], e.sum);
    return e;
  }
  const double loss = ((double)e.terms + 3) * 0x1p-24;
  e.error = magnitude / divisor * loss * (1 + loss) + 2 * ldexp(1, float_formats[F32].least);
  if (magnitude > float_formats[F32].largest / 2) e.error = INFINITY; /* sums may be too large */
  return e;
}

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
  if (isinf(e->error)) return true; /* the bits are compared all the same */
  if (isnan(e->sum) || isnan(found)) return isnan(e->sum) && isnan(found);
  if (isinf(e->sum)) return found == e->sum;
  const double low = float_round(format, e->sum - e->error);
  const double high = float_round(format, e->sum + e->error);
  if (found < low || found > high) return false;
  if (problem_is_forward(&t->problem)) return true; /* +0 divided by a negative number is -0 */
  const bool tiny_negative = format->bytes == 2 && e->sum - e->error < 0;
  return found != 0 || !signbit(found) || tiny_negative;
}

static void describe(struct trial *t, int64_t i, const struct expected *e, const char *what) {
  const bool forward = problem_is_forward(&t->problem);
  const int64_t *size = forward ? t->problem.out : t->problem.in;
  const int64_t w = i % size[2], h = i / size[2] % size[1], d = i / size[2] / size[1] % size[0];
  const int64_t plane = i / size[2] / size[1] / size[0];
  snprintf(t->why, sizeof t->why,
           "%s[n=%" PRId64 " c=%" PRId64 " d=%" PRId64 " h=%" PRId64 " w=%" PRId64
           "] is %.9g (%a), expected %.9g (%a)%s",
           forward ? "out" : "gradInput", plane / t->problem.c, plane % t->problem.c, d, h, w,
           t->result[i], t->result[i], e->sum, e->sum, what);
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

static bool compare_sums(struct trial *t, const struct reference_sums *sums) {
  t->dropped = sums->dropped;
  if (!compare_report(t)) return false;
  if (t->bad_index_reported) return true; /* a stream that failed owes no result */
  for (int64_t i = 0; i < t->results; i++) {
    const bool forward = problem_is_forward(&t->problem);
    const struct expected e = forward ? expect_average(t, sums, i) : expect_cell(t, sums, i);
    if (is_right(t, &e, t->result[i])) continue;
    char bound[96];
    snprintf(bound, sizeof bound, " +- %.3g, the sum of %" PRId64 " terms", e.error, e.terms);
    describe(t, i, &e, bound);
    return false;
  }
  return true;
}

/* The element has these bits, a NaN's payload aside. */
static bool same_bits(struct trial *t, int64_t i, const char *bits, const char *what) {
  const int type = t->problem.type;
  const size_t bytes = float_formats[type].bytes;
  const char *found = t->bits + i * (int64_t)bytes;
  if (memcmp(bits, found, bytes) == 0) return true;
  if (element_is_nan(type, bits) && element_is_nan(type, found)) return true;
  describe(t, i, &(struct expected){.sum = float_decode(&float_formats[type], bits)}, what);
  return false;
}

/* Already known to be near the sum; now to be the sum in its one order. */
static bool compare_order(struct trial *t, const float *ordered) {
  for (int64_t i = 0; i < t->results; i++) {
    char bits[8];
    float_encode(&float_formats[t->problem.type], ordered[i], bits);
    if (!same_bits(t, i, bits, ", the sum in its one order")) return false;
  }
  return true;
}

static bool compare_index(struct trial *t, const int64_t *expected, const char *what) {
  if (!problem_has_indices(&t->problem) || problem_implies_indices(&t->problem)) return true;
  for (int64_t i = 0; i < t->outputs; i++)
    if (t->index[i] != expected[i]) {
      snprintf(t->why, sizeof t->why, "index %" PRId64 " is %" PRId64 ", expected %" PRId64 "%s", i,
               t->index[i], expected[i], what);
      return false;
    }
  return true;
}

/* What has the bits of a right result is right. */
static bool compare_again(struct trial *t) {
  const int64_t bytes = (int64_t)float_formats[t->problem.type].bytes;
  if (!compare_report(t)) return false;
  for (int64_t i = 0; i < t->results && !t->bad_index_reported; i++)
    if (!same_bits(t, i, t->right + i * bytes, ", as it was at first")) return false;
  return !problem_is_forward(&t->problem) ||
         compare_index(t, t->right_index, ", as it was at first");
}

static bool no_memory(struct trial *t) {
  snprintf(t->why, sizeof t->why, "no memory for the reference");
  return false;
}

static bool compare_bits(struct trial *t) {
  if (t->bad_index_reported || t->problem.type == F64) return true;
  float *ordered = malloc((size_t)t->results * sizeof *ordered + 1);
  bool room = ordered != NULL;
  if (room && problem_is_forward(&t->problem))
    ordered_avg_forward(&t->pool, t->x, ordered);
  else if (room && problem_is_max(&t->problem))
    ordered_max_backward(&t->pool, t->grad_out, t->index, ordered);
  else if (room)
    room = ordered_avg_backward(&t->pool, t->grad_out, ordered);
  const bool right = room ? compare_order(t, ordered) : no_memory(t);
  free(ordered);
  return right;
}

static void add_up(const struct trial *t, struct reference_sums *sums) {
  if (problem_is_forward(&t->problem))
    reference_avg_forward(&t->pool, t->x, sums);
  else if (problem_is_max(&t->problem))
    reference_max_backward(&t->pool, t->grad_out, t->index, sums);
  else
    reference_avg_backward(&t->pool, t->grad_out, sums);
}

static bool compare_first_sums(struct trial *t) {
  const size_t count = (size_t)t->results + 1;
  struct reference_sums sums = {.sum = malloc(count * sizeof *sums.sum),
                                .magnitude = malloc(count * sizeof *sums.magnitude),
                                .terms = malloc(count * sizeof *sums.terms)};
  bool right = sums.sum != NULL && sums.magnitude != NULL && sums.terms != NULL;
  if (right) {
    add_up(t, &sums);
    right = compare_sums(t, &sums) && compare_bits(t);
  } else {
    (void)no_memory(t);
  }
  free(sums.sum);
  free(sums.magnitude);
  free(sums.terms);
  return right;
}

static bool compare_picked(struct trial *t, const char *bits, const int64_t *index) {
  const int64_t bytes = (int64_t)float_formats[t->problem.type].bytes;
  for (int64_t i = 0; i < t->results; i++)
    if (!same_bits(t, i, bits + i * bytes, ", the cell that counts")) return false;
  return compare_index(t, index, ", the cell that counts");
}

static bool compare_first_maxima(struct trial *t) {
  char *in = malloc((size_t)t->cells * sizeof(double) + 1);
  char *bits = malloc((size_t)t->outputs * sizeof(double) + 1);
  int64_t *index = malloc((size_t)t->outputs * sizeof *index + 1);
  bool right = in != NULL && bits != NULL && index != NULL;
  if (right) {
    trial_gather(t, in);
    ordered_max_forward(&t->pool, t->problem.type, in, bits, index);
    right = compare_picked(t, bits, index);
  } else {
    (void)no_memory(t);
  }
  free(in);
  free(bits);
  free(index);
  return right;
}

bool trial_compare(struct trial *t) {
  const bool picks = problem_is_forward(&t->problem) && problem_is_max(&t->problem);
  if (t->right != NULL) return compare_again(t);
  if (!(picks ? compare_first_maxima : compare_first_sums)(t)) return false;
  t->right = malloc((size_t)t->results * sizeof(double) + 1);
  t->right_index = malloc((size_t)t->outputs * sizeof *t->right_index + 1);
  if (t->right == NULL || t->right_index == NULL) return no_memory(t);
  memcpy(t->right, t->bits, (size_t)t->results * sizeof(double));
  memcpy(t->right_index, t->index, (size_t)t->outputs * sizeof *t->index);
  return true;
}
