/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of LANES lanes in plain C.  Methods compute with them.  Each instruction set has a file
 * with the same functions, which give the same bits, except that NaNs may have other payloads. What
 * a function means is said here. */
#ifndef PG_SIMD_SCALAR_H_
#define PG_SIMD_SCALAR_H_

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/half.h"

enum { LANES = 4 };
typedef struct {
  float at[LANES];
} floats;
typedef struct {
  int32_t at[LANES];
} ints;

#define EACH_LANE for (int i = 0; i < LANES; i++)

static inline floats zeros(void) { return (floats){{0}}; }
static inline floats all(float x) {
  floats v;
  EACH_LANE v.at[i] = x;
  return v;
}
static inline ints all_i(int32_t x) {
  ints v;
  EACH_LANE v.at[i] = x;
  return v;
}
static inline floats add(floats a, floats b) {
  EACH_LANE a.at[i] += b.at[i];
  return a;
}
static inline floats times(floats a, floats b) {
  EACH_LANE a.at[i] *= b.at[i];
  return a;
}
static inline floats over(floats a, floats b) {
  EACH_LANE a.at[i] /= b.at[i];
  return a;
}
/* Integers wrap around. */
static inline ints add_i(ints a, ints b) {
  EACH_LANE a.at[i] = (int32_t)((uint32_t)a.at[i] + (uint32_t)b.at[i]);
  return a;
}
static inline ints sub_i(ints a, ints b) {
  EACH_LANE a.at[i] = (int32_t)((uint32_t)a.at[i] - (uint32_t)b.at[i]);
  return a;
}
static inline ints times_i(ints a, ints b) {
  EACH_LANE a.at[i] = (int32_t)((uint32_t)a.at[i] * (uint32_t)b.at[i]);
  return a;
}

/* Elements are loaded from any address and become floats.  load_part loads the first count of them,
 * 0 to LANES; the other lanes are 0.  pack rounds floats to elements; pack_exact is for floats that
 * elements represent.  store stores packed elements, store_part the first count of them. */
static inline floats load_part_f32(const float *p, int64_t count) {
  floats v = zeros();
  for (int64_t i = 0; i < count; i++) v.at[i] = p[i];
  return v;
}
static inline floats load_f32(const float *p) { return load_part_f32(p, LANES); }
static inline void store_f32(float *p, floats v) { EACH_LANE p[i] = v.at[i]; }

typedef floats packed_f32;
static inline packed_f32 pack_f32(floats v) { return v; }
static inline packed_f32 pack_exact_f32(floats v) { return v; }
static inline void store_part_f32(float *p, packed_f32 v, int64_t count) {
  for (int64_t i = 0; i < count; i++) p[i] = v.at[i];
}

typedef struct {
  uint16_t at[LANES];
} halves;

static inline void store_part_halves(uint16_t *p, halves v, int64_t count) {
  for (int64_t i = 0; i < count; i++) p[i] = v.at[i];
}

static inline floats load_part_f16(const uint16_t *p, int64_t count) {
  floats v = zeros();
  for (int64_t i = 0; i < count; i++) v.at[i] = pg_float_of_fp16(p[i]);
  return v;
}
static inline floats load_f16(const uint16_t *p) { return load_part_f16(p, LANES); }

typedef halves packed_f16;
static inline packed_f16 pack_f16(floats v) {
  packed_f16 h;
  EACH_LANE h.at[i] = pg_fp16_of_float(v.at[i]);
  return h;
}
static inline packed_f16 pack_exact_f16(floats v) { return pack_f16(v); }
static inline void store_part_f16(uint16_t *p, packed_f16 v, int64_t count) {
  store_part_halves(p, v, count);
}
static inline void store_f16(uint16_t *p, packed_f16 v) { store_part_halves(p, v, LANES); }

static inline floats load_part_bf16(const uint16_t *p, int64_t count) {
  floats v = zeros();
  for (int64_t i = 0; i < count; i++) v.at[i] = pg_float_of_bf16(p[i]);
  return v;
}
static inline floats load_bf16(const uint16_t *p) { return load_part_bf16(p, LANES); }

typedef halves packed_bf16;
static inline packed_bf16 pack_bf16(floats v) {
  packed_bf16 h;
  EACH_LANE h.at[i] = pg_bf16_of_float(v.at[i]);
  return h;
}
static inline packed_bf16 pack_exact_bf16(floats v) { return pack_bf16(v); }
static inline void store_part_bf16(uint16_t *p, packed_bf16 v, int64_t count) {
  store_part_halves(p, v, count);
}
static inline void store_bf16(uint16_t *p, packed_bf16 v) { store_part_halves(p, v, LANES); }

