/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 4 lanes for NEON on aarch64; what each function means is in simd_scalar.h. */
#ifndef PG_SIMD_NEON_H_
#define PG_SIMD_NEON_H_

#if !defined(__AARCH64EL__) || !defined(__ARM_NEON)
#error "this file needs NEON on aarch64, little-endian"
#endif

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/half.h"

enum { LANES = 4 };
typedef float32x4_t floats;
typedef int32x4_t ints;

static inline uint32x4_t first_lanes(int64_t count) {
  static const int32_t number[4] = {0, 1, 2, 3};
  return vcltq_s32(vld1q_s32(number), vdupq_n_s32((int32_t)count));
}

static inline floats zeros(void) { return vdupq_n_f32(0); }
static inline floats all(float x) { return vdupq_n_f32(x); }
static inline ints all_i(int32_t x) { return vdupq_n_s32(x); }
static inline floats add(floats a, floats b) { return vaddq_f32(a, b); }
static inline floats times(floats a, floats b) { return vmulq_f32(a, b); }
static inline floats over(floats a, floats b) { return vdivq_f32(a, b); }
static inline ints add_i(ints a, ints b) { return vaddq_s32(a, b); }
static inline ints sub_i(ints a, ints b) { return vsubq_s32(a, b); }
static inline ints times_i(ints a, ints b) { return vmulq_s32(a, b); }

/* Loads and stores bytes, because halves are copied through these too, from any even address. */
static inline floats load_f32(const float *p) {
  return vreinterpretq_f32_u8(vld1q_u8((const void *)p));
}
static inline floats load_part_f32(const float *p, int64_t count) {
  floats v = zeros();
  if (count >= 4) return load_f32(p);
  if (count > 0) v = vsetq_lane_f32(p[0], v, 0);
  if (count > 1) v = vsetq_lane_f32(p[1], v, 1);
  if (count > 2) v = vsetq_lane_f32(p[2], v, 2);
  return v;
}
static inline void store_f32(float *p, floats v) { vst1q_u8((void *)p, vreinterpretq_u8_f32(v)); }

typedef floats packed_f32;
static inline packed_f32 pack_f32(floats v) { return v; }
static inline packed_f32 pack_exact_f32(floats v) { return v; }
static inline void store_part_f32(float *p, packed_f32 v, int64_t count) {
  if (count > 0) p[0] = vgetq_lane_f32(v, 0);
  if (count > 1) p[1] = vgetq_lane_f32(v, 1);
  if (count > 2) p[2] = vgetq_lane_f32(v, 2);
  if (count > 3) p[3] = vgetq_lane_f32(v, 3);
}

/* The first count of four halves. */
static inline uint16x4_t part_of_halves(const uint16_t *p, int64_t count) {
  uint16x4_t v = vdup_n_u16(0);
  if (count > 0) v = vset_lane_u16(p[0], v, 0);
  if (count > 1) v = vset_lane_u16(p[1], v, 1);
  if (count > 2) v = vset_lane_u16(p[2], v, 2);
  if (count > 3) v = vset_lane_u16(p[3], v, 3);
  return v;
}
static inline void store_part_of_halves(uint16_t *p, uint16x4_t v, int64_t count) {
  if (count > 0) p[0] = vget_lane_u16(v, 0);
  if (count > 1) p[1] = vget_lane_u16(v, 1);
  if (count > 2) p[2] = vget_lane_u16(v, 2);
  if (count > 3) p[3] = vget_lane_u16(v, 3);
}

