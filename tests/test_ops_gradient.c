/* SPDX-License-Identifier: Apache-2.0 */
/* The operators are gradients: with L(x) = sum of gradOutput * forward(x),
 *
 *     gradInput[i] = (L(x + h e_i) - L(x)) / h      and      sum of gradInput * x = L(x),
 *
 * exactly for maxima in integers, up to the rounding of doubles for averages.  The forwards are the
 * naive ones of the reference. */
#include "ops_fixture.h"

#include <math.h>

#include "float_format.h"
#include "ordered_sums.h"

static const char *const maxima[] = {
    "max_pool2d f32 i32 in=2x3x9x7 kernel=3 stride=2 pad=1",
    "max_pool2d f32 i64 in=2x2x8x9 kernel=3x2 stride=1 dilation=2x3 pad=1 ceil nhwc",
    "max_pool2d f16 i32 in=2x10x12 kernel=2 stride=3",
    "max_pool2d bf16 i64 in=1x2x10x12 kernel=5x4 pad=2 grad_in=gap",
    "adaptive_max_pool2d f32 i32 in=2x3x7x9 out=5x4",
    "adaptive_max_pool2d f16 i64 in=3x6x8 out=3x4 grad_out=gap",
    "adaptive_max_pool2d bf16 i32 in=1x2x5x5 out=1x1 indices=rows",
    "adaptive_max_pool3d f32 i64 in=1x2x4x7x5 out=3x4x4",
    "adaptive_max_pool3d f16 i32 in=2x4x6x6 out=2x3x2 grad_in=permuted",
    "max_pool2d_mask f32 in=2x3x9x7 kernel=3 stride=2 pad=1",
    "max_pool2d_mask bf16 in=2x3x9x7 kernel=1 stride=2x3",
    "max_pool2d_mask f16 in=2x10x12 kernel=2x3 stride=1 ceil grad_in=gap",
    "max_pool3d f32 i32 in=1x2x5x7x6 kernel=3x2x3 stride=2 pad=1",
    "max_pool3d f16 i64 in=2x6x7x5 kernel=2 stride=1 dilation=2x1x3 grad_out=gap",
    "max_pool3d bf16 i32 in=2x2x3x6x6 kernel=2 stride=3 ceil grad_in=permuted",
};

static const char *const averages[] = {
    "avg_pool2d f32 in=2x3x9x7 kernel=3 stride=2 pad=1",
    "avg_pool2d f32 in=2x3x9x7 kernel=3x4 stride=2x1 pad=1x2 ceil include_pad",
    "avg_pool2d f32 in=1x2x8x8 kernel=3 stride=2 divisor=-5",
    "avg_pool2d f16 in=2x10x12 kernel=2 stride=3 grad_in=gap",
    "avg_pool2d bf16 in=1x2x10x12 kernel=4 pad=2 stride=3 ceil",
    "adaptive_avg_pool3d f32 in=1x2x4x7x5 out=3x4x4",
    "adaptive_avg_pool3d f32 in=2x2x3x4 out=3x5x4",
    "adaptive_avg_pool3d f16 in=2x4x6x6 out=2x3x2 grad_in=permuted",
    "adaptive_avg_pool3d f64 in=2x4x6x6 out=1x1x1",
    "adaptive_avg_pool2d f32 in=2x3x7x9 out=5x4",
    "adaptive_avg_pool2d f32 in=3x6x8 out=7x9 grad_in=gap",
    "adaptive_avg_pool2d bf16 in=3x6x8 out=3x2 grad_in=permuted",
    "avg_pool3d f32 in=1x2x5x7x6 kernel=3x2x3 stride=2 pad=1",
    "avg_pool3d f32 in=2x6x7x5 kernel=2x3x4 stride=1x2x3 pad=1x1x2 ceil include_pad",
    "avg_pool3d f32 in=2x6x7x5 kernel=2 stride=3 divisor=-5",
    "avg_pool3d f16 in=2x2x4x6x6 kernel=2 stride=3 grad_in=gap",
};

struct gradient {
  const char *line;
  struct trial trial;
  double *x, *y; /* where L is taken, and the forward there */
  double *magnitude;
  int64_t *index;
};

static double loss(struct gradient *g) {
  double sum = 0;
  if (problem_is_max(&g->trial.problem))
    reference_max_forward(&g->trial.pool, g->x, g->y, g->index);
  else
    reference_avg_forward(
        &g->trial.pool, g->x,
        &(struct reference_sums){.sum = g->y, .magnitude = g->magnitude, .terms = g->index});
  for (int64_t i = 0; i < g->trial.outputs; i++) sum += g->trial.grad_out[i] * g->y[i];
  return sum;
}