static inline ints load_i32(const int32_t *p) {
  ints v;
  EACH_LANE v.at[i] = p[i];
  return v;
}
static inline void store_i32(int32_t *p, ints v) { EACH_LANE p[i] = v.at[i]; }

static inline ints load_part_i32(const int32_t *p, int64_t count) {
  ints v = all_i(0);
  for (int64_t i = 0; i < count; i++) v.at[i] = p[i];
  return v;
}

/* The low halves of 64-bit integers.  in_31_bits: are the first count of them from 0 to 2^31 - 1?
 */
static inline ints load_part_i64(const int64_t *p, int64_t count) {
  ints v = all_i(0);
  for (int64_t i = 0; i < count; i++) v.at[i] = (int32_t)(uint32_t)(uint64_t)p[i];
  return v;
}
static inline ints load_i64(const int64_t *p) { return load_part_i64(p, LANES); }
static inline bool in_31_bits(const int64_t *p, int64_t count) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < count; i++) bits |= (uint64_t)p[i];
  return bits >> 31 == 0;
}

/* Lane i of the result is lane lane[i] of v. */
static inline floats permute(floats v, ints lane) {
  floats to;
  EACH_LANE to.at[i] = v.at[lane.at[i]];
  return to;
}
static inline ints permute_i(ints v, ints lane) {
  ints to;
  EACH_LANE to.at[i] = v.at[lane.at[i]];
  return to;
}

/* Lane i of the result is lane lane[i] of the 2 * LANES lanes of low and high.  For a lane that
 * there is not it is any number: the caller drops it. */
static inline floats permute_two(floats low, floats high, ints lane) {
  floats to;
  EACH_LANE {
    const int32_t from = lane.at[i] % (2 * LANES);
    to.at[i] = from < LANES ? low.at[from] : high.at[from - LANES];
  }
  return to;
}

static inline ints load_u8(const uint8_t *p) {
  ints v;
  EACH_LANE v.at[i] = p[i];
  return v;
}

/* Adds term to sum in the lanes where a == b, or where count > rank.  The sum began at +0. */
static inline floats add_equal(floats sum, floats term, ints a, ints b) {
  EACH_LANE sum.at[i] += a.at[i] == b.at[i] ? term.at[i] : 0;
  return sum;
}
static inline floats add_above(floats sum, floats term, ints count, ints rank) {
  EACH_LANE sum.at[i] += count.at[i] > rank.at[i] ? term.at[i] : 0;
  return sum;
}

/* A truth value per lane.  below compares unsigned integers; every asks whether the first count
 * lanes are true. */
typedef ints truths;
static inline truths none(void) { return all_i(0); }
static inline truths below(ints a, ints b) {
  EACH_LANE a.at[i] = (uint32_t)a.at[i] < (uint32_t)b.at[i];
  return a;
}
static inline truths either(truths a, truths b) {
  EACH_LANE a.at[i] |= b.at[i];
  return a;
}
static inline truths both(truths a, truths b) {
  EACH_LANE a.at[i] &= b.at[i];
  return a;
}
static inline bool every(truths a, int64_t count) {
  bool yes = true;
  for (int64_t i = 0; i < count; i++) yes = yes && a.at[i] != 0;
  return yes;
}

/* The low halves of 64-bit integers.  The bits of the high halves are collected, and
 * high_halves_are_zero says whether all that were collected are 0. */
static inline ints load_i64_collecting(const int64_t *p, ints *collected) {
  EACH_LANE collected->at[i] |= (int32_t)(uint32_t)((uint64_t)p[i] >> 32);
  return load_i64(p);
}
static inline bool high_halves_are_zero(ints collected) {
  int32_t bits = 0;
  EACH_LANE bits |= collected.at[i];
  return bits == 0;
}

/* The lesser and the greater of two unsigned integers. */
static inline ints least_u(ints a, ints b) {
  EACH_LANE a.at[i] = (uint32_t)a.at[i] < (uint32_t)b.at[i] ? a.at[i] : b.at[i];
  return a;
}
static inline ints most_u(ints a, ints b) {
  EACH_LANE a.at[i] = (uint32_t)a.at[i] > (uint32_t)b.at[i] ? a.at[i] : b.at[i];
  return a;
}
/* Is no lane true? */
static inline bool nowhere(truths a) {
  bool yes = true;
  EACH_LANE yes = yes && a.at[i] == 0;
  return yes;
}

