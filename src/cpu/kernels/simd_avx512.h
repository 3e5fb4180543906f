/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 16 lanes for AVX-512 F, BW, DQ and VL; what each function means is in simd_scalar.h.
 */
#ifndef PG_SIMD_AVX512_H_
#define PG_SIMD_AVX512_H_

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || \
    !defined(__AVX512VL__)
#error "this file needs -mavx512f -mavx512bw -mavx512dq -mavx512vl"
#endif

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/half.h"

enum { LANES = 16 };
typedef __m512 floats;
typedef __m512i ints;

static inline __mmask16 first_lanes(int64_t count) { return (__mmask16)((1u << count) - 1); }

static inline floats zeros(void) { return _mm512_setzero_ps(); }
static inline floats all(float x) { return _mm512_set1_ps(x); }
static inline ints all_i(int32_t x) { return _mm512_set1_epi32(x); }
static inline floats add(floats a, floats b) { return _mm512_add_ps(a, b); }
static inline floats times(floats a, floats b) { return _mm512_mul_ps(a, b); }
static inline floats over(floats a, floats b) { return _mm512_div_ps(a, b); }
static inline ints add_i(ints a, ints b) { return _mm512_add_epi32(a, b); }
static inline ints sub_i(ints a, ints b) { return _mm512_sub_epi32(a, b); }
static inline ints times_i(ints a, ints b) { return _mm512_mullo_epi32(a, b); }

static inline floats load_f32(const float *p) { return _mm512_loadu_ps(p); }
static inline floats load_part_f32(const float *p, int64_t count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), p);
}
typedef floats packed_f32;
static inline packed_f32 pack_f32(floats v) { return v; }
static inline packed_f32 pack_exact_f32(floats v) { return v; }
static inline void store_part_f32(float *p, packed_f32 v, int64_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), v);
}
static inline void store_f32(float *p, floats v) { _mm512_storeu_ps(p, v); }

static inline floats load_f16(const uint16_t *p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
static inline floats load_part_f16(const uint16_t *p, int64_t count) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(count), p));
}
typedef __m256i packed_f16;
/* The masked form with all lanes: the plain one is a macro in builds of gcc without optimisation,
 * which warns of a conversion. */
static inline packed_f16 pack_f16(floats v) {
  return _mm512_maskz_cvtps_ph(0xffff, v, _MM_FROUND_TO_NEAREST_INT);
}
static inline packed_f16 pack_exact_f16(floats v) { return pack_f16(v); }
static inline void store_f16(uint16_t *p, packed_f16 v) { _mm256_storeu_si256((void *)p, v); }
static inline void store_part_f16(uint16_t *p, packed_f16 v, int64_t count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), v);
}

static inline floats from_bf16(__m256i half) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
static inline floats load_bf16(const uint16_t *p) {
  return from_bf16(_mm256_loadu_si256((const void *)p));
}
static inline floats load_part_bf16(const uint16_t *p, int64_t count) {
  return from_bf16(_mm256_maskz_loadu_epi16(first_lanes(count), p));
}

/* Rounds to nearest even with integers, because the bf16 instructions of newer CPUs flush
 * subnormals. */
typedef __m256i packed_bf16;
static inline packed_bf16 pack_bf16(floats v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  const __m512i all = _mm512_mask_or_epi32(sum, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16));
}
/* Values that bf16 represents need no rounding. */
static inline packed_bf16 pack_exact_bf16(floats v) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(v), 16));
}
static inline void store_bf16(uint16_t *p, packed_bf16 v) { _mm256_storeu_si256((void *)p, v); }
static inline void store_part_bf16(uint16_t *p, packed_bf16 v, int64_t count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), v);
}

