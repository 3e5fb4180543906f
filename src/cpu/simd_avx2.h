/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of elements to and from fp32 with AVX2 and F16C, eight at a time.  The same bits as
 * simd_scalar.h gives, NaN payloads apart. */
#ifndef PG_SIMD_AVX2_H_
#define PG_SIMD_AVX2_H_

#if !defined(__AVX2__) || !defined(__F16C__)
#error "this file needs -mavx2 -mf16c"
#endif

#include <immintrin.h>
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
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
  for (; i < count; i++) dst[i] = pg_float_of_fp16(src[i]);
}

static inline void store_row_f16(uint16_t *dst, const float *src, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128((__m128i *)(dst + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; i++) dst[i] = pg_fp16_of_float(src[i]);
}

static inline void load_row_bf16(float *dst, const uint16_t *src, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(src + i)));
    _mm256_storeu_si256((__m256i *)(dst + i), _mm256_slli_epi32(wide, 16));
  }
  for (; i < count; i++) dst[i] = pg_float_of_bf16(src[i]);
}

/* To nearest even in integers (the bf16 instructions of newer CPUs flush subnormals). */
static inline __m256i round_to_bf16(__m256i bits) {
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256 value = _mm256_castsi256_ps(bits);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}

static inline void store_row_bf16(uint16_t *dst, const float *src, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i bits = round_to_bf16(_mm256_castps_si256(_mm256_loadu_ps(src + i)));
    const __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    _mm_storeu_si128((__m128i *)(dst + i), packed);
  }
  for (; i < count; i++) dst[i] = pg_bf16_of_float(src[i]);
}

static inline void load_row_f64(double *dst, const double *src, int64_t count) {
  memcpy(dst, src, (size_t)count * sizeof *dst);
}

static inline void store_row_f64(double *dst, const double *src, int64_t count) {
  memcpy(dst, src, (size_t)count * sizeof *dst);
}

#endif
