/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 8 lanes for AVX2, F16C and FMA; what each function means is in simd_scalar.h. */
#ifndef PG_SIMD_AVX2_H_
#define PG_SIMD_AVX2_H_

#if !defined(__AVX2__) || !defined(__F16C__) || !defined(__FMA__)
#error "this file needs -mavx2 -mf16c -mfma"
#endif

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/half.h"

enum { LANES = 8 };
typedef __m256 floats;
typedef __m256i ints;

static inline __m256i first_lanes(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline floats zeros(void) { return _mm256_setzero_ps(); }
static inline floats all(float x) { return _mm256_set1_ps(x); }
static inline ints all_i(int32_t x) { return _mm256_set1_epi32(x); }
static inline floats add(floats a, floats b) { return _mm256_add_ps(a, b); }
static inline floats times(floats a, floats b) { return _mm256_mul_ps(a, b); }
static inline floats over(floats a, floats b) { return _mm256_div_ps(a, b); }
static inline ints add_i(ints a, ints b) { return _mm256_add_epi32(a, b); }
static inline ints sub_i(ints a, ints b) { return _mm256_sub_epi32(a, b); }
static inline ints times_i(ints a, ints b) { return _mm256_mullo_epi32(a, b); }

static inline floats load_f32(const float *p) { return _mm256_loadu_ps(p); }
static inline floats load_part_f32(const float *p, int64_t count) {
  return _mm256_maskload_ps(p, first_lanes(count));
}
typedef floats packed_f32;
static inline packed_f32 pack_f32(floats v) { return v; }
static inline packed_f32 pack_exact_f32(floats v) { return v; }
static inline void store_part_f32(float *p, packed_f32 v, int64_t count) {
  _mm256_maskstore_ps(p, first_lanes(count), v);
}
static inline void store_f32(float *p, floats v) { _mm256_storeu_ps(p, v); }

/* The first count of eight halves. */
static inline __m128i part_of_halves(const uint16_t *p, int64_t count) {
  uint16_t copy[8] = {0};
  for (int64_t i = 0; i < count; i++) copy[i] = p[i];
  return _mm_loadu_si128((const void *)copy);
}
static inline void store_part_of_halves(uint16_t *p, __m128i v, int64_t count) {
  uint16_t copy[8];
  _mm_storeu_si128((void *)copy, v);
  for (int64_t i = 0; i < count; i++) p[i] = copy[i];
}

static inline floats load_f16(const uint16_t *p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}
static inline floats load_part_f16(const uint16_t *p, int64_t count) {
  return _mm256_cvtph_ps(part_of_halves(p, count));
}
typedef __m128i packed_f16;
static inline packed_f16 pack_f16(floats v) {
  return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}
static inline packed_f16 pack_exact_f16(floats v) { return pack_f16(v); }
static inline void store_f16(uint16_t *p, packed_f16 v) { _mm_storeu_si128((void *)p, v); }
static inline void store_part_f16(uint16_t *p, packed_f16 v, int64_t count) {
  store_part_of_halves(p, v, count);
}

static inline floats from_bf16(__m128i half) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
static inline floats load_bf16(const uint16_t *p) {
  return from_bf16(_mm_loadu_si128((const void *)p));
}
static inline floats load_part_bf16(const uint16_t *p, int64_t count) {
  return from_bf16(part_of_halves(p, count));
}

/* Rounds to nearest even with integers. */
typedef __m128i packed_bf16;
static inline packed_bf16 pack_bf16(floats v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i wide = _mm256_srli_epi32(_mm256_blendv_epi8(sum, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
}
static inline packed_bf16 pack_exact_bf16(floats v) {
  const __m256i wide = _mm256_srli_epi32(_mm256_castps_si256(v), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
}
static inline void store_bf16(uint16_t *p, packed_bf16 v) { _mm_storeu_si128((void *)p, v); }
static inline void store_part_bf16(uint16_t *p, packed_bf16 v, int64_t count) {
  store_part_of_halves(p, v, count);
}

static inline ints load_i32(const int32_t *p) { return _mm256_loadu_si256((const void *)p); }
static inline void store_i32(int32_t *p, ints v) { _mm256_storeu_si256((void *)p, v); }

static inline ints load_i64(const int64_t *p) {
  const __m256 a = _mm256_loadu_ps((const float *)(const void *)p);
  const __m256 b = _mm256_loadu_ps((const float *)(const void *)(p + 4));
  const __m256 mixed = _mm256_shuffle_ps(a, b, 0x88); /* 0 1 4 5 2 3 6 7 */
  return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xd8);
}
static inline ints load_part_i32(const int32_t *p, int64_t count) {
  return _mm256_maskload_epi32(p, first_lanes(count));
}
static inline ints load_part_i64(const int64_t *p, int64_t count) {
  int32_t copy[8] = {0};
  for (int64_t i = 0; i < count; i++) copy[i] = (int32_t)(uint32_t)(uint64_t)p[i];
  return load_i32(copy);
}
static inline bool in_31_bits(const int64_t *p, int64_t count) {
  uint64_t bits = 0;
  if (count == LANES) {
    const __m256i a = _mm256_loadu_si256((const void *)p);
    const __m256i b = _mm256_loadu_si256((const void *)(p + 4));
    const __m256i high = _mm256_set1_epi64x(~INT64_C(0x7fffffff));
    return _mm256_testz_si256(_mm256_or_si256(a, b), high) != 0;
  }
  for (int64_t i = 0; i < count; i++) bits |= (uint64_t)p[i];
  return bits >> 31 == 0;
}

static inline floats permute(floats v, ints lane) { return _mm256_permutevar8x32_ps(v, lane); }
static inline ints permute_i(ints v, ints lane) { return _mm256_permutevar8x32_epi32(v, lane); }

/* A sum that began at +0 is never -0, so adding +0 changes nothing. */
static inline floats add_where(floats sum, floats term, __m256i mask) {
  return _mm256_add_ps(sum, _mm256_and_ps(term, _mm256_castsi256_ps(mask)));
}
static inline floats permute_two(floats low, floats high, ints lane) {
  const __m256 second = _mm256_castsi256_ps(_mm256_cmpgt_epi32(lane, _mm256_set1_epi32(7)));
  return _mm256_blendv_ps(permute(low, lane), permute(high, lane), second);
}
static inline ints load_u8(const uint8_t *p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}

static inline floats add_equal(floats sum, floats term, ints a, ints b) {
  return add_where(sum, term, _mm256_cmpeq_epi32(a, b));
}
static inline floats add_above(floats sum, floats term, ints count, ints rank) {
  return add_where(sum, term, _mm256_cmpgt_epi32(count, rank));
}

typedef __m256i truths;
static inline truths none(void) { return _mm256_setzero_si256(); }
static inline truths below(ints a, ints b) { /* unsigned */
  const __m256i flip = _mm256_set1_epi32(INT32_MIN);
  return _mm256_cmpgt_epi32(_mm256_xor_si256(b, flip), _mm256_xor_si256(a, flip));
}
static inline truths either(truths a, truths b) { return _mm256_or_si256(a, b); }
static inline truths both(truths a, truths b) { return _mm256_and_si256(a, b); }
static inline bool every(truths a, int64_t count) {
  return _mm256_testc_si256(a, first_lanes(count)) != 0;
}

static inline ints load_i64_collecting(const int64_t *p, ints *collected) {
  const __m256i low = _mm256_loadu_si256((const void *)p);
  const __m256i high = _mm256_loadu_si256((const void *)(p + 4));
  *collected = _mm256_or_si256(*collected, _mm256_or_si256(low, high));
  return load_i64(p);
}
static inline bool high_halves_are_zero(ints collected) {
  return _mm256_testz_si256(collected, _mm256_set1_epi64x(~INT64_C(0xffffffff))) != 0;
}

static inline ints least_u(ints a, ints b) { return _mm256_min_epu32(a, b); }
static inline ints most_u(ints a, ints b) { return _mm256_max_epu32(a, b); }
static inline bool nowhere(truths a) { return _mm256_testz_si256(a, a) != 0; }

/* Floats that are not NaN, rounded to bf16 in the lower half of each lane. */
static inline __m256i upper_half(floats v) {
  const __m256i bits = _mm256_castps_si256(v), upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  return _mm256_srli_epi32(sum, 16);
}
static inline void store_two_bf16(uint16_t *p, floats v, uint16_t *q, floats w) {
  if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(v, w, _CMP_UNORD_Q)) != 0, 0)) {
    store_bf16(p, pack_bf16(v));
    store_bf16(q, pack_bf16(w));
    return;
  }
  const __m256i mixed = _mm256_packus_epi32(upper_half(v), upper_half(w));
  const __m256i both = _mm256_permute4x64_epi64(mixed, 0xd8); /* 0 2 1 3 */
  _mm_storeu_si128((void *)p, _mm256_castsi256_si128(both));
  _mm_storeu_si128((void *)q, _mm256_extracti128_si256(both, 1));
}