/* Halves are IEEE's and rounded to nearest even because float_env.h has set that. */
static inline floats from_f16(uint16x4_t half) { return vcvt_f32_f16(vreinterpret_f16_u16(half)); }
static inline floats load_f16(const uint16_t *p) { return from_f16(vld1_u16(p)); }
static inline floats load_part_f16(const uint16_t *p, int64_t count) {
  return from_f16(part_of_halves(p, count));
}
typedef uint16x4_t packed_f16;
static inline packed_f16 pack_f16(floats v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
static inline void store_f16(uint16_t *p, packed_f16 v) { vst1_u16(p, v); }
static inline packed_f16 pack_exact_f16(floats v) { return pack_f16(v); }
static inline void store_part_f16(uint16_t *p, packed_f16 v, int64_t count) {
  store_part_of_halves(p, v, count);
}

static inline floats from_bf16(uint16x4_t half) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(half), 16));
}
static inline floats load_bf16(const uint16_t *p) { return from_bf16(vld1_u16(p)); }
static inline floats load_part_bf16(const uint16_t *p, int64_t count) {
  return from_bf16(part_of_halves(p, count));
}

/* Rounds to nearest even with integers, because not every CPU has the bf16 instructions. */
typedef uint16x4_t packed_bf16;
static inline packed_bf16 pack_bf16(floats v) {
  const uint32x4_t bits = vreinterpretq_u32_f32(v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t sum = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t number = vceqq_f32(v, v); /* not NaN */
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(number, sum, quiet), 16);
}
static inline void store_bf16(uint16_t *p, packed_bf16 v) { vst1_u16(p, v); }
static inline packed_bf16 pack_exact_bf16(floats v) { return pack_bf16(v); }
static inline void store_part_bf16(uint16_t *p, packed_bf16 v, int64_t count) {
  store_part_of_halves(p, v, count);
}

static inline ints load_i32(const int32_t *p) { return vld1q_s32(p); }
static inline void store_i32(int32_t *p, ints v) { vst1q_s32(p, v); }

static inline ints load_i64(const int64_t *p) {
  return vuzp1q_s32(vreinterpretq_s32_s64(vld1q_s64(p)), vreinterpretq_s32_s64(vld1q_s64(p + 2)));
}
static inline ints load_part_i32(const int32_t *p, int64_t count) {
  ints v = all_i(0);
  if (count >= 4) return load_i32(p);
  if (count > 0) v = vsetq_lane_s32(p[0], v, 0);
  if (count > 1) v = vsetq_lane_s32(p[1], v, 1);
  if (count > 2) v = vsetq_lane_s32(p[2], v, 2);
  return v;
}
static inline ints load_part_i64(const int64_t *p, int64_t count) {
  ints v = all_i(0);
  if (count >= 4) return load_i64(p);
  if (count > 0) v = vsetq_lane_s32((int32_t)p[0], v, 0);
  if (count > 1) v = vsetq_lane_s32((int32_t)p[1], v, 1);
  if (count > 2) v = vsetq_lane_s32((int32_t)p[2], v, 2);
  return v;
}
static inline bool in_31_bits(const int64_t *p, int64_t count) {
  uint64_t bits = 0;
  if (count == LANES) {
    const uint64x2_t any = vreinterpretq_u64_s64(vorrq_s64(vld1q_s64(p), vld1q_s64(p + 2)));
    return vmaxvq_u32(vreinterpretq_u32_u64(vshrq_n_u64(any, 31))) == 0;
  }
  for (int64_t i = 0; i < count; i++) bits |= (uint64_t)p[i];
  return bits >> 31 == 0;
}

/* Lane i consists of the bytes 4i to 4i + 3. */
static inline uint8x16_t permute_bytes(uint8x16_t v, ints lane) {
  const int32x4_t at = vmlaq_s32(vdupq_n_s32(0x03020100), lane, vdupq_n_s32(0x04040404));
  return vqtbl1q_u8(v, vreinterpretq_u8_s32(at));
}
static inline floats permute(floats v, ints lane) {
  return vreinterpretq_f32_u8(permute_bytes(vreinterpretq_u8_f32(v), lane));
}
static inline ints permute_i(ints v, ints lane) {
  return vreinterpretq_s32_u8(permute_bytes(vreinterpretq_u8_s32(v), lane));
}

