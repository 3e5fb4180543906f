/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnInplaceUniform, aclnnInplaceNormal and aclnnInplaceRandom, end to end: the numbers of a
 * tensor depend on seed, offset and position alone, and are spread as they should be.  What each
 * number is exactly is in test_tensor_map.c. */
#include "operation_random_test.h"

#include <math.h>

#include "tensor_check.h"

enum { MANY = 20000 };

/* A call but for its tensor. */
struct drawing {
  enum tensor_operator_id op;
  aclDataType dtype;
  double real[2];     /* from and to; mean and deviation */
  int64_t integer[2]; /* from and to */
  int64_t seed, offset;
};

static void set_numbers(const struct drawing *d, struct tensor_call *c) {
  for (int i = 0; i < 2; i++) {
    c->real[i] = d->real[i];
    c->integer[i] = d->integer[i];
  }
  c->integer[2] = d->seed;
  c->integer[3] = d->offset;
}

/* The elements of a tensor without gaps on the first device. */
static void draw_elements(const struct drawing *d, int64_t count, void *elements) {
  const size_t bytes = (size_t)count * tensor_bytes(d->dtype);
  struct tensor_call c = tensor_call_right(d->op);
  if (count == 0) return;
  set_numbers(d, &c);
  tensor_call_shape(&c.t[0], 1, &count);
  c.t[0].dtype = d->dtype;
  c.t[0].data = device_memory(bytes);
  OK_OR_SAY(aclrtMemset(c.t[0].data, bytes, 0xa7, bytes));
  tensor_runs(&c);
  fetch(elements, c.t[0].data, bytes);
  OK_OR_SAY(aclrtFree(c.t[0].data));
}

static double element_at(const struct drawing *d, const char *elements, int64_t i) {
  return reference_load(PG_CLASS_DOUBLE, d->dtype, elements + (size_t)i * tensor_bytes(d->dtype))
      .real;
}

/* Numbers that every type holds. */
static struct drawing draw_drawing(uint64_t *state, enum tensor_operator_id op) {
  struct drawing d = {.op = op, .dtype = operation_draw_type(state)};
  while (op != OP_InplaceRandom && !tensor_is_real(d.dtype)) d.dtype = operation_draw_type(state);
  d.real[0] = (double)tensor_draw(state, 9) - 4;
  d.real[1] = d.real[0] + 0.25 * (double)tensor_draw(state, 9);
  if (op == OP_InplaceNormal) d.real[1] -= d.real[0];
  d.integer[0] = d.dtype == ACL_BOOL || d.dtype == ACL_UINT8 ? 0 : tensor_draw(state, 50) - 40;
  d.integer[1] = d.integer[0] + 1 + tensor_draw(state, d.dtype == ACL_BOOL ? 2 : 60);
  d.seed = (int64_t)problem_next(state);
  d.offset = (int64_t)problem_next(state);
  return d;
}

static const enum tensor_operator_id operators[] = {OP_InplaceUniform, OP_InplaceNormal,
                                                    OP_InplaceRandom};
enum { OPERATORS = 3 };

/* --- What numbers depend on --- */

/* The elements are those of a tensor without gaps. */
static bool make_strided(struct operation_trial *o, enum tensor_operator_id op, uint64_t seed,
                         int64_t most) {
  uint64_t state = seed * TENSOR_OPERATORS + (uint64_t)op;
  const struct drawing d = draw_drawing(&state, op);
  const struct pg_shape shape = operation_draw_shape(&state, most);
  const int64_t count = pg_positions(&shape);
  const size_t bytes = tensor_bytes(d.dtype);
  char *elements = malloc((size_t)count * bytes + 1);
  set_numbers(&d, &o->call);
  const int side = operation_add_output(o, &state, 0, d.dtype, &shape);
  const bool good = elements != NULL && operation_fill(o, &state);
  if (good) draw_elements(&d, count, elements);
  for (int64_t i = 0; i < count && good; i++)
    memcpy(operation_expected(o, side, i), elements + (size_t)i * bytes, bytes);
  free(elements);
  return good;
}

static void numbers_depend_on_positions_not_on_strides_or_devices(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 150; seed++)
    for (int i = 0; i < OPERATORS; i++)
      assert_true(operation_try(make_strided, operators[i], seed, seed % 16 == 15 ? MANY : 300));
}

static void an_offset_counts_as_positions(void **state) {
  (void)state;
  enum { COUNT = 3000, STEP = 77 };
  char *before = malloc(8 * COUNT), *after = malloc(8 * COUNT);
  uint64_t random = 1;
  for (int i = 0; i < 10 * OPERATORS; i++) {
    struct drawing d = draw_drawing(&random, operators[i % OPERATORS]);
    const size_t bytes = tensor_bytes(d.dtype);
    draw_elements(&d, COUNT, before);
    d.offset = (int64_t)((uint64_t)d.offset + STEP);
    draw_elements(&d, COUNT, after);
    assert_memory_equal(before + STEP * bytes, after, (COUNT - STEP) * bytes);
  }
  free(before);
  free(after);
}