static inline void store_pairs_f32(float *p, floats even, floats odd) {
  const __m256 a = _mm256_unpacklo_ps(even, odd), b = _mm256_unpackhi_ps(even, odd);
  _mm256_storeu_ps(p, _mm256_permute2f128_ps(a, b, 0x20));
  _mm256_storeu_ps(p + LANES, _mm256_permute2f128_ps(a, b, 0x31));
}
static inline floats pairs_of_halves(__m128i even, __m128i odd) {
  const __m256i low = _mm256_castsi128_si256(_mm_unpacklo_epi16(even, odd));
  return _mm256_castsi256_ps(_mm256_inserti128_si256(low, _mm_unpackhi_epi16(even, odd), 1));
}
static inline floats pairs_f16(floats even, floats odd) {
  return pairs_of_halves(pack_f16(even), pack_f16(odd));
}
static inline floats pairs_bf16(floats even, floats odd) {
  return pairs_of_halves(pack_bf16(even), pack_bf16(odd));
}
static inline void store_pairs_f16(uint16_t *p, floats even, floats odd) {
  _mm256_storeu_si256((void *)p, _mm256_castps_si256(pairs_f16(even, odd)));
}
static inline void store_exact_pairs_bf16(uint16_t *p, floats even, floats odd) {
  const __m256i lower = _mm256_srli_epi32(_mm256_castps_si256(even), 16);
  _mm256_storeu_si256((void *)p, _mm256_blend_epi16(lower, _mm256_castps_si256(odd), 0xaa));
}
static inline void store_pairs_bf16(uint16_t *p, floats even, floats odd) {
  _mm256_storeu_si256((void *)p, _mm256_castps_si256(pairs_bf16(even, odd)));
}