/* Rounds and stores two vectors: some sets round two in the time of one. */
static inline void store_two_bf16(uint16_t *p, floats v, uint16_t *q, floats w) {
  store_bf16(p, pack_bf16(v));
  store_bf16(q, pack_bf16(w));
}

/* Exchanges rows and columns: lane i of vector j becomes lane j of vector i. */
static inline void transpose(floats v[LANES]) {
  for (int j = 1; j < LANES; j++)
    for (int i = 0; i < j; i++) {
      const float x = v[j].at[i];
      v[j].at[i] = v[i].at[j];
      v[i].at[j] = x;
    }
}

/* Two elements in each lane: one of each vector, rounded; the bits are those of two halves. */
static inline floats pairs_of_halves(halves even, halves odd) {
  floats pairs;
  uint16_t at[2 * LANES];
  for (int64_t i = 0; i < LANES; i++) at[2 * i] = even.at[i], at[2 * i + 1] = odd.at[i];
  memcpy(&pairs, at, sizeof pairs);
  return pairs;
}
static inline floats pairs_f16(floats even, floats odd) {
  return pairs_of_halves(pack_f16(even), pack_f16(odd));
}
static inline floats pairs_bf16(floats even, floats odd) {
  return pairs_of_halves(pack_bf16(even), pack_bf16(odd));
}

/* Stores the lanes of two vectors alternately, as elements. */
static inline void store_pairs_f32(float *p, floats even, floats odd) {
  for (int64_t i = 0; i < LANES; i++) p[2 * i] = even.at[i], p[2 * i + 1] = odd.at[i];
}
static inline void store_pairs_of_halves(uint16_t *p, halves even, halves odd) {
  for (int64_t i = 0; i < LANES; i++) p[2 * i] = even.at[i], p[2 * i + 1] = odd.at[i];
}
static inline void store_pairs_f16(uint16_t *p, floats even, floats odd) {
  store_pairs_of_halves(p, pack_f16(even), pack_f16(odd));
}
static inline void store_pairs_bf16(uint16_t *p, floats even, floats odd) {
  store_pairs_of_halves(p, pack_bf16(even), pack_bf16(odd));
}
static inline void store_exact_pairs_bf16(uint16_t *p, floats even, floats odd) {
  store_pairs_bf16(p, even, odd);
}

/* Stores 64 bytes past the caches, at an address that is a multiple of 64; plain C cannot do that.
 */
static inline void store_line_nontemporal(void *to, const void *from) { memcpy(to, from, 64); }
/* Rounds two vectors and stores them one behind the other, past the caches; the address is a
 * multiple of their size. */
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

/* Quotients by one divisor.  high is its reciprocal, rounded towards 0, and low the rest of that,
 * rounded: where there are fused products, high * v + low * v is the quotient (avg_quotients.h). */
static inline floats over_one(floats v, floats divisor, floats high, floats low) {
  (void)high;
  (void)low;
  return over(v, divisor);
}
/* Is a lane not 0, and less than 2^-60 without its sign? */
static inline bool any_tiny(floats v) {
  bool tiny = false;
  EACH_LANE {
    const float size = v.at[i] < 0 ? -v.at[i] : v.at[i];
    tiny |= size != 0 && size < 0x1p-60f;
  }
  return tiny;
}

/* --- The greatest of several --- */