static inline ints load_i32(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline void store_i32(int32_t *p, ints v) { _mm512_storeu_si512(p, v); }

static inline ints load_i64(const int64_t *p) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return _mm512_permutex2var_epi32(_mm512_loadu_si512(p), even, _mm512_loadu_si512(p + 8));
}
static inline ints load_part_i32(const int32_t *p, int64_t count) {
  return _mm512_maskz_loadu_epi32(first_lanes(count), p);
}
static inline __m512i low_part(const int64_t *p, int64_t count) {
  return _mm512_maskz_loadu_epi64((__mmask8)first_lanes(count < 8 ? count : 8), p);
}
static inline __m512i high_part(const int64_t *p, int64_t count) {
  return _mm512_maskz_loadu_epi64((__mmask8)first_lanes(count > 8 ? count - 8 : 0), p + 8);
}
static inline ints load_part_i64(const int64_t *p, int64_t count) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return _mm512_permutex2var_epi32(low_part(p, count), even, high_part(p, count));
}
static inline bool in_31_bits(const int64_t *p, int64_t count) {
  const __m512i both = _mm512_or_si512(low_part(p, count), high_part(p, count));
  return _mm512_test_epi64_mask(both, _mm512_set1_epi64(~INT64_C(0x7fffffff))) == 0;
}

static inline floats permute(floats v, ints lane) { return _mm512_permutexvar_ps(lane, v); }
static inline ints permute_i(ints v, ints lane) { return _mm512_permutexvar_epi32(lane, v); }

static inline floats permute_two(floats low, floats high, ints lane) {
  return _mm512_permutex2var_ps(low, lane, high);
}
static inline ints load_u8(const uint8_t *p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
}

static inline floats add_equal(floats sum, floats term, ints a, ints b) {
  return _mm512_mask_add_ps(sum, _mm512_cmpeq_epi32_mask(a, b), sum, term);
}
static inline floats add_above(floats sum, floats term, ints count, ints rank) {
  return _mm512_mask_add_ps(sum, _mm512_cmpgt_epi32_mask(count, rank), sum, term);
}

typedef __mmask16 truths;
static inline truths none(void) { return 0; }
static inline truths below(ints a, ints b) { return _mm512_cmplt_epu32_mask(a, b); }
static inline truths either(truths a, truths b) { return _kor_mask16(a, b); }
static inline truths both(truths a, truths b) { return _kand_mask16(a, b); }
static inline bool every(truths a, int64_t count) {
  return (__mmask16)(a | ~first_lanes(count)) == 0xffff;
}

static inline ints load_i64_collecting(const int64_t *p, ints *collected) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i low = _mm512_loadu_si512(p), high = _mm512_loadu_si512(p + 8);
  *collected = _mm512_ternarylogic_epi64(*collected, low, high, 0xfe); /* or */
  return _mm512_permutex2var_epi32(low, even, high);
}
static inline bool high_halves_are_zero(ints collected) {
  return _mm512_test_epi64_mask(collected, _mm512_set1_epi64(~INT64_C(0xffffffff))) == 0;
}

static inline ints least_u(ints a, ints b) { return _mm512_min_epu32(a, b); }
static inline ints most_u(ints a, ints b) { return _mm512_max_epu32(a, b); }
static inline bool nowhere(truths a) { return a == 0; }

/* Floats that are not NaN, rounded to bf16 in their upper halves. */
static inline __m512i upper_half(floats v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  const __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  return _mm512_mask_add_epi32(sum, odd, sum, _mm512_set1_epi32(1));
}
static inline __m512i two_upper_halves(floats v, floats w) {
  const __m512i odd =
      _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                       25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi16(upper_half(v), odd, upper_half(w));
}
static inline void store_two_bf16(uint16_t *p, floats v, uint16_t *q, floats w) {
  if (__builtin_expect(_mm512_cmp_ps_mask(v, w, _CMP_UNORD_Q) != 0, 0)) {
    store_bf16(p, pack_bf16(v));
    store_bf16(q, pack_bf16(w));
    return;
  }
  const __m512i both = two_upper_halves(v, w);
  _mm256_storeu_si256((void *)p, _mm512_castsi512_si256(both));
  _mm256_storeu_si256((void *)q, _mm512_extracti64x4_epi64(both, 1));
}

