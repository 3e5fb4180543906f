/* SPDX-License-Identifier: Apache-2.0 */
#include "float_format.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

const struct float_format float_formats[ELEMENT_FORMATS] = {
    [F32] = {"f32", ACL_FLOAT, 4, 24, -149, 8, 0x1.fffffep127, 0x1p-24},
    [F16] = {"f16", ACL_FLOAT16, 2, 11, -24, 5, 65504, 0x1p-24},
    [BF16] = {"bf16", ACL_BF16, 2, 8, -133, 8, 0x1.fep127, 0x1p-24},
    [F64] = {"f64", ACL_DOUBLE, 8, 53, -1074, 11, DBL_MAX, 0x1p-53},
    [I8] = {"i8", ACL_INT8, 1, .largest = INT8_MAX},
    [U8] = {"u8", ACL_UINT8, 1, .largest = UINT8_MAX},
    [I16] = {"i16", ACL_INT16, 2, .largest = INT16_MAX},
    [U16] = {"u16", ACL_UINT16, 2, .largest = UINT16_MAX},
    [I32] = {"i32", ACL_INT32, 4, .largest = INT32_MAX},
    [I64] = {"i64", ACL_INT64, 8, .largest = (double)INT64_MAX},
};

static bool is_integer(const struct float_format *format) { return format->digits == 0; }

/* The integer at `bits`, by its type. */
static int64_t decode_integer(aclDataType type, const void *bits) {
  union {
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    int64_t i64;
  } at = {.i64 = 0};
  switch (type) {
    case ACL_INT8:
      memcpy(&at, bits, 1);
      return at.i8;
    case ACL_UINT8:
      memcpy(&at, bits, 1);
      return at.u8;
    case ACL_INT16:
      memcpy(&at, bits, 2);
      return at.i16;
    case ACL_UINT16:
      memcpy(&at, bits, 2);
      return at.u16;
    case ACL_INT32:
      memcpy(&at, bits, 4);
      return at.i32;
    default:
      memcpy(&at, bits, 8);
      return at.i64;
  }
}

bool element_exceeds(int type, const void *a, const void *b) {
  const struct float_format *format = &float_formats[type];
  if (is_integer(format))
    return decode_integer(format->dtype, a) > decode_integer(format->dtype, b);
  return float_decode(format, a) > float_decode(format, b);
}

bool element_is_nan(int type, const void *bits) {
  const struct float_format *format = &float_formats[type];
  return !is_integer(format) && isnan(float_decode(format, bits));
}

double float_round(const struct float_format *format, double value) {
  if (format->digits == 53 || !isfinite(value) || value == 0) return value;
  int exponent;
  (void)frexp(value, &exponent);
  const int last =
      exponent - format->digits > format->least ? exponent - format->digits : format->least;
  const double rounded = ldexp(nearbyint(ldexp(value, -last)), last);
  return fabs(rounded) > format->largest ? copysign(INFINITY, value) : rounded;
}

/* Small formats are decoded by their definition, the two that C has by memcpy. */
static double decode_half(const struct float_format *format, uint16_t bits) {
  const int mantissa_bits = format->digits - 1, top = (1 << format->exponents) - 1;
  const int exponent = (bits >> mantissa_bits) & top, mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == top) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * ldexp(mantissa, format->least);
  return sign * ldexp(mantissa + (1 << mantissa_bits), format->least + exponent - 1);
}

static uint16_t encode_half(const struct float_format *format, double value) {
  const int mantissa_bits = format->digits - 1, top = (1 << format->exponents) - 1;
  const int sign = signbit(value) ? 0x8000 : 0;
  if (isnan(value)) return (uint16_t)(sign | top << mantissa_bits | 1 << (mantissa_bits - 1));
  const double size = fabs(float_round(format, value));
  if (isinf(size)) return (uint16_t)(sign | top << mantissa_bits);
  int exponent = 0;
  (void)frexp(size, &exponent);
  exponent -= format->digits + format->least; /* 0 for the smallest normal number's binade */
  if (size == 0 || exponent < 0) return (uint16_t)(sign | (int)ldexp(size, -format->least));
  const int mantissa = (int)ldexp(size, -format->least - exponent) - (1 << mantissa_bits);
  return (uint16_t)(sign | (exponent + 1) << mantissa_bits | mantissa);
}

double float_decode(const struct float_format *format, const void *bits) {
  double wide;
  float narrow;
  uint16_t half;
  if (is_integer(format)) return (double)decode_integer(format->dtype, bits);
  switch (format->bytes) {
    case sizeof wide:
      memcpy(&wide, bits, sizeof wide);
      return wide;
    case sizeof narrow:
      memcpy(&narrow, bits, sizeof narrow);
      return narrow;
    default:
      memcpy(&half, bits, sizeof half);
      return decode_half(format, half);
  }
}

/* The low bytes of an integer are the integer of a narrower type.  The largest double that counts
 * here is 2^63, which is no int64_t. */
static void encode_integer(const struct float_format *format, double value, void *bits) {
  const int64_t wide = value >= 0x1p63 ? INT64_MAX : (int64_t)value;
  memcpy(bits, &wide, format->bytes);
}

void float_encode(const struct float_format *format, double value, void *bits) {
  if (is_integer(format)) {
    encode_integer(format, value, bits);
    return;
  }
  switch (format->bytes) {
    case sizeof(double):
      memcpy(bits, &value, sizeof value);
      return;
    case sizeof(float):
      memcpy(bits, &(float){(float)value}, sizeof(float));
      return;
    default:
      memcpy(bits, &(uint16_t){encode_half(format, value)}, sizeof(uint16_t));
  }
}
