/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 4 lanes for NEON on aarch64; what each function means is in simd_plain.h. */
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
typedef float32x4_t vf;
typedef int32x4_t vi;

static inline uint32x4_t first_lanes(int64_t count) {
  static const int32_t number[4] = {0, 1, 2, 3};
  return vcltq_s32(vld1q_s32(number), vdupq_n_s32((int32_t)count));
}

static inline vf zeros(void) { return vdupq_n_f32(0); }
static inline vf all(float x) { return vdupq_n_f32(x); }
static inline vi all_i(int32_t x) { return vdupq_n_s32(x); }
static inline vf add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf times(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf over(vf a, vf b) { return vdivq_f32(a, b); }
static inline vi add_i(vi a, vi b) { return vaddq_s32(a, b); }
static inline vi sub_i(vi a, vi b) { return vsubq_s32(a, b); }

/* As bytes: halves are copied through these too, and may lie at any even address. */
static inline vf load_f32(const float *p) {
  return vreinterpretq_f32_u8(vld1q_u8((const void *)p));
}
static inline vf load_part_f32(const float *p, int64_t count) {
  vf v = zeros();
  if (count >= 4) return load_f32(p);
  if (count > 0) v = vsetq_lane_f32(p[0], v, 0);
  if (count > 1) v = vsetq_lane_f32(p[1], v, 1);
  if (count > 2) v = vsetq_lane_f32(p[2], v, 2);
  return v;
}
static inline void save_f32(float *p, vf v) { vst1q_u8((void *)p, vreinterpretq_u8_f32(v)); }

typedef vf packed_f32;
static inline packed_f32 pack_f32(vf v) { return v; }
static inline packed_f32 pack_exact_f32(vf v) { return v; }
static inline void keep_f32(float *p, packed_f32 v) { save_f32(p, v); }
static inline void keep_part_f32(float *p, packed_f32 v, int64_t count) {
  if (count > 0) p[0] = vgetq_lane_f32(v, 0);
  if (count > 1) p[1] = vgetq_lane_f32(v, 1);
  if (count > 2) p[2] = vgetq_lane_f32(v, 2);
  if (count > 3) p[3] = vgetq_lane_f32(v, 3);
}

/* Four halves of which the first are there. */
static inline uint16x4_t part_of_halves(const uint16_t *p, int64_t count) {
  uint16x4_t v = vdup_n_u16(0);
  if (count > 0) v = vset_lane_u16(p[0], v, 0);
  if (count > 1) v = vset_lane_u16(p[1], v, 1);
  if (count > 2) v = vset_lane_u16(p[2], v, 2);
  if (count > 3) v = vset_lane_u16(p[3], v, 3);
  return v;
}
static inline void keep_part_of_halves(uint16_t *p, uint16x4_t v, int64_t count) {
  if (count > 0) p[0] = vget_lane_u16(v, 0);
  if (count > 1) p[1] = vget_lane_u16(v, 1);
  if (count > 2) p[2] = vget_lane_u16(v, 2);
  if (count > 3) p[3] = vget_lane_u16(v, 3);
}

/* IEEE halves, to nearest even: float_env.h sees to it. */
static inline vf from_f16(uint16x4_t half) { return vcvt_f32_f16(vreinterpret_f16_u16(half)); }
static inline vf load_f16(const uint16_t *p) { return from_f16(vld1_u16(p)); }
static inline vf load_part_f16(const uint16_t *p, int64_t count) {
  return from_f16(part_of_halves(p, count));
}
typedef uint16x4_t packed_f16;
static inline packed_f16 pack_f16(vf v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
static inline void keep_f16(uint16_t *p, packed_f16 v) { vst1_u16(p, v); }
static inline packed_f16 pack_exact_f16(vf v) { return pack_f16(v); }
static inline void keep_part_f16(uint16_t *p, packed_f16 v, int64_t count) {
  keep_part_of_halves(p, v, count);
}

static inline vf from_bf16(uint16x4_t half) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(half), 16));
}
static inline vf load_bf16(const uint16_t *p) { return from_bf16(vld1_u16(p)); }
static inline vf load_part_bf16(const uint16_t *p, int64_t count) {
  return from_bf16(part_of_halves(p, count));
}

/* To nearest even in integers: not every CPU has the bf16 instructions. */
typedef uint16x4_t packed_bf16;
static inline packed_bf16 pack_bf16(vf v) {
  const uint32x4_t bits = vreinterpretq_u32_f32(v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t sum = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t number = vceqq_f32(v, v); /* not NaN */
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(number, sum, quiet), 16);
}
static inline void keep_bf16(uint16_t *p, packed_bf16 v) { vst1_u16(p, v); }
static inline packed_bf16 pack_exact_bf16(vf v) { return pack_bf16(v); }
static inline void keep_part_bf16(uint16_t *p, packed_bf16 v, int64_t count) {
  keep_part_of_halves(p, v, count);
}

static inline vi load_i32(const int32_t *p) { return vld1q_s32(p); }
static inline void save_i32(int32_t *p, vi v) { vst1q_s32(p, v); }

