/* SPDX-License-Identifier: Apache-2.0 */
/* CANN's fp16 helpers.  They know no Inf and no NaN: narrowing saturates, widening reads the
 * top exponent as one more binade.  Kernels convert the IEEE way and do not use these. */
#include <stdint.h>
#include <string.h>

#include "acl/acl_base.h"

float aclFloat16ToFloat(aclFloat16 value) {
  const uint32_t sign = (uint32_t)(value & 0x8000u) << 16;
  uint32_t exponent = (value >> 10) & 0x1fu;
  uint32_t mantissa = value & 0x3ffu;
  uint32_t bits = sign;
  if (exponent != 0) {
    bits |= (exponent + 112) << 23 | mantissa << 13;
  } else if (mantissa != 0) { /* subnormal: shift the leading one into its place */
    exponent = 113;
    for (; (mantissa & 0x400u) == 0; mantissa <<= 1) exponent--;
    bits |= exponent << 23 | (mantissa & 0x3ffu) << 13;
  }
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

/* value / 2^shift, rounded to nearest, ties to even; 1 <= shift <= 31 */
static uint32_t shift_round(uint32_t value, unsigned shift) {
  const uint32_t half = 1u << (shift - 1), rest = value & ((half << 1) - 1);
  const uint32_t kept = value >> shift;
  return kept + (rest > half || (rest == half && (kept & 1u) != 0));
}

aclFloat16 aclFloatToFloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t exponent = (bits >> 23) & 0xffu;
  const uint32_t mantissa = bits & 0x7fffffu;
  uint32_t magnitude;
  if (exponent > 112) { /* normal: the carry of the rounding may raise the exponent */
    magnitude = exponent > 142 ? 0x7c00u : shift_round((exponent - 112) << 23 | mantissa, 13);
  } else if (exponent >= 102) { /* subnormal; 2^-25 itself ties to zero */
    magnitude = shift_round(mantissa | 0x800000u, 126 - exponent);
  } else {
    magnitude = 0;
  }
  if (magnitude > 0x7bffu) magnitude = 0x7bffu;
  return (aclFloat16)(sign | magnitude);
}
