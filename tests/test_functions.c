/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, logarithms and powers of kernels/functions.h, against the vectors that Random123
 * publishes and against long doubles of the C library. */
#include "expect.h"

#include <float.h>
#include <math.h>

#include "core/half.h"
#include "kernels/functions.h"

enum { MANY = 200000 };

static uint64_t random_state = 1;

static uint64_t random_bits(void) {
  random_state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = random_state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static double random_between(double s, double t) {
  return s + (t - s) * (double)(random_bits() >> 11) * 0x1p-53;
}

static void expect_block(struct pg_philox found, struct pg_philox expected) {
  for (int i = 0; i < 4; i++) assert_int_equal(found.word[i], expected.word[i]);
}

static void philox_gives_its_published_words(void **state) {
  (void)state;
  expect_block(pg_philox_block((struct pg_philox){{0}}, 0),
               (struct pg_philox){{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect_block(pg_philox_block((struct pg_philox){{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
                               UINT64_MAX),
               (struct pg_philox){{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect_block(pg_philox_block((struct pg_philox){{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                               UINT64_C(0x299f31d0a4093822)),
               (struct pg_philox){{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

static void a_position_is_the_low_half_of_the_counter(void **state) {
  (void)state;
  const uint64_t seed = UINT64_C(0x0123456789abcdef), at = UINT64_C(0xfedcba9876543210);
  expect_block(pg_philox_at(seed, at),
               pg_philox_block((struct pg_philox){{0x76543210, 0xfedcba98, 0, 0}}, seed));
}

static const struct pg_philox least_block = {{0}};
static const struct pg_philox most_block = {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}};

static double rounded(double value, aclDataType dtype) {
  if (dtype == ACL_DOUBLE) return value;
  if (dtype == ACL_FLOAT16) return (double)pg_float_of_fp16(pg_fp16_of_float((float)value));
  if (dtype == ACL_BF16) return (double)pg_float_of_bf16(pg_bf16_of_float((float)value));
  return (double)(float)value;
}

static void expect_uniform_ends(double s, double t, aclDataType dtype) {
  const struct pg_uniform u = pg_uniform_of(s, t, dtype);
  const double first = rounded(pg_uniform_at(&u, least_block), dtype);
  const double last = rounded(pg_uniform_at(&u, most_block), dtype);
  if (first != rounded(s, dtype) || !(last < t) || last < first)
    fail_msg("dtype %d, %g to %g: from %.17g to %.17g", (int)dtype, s, t, first, last);
  for (int i = 0; i < 1000; i++) {
    const double x = rounded(pg_uniform_at(&u, pg_philox_at(7, (uint64_t)i)), dtype);
    if (x < first || x > last) fail_msg("%.17g is outside %.17g to %.17g", x, first, last);
  }
}

static void uniform_numbers_never_reach_their_end(void **state) {
  (void)state;
  static const double ends[][2] = {{0, 1},       {-1, 1},      {1, 2},      {0, 3},
                                   {-2, -1},     {-1, 0},      {4, 5.5},    {100, 1000},
                                   {0, 0x1p-20}, {1024, 1028}, {-1e4, 5e4}, {0.25, 0.375}};
  static const aclDataType dtypes[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
    for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++)
      expect_uniform_ends(ends[i][0], ends[i][1], dtypes[k]);
  expect_uniform_ends(-3e38, 3e38, ACL_FLOAT); /* their difference is no float */
  expect_uniform_ends(-1.5e308, 1.5e308, ACL_DOUBLE);
  expect_uniform_ends(0, 1e6, ACL_FLOAT16); /* beyond the greatest half */
}

static void uniform_without_room_is_its_begin(void **state) {
  (void)state;
  const struct pg_uniform same = pg_uniform_of(3, 3, ACL_FLOAT);
  assert_true(pg_uniform_at(&same, most_block) == 3);
  const struct pg_uniform back = pg_uniform_of(3, -3, ACL_FLOAT);
  assert_true(pg_uniform_at(&back, most_block) == 3);
}

static void uniform_numbers_fill_their_range(void **state) {
  (void)state;
  const struct pg_uniform u = pg_uniform_of(0, 1, ACL_FLOAT);
  int bins[16] = {0};
  for (uint64_t i = 0; i < MANY; i++) bins[(int)(pg_uniform_at(&u, pg_philox_at(3, i)) * 16)]++;
  for (int i = 0; i < 16; i++) assert_in_range(bins[i], MANY / 16 - 600, MANY / 16 + 600);
}

static void integers_have_both_ends(void **state) {
  (void)state;
  static const int64_t ends[][2] = {{0, 1}, {-5, 7}, {0, INT64_MAX}, {INT64_MIN, INT64_MAX}};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    assert_int_equal(pg_random_integer(least_block, ends[i][0], ends[i][1]), ends[i][0]);
    assert_int_equal(pg_random_integer(most_block, ends[i][0], ends[i][1]), ends[i][1] - 1);
  }
  assert_int_equal(pg_random_integer(most_block, 9, 9), 9);
  assert_int_equal(pg_random_integer(most_block, 9, -9), 9);
}

static void integers_fill_their_range(void **state) {
  (void)state;
  int bins[6] = {0};
  for (uint64_t i = 0; i < MANY; i++) bins[pg_random_integer(pg_philox_at(5, i), -3, 3) + 3]++;
  for (int i = 0; i < 6; i++) assert_in_range(bins[i], MANY / 6 - 900, MANY / 6 + 900);
}

static void high_products_are_exact(void **state) {
  (void)state;
  assert_true(pg_high_product(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
  assert_true(pg_high_product(UINT64_C(1) << 63, 6) == 3);
  assert_true(pg_high_product(UINT32_MAX, UINT32_MAX) == 0);
  /* (2^64 - 1) * b = b * 2^64 - b */
  for (int i = 0; i < 1000; i++) {
    const uint64_t b = random_bits() | 1;
    assert_true(pg_high_product(UINT64_MAX, b) == b - 1);
  }
}

static void normal_numbers_have_their_moments(void **state) {
  (void)state;
  double sum = 0, squares = 0, fourths = 0;
  for (uint64_t i = 0; i < MANY; i++) {
    const double z = pg_normal_at(0, 1, pg_philox_at(11, i));
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
  }
  assert_true(fabs(sum / MANY) < 0.01);
  assert_true(fabs(squares / MANY - 1) < 0.02);
  assert_true(fabs(fourths / MANY - 3) < 0.1);
  assert_true(pg_normal_at(5, 0, pg_philox_at(11, 0)) == 5);
}

static void the_rarest_normal_numbers_are_finite(void **state) {
  (void)state;
  assert_true(fabs(pg_normal_at(0, 1, least_block) - 8.5716740) < 1e-6); /* sqrt(106 ln 2) */
  assert_true(fabs(pg_normal_at(0, 1, most_block)) < 1e-7);
}

#if LDBL_MANT_DIG >= 64 /* else the C library knows no better */

/* In units of the last place of the right answer. */
static double units_off(double found, long double right) {
  const double nearest = (double)right;
  const double unit = nextafter(fabs(nearest), INFINITY) - fabs(nearest);
  return (double)fabsl(((long double)found - right) / (long double)unit);
}

static void logarithms_are_right(void **state) {
  (void)state;
  double worst = 0;
  for (int i = 0; i < MANY; i++) {
    const uint64_t bits = random_bits() % (UINT64_C(0x7ff) << 52);
    const double a = i % 2 != 0 ? pg_double_of_bits(bits | 1) : random_between(0.5, 2);
    worst = fmax(worst, units_off(pg_log(a), logl((long double)a)));
  }
  if (worst >= 1.5) fail_msg("a logarithm is %g units off", worst);
  assert_true(pg_log(1) == 0);
}

static void cosines_are_right(void **state) {
  (void)state;
  for (int i = 0; i < MANY; i++) {
    const double turns = random_between(0, 1);
    const long double right = cosl((long double)turns * 6.283185307179586476925286766559L);
    if (fabsl((long double)pg_cosine_of_turns(turns) - right) >= 0x1p-52L)
      fail_msg("the cosine of %.17g turns is %.17g", turns, pg_cosine_of_turns(turns));
  }
  assert_true(pg_cosine_of_turns(0) == 1 && pg_cosine_of_turns(0.5) == -1);
  assert_true(pg_cosine_of_turns(0.25) == 0 && pg_cosine_of_turns(0.75) == 0);
}

/* The worst of powers whose logarithm to base 2 is at most `most`. */
static double worst_power(double most) {
  double worst = 0;
  for (int i = 0; i < MANY; i++) {
    const double a = i % 2 != 0 ? random_between(0.5, 2) : exp2(random_between(-1000, 1000));
    const double s = random_between(-most, most) / log2(a);
    const long double right = powl((long double)a, (long double)s);
    if (right < (long double)DBL_MIN || right > (long double)DBL_MAX) continue;
    worst = fmax(worst, units_off(pg_power(a, s), right));
  }
  return worst;
}

static void powers_are_right(void **state) {
  (void)state;
  const double near = worst_power(64), far = worst_power(1020);
  if (near >= 4) fail_msg("a power is %g units off", near);
  if (far >= 64) fail_msg("a power at the ends of the range is %g units off", far);
}

static void powers_of_floats_are_rounded_once(void **state) {
  (void)state;
  int different = 0;
  for (int i = 0; i < MANY; i++) {
    const float a = (float)random_between(0, 100), s = (float)random_between(-10, 10);
    different += pg_power_float(a, s) != (float)powl((long double)a, (long double)s);
  }
  assert_int_equal(different, 0);
}

#endif

static void expect_same_power(double a, double s) {
  const double found = pg_power(a, s), right = pow(a, s);
  if (isnan(right) ? !isnan(found) : found != right || !signbit(found) != !signbit(right))
    fail_msg("%g to the power %g is %g, expected %g", a, s, found, right);
  const float narrow = pg_power_float((float)a, (float)s);
  if (isnan(right) ? !isnan(narrow) : narrow != (float)right || !signbit(narrow) != !signbit(right))
    fail_msg("fp32: %g to the power %g is %g, expected %g", a, s, (double)narrow, right);
}

/* The exponents that PyTorch computes with sqrt are no exponents here. */
static void special_powers_are_those_of_c(void **state) {
  (void)state;
  static const double bases[] = {0.0,  -0.0, 1,    -1,       2,         -2,  0.5,
                                 -0.5, 3,    0.25, INFINITY, -INFINITY, NAN, -8};
  static const double exponents[] = {0.0, -0.0, 1,    -1,   2,   -2,     3,        -3,        4,
                                     -4,  5,    0.25, -1.5, 1.5, 0x1p60, INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
    for (size_t k = 0; k < sizeof exponents / sizeof exponents[0]; k++)
      expect_same_power(bases[i], exponents[k]);
  assert_true(pg_power(4, 0.5) == 2 && isnan(pg_power(-INFINITY, 0.5)));
  assert_true(pg_power(4, -0.5) == 0.5 && pg_power_float(4, -0.5f) == 0.5f);
}

static void powers_overflow_and_vanish(void **state) {
  (void)state;
  assert_true(pg_power(10, 400) == INFINITY && pg_power(-10, 401) == -INFINITY);
  assert_true(pg_power(10, -400) == 0 && pg_power(0.5, 1e300) == 0);
  assert_true(pg_power(nextafter(1, 2), 1e300) == INFINITY);
  assert_true(pg_power(2, -1074) == 0x1p-1074 && pg_power(0x1p-1074, 4) == 0);
  assert_true(pg_power(2, 1023) == 0x1p1023 && pg_power(2, 1024) == INFINITY);
  assert_true(pg_power(0x1p-1074, -0.25) > 0x1p268);
}

static void whole_powers_are_exact(void **state) {
  (void)state;
  for (int a = 2; a < 20; a++) {
    double right = 1;
    for (int s = 1; right * a < 0x1p53; s++) {
      right *= a;
      if (pg_power(a, s) != right) fail_msg("%d to the power %d is %.17g", a, s, pg_power(a, s));
    }
  }
}

static void powers_of_integers_wrap_around(void **state) {
  (void)state;
  assert_int_equal(pg_power_integer(3, 5), 243);
  assert_int_equal(pg_power_integer(-2, 63), INT64_MIN);
  assert_int_equal(pg_power_integer(2, 64), 0);
  assert_int_equal(pg_power_integer(0, 0), 1);
  assert_int_equal(pg_power_integer(7, -1), 0);
  assert_int_equal(pg_power_integer(-1, -3), -1);
  assert_int_equal(pg_power_integer(-1, INT64_MIN), 1);
  assert_int_equal(pg_power_integer(1, -9), 1);
}

static void floats_become_integers_by_truncation(void **state) {
  (void)state;
  assert_int_equal(pg_integer_of_double(-2.9), -2);
  assert_int_equal(pg_integer_of_double(NAN), 0);
  assert_int_equal(pg_integer_of_double(INFINITY), INT64_MAX);
  assert_int_equal(pg_integer_of_double(-INFINITY), INT64_MIN);
  assert_int_equal(pg_integer_of_double(0x1p63), INT64_MAX);
  assert_int_equal(pg_integer_of_double(-0x1p63), INT64_MIN);
  assert_int_equal(pg_integer_of_double(0x1.fffffffffffffp62), INT64_C(0x7ffffffffffffc00));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(philox_gives_its_published_words),
    cmocka_unit_test(a_position_is_the_low_half_of_the_counter),
    cmocka_unit_test(uniform_numbers_never_reach_their_end),
    cmocka_unit_test(uniform_without_room_is_its_begin),
    cmocka_unit_test(uniform_numbers_fill_their_range),
    cmocka_unit_test(integers_have_both_ends),
    cmocka_unit_test(integers_fill_their_range),
    cmocka_unit_test(high_products_are_exact),
    cmocka_unit_test(normal_numbers_have_their_moments),
    cmocka_unit_test(the_rarest_normal_numbers_are_finite),
#if LDBL_MANT_DIG >= 64
    cmocka_unit_test(logarithms_are_right),
    cmocka_unit_test(cosines_are_right),
    cmocka_unit_test(powers_are_right),
    cmocka_unit_test(powers_of_floats_are_rounded_once),
#endif
    cmocka_unit_test(special_powers_are_those_of_c),
    cmocka_unit_test(powers_overflow_and_vanish),
    cmocka_unit_test(whole_powers_are_exact),
    cmocka_unit_test(powers_of_integers_wrap_around),
    cmocka_unit_test(floats_become_integers_by_truncation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
