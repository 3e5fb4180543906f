/* SPDX-License-Identifier: Apache-2.0 */
#include "float_format.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

const struct float_format float_formats[FLOAT_FORMATS] = {
    [F32] = {"f32", ACL_FLOAT, 4, 24, -149, 8, 0x1.fffffep127, 0x1p-24},
    [F16] = {"f16", ACL_FLOAT16, 2, 11, -24, 5, 65504, 0x1p-24},
    [BF16] = {"bf16", ACL_BF16, 2, 8, -133, 8, 0x1.fep127, 0x1p-24},
    [F64] = {"f64", ACL_DOUBLE, 8, 53, -1074, 11, DBL_MAX, 0x1p-53},
};

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

void float_encode(const struct float_format *format, double value, void *bits) {
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
