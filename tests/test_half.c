/* SPDX-License-Identifier: Apache-2.0 */
/* fp16 on the host, sizes of data types, data buffers. */
#include "expect.h"

#include <math.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* aclGetDataBufferSize */

enum { LARGEST = 0x7bff, SIGN = 0x8000 };

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* What the bits mean without Inf and NaN, in doubles. */
static double meaning(uint16_t half) {
  const int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
  const double magnitude =
      exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
  return (half & SIGN) != 0 ? -magnitude : magnitude;
}

/* The nearest half in doubles, ties to even, saturating; NaN and Inf become the largest. */
static uint16_t nearest(float value) {
  const uint16_t sign = signbit(value) != 0 ? SIGN : 0;
  const double magnitude = fabs((double)value);
  if (!(magnitude < 65520)) return sign | LARGEST;
  const double subnormals = nearbyint(ldexp(magnitude, 24));
  if (subnormals < 1024) return (uint16_t)(sign | (int)subnormals);
  int exponent;
  (void)frexp(magnitude, &exponent); /* magnitude is in [2^(exponent-1), 2^exponent) */
  if (exponent < -13) exponent = -13;
  const int units = (int)nearbyint(ldexp(magnitude, 11 - exponent)); /* 1024 to 2048 */
  return (uint16_t)(sign | (((exponent + 13) << 10) + units));
}

static void expect_narrowed(float value) {
  const uint16_t found = aclFloatToFloat16(value), expected = nearest(value);
  if (found != expected)
    fail_msg("%a (0x%08x) became 0x%04x, expected 0x%04x", (double)value, to_bits(value), found,
             expected);
}

static void every_half_widens_to_its_meaning(void **state) {
  (void)state;
  for (int half = 0; half <= UINT16_MAX; half++) {
    const float found = aclFloat16ToFloat((aclFloat16)half);
    if ((double)found != meaning((uint16_t)half) || (signbit(found) != 0) != (half >= SIGN))
      fail_msg("0x%04x became %a", half, (double)found);
  }
}

static void every_half_up_to_the_largest_comes_back(void **state) {
  (void)state;
  for (int half = 0; half <= UINT16_MAX; half++) {
    const int magnitude = half & ~SIGN,
              back = aclFloatToFloat16(aclFloat16ToFloat((aclFloat16)half));
    const int expected = (half & SIGN) | (magnitude > LARGEST ? LARGEST : magnitude);
    if (back != expected) fail_msg("0x%04x came back as 0x%04x", half, back);
  }
}

static void widening_knows_no_infinity_and_no_nan(void **state) {
  (void)state;
  assert_true(aclFloat16ToFloat(0x7c00) == 65536.0f);
  assert_true(aclFloat16ToFloat(0xfc00) == -65536.0f);
  assert_true(aclFloat16ToFloat(0x7e00) == 98304.0f);
}

static void narrowing_saturates_at_the_largest(void **state) {
  (void)state;
  assert_int_equal(aclFloatToFloat16(65504.0f), LARGEST);
  assert_int_equal(aclFloatToFloat16(65519.0f), LARGEST);
  assert_int_equal(aclFloatToFloat16(65520.0f), LARGEST);
  assert_int_equal(aclFloatToFloat16(3.4e38f), LARGEST);
  assert_int_equal(aclFloatToFloat16(-3.4e38f), SIGN | LARGEST);
  assert_int_equal(aclFloatToFloat16(INFINITY), LARGEST);
  assert_int_equal(aclFloatToFloat16(-INFINITY), SIGN | LARGEST);
}

static void nan_becomes_the_largest_with_its_sign(void **state) {
  (void)state;
  assert_int_equal(aclFloatToFloat16(from_bits(0x7fc00000)), LARGEST);
  assert_int_equal(aclFloatToFloat16(from_bits(0xffc00000)), SIGN | LARGEST);
  assert_int_equal(aclFloatToFloat16(from_bits(0x7f800001)), LARGEST);
  assert_int_equal(aclFloatToFloat16(from_bits(0xff800001)), SIGN | LARGEST);
}