static inline void store_pairs_f32(float *p, floats even, floats odd) {
  const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  _mm512_storeu_ps(p, _mm512_permutex2var_ps(even, low, odd));
  _mm512_storeu_ps(p + LANES, _mm512_permutex2var_ps(even, high, odd));
}
static inline floats pairs_f16(floats even, floats odd) {
  const __m512i lower = _mm512_cvtepu16_epi32(pack_f16(even));
  const __m512i upper = _mm512_slli_epi32(_mm512_cvtepu16_epi32(pack_f16(odd)), 16);
  return _mm512_castsi512_ps(_mm512_or_si512(lower, upper));
}
static inline void store_pairs_f16(uint16_t *p, floats even, floats odd) {
  _mm512_storeu_ps(p, pairs_f16(even, odd));
}
static inline floats pairs_of_upper_halves(__m512i even, __m512i odd) {
  return _mm512_castsi512_ps(_mm512_mask_mov_epi16(_mm512_srli_epi32(even, 16), 0xaaaaaaaau, odd));
}
static inline void store_exact_pairs_bf16(uint16_t *p, floats even, floats odd) {
  _mm512_storeu_ps(p, pairs_of_upper_halves(_mm512_castps_si512(even), _mm512_castps_si512(odd)));
}
static inline floats pairs_bf16(floats even, floats odd) {
  if (__builtin_expect(_mm512_cmp_ps_mask(even, odd, _CMP_UNORD_Q) != 0, 0)) {
    const __m512i upper = _mm512_slli_epi32(_mm512_cvtepu16_epi32(pack_bf16(odd)), 16);
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_cvtepu16_epi32(pack_bf16(even)), upper));
  }
  return pairs_of_upper_halves(upper_half(even), upper_half(odd));
}
static inline void store_pairs_bf16(uint16_t *p, floats even, floats odd) {
  _mm512_storeu_ps(p, pairs_bf16(even, odd));
}

/* Pairs of rows, then pairs of pairs, in each quarter of a vector; then quarters. */
static inline __attribute__((always_inline)) void transpose(floats v[LANES]) {
  __m512d t[LANES], r[LANES];
  for (int i = 0; i < LANES; i += 2) {
    t[i] = _mm512_castps_pd(_mm512_unpacklo_ps(v[i], v[i + 1]));
    t[i + 1] = _mm512_castps_pd(_mm512_unpackhi_ps(v[i], v[i + 1]));
  }
  for (int i = 0; i < LANES; i += 4)
    for (int j = 0; j < 2; j++) {
      r[i + 2 * j] = _mm512_unpacklo_pd(t[i + j], t[i + j + 2]);
      r[i + 2 * j + 1] = _mm512_unpackhi_pd(t[i + j], t[i + j + 2]);
    }
  for (int i = 0; i < 4; i++) {
    const __m512d a = _mm512_shuffle_f64x2(r[i], r[i + 4], 0x88);
    const __m512d b = _mm512_shuffle_f64x2(r[i], r[i + 4], 0xdd);
    const __m512d c = _mm512_shuffle_f64x2(r[i + 8], r[i + 12], 0x88);
    const __m512d d = _mm512_shuffle_f64x2(r[i + 8], r[i + 12], 0xdd);
    v[i] = _mm512_castpd_ps(_mm512_shuffle_f64x2(a, c, 0x88));
    v[i + 4] = _mm512_castpd_ps(_mm512_shuffle_f64x2(b, d, 0x88));
    v[i + 8] = _mm512_castpd_ps(_mm512_shuffle_f64x2(a, c, 0xdd));
    v[i + 12] = _mm512_castpd_ps(_mm512_shuffle_f64x2(b, d, 0xdd));
  }
}

