/* SPDX-License-Identifier: Apache-2.0 */
/* fp16 and bf16 the IEEE way: subnormals, infinities and NaN kept, rounding to nearest even.
 * (CANN's saturating helpers are in half.c.) */
#ifndef PG_HALF_H_
#define PG_HALF_H_

#include <stdint.h>
#include <string.h>

static inline float pg_float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t pg_bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float pg_float_of_bf16(uint16_t half) {
  return pg_float_of_bits((uint32_t)half << 16);
}

static inline uint16_t pg_bf16_of_float(float value) {
  const uint32_t bits = pg_bits_of_float(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* a quiet NaN */
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float pg_float_of_fp16(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
  if (rest > 0x7c00u) return pg_float_of_bits(sign | 0x7fc00000u | (rest & 0x3ffu) << 13);
  if (rest == 0x7c00u) return pg_float_of_bits(sign | 0x7f800000u);
  if (rest >= 0x0400u) return pg_float_of_bits(sign | ((rest << 13) + 0x38000000u));
  return pg_float_of_bits(sign | pg_bits_of_float((float)rest * 0x1p-24f));
}

static inline uint16_t pg_fp16_of_float(float value) {
  const uint32_t bits = pg_bits_of_float(value);
  const uint32_t sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((rest >> 13) & 0x3ffu));
  if (rest >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
  if (rest < 0x38800000u) { /* subnormal: adding 0.5 leaves the rounding to the adder */
    const float shifted = pg_float_of_bits(rest) + 0.5f;
    return (uint16_t)(sign | (pg_bits_of_float(shifted) - 0x3f000000u));
  }
  return (uint16_t)(sign | ((rest + 0xfffu + ((rest >> 13) & 1u) - 0x38000000u) >> 13));
}

#endif