/* Pairs of rows, then pairs of pairs, in each half of a vector; then halves. */
static inline __attribute__((always_inline)) void transpose(floats v[LANES]) {
  __m256d t[LANES];
  floats r[LANES];
  for (int i = 0; i < LANES; i += 2) {
    t[i] = _mm256_castps_pd(_mm256_unpacklo_ps(v[i], v[i + 1]));
    t[i + 1] = _mm256_castps_pd(_mm256_unpackhi_ps(v[i], v[i + 1]));
  }
  for (int i = 0; i < LANES; i += 4)
    for (int j = 0; j < 2; j++) {
      r[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(t[i + j], t[i + j + 2]));
      r[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(t[i + j], t[i + j + 2]));
    }
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
}

static inline void store_line_nontemporal(void *to, const void *from) {
  const __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256((const __m256i *)from + 1);
  _mm256_stream_si256(to, a);
  _mm256_stream_si256((__m256i *)to + 1, b);
}
static inline void store_two_nontemporal_f32(float *p, floats v, floats w) {
  _mm256_stream_ps(p, v);
  _mm256_stream_ps(p + LANES, w);
}
static inline void store_two_nontemporal_f16(uint16_t *p, floats v, floats w) {
  _mm_stream_si128((__m128i *)(void *)p, pack_f16(v));
  _mm_stream_si128((__m128i *)(void *)(p + LANES), pack_f16(w));
}
static inline void store_two_nontemporal_bf16(uint16_t *p, floats v, floats w) {
  _mm_stream_si128((__m128i *)(void *)p, pack_bf16(v));
  _mm_stream_si128((__m128i *)(void *)(p + LANES), pack_bf16(w));
}
static inline void fence_nontemporal(void) { _mm_sfence(); }