/* Comparisons; those of floats are false where one is a NaN, except the last. */
static inline truths is_greater(floats a, floats b) {
  truths t;
  EACH_LANE t.at[i] = a.at[i] > b.at[i];
  return t;
}
static inline truths is_equal(floats a, floats b) {
  truths t;
  EACH_LANE t.at[i] = a.at[i] == b.at[i];
  return t;
}
static inline truths is_unordered(floats a, floats b) {
  truths t;
  EACH_LANE t.at[i] = a.at[i] != a.at[i] || b.at[i] != b.at[i];
  return t;
}
static inline truths is_less_i(ints a, ints b) {
  EACH_LANE a.at[i] = a.at[i] < b.at[i];
  return a;
}
/* Is x greater than y, or equal to it with p less than q? */
static inline truths is_ahead(floats x, ints p, floats y, ints q) {
  return either(is_greater(x, y), both(is_equal(x, y), is_less_i(p, q)));
}
/* Is v a NaN, or -0? */
static inline truths is_nan_or_minus_zero(floats v) {
  truths t;
  EACH_LANE t.at[i] = v.at[i] != v.at[i] || pg_bits_of_float(v.at[i]) == 0x80000000u;
  return t;
}
/* x where it is greater than y, else y, also where one is a NaN. */
static inline floats greater_of(floats x, floats y) {
  EACH_LANE y.at[i] = x.at[i] > y.at[i] ? x.at[i] : y.at[i];
  return y;
}
static inline floats choose(truths t, floats yes, floats no) {
  EACH_LANE no.at[i] = t.at[i] ? yes.at[i] : no.at[i];
  return no;
}
static inline ints choose_i(truths t, ints yes, ints no) {
  EACH_LANE no.at[i] = t.at[i] ? yes.at[i] : no.at[i];
  return no;
}
static inline ints permute_two_i(ints low, ints high, ints lane) {
  ints to;
  EACH_LANE {
    const int32_t from = lane.at[i] % (2 * LANES);
    to.at[i] = from < LANES ? low.at[from] : high.at[from - LANES];
  }
  return to;
}
/* Lane i of the result is p[at[i]]. */
static inline floats pick(const float *p, ints at) {
  floats v;
  EACH_LANE v.at[i] = p[at.at[i]];
  return v;
}
static inline ints pick_i(const int32_t *p, ints at) {
  ints v;
  EACH_LANE v.at[i] = p[at.at[i]];
  return v;
}
/* Stores numbers that are not negative as 64-bit ones. */
static inline void store_i64(int64_t *p, ints v) { EACH_LANE p[i] = v.at[i]; }
/* The same bits. */
static inline floats as_floats(ints v) {
  floats to;
  memcpy(&to, &v, sizeof to);
  return to;
}
static inline ints as_ints(floats v) {
  ints to;
  memcpy(&to, &v, sizeof to);
  return to;
}

/* One of the two halves that each lane has (pairs_f16, pairs_bf16), widened. */
static inline floats even_f16(floats pairs) {
  EACH_LANE pairs.at[i] = pg_float_of_fp16((uint16_t)pg_bits_of_float(pairs.at[i]));
  return pairs;
}
static inline floats odd_f16(floats pairs) {
  EACH_LANE pairs.at[i] = pg_float_of_fp16((uint16_t)(pg_bits_of_float(pairs.at[i]) >> 16));
  return pairs;
}
static inline floats even_bf16(floats pairs) {
  EACH_LANE pairs.at[i] = pg_float_of_bf16((uint16_t)pg_bits_of_float(pairs.at[i]));
  return pairs;
}
static inline floats odd_bf16(floats pairs) {
  EACH_LANE pairs.at[i] = pg_float_of_bf16((uint16_t)(pg_bits_of_float(pairs.at[i]) >> 16));
  return pairs;
}

/* --- Indices as 16-bit numbers --- */

typedef uint16_t words; /* 2 * LANES times the same number */
static inline words all_words(int32_t x) { return (uint16_t)x; }
/* Stores the low halves. */
static inline void store_words(uint16_t *p, ints v) { EACH_LANE p[i] = (uint16_t)v.at[i]; }
/* Adds the terms of the lanes in which the numbers from p on are x. */
static inline floats add_equal_words(floats sum, floats term, const uint16_t *p, words x) {
  EACH_LANE if (p[i] == x) sum.at[i] += term.at[i];
  return sum;
}
/* Copies 2 * LANES elements; where the numbers from p on are not x, it stores 0. */
static inline void move_equal_f32(float *to, const float *from, const uint16_t *p, words x) {
  for (int i = 0; i < 2 * LANES; i++) to[i] = p[i] == x ? from[i] : 0;
}
static inline void move_equal_halves(uint16_t *to, const uint16_t *from, const uint16_t *p,
                                     words x) {
  for (int i = 0; i < 2 * LANES; i++) to[i] = p[i] == x ? from[i] : 0;
}
/* t modulo length, for 0 <= t < 2^24 and a number that is less than 1 / length by 2^-22 of it, so
 * that a quotient may be too small by 1 and is never too large. */
static inline ints remainder_of(ints t, floats inverse, ints length) {
  ints q;
  EACH_LANE q.at[i] = (int32_t)(int64_t)((float)t.at[i] * inverse.at[i]);
  const ints r = sub_i(t, times_i(q, length));
  return least_u(r, sub_i(r, length));
}

/* Adds the upper half of the lanes to the lower half, until one is left. */
static inline float sum_by_halves(floats v) {
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) v.at[i] += v.at[i + half];
  return v.at[0];
}

#endif
