/* SPDX-License-Identifier: Apache-2.0 */
/* FLOAT, FLOAT16, BF16 and DOUBLE as sets of numbers: rounding a double into them, and their bits.
 * Arithmetic on doubles only, so that it shares no idea with the library's conversions. */
#ifndef PG_TESTS_FLOAT_FORMAT_H_
#define PG_TESTS_FLOAT_FORMAT_H_

#include <stddef.h>

#include "acl/acl_base.h"

enum { F32, F16, BF16, F64, FLOAT_FORMATS };

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

extern const struct float_format float_formats[FLOAT_FORMATS];

/* The nearest number of the format, ties to even; too large becomes an infinity. */
double float_round(const struct float_format *format, double value);

/* The element at `bits`; a NaN is a NaN, without its payload. */
double float_decode(const struct float_format *format, const void *bits);

/* Rounds the value and writes the element. */
void float_encode(const struct float_format *format, double value, void *bits);

#endif