static void zeros_keep_their_sign(void **state) {
  (void)state;
  assert_int_equal(aclFloatToFloat16(0.0f), 0);
  assert_int_equal(aclFloatToFloat16(-0.0f), SIGN);
  assert_int_equal(to_bits(aclFloat16ToFloat(0)), 0);
  assert_int_equal(to_bits(aclFloat16ToFloat(SIGN)), 0x80000000u);
}

static void ties_go_to_even(void **state) {
  (void)state;
  assert_int_equal(aclFloatToFloat16(1.0f + ldexpf(1, -11)), 0x3c00);
  assert_int_equal(aclFloatToFloat16(1.0f + ldexpf(3, -11)), 0x3c02);
  assert_int_equal(aclFloatToFloat16(nextafterf(1.0f + ldexpf(1, -11), 2)), 0x3c01);
  assert_int_equal(aclFloatToFloat16(2.0f - ldexpf(1, -11)), 0x4000); /* the carry goes on */
  assert_int_equal(aclFloatToFloat16(ldexpf(3, -25)), 2);
  assert_int_equal(aclFloatToFloat16(ldexpf(5, -25)), 2);
  assert_int_equal(aclFloatToFloat16(ldexpf(2047, -25)), 0x0400); /* subnormal to normal */
}

static void subnormals_are_produced(void **state) {
  (void)state;
  assert_int_equal(aclFloatToFloat16(ldexpf(1, -24)), 1);
  assert_int_equal(aclFloatToFloat16(ldexpf(-1023, -24)), SIGN | 0x3ff);
  assert_int_equal(aclFloatToFloat16(ldexpf(1, -14)), 0x400);
}

static void more_than_half_of_the_least_subnormal_rounds_up(void **state) {
  (void)state;
  assert_int_equal(aclFloatToFloat16(from_bits(0x66u << 23)), 0);
  assert_int_equal(aclFloatToFloat16(from_bits(0x66u << 23 | 1)), 1);
  assert_int_equal(aclFloatToFloat16(from_bits(0x66u << 23 | 0x7fffff)), 1);
  assert_int_equal(aclFloatToFloat16(from_bits(0x80000000u | 0x66u << 23 | 1)), SIGN | 1);
  assert_int_equal(aclFloatToFloat16(from_bits(0x65u << 23 | 0x7fffff)), 0);
  assert_int_equal(aclFloatToFloat16(from_bits(1)), 0);
}

static uint64_t next_random(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

static void random_floats_narrow_to_the_nearest(void **state) {
  (void)state;
  uint64_t seed = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < 2000000; i++) {
    const uint32_t bits = (uint32_t)(next_random(&seed) >> 32);
    expect_narrowed(from_bits(bits));
    const uint32_t exponent = 0x60 + (bits >> 23) % 0x32; /* around what halves can hold */
    expect_narrowed(from_bits((bits & 0x807fffffu) | exponent << 23));
  }
}

static void floats_beside_every_half_and_every_midpoint_narrow_to_the_nearest(void **state) {
  (void)state;
  for (int half = 0; half <= LARGEST; half++) {
    const float value = (float)meaning((uint16_t)half);
    const float middle = (float)((meaning((uint16_t)half) + meaning((uint16_t)(half + 1))) / 2);
    const float around[] = {value, middle, -middle};
    for (int i = 0; i < 3; i++) {
      expect_narrowed(around[i]);
      expect_narrowed(nextafterf(around[i], INFINITY));
      expect_narrowed(nextafterf(around[i], -INFINITY));
    }
  }
}