static inline floats permute_two(floats low, floats high, ints lane) {
  const int32x4_t at = vmlaq_s32(vdupq_n_s32(0x03020100), lane, vdupq_n_s32(0x04040404));
  const uint8x16x2_t both = {{vreinterpretq_u8_f32(low), vreinterpretq_u8_f32(high)}};
  return vreinterpretq_f32_u8(vqtbl2q_u8(both, vreinterpretq_u8_s32(at)));
}
static inline ints load_u8(const uint8_t *p) {
  uint32_t bytes;
  memcpy(&bytes, p, sizeof bytes);
  const uint8x8_t narrow = vreinterpret_u8_u32(vdup_n_u32(bytes));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(narrow))));
}

/* A sum that began at +0 is never -0, so adding +0 changes nothing. */
static inline floats add_where(floats sum, floats term, uint32x4_t mask) {
  return vaddq_f32(sum, vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(term), mask)));
}
static inline floats add_equal(floats sum, floats term, ints a, ints b) {
  return add_where(sum, term, vceqq_s32(a, b));
}
static inline floats add_above(floats sum, floats term, ints count, ints rank) {
  return add_where(sum, term, vcgtq_s32(count, rank));
}

typedef uint32x4_t truths;
static inline truths none(void) { return vdupq_n_u32(0); }
static inline truths below(ints a, ints b) {
  return vcltq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b));
}
static inline truths either(truths a, truths b) { return vorrq_u32(a, b); }
static inline truths both(truths a, truths b) { return vandq_u32(a, b); }
static inline bool every(truths a, int64_t count) {
  return vminvq_u32(vornq_u32(a, first_lanes(count))) != 0;
}

static inline ints load_i64_collecting(const int64_t *p, ints *collected) {
  const uint32x4_t a = vreinterpretq_u32_s64(vld1q_s64(p));
  const uint32x4_t b = vreinterpretq_u32_s64(vld1q_s64(p + 2));
  *collected = vorrq_s32(*collected, vreinterpretq_s32_u32(vuzp2q_u32(a, b)));
  return vreinterpretq_s32_u32(vuzp1q_u32(a, b));
}
static inline bool high_halves_are_zero(ints collected) {
  return vmaxvq_u32(vreinterpretq_u32_s32(collected)) == 0;
}

