/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of type FLOAT.  simd_scalar.h says what the functions on vectors mean. */
#ifndef PG_ELEMENT_F32_H_
#define PG_ELEMENT_F32_H_

#include <stdbool.h>

#include "core/half.h"

typedef float element;
typedef float sum_type;
typedef packed_f32 packed;
enum { ELEMENT_MAY_BE_TINY = 1 /* less than 2^-60, and not 0 */ };
enum { ELEMENT_IS_FLOAT = 1 };
enum { INFINITY_BITS = 0 /* only halves have keys */ };

static inline sum_type widen_one(element x) { return x; }
static inline bool is_nan(sum_type x) { return x != x; }
static inline element round_one(sum_type x) { return x; }

static inline floats load_elements(const element *p) { return load_f32(p); }
static inline floats load_part(const element *p, int64_t count) { return load_part_f32(p, count); }
static inline packed pack(floats v) { return pack_f32(v); }
static inline packed pack_exact(floats v) { return pack_exact_f32(v); }
static inline void store_packed(element *p, packed v) { store_f32(p, v); }
static inline void store_part(element *p, packed v, int64_t count) { store_part_f32(p, v, count); }

/* Stores two vectors, each at its own address. */
static inline void store_two(element *p, floats v, element *q, floats w) {
  store_f32(p, v);
  store_f32(q, w);
}

/* Stores two vectors one behind the other, past the caches; p is a multiple of their size. */
static inline void store_two_nontemporal(element *p, floats v, floats w) {
  store_two_nontemporal_f32(p, v, w);
}

/* What the lanes of a vector have: one element of each, or one of either vector. */
static inline floats words_of(floats even, floats odd) {
  (void)odd;
  return even;
}

/* Stores the lanes of two vectors alternately; exact: for values that elements represent. */
static inline void store_pairs(element *p, floats even, floats odd) {
  store_pairs_f32(p, even, odd);
}
static inline void store_exact_pairs(element *p, floats even, floats odd) {
  store_pairs_f32(p, even, odd);
}

/* Copies TWO_VECTORS elements; where the numbers from p on are not x, it stores 0. */
static inline void move_equal(element *to, const element *from, const uint16_t *p, words x) {
  move_equal_f32(to, from, p, x);
}

/* A lane has one element. */
static inline floats even_elements(floats words) { return words; }
static inline floats odd_elements(floats words) { return words; }

#endif