static inline floats over_one(floats v, floats divisor, floats high, floats low) {
  (void)divisor;
  return _mm256_fmadd_ps(v, high, _mm256_mul_ps(v, low));
}
static inline bool any_tiny(floats v) {
  const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
  const __m256 small = _mm256_cmp_ps(size, _mm256_set1_ps(0x1p-60f), _CMP_LT_OQ);
  return _mm256_movemask_ps(
             _mm256_and_ps(small, _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_OQ))) != 0;
}

/* --- The greatest of several --- */

static inline truths is_greater(floats a, floats b) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static inline truths is_equal(floats a, floats b) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
static inline truths is_unordered(floats a, floats b) {
  return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}
static inline truths is_less_i(ints a, ints b) { return _mm256_cmpgt_epi32(b, a); }
static inline truths is_ahead(floats x, ints p, floats y, ints q) {
  return either(is_greater(x, y), both(is_equal(x, y), is_less_i(p, q)));
}
static inline truths is_nan_or_minus_zero(floats v) {
  const __m256i minus_zero = _mm256_set1_epi32(INT32_MIN);
  return either(is_unordered(v, v), _mm256_cmpeq_epi32(_mm256_castps_si256(v), minus_zero));
}
static inline floats greater_of(floats x, floats y) { return _mm256_max_ps(x, y); }
static inline floats choose(truths t, floats yes, floats no) {
  return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(t));
}
static inline ints choose_i(truths t, ints yes, ints no) { return _mm256_blendv_epi8(no, yes, t); }
static inline ints permute_two_i(ints low, ints high, ints lane) {
  const __m256i second = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(7));
  return _mm256_blendv_epi8(permute_i(low, lane), permute_i(high, lane), second);
}
static inline floats pick(const float *p, ints at) { return _mm256_i32gather_ps(p, at, 4); }
static inline ints pick_i(const int32_t *p, ints at) { return _mm256_i32gather_epi32(p, at, 4); }
static inline void store_i64(int64_t *p, ints v) {
  _mm256_storeu_si256((void *)p, _mm256_cvtepu32_epi64(_mm256_castsi256_si128(v)));
  _mm256_storeu_si256((void *)(p + 4), _mm256_cvtepu32_epi64(_mm256_extracti128_si256(v, 1)));
}
static inline floats as_floats(ints v) { return _mm256_castsi256_ps(v); }
static inline ints as_ints(floats v) { return _mm256_castps_si256(v); }