static inline void store_line_nontemporal(void *to, const void *from) {
  _mm512_stream_si512(to, _mm512_loadu_si512(from));
}
static inline void store_two_nontemporal_f32(float *p, floats v, floats w) {
  _mm512_stream_ps(p, v);
  _mm512_stream_ps(p + LANES, w);
}
static inline void store_halves_nontemporal(uint16_t *p, __m256i v, __m256i w) {
  _mm512_stream_si512((void *)p, _mm512_inserti64x4(_mm512_castsi256_si512(v), w, 1));
}
static inline void store_two_nontemporal_f16(uint16_t *p, floats v, floats w) {
  store_halves_nontemporal(p, pack_f16(v), pack_f16(w));
}
static inline void store_two_nontemporal_bf16(uint16_t *p, floats v, floats w) {
  if (__builtin_expect(_mm512_cmp_ps_mask(v, w, _CMP_UNORD_Q) != 0, 0))
    store_halves_nontemporal(p, pack_bf16(v), pack_bf16(w));
  else
    _mm512_stream_si512((void *)p, two_upper_halves(v, w));
}
static inline void fence_nontemporal(void) { _mm_sfence(); }

static inline floats over_one(floats v, floats divisor, floats high, floats low) {
  (void)divisor;
  return _mm512_fmadd_ps(v, high, _mm512_mul_ps(v, low));
}
static inline bool any_tiny(floats v) {
  const __m512i size = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff));
  const __m512i less = _mm512_sub_epi32(size, _mm512_set1_epi32(1)); /* 0 is far above then */
  return _mm512_cmplt_epu32_mask(less, _mm512_set1_epi32(0x21800000 - 1)) != 0;
}

/* --- The greatest of several --- */

static inline truths is_greater(floats a, floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
static inline truths is_equal(floats a, floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline truths is_unordered(floats a, floats b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}
static inline truths is_less_i(ints a, ints b) { return _mm512_cmplt_epi32_mask(a, b); }
static inline truths is_ahead(floats x, ints p, floats y, ints q) {
  return either(is_greater(x, y), _mm512_mask_cmplt_epi32_mask(is_equal(x, y), p, q));
}
static inline truths is_nan_or_minus_zero(floats v) {
  return _mm512_fpclass_ps_mask(v, 0x01 | 0x04 | 0x80); /* quiet NaN, -0, signalling NaN */
}
static inline floats greater_of(floats x, floats y) { return _mm512_max_ps(x, y); }
static inline floats choose(truths t, floats yes, floats no) {
  return _mm512_mask_mov_ps(no, t, yes);
}
static inline ints choose_i(truths t, ints yes, ints no) {
  return _mm512_mask_mov_epi32(no, t, yes);
}
static inline ints permute_two_i(ints low, ints high, ints lane) {
  return _mm512_permutex2var_epi32(low, lane, high);
}
/* Without optimisation gcc's gathers are macros that pass their mask, 0xffff, as a short: a warning
 * about its header. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
static inline floats pick(const float *p, ints at) { return _mm512_i32gather_ps(at, p, 4); }
static inline ints pick_i(const int32_t *p, ints at) { return _mm512_i32gather_epi32(at, p, 4); }
#pragma GCC diagnostic pop
static inline void store_i64(int64_t *p, ints v) {
  _mm512_storeu_si512(p, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(v)));
  _mm512_storeu_si512(p + 8, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(v, 1)));
}
static inline floats as_floats(ints v) { return _mm512_castsi512_ps(v); }
static inline ints as_ints(floats v) { return _mm512_castps_si512(v); }

static inline floats even_f16(floats pairs) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(as_ints(pairs)));
}
static inline floats odd_f16(floats pairs) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(as_ints(pairs), 16)));
}
static inline floats even_bf16(floats pairs) {
  return as_floats(_mm512_slli_epi32(as_ints(pairs), 16));
}
static inline floats odd_bf16(floats pairs) {
  return as_floats(_mm512_and_si512(as_ints(pairs), _mm512_set1_epi32(-0x10000)));
}

/* --- Indices as 16-bit numbers --- */

typedef __m512i words;
static inline words all_words(int32_t x) { return _mm512_set1_epi16((short)x); }
static inline void store_words(uint16_t *p, ints v) {
  _mm256_storeu_si256((void *)p, _mm512_cvtepi32_epi16(v));
}
static inline ints load_words(const uint16_t *p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
}
static inline int64_t store_true(void *to, ints v, truths a) {
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(a, v)); /* to memory it would take long */
  return __builtin_popcount(a);
}
static inline floats add_equal_words(floats sum, floats term, const uint16_t *p, words x) {
  const __m256i index = _mm256_loadu_si256((const void *)p);
  return _mm512_mask_add_ps(sum, _mm256_cmpeq_epi16_mask(index, _mm512_castsi512_si256(x)), sum,
                            term);
}
static inline void move_equal_f32(float *to, const float *from, const uint16_t *p, words x) {
  const __mmask32 equal = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(p), x);
  _mm512_storeu_ps(to, _mm512_maskz_loadu_ps((__mmask16)equal, from));
  _mm512_storeu_ps(to + LANES, _mm512_maskz_loadu_ps((__mmask16)(equal >> LANES), from + LANES));
}
static inline void move_equal_halves(uint16_t *to, const uint16_t *from, const uint16_t *p,
                                     words x) {
  const __mmask32 equal = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(p), x);
  _mm512_storeu_si512(to, _mm512_maskz_mov_epi16(equal, _mm512_loadu_si512(from)));
}
static inline ints remainder_of(ints t, floats inverse, ints length) {
  const ints q = _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(t), inverse));
  const ints r = sub_i(t, times_i(q, length));
  return least_u(r, sub_i(r, length));
}