static void data_types_have_the_sizes_of_the_table(void **state) {
  (void)state;
  static const struct {
    int type;
    size_t bytes;
  } rows[] = {
      {-1, 0}, {0, 4},  {1, 2},  {2, 1},  {3, 4},  {4, 1},  {6, 2},  {7, 2},
      {8, 4},  {9, 8},  {10, 8}, {11, 8}, {12, 1}, {13, 0}, {16, 8}, {17, 16},
      {27, 2}, {29, 1}, {30, 1}, {33, 4}, {34, 1}, {35, 1}, {36, 1}, {37, 1},
      {38, 8}, {39, 8}, {40, 8}, {41, 8}, {5, 8},  {42, 8}, {-2, 8}, {999, 8},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (aclDataTypeSize((aclDataType)rows[i].type) != rows[i].bytes)
      fail_msg("type %d has %zu bytes", rows[i].type, aclDataTypeSize((aclDataType)rows[i].type));
}

static void a_data_buffer_returns_what_it_was_given(void **state) {
  (void)state;
  int first, second;
  aclDataBuffer *buffer = aclCreateDataBuffer(&first, 4);
  assert_non_null(buffer);
  assert_ptr_equal(aclGetDataBufferAddr(buffer), &first);
  assert_int_equal(aclGetDataBufferSizeV2(buffer), 4);
  OK_OR_SAY(aclUpdateDataBuffer(buffer, &second, ((size_t)1 << 32) + 5));
  assert_ptr_equal(aclGetDataBufferAddr(buffer), &second);
  assert_int_equal(aclGetDataBufferSizeV2(buffer), ((size_t)1 << 32) + 5);
  assert_int_equal(aclGetDataBufferSize(buffer), 5);
  OK_OR_SAY(aclDestroyDataBuffer(buffer));
}

static void a_data_buffer_may_be_empty(void **state) {
  (void)state;
  aclDataBuffer *buffer = aclCreateDataBuffer(NULL, 0);
  assert_non_null(buffer);
  assert_null(aclGetDataBufferAddr(buffer));
  assert_int_equal(aclGetDataBufferSizeV2(buffer), 0);
  OK_OR_SAY(aclDestroyDataBuffer(buffer));
}

static void null_and_stale_data_buffers_are_refused(void **state) {
  (void)state;
  int data;
  aclDataBuffer *buffer = aclCreateDataBuffer(&data, 4);
  FAILS(aclDestroyDataBuffer(NULL), ACL_ERROR_INVALID_PARAM, "aclDestroyDataBuffer", "dataBuffer");
  FAILS(aclUpdateDataBuffer(NULL, &data, 4), ACL_ERROR_INVALID_PARAM, "aclUpdateDataBuffer");
  assert_null(aclGetDataBufferAddr(NULL));
  assert_int_equal(aclGetDataBufferSizeV2(NULL), 0);
  OK_OR_SAY(aclDestroyDataBuffer(buffer));
  FAILS(aclDestroyDataBuffer(buffer), ACL_ERROR_INVALID_PARAM, "destroyed data buffer");
  FAILS(aclUpdateDataBuffer(buffer, &data, 4), ACL_ERROR_INVALID_PARAM, "destroyed data buffer");
  assert_null(aclGetDataBufferAddr(buffer));
  assert_int_equal(aclGetDataBufferSizeV2(buffer), 0);
  (void)aclGetRecentErrMsg();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_half_widens_to_its_meaning),
      cmocka_unit_test(every_half_up_to_the_largest_comes_back),
      cmocka_unit_test(widening_knows_no_infinity_and_no_nan),
      cmocka_unit_test(narrowing_saturates_at_the_largest),
      cmocka_unit_test(nan_becomes_the_largest_with_its_sign),
      cmocka_unit_test(zeros_keep_their_sign),
      cmocka_unit_test(ties_go_to_even),
      cmocka_unit_test(subnormals_are_produced),
      cmocka_unit_test(more_than_half_of_the_least_subnormal_rounds_up),
      cmocka_unit_test(random_floats_narrow_to_the_nearest),
      cmocka_unit_test(floats_beside_every_half_and_every_midpoint_narrow_to_the_nearest),
      cmocka_unit_test(data_types_have_the_sizes_of_the_table),
      cmocka_unit_test(a_data_buffer_returns_what_it_was_given),
      cmocka_unit_test(a_data_buffer_may_be_empty),
      cmocka_unit_test(null_and_stale_data_buffers_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