static inline ints least_u(ints a, ints b) {
  return vreinterpretq_s32_u32(vminq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}
static inline ints most_u(ints a, ints b) {
  return vreinterpretq_s32_u32(vmaxq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}
static inline bool nowhere(truths a) { return vmaxvq_u32(a) == 0; }

static inline void store_two_bf16(uint16_t *p, floats v, uint16_t *q, floats w) {
  store_bf16(p, pack_bf16(v));
  store_bf16(q, pack_bf16(w));
}

static inline void store_pairs_f32(float *p, floats even, floats odd) {
  store_f32(p, vzip1q_f32(even, odd));
  store_f32(p + LANES, vzip2q_f32(even, odd));
}
static inline floats pairs_of_halves(uint16x4_t even, uint16x4_t odd) {
  return vreinterpretq_f32_u16(vcombine_u16(vzip1_u16(even, odd), vzip2_u16(even, odd)));
}
static inline floats pairs_f16(floats even, floats odd) {
  return pairs_of_halves(pack_f16(even), pack_f16(odd));
}
static inline floats pairs_bf16(floats even, floats odd) {
  return pairs_of_halves(pack_bf16(even), pack_bf16(odd));
}
static inline void store_pairs_f16(uint16_t *p, floats even, floats odd) {
  vst1q_u16(p, vreinterpretq_u16_f32(pairs_f16(even, odd)));
}
static inline void store_pairs_bf16(uint16_t *p, floats even, floats odd) {
  vst1q_u16(p, vreinterpretq_u16_f32(pairs_bf16(even, odd)));
}
static inline void store_exact_pairs_bf16(uint16_t *p, floats even, floats odd) {
  store_pairs_bf16(p, even, odd);
}

static inline void transpose(floats v[LANES]) {
  const float32x4x2_t a = vtrnq_f32(v[0], v[1]), b = vtrnq_f32(v[2], v[3]);
  v[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
  v[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
  v[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
  v[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

/* An ordinary store: Arm's CPUs notice that a whole line is written and do not fetch it. */
static inline void store_line_nontemporal(void *to, const void *from) { memcpy(to, from, 64); }
static inline void store_two_nontemporal_f32(float *p, floats v, floats w) {
  store_f32(p, v);
  store_f32(p + LANES, w);
}
static inline void store_two_nontemporal_f16(uint16_t *p, floats v, floats w) {
  store_f16(p, pack_f16(v));
  store_f16(p + LANES, pack_f16(w));
}
static inline void store_two_nontemporal_bf16(uint16_t *p, floats v, floats w) {
  store_two_bf16(p, v, p + LANES, w);
}
static inline void fence_nontemporal(void) {}

static inline floats over_one(floats v, floats divisor, floats high, floats low) {
  (void)divisor;
  return vfmaq_f32(vmulq_f32(v, low), v, high);
}
static inline bool any_tiny(floats v) {
  const uint32x4_t small = vcltq_f32(vabsq_f32(v), vdupq_n_f32(0x1p-60f));
  return vmaxvq_u32(vbicq_u32(small, vceqq_f32(v, vdupq_n_f32(0)))) != 0;
}

/* --- The greatest of several --- */

static inline truths is_greater(floats a, floats b) { return vcgtq_f32(a, b); }
static inline truths is_equal(floats a, floats b) { return vceqq_f32(a, b); }
static inline truths is_unordered(floats a, floats b) {
  return vmvnq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b)));
}
static inline truths is_less_i(ints a, ints b) { return vcltq_s32(a, b); }
static inline truths is_ahead(floats x, ints p, floats y, ints q) {
  return either(is_greater(x, y), both(is_equal(x, y), is_less_i(p, q)));
}
static inline truths is_nan_or_minus_zero(floats v) {
  const uint32x4_t minus_zero = vceqq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x80000000u));
  return vornq_u32(minus_zero, vceqq_f32(v, v));
}
static inline floats greater_of(floats x, floats y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
static inline floats choose(truths t, floats yes, floats no) { return vbslq_f32(t, yes, no); }
static inline ints choose_i(truths t, ints yes, ints no) { return vbslq_s32(t, yes, no); }
static inline ints permute_two_i(ints low, ints high, ints lane) {
  return vreinterpretq_s32_f32(
      permute_two(vreinterpretq_f32_s32(low), vreinterpretq_f32_s32(high), lane));
}
static inline floats pick(const float *p, ints at) {
  const float lane[LANES] = {p[vgetq_lane_s32(at, 0)], p[vgetq_lane_s32(at, 1)],
                             p[vgetq_lane_s32(at, 2)], p[vgetq_lane_s32(at, 3)]};
  return vld1q_f32(lane);
}
static inline ints pick_i(const int32_t *p, ints at) {
  const int32_t lane[LANES] = {p[vgetq_lane_s32(at, 0)], p[vgetq_lane_s32(at, 1)],
                               p[vgetq_lane_s32(at, 2)], p[vgetq_lane_s32(at, 3)]};
  return vld1q_s32(lane);
}
static inline void store_i64(int64_t *p, ints v) {
  vst1q_s64(p, vmovl_s32(vget_low_s32(v)));
  vst1q_s64(p + 2, vmovl_high_s32(v));
}
static inline floats as_floats(ints v) { return vreinterpretq_f32_s32(v); }
static inline ints as_ints(floats v) { return vreinterpretq_s32_f32(v); }

static inline floats even_f16(floats pairs) {
  return from_f16(vmovn_u32(vreinterpretq_u32_f32(pairs)));
}
static inline floats odd_f16(floats pairs) {
  return from_f16(vshrn_n_u32(vreinterpretq_u32_f32(pairs), 16));
}
static inline floats even_bf16(floats pairs) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(pairs), 16));
}
static inline floats odd_bf16(floats pairs) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(pairs), vdupq_n_u32(0xffff0000u)));
}

/* --- Indices as 16-bit numbers --- */