static inline float sum_by_halves(floats v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* --- Vectors of 2 * LANES 16-bit numbers --- */

typedef __m512i shorts;
static inline shorts all_shorts(int32_t x) { return _mm512_set1_epi16((short)x); }
static inline shorts load_shorts(const uint16_t *p) { return _mm512_loadu_si512(p); }
static inline shorts load_part_shorts(const uint16_t *p, int64_t count) {
  return _mm512_maskz_loadu_epi16((__mmask32)((UINT64_C(1) << count) - 1), p);
}
static inline shorts sub_shorts(shorts a, shorts b) { return _mm512_sub_epi16(a, b); }
static inline shorts greater_short(shorts a, shorts b) { return _mm512_max_epi16(a, b); }
static inline shorts choose_greater(shorts x, shorts y, shorts yes, shorts no) {
  return _mm512_mask_mov_epi16(no, _mm512_cmpgt_epi16_mask(x, y), yes);
}
static inline shorts flip_negative(shorts v) {
  const __m512i sign = _mm512_srai_epi16(v, 15);
  return _mm512_ternarylogic_epi64(v, sign, all_shorts(0x7fff), 0x78); /* v ^ (sign & 0x7fff) */
}
static inline ints join_low(shorts upper, shorts lower) {
  const __m512i lanes = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  return _mm512_permutex2var_epi16(lower, lanes, upper);
}
static inline ints join_high(shorts upper, shorts lower) {
  const __m512i lanes =
      _mm512_set_epi16(63, 31, 62, 30, 61, 29, 60, 28, 59, 27, 58, 26, 57, 25, 56, 24, 55, 23, 54,
                       22, 53, 21, 52, 20, 51, 19, 50, 18, 49, 17, 48, 16);
  return _mm512_permutex2var_epi16(lower, lanes, upper);
}
static inline ints greater_i(ints a, ints b) { return _mm512_max_epi32(a, b); }
static inline ints upper_short(ints v) { return _mm512_srai_epi32(v, 16); }
static inline ints lower_short(ints v) { return _mm512_and_si512(v, _mm512_set1_epi32(0xffff)); }

#endif
