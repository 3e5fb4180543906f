/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of type FLOAT16.  simd_scalar.h says what the functions on vectors mean. */
#ifndef PG_ELEMENT_F16_H_
#define PG_ELEMENT_F16_H_

#include <stdbool.h>

#include "core/half.h"

typedef uint16_t element;
typedef float sum_type;
typedef packed_f16 packed;
enum { ELEMENT_MAY_BE_TINY = 0 /* less than 2^-60, and not 0 */ };
enum { ELEMENT_IS_FLOAT = 0 };
enum { INFINITY_BITS = 0x7c00 };

static inline sum_type widen_one(element x) { return pg_float_of_fp16(x); }
static inline bool is_nan(sum_type x) { return x != x; }
static inline element round_one(sum_type x) { return pg_fp16_of_float(x); }

static inline floats load_elements(const element *p) { return load_f16(p); }
static inline floats load_part(const element *p, int64_t count) { return load_part_f16(p, count); }
static inline packed pack(floats v) { return pack_f16(v); }
static inline packed pack_exact(floats v) { return pack_exact_f16(v); }
static inline void store_packed(element *p, packed v) { store_f16(p, v); }
static inline void store_part(element *p, packed v, int64_t count) { store_part_f16(p, v, count); }

/* Stores two vectors, each at its own address. */
static inline void store_two(element *p, floats v, element *q, floats w) {
  store_f16(p, pack_f16(v));
  store_f16(q, pack_f16(w));
}

/* Stores two vectors one behind the other, past the caches; p is a multiple of their size. */
static inline void store_two_nontemporal(element *p, floats v, floats w) {
  store_two_nontemporal_f16(p, v, w);
}

/* Two elements in each lane, one of either vector. */
static inline floats words_of(floats even, floats odd) { return pairs_f16(even, odd); }

/* Stores the lanes of two vectors alternately; exact: for values that elements represent. */
static inline void store_pairs(element *p, floats even, floats odd) {
  store_pairs_f16(p, even, odd);
}
static inline void store_exact_pairs(element *p, floats even, floats odd) {
  store_pairs_f16(p, even, odd);
}

/* Copies TWO_VECTORS elements; where the numbers from p on are not x, it stores 0. */
static inline void move_equal(element *to, const element *from, const uint16_t *p, words x) {
  move_equal_halves(to, from, p, x);
}

/* One of the two elements that each lane has. */
static inline floats even_elements(floats words) { return even_f16(words); }
static inline floats odd_elements(floats words) { return odd_f16(words); }

#endif