/* The first of equal maxima becomes the only one: later cells sink by less than 1 in all. */
static void set_x(struct gradient *g) {
  for (int64_t i = 0; i < g->trial.cells; i++)
    g->x[i] = problem_is_max(&g->trial.problem) ? g->trial.x[i] - (double)i * 0x1p-12
                                                : (double)((i * 37 + 11) % 101 - 50);
}

static void expect_difference_quotients(struct gradient *g, double h, double tolerance) {
  const double before = loss(g);
  double product = 0;
  for (int64_t i = 0; i < g->trial.cells; i++) {
    const double x = g->x[i], grad = g->trial.result[i];
    g->x[i] = x + h;
    const double quotient = (loss(g) - before) / h;
    g->x[i] = x;
    product += grad * x;
    if (fabs(quotient - grad) > tolerance)
      fail_msg("cell %lld: gradInput %.17g, difference quotient %.17g in %s", (long long)i, grad,
               quotient, g->line);
  }
  if (fabs(product - before) > tolerance * (1 + fabs(before)))
    fail_msg("sum of gradInput * x is %.17g, L(x) is %.17g in %s", product, before, g->line);
}

static void run(struct trial *t, const char *line) {
  const struct problem p = read_problem(line);
  bool right = trial_open(t, &p, &devices);
  for (int i = devices.count - 1; right && i >= 0; i--) /* the first one's result stays */
    right = trial_move(t, i) && trial_launch(t) && trial_fetch(t) && trial_compare(t);
  if (!right) fail_msg("device %d: %s in %s", t->device, t->why, line);
}

static void check_line(const char *line, double h, double tolerance) {
  struct gradient g = {.line = line};
  run(&g.trial, line);
  assert_true(g.trial.cells < 4096); /* set_x counts on it */
  g.x = malloc((size_t)g.trial.cells * sizeof *g.x);
  g.y = malloc((size_t)g.trial.outputs * sizeof *g.y);
  g.magnitude = malloc((size_t)g.trial.outputs * sizeof *g.magnitude);
  g.index = malloc((size_t)g.trial.outputs * sizeof *g.index);
  assert_true(g.x != NULL && g.y != NULL && g.magnitude != NULL && g.index != NULL);
  set_x(&g);
  expect_difference_quotients(&g, h, tolerance);
  free(g.x);
  free(g.y);
  free(g.magnitude);
  free(g.index);
  trial_close(&g.trial);
}

static void maxima_have_their_gradient(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof maxima / sizeof maxima[0]; i++) check_line(maxima[i], 0x1p-20, 0);
}

static void averages_have_their_gradient(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof averages / sizeof averages[0]; i++)
    check_line(averages[i], 1, 1e-9);
}

/* The forward that makes indices: the first maximum, and NaN before all numbers. */
static void the_forward_picks_as_pytorch_does(void **state) {
  (void)state;
  const double in[] = {1, 3, 3, -INFINITY, -INFINITY, 2, NAN, 5};
  const struct reference_pooling pool = {
      .planes = 1,
      .axis = {reference_unit_axis(),
               reference_unit_axis(),
               {.in = 8, .out = 4, .kernel = 2, .stride = 2, .dilation = 1}}};
  double out[4];
  int64_t index[4];
  reference_max_forward(&pool, in, out, index);
  assert_int_equal(index[0], 1);
  assert_int_equal(index[1], 2);
  assert_int_equal(index[2], 5);
  assert_int_equal(index[3], 6);
  assert_true(isnan(out[3]));
}

/* Bits and doubles pick the same cells: the two references check each other. */
static void both_references_pick_the_same(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 300; seed++) {
    const struct problem p = problem_random(seed, 600);
    if (!problem_is_forward(&p) || !problem_is_max(&p) || p.type == I64) continue;
    struct trial t;
    assert_true(trial_open(&t, &p, &devices));
    char *in = malloc((size_t)t.cells * 8), *bits = malloc((size_t)t.outputs * 8);
    double *values = malloc((size_t)t.outputs * sizeof *values);
    int64_t *first = malloc((size_t)t.outputs * 8), *second = malloc((size_t)t.outputs * 8);
    assert_true(in != NULL && bits != NULL && values != NULL && first != NULL && second != NULL);
    trial_gather(&t, in);
    ordered_max_forward(&t.pool, p.type, in, bits, first);
    reference_max_forward(&t.pool, t.x, values, second);
    assert_memory_equal(first, second, (size_t)t.outputs * sizeof *first);
    free(in);
    free(bits);
    free(values);
    free(first);
    free(second);
    trial_close(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(maxima_have_their_gradient),
                                     cmocka_unit_test(averages_have_their_gradient),
                                     cmocka_unit_test(the_forward_picks_as_pytorch_does),
                                     cmocka_unit_test(both_references_pick_the_same)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
