/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of elements to and from fp32, in plain C. */
#ifndef PG_SIMD_SCALAR_H_
#define PG_SIMD_SCALAR_H_

#include <stdint.h>
#include <string.h>

#include "core/half.h"

static inline void load_row_f32(float *dst, const float *src, int64_t count) {
  memcpy(dst, src, (size_t)count * sizeof *dst);
}

static inline void store_row_f32(float *dst, const float *src, int64_t count) {
  memcpy(dst, src, (size_t)count * sizeof *dst);
}

static inline void load_row_f16(float *dst, const uint16_t *src, int64_t count) {
  for (int64_t i = 0; i < count; i++) dst[i] = pg_float_of_fp16(src[i]);
}

static inline void store_row_f16(uint16_t *dst, const float *src, int64_t count) {
  for (int64_t i = 0; i < count; i++) dst[i] = pg_fp16_of_float(src[i]);
}

static inline void load_row_bf16(float *dst, const uint16_t *src, int64_t count) {
  for (int64_t i = 0; i < count; i++) dst[i] = pg_float_of_bf16(src[i]);
}

static inline void store_row_bf16(uint16_t *dst, const float *src, int64_t count) {
  for (int64_t i = 0; i < count; i++) dst[i] = pg_bf16_of_float(src[i]);
}

static inline void load_row_f64(double *dst, const double *src, int64_t count) {
  memcpy(dst, src, (size_t)count * sizeof *dst);
}

static inline void store_row_f64(double *dst, const double *src, int64_t count) {
  memcpy(dst, src, (size_t)count * sizeof *dst);
}

#endif