/* Halves in the lower half of each lane, whose upper half is 0. */
static inline floats from_wide_f16(ints wide) {
  return _mm256_cvtph_ps(
      _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
}
static inline floats even_f16(floats pairs) {
  return from_wide_f16(_mm256_and_si256(as_ints(pairs), _mm256_set1_epi32(0xffff)));
}
static inline floats odd_f16(floats pairs) {
  return from_wide_f16(_mm256_srli_epi32(as_ints(pairs), 16));
}
static inline floats even_bf16(floats pairs) {
  return as_floats(_mm256_slli_epi32(as_ints(pairs), 16));
}
static inline floats odd_bf16(floats pairs) {
  return as_floats(_mm256_and_si256(as_ints(pairs), _mm256_set1_epi32(-0x10000)));
}

/* --- Indices as 16-bit numbers --- */

typedef __m256i words;
static inline words all_words(int32_t x) { return _mm256_set1_epi16((short)x); }
static inline void store_words(uint16_t *p, ints v) {
  const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
  const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
  _mm_storeu_si128((void *)p, _mm256_castsi256_si128(both));
}
static inline ints load_words(const uint16_t *p) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p));
}
static inline int64_t store_true(void *to, ints v, truths a) {
  const uint32_t lanes = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(a));
  int32_t at[LANES];
  store_i32(at, v);
  char *next = to;
  for (uint32_t left = lanes; left != 0; left &= left - 1, next += sizeof *at)
    memcpy(next, at + __builtin_ctz(left), sizeof *at);
  return __builtin_popcount(lanes);
}
static inline floats add_equal_words(floats sum, floats term, const uint16_t *p, words x) {
  const __m128i equal =
      _mm_cmpeq_epi16(_mm_loadu_si128((const void *)p), _mm256_castsi256_si128(x));
  const __m256 named = _mm256_castsi256_ps(_mm256_cvtepi16_epi32(equal));
  return _mm256_blendv_ps(sum, _mm256_add_ps(sum, term), named);
}
static inline void move_equal_f32(float *to, const float *from, const uint16_t *p, words x) {
  const __m256i equal = _mm256_cmpeq_epi16(_mm256_loadu_si256((const void *)p), x);
  const __m256i low = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(equal));
  const __m256i high = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(equal, 1));
  _mm256_storeu_ps(to, _mm256_and_ps(_mm256_loadu_ps(from), _mm256_castsi256_ps(low)));
  _mm256_storeu_ps(to + LANES,
                   _mm256_and_ps(_mm256_loadu_ps(from + LANES), _mm256_castsi256_ps(high)));
}
static inline void move_equal_halves(uint16_t *to, const uint16_t *from, const uint16_t *p,
                                     words x) {
  const __m256i equal = _mm256_cmpeq_epi16(_mm256_loadu_si256((const void *)p), x);
  _mm256_storeu_si256((void *)to, _mm256_and_si256(_mm256_loadu_si256((const void *)from), equal));
}
static inline ints remainder_of(ints t, floats inverse, ints length) {
  const ints q = _mm256_cvttps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(t), inverse));
  const ints r = sub_i(t, times_i(q, length));
  return least_u(r, sub_i(r, length));
}

static inline float sum_by_halves(floats v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* --- Vectors of 2 * LANES 16-bit numbers --- */

typedef __m256i shorts;
static inline shorts all_shorts(int32_t x) { return _mm256_set1_epi16((short)x); }
static inline shorts load_shorts(const uint16_t *p) { return _mm256_loadu_si256((const void *)p); }
static inline shorts load_part_shorts(const uint16_t *p, int64_t count) {
  uint16_t part[2 * LANES] = {0};
  memcpy(part, p, (size_t)count * sizeof *p);
  return load_shorts(part);
}
static inline shorts sub_shorts(shorts a, shorts b) { return _mm256_sub_epi16(a, b); }
static inline shorts greater_short(shorts a, shorts b) { return _mm256_max_epi16(a, b); }
static inline shorts choose_greater(shorts x, shorts y, shorts yes, shorts no) {
  return _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi16(x, y));
}
static inline shorts flip_negative(shorts v) {
  return _mm256_xor_si256(v, _mm256_srli_epi16(_mm256_srai_epi16(v, 15), 1));
}
static inline ints join_low(shorts upper, shorts lower) {
  return _mm256_permute2x128_si256(_mm256_unpacklo_epi16(lower, upper),
                                   _mm256_unpackhi_epi16(lower, upper), 0x20);
}
static inline ints join_high(shorts upper, shorts lower) {
  return _mm256_permute2x128_si256(_mm256_unpacklo_epi16(lower, upper),
                                   _mm256_unpackhi_epi16(lower, upper), 0x31);
}
static inline ints greater_i(ints a, ints b) { return _mm256_max_epi32(a, b); }
static inline ints upper_short(ints v) { return _mm256_srai_epi32(v, 16); }
static inline ints lower_short(ints v) { return _mm256_and_si256(v, _mm256_set1_epi32(0xffff)); }

#endif