typedef uint16x8_t words;
static inline words all_words(int32_t x) { return vdupq_n_u16((uint16_t)x); }
static inline void store_words(uint16_t *p, ints v) {
  vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(v)));
}
static inline ints load_words(const uint16_t *p) {
  return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p)));
}
static inline int64_t store_true(void *to, ints v, truths a) {
  int32_t at[LANES];
  uint32_t is[LANES];
  vst1q_s32(at, v);
  vst1q_u32(is, a);
  char *next = to;
  for (int i = 0; i < LANES; i++)
    if (is[i] != 0) {
      memcpy(next, at + i, sizeof *at);
      next += sizeof *at;
    }
  return (next - (char *)to) / (int64_t)sizeof *at;
}
/* A 16-bit truth as a 32-bit one. */
static inline uint32x4_t wide_truth(uint16x4_t equal) {
  return vreinterpretq_u32_s32(vmovl_s16(vreinterpret_s16_u16(equal)));
}
static inline floats add_equal_words(floats sum, floats term, const uint16_t *p, words x) {
  const uint32x4_t named = wide_truth(vceq_u16(vld1_u16(p), vget_low_u16(x)));
  return vbslq_f32(named, vaddq_f32(sum, term), sum);
}
static inline float32x4_t kept(const float *from, uint32x4_t named) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(vld1q_f32(from)), named));
}
static inline void move_equal_f32(float *to, const float *from, const uint16_t *p, words x) {
  const uint16x8_t equal = vceqq_u16(vld1q_u16(p), x);
  vst1q_f32(to, kept(from, wide_truth(vget_low_u16(equal))));
  vst1q_f32(to + LANES, kept(from + LANES, wide_truth(vget_high_u16(equal))));
}
static inline void move_equal_halves(uint16_t *to, const uint16_t *from, const uint16_t *p,
                                     words x) {
  vst1q_u16(to, vandq_u16(vld1q_u16(from), vceqq_u16(vld1q_u16(p), x)));
}
static inline ints remainder_of(ints t, floats inverse, ints length) {
  const ints q = vcvtq_s32_f32(vmulq_f32(vcvtq_f32_s32(t), inverse));
  const ints r = sub_i(t, times_i(q, length));
  return least_u(r, sub_i(r, length));
}

static inline float sum_by_halves(floats v) {
  const float32x2_t two = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* --- Vectors of 2 * LANES 16-bit numbers --- */

typedef int16x8_t shorts;
static inline shorts all_shorts(int32_t x) { return vdupq_n_s16((int16_t)x); }
static inline shorts load_shorts(const uint16_t *p) { return vreinterpretq_s16_u16(vld1q_u16(p)); }
static inline shorts load_part_shorts(const uint16_t *p, int64_t count) {
  uint16_t part[2 * LANES] = {0};
  memcpy(part, p, (size_t)count * sizeof *p);
  return load_shorts(part);
}
static inline shorts sub_shorts(shorts a, shorts b) { return vsubq_s16(a, b); }
static inline shorts greater_short(shorts a, shorts b) { return vmaxq_s16(a, b); }
static inline shorts choose_greater(shorts x, shorts y, shorts yes, shorts no) {
  return vbslq_s16(vcgtq_s16(x, y), yes, no);
}
static inline shorts flip_negative(shorts v) {
  return veorq_s16(v, vandq_s16(vshrq_n_s16(v, 15), vdupq_n_s16(0x7fff)));
}
static inline ints join_low(shorts upper, shorts lower) {
  return vreinterpretq_s32_s16(vzip1q_s16(lower, upper));
}
static inline ints join_high(shorts upper, shorts lower) {
  return vreinterpretq_s32_s16(vzip2q_s16(lower, upper));
}
static inline ints greater_i(ints a, ints b) { return vmaxq_s32(a, b); }
static inline ints upper_short(ints v) { return vshrq_n_s32(v, 16); }
static inline ints lower_short(ints v) { return vandq_s32(v, vdupq_n_s32(0xffff)); }

#endif