static inline vi load_i64(const int64_t *p) {
  return vuzp1q_s32(vreinterpretq_s32_s64(vld1q_s64(p)), vreinterpretq_s32_s64(vld1q_s64(p + 2)));
}
static inline vi load_part_i32(const int32_t *p, int64_t count) {
  vi v = all_i(0);
  if (count >= 4) return load_i32(p);
  if (count > 0) v = vsetq_lane_s32(p[0], v, 0);
  if (count > 1) v = vsetq_lane_s32(p[1], v, 1);
  if (count > 2) v = vsetq_lane_s32(p[2], v, 2);
  return v;
}
static inline vi load_part_i64(const int64_t *p, int64_t count) {
  vi v = all_i(0);
  if (count >= 4) return load_i64(p);
  if (count > 0) v = vsetq_lane_s32((int32_t)p[0], v, 0);
  if (count > 1) v = vsetq_lane_s32((int32_t)p[1], v, 1);
  if (count > 2) v = vsetq_lane_s32((int32_t)p[2], v, 2);
  return v;
}
static inline bool fit_i32(const int64_t *p, int64_t count) {
  uint64_t bits = 0;
  if (count == LANES) {
    const uint64x2_t any = vreinterpretq_u64_s64(vorrq_s64(vld1q_s64(p), vld1q_s64(p + 2)));
    return vmaxvq_u32(vreinterpretq_u32_u64(vshrq_n_u64(any, 31))) == 0;
  }
  for (int64_t i = 0; i < count; i++) bits |= (uint64_t)p[i];
  return bits >> 31 == 0;
}

/* Lane i is bytes 4i to 4i + 3. */
static inline uint8x16_t permute_bytes(uint8x16_t v, vi lane) {
  const int32x4_t at = vmlaq_s32(vdupq_n_s32(0x03020100), lane, vdupq_n_s32(0x04040404));
  return vqtbl1q_u8(v, vreinterpretq_u8_s32(at));
}
static inline vf permute(vf v, vi lane) {
  return vreinterpretq_f32_u8(permute_bytes(vreinterpretq_u8_f32(v), lane));
}
static inline vi permute_i(vi v, vi lane) {
  return vreinterpretq_s32_u8(permute_bytes(vreinterpretq_u8_s32(v), lane));
}

/* A sum that began at +0 is never -0, so adding +0 changes nothing. */
static inline vf add_where(vf sum, vf term, uint32x4_t mask) {
  return vaddq_f32(sum, vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(term), mask)));
}
static inline vf add_equal(vf sum, vf term, vi a, vi b) {
  return add_where(sum, term, vceqq_s32(a, b));
}
static inline vf add_above(vf sum, vf term, vi count, vi rank) {
  return add_where(sum, term, vcgtq_s32(count, rank));
}

typedef uint32x4_t vb;
static inline vb none(void) { return vdupq_n_u32(0); }
static inline vb below(vi a, vi b) {
  return vcltq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b));
}
static inline vb either(vb a, vb b) { return vorrq_u32(a, b); }
static inline vb both(vb a, vb b) { return vandq_u32(a, b); }
static inline bool every(vb a, int64_t count) {
  return vminvq_u32(vornq_u32(a, first_lanes(count))) != 0;
}

/* No detour as in simd_avx512.h: with 4 lanes there is little to win. */
static inline vf divide(vf g, vf d, vf r) {
  (void)r;
  return vdivq_f32(g, d);
}

static inline vi load_i64_noting(const int64_t *p, vi *noted) {
  const uint32x4_t a = vreinterpretq_u32_s64(vld1q_s64(p));
  const uint32x4_t b = vreinterpretq_u32_s64(vld1q_s64(p + 2));
  *noted = vorrq_s32(*noted, vreinterpretq_s32_u32(vuzp2q_u32(a, b)));
  return vreinterpretq_s32_u32(vuzp1q_u32(a, b));
}
static inline bool noted_fit_i32(vi noted) { return vmaxvq_u32(vreinterpretq_u32_s32(noted)) == 0; }

static inline vi least_u(vi a, vi b) {
  return vreinterpretq_s32_u32(vminq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}
static inline bool nowhere(vb a) { return vmaxvq_u32(a) == 0; }

static inline void save_two_bf16(uint16_t *p, vf v, uint16_t *q, vf w) {
  keep_bf16(p, pack_bf16(v));
  keep_bf16(q, pack_bf16(w));
}

static inline void keep_pairs_f32(float *p, vf even, vf odd) {
  save_f32(p, vzip1q_f32(even, odd));
  save_f32(p + LANES, vzip2q_f32(even, odd));
}
static inline void keep_pairs_of_halves(uint16_t *p, uint16x4_t even, uint16x4_t odd) {
  vst1_u16(p, vzip1_u16(even, odd));
  vst1_u16(p + LANES, vzip2_u16(even, odd));
}
static inline void keep_pairs_f16(uint16_t *p, vf even, vf odd) {
  keep_pairs_of_halves(p, pack_f16(even), pack_f16(odd));
}
static inline void keep_pairs_bf16(uint16_t *p, vf even, vf odd) {
  keep_pairs_of_halves(p, pack_bf16(even), pack_bf16(odd));
}
static inline void keep_exact_pairs_bf16(uint16_t *p, vf even, vf odd) {
  keep_pairs_bf16(p, even, odd);
}

/* Plain stores: Arm's CPUs notice lines being written whole and do not fetch them. */
static inline void stream_line(void *to, const void *from) { memcpy(to, from, 64); }
static inline void stream_end(void) {}

#endif