static void another_seed_gives_other_numbers(void **state) {
  (void)state;
  enum { COUNT = 3000 };
  static double one[COUNT], other[COUNT];
  for (int bit = 0; bit < 64; bit += 7)
    for (int i = 0; i < 2; i++) { /* reals, which hardly ever meet by chance */
      struct drawing d = {.op = operators[i], .dtype = ACL_DOUBLE, .real = {0, 1}, .seed = 5};
      draw_elements(&d, COUNT, one);
      d.seed ^= (int64_t)(UINT64_C(1) << bit);
      draw_elements(&d, COUNT, other);
      for (int k = 0; k < COUNT; k++) assert_true(one[k] != other[k]);
    }
}

/* --- How they are spread --- */

struct moments {
  double least, most, mean, deviation;
};

static struct moments moments_of(const struct drawing *d) {
  static char elements[8 * MANY];
  struct moments m = {.least = INFINITY, .most = -INFINITY, .mean = 0, .deviation = 0};
  draw_elements(d, MANY, elements);
  for (int64_t i = 0; i < MANY; i++) {
    const double x = element_at(d, elements, i);
    m.least = fmin(m.least, x);
    m.most = fmax(m.most, x);
    m.mean += x / MANY;
  }
  for (int64_t i = 0; i < MANY; i++)
    m.deviation += pow(element_at(d, elements, i) - m.mean, 2) / MANY;
  m.deviation = sqrt(m.deviation);
  return m;
}

/* Five times as far as the mean of so many usually is, and the rounding of the coarsest type. */
static void is_near(const struct drawing *d, double found, double expected, double deviation) {
  const double allowed = 5 * deviation / sqrt(MANY) + 0x1p-9 * (fabs(expected) + deviation);
  if (!(fabs(found - expected) <= allowed))
    fail_msg("%s of type %d: %g, expected about %g", tensor_operators[d->op].second_name,
             (int)d->dtype, found, expected);
}

static void uniform_numbers_are_spread_evenly(void **state) {
  (void)state;
  for (int type = 0; type < TENSOR_REALS; type++) {
    const struct drawing d = {
        .op = OP_InplaceUniform, .dtype = tensor_types[type], .real = {-1, 3}, .seed = 7};
    const struct moments m = moments_of(&d);
    assert_true(m.least >= -1 && m.least < -0.99);
    assert_true(m.most < 3 && m.most > 2.95);
    is_near(&d, m.mean, 1, 4 / sqrt(12));
    is_near(&d, m.deviation, 4 / sqrt(12), 4 / sqrt(12));
  }
}

static void normal_numbers_have_their_mean_and_deviation(void **state) {
  (void)state;
  for (int type = 0; type < TENSOR_REALS; type++) {
    const struct drawing d = {
        .op = OP_InplaceNormal, .dtype = tensor_types[type], .real = {-2, 1.5}, .seed = 8};
    const struct moments m = moments_of(&d);
    assert_true(m.least > -2 - 1.5 * 6 && m.least < -2 - 1.5 * 3);
    assert_true(m.most < -2 + 1.5 * 6 && m.most > -2 + 1.5 * 3);
    is_near(&d, m.mean, -2, 1.5);
    is_near(&d, m.deviation, 1.5, 1.5);
  }
}

static void random_integers_are_spread_evenly(void **state) {
  (void)state;
  for (int type = 0; type < TENSOR_TYPES - 1; type++) { /* a BOOL has two */
    const struct drawing d = {
        .op = OP_InplaceRandom, .dtype = tensor_types[type], .integer = {3, 103}, .seed = 9};
    const struct moments m = moments_of(&d);
    assert_true(m.least == 3 && m.most == 102);
    is_near(&d, m.mean, 52.5, 100 / sqrt(12));
    is_near(&d, m.deviation, 100 / sqrt(12), 100 / sqrt(12));
  }
}

/* All of 64 bits. */
static void random_integers_reach_both_ends(void **state) {
  (void)state;
  const struct drawing d = {
      .op = OP_InplaceRandom, .dtype = ACL_INT64, .integer = {INT64_MIN, INT64_MAX}, .seed = 10};
  const struct moments m = moments_of(&d);
  assert_true(m.least < -0x1.ffp62 && m.most > 0x1.ffp62);
  is_near(&d, m.mean / 0x1p63, 0, 2 / sqrt(12));
}

static void what_is_left_no_choice_is_known(void **state) {
  (void)state;
  static const struct drawing all[] = {
      {.op = OP_InplaceUniform, .dtype = ACL_FLOAT, .real = {2.5, 2.5}},
      {.op = OP_InplaceNormal, .dtype = ACL_DOUBLE, .real = {2.5, 0}},
      {.op = OP_InplaceRandom, .dtype = ACL_INT16, .integer = {-7, -6}}};
  for (int i = 0; i < OPERATORS; i++) {
    const struct moments m = moments_of(&all[i]);
    const double only = i == 2 ? -7 : 2.5;
    assert_true(m.least == only && m.most == only);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_depend_on_positions_not_on_strides_or_devices),
      cmocka_unit_test(an_offset_counts_as_positions),
      cmocka_unit_test(another_seed_gives_other_numbers),
      cmocka_unit_test(uniform_numbers_are_spread_evenly),
      cmocka_unit_test(normal_numbers_have_their_mean_and_deviation),
      cmocka_unit_test(random_integers_are_spread_evenly),
      cmocka_unit_test(random_integers_reach_both_ends),
      cmocka_unit_test(what_is_left_no_choice_is_known),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
