/* SPDX-License-Identifier: Apache-2.0 */
/* FLOAT, FLOAT16, BF16, DOUBLE and the integers as sets of numbers: rounding a double into them,
 * and their bits.  Arithmetic on doubles only, so that it shares no idea with the library's
 * conversions. */
#ifndef PG_TESTS_FLOAT_FORMAT_H_
#define PG_TESTS_FLOAT_FORMAT_H_

#include <stdbool.h>
#include <stddef.h>

#include "acl/acl_base.h"

enum {
  F32,
  F16,
  BF16,
  F64,
  FLOAT_FORMATS,
  I8 = FLOAT_FORMATS,
  U8,
  I16,
  U16,
  I32,
  I64,
  ELEMENT_FORMATS
};

struct float_format {
  const char *word;
  aclDataType dtype;
  size_t bytes;
  int digits;      /* of the significand, the hidden one too */
  int least;       /* the smallest positive number is 2^least */
  int exponents;   /* bits of the exponent */
  double largest;  /* finite */
  double sum_unit; /* half the spacing of what sums are kept in: 2^-24, or 2^-53 for DOUBLE */
};

/* Behind the floats the integers: of those only word, dtype, bytes and largest count. */
extern const struct float_format float_formats[ELEMENT_FORMATS];

/* Of elements by their bits: a > b, and whether one is a NaN.  Exact for 64-bit integers too. */
bool element_exceeds(int type, const void *a, const void *b);
bool element_is_nan(int type, const void *bits);

/* The nearest number of the format, ties to even; too large becomes an infinity. */
double float_round(const struct float_format *format, double value);

/* The element at `bits`; a NaN is a NaN, without its payload.  An integer of 64 bits is rounded. */
double float_decode(const struct float_format *format, const void *bits);

/* Rounds the value and writes the element. */
void float_encode(const struct float_format *format, double value, void *bits);

#endif
