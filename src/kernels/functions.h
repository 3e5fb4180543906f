/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, logarithms and powers, for the CPU and for CUDA: both compile this file, and both
 * give the same bits.  So it has only operations that IEEE 754 rounds correctly (+, -, *, /, sqrt)
 * and integers, and is compiled without contraction; the functions of a C library differ in their
 * last bits.
 *
 * A number in two parts is hi + lo, unevaluated, where lo is less than a rounding error of hi. */
#ifndef PG_FUNCTIONS_H_
#define PG_FUNCTIONS_H_

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "acl/acl_base.h"

#ifdef __CUDACC__
#undef PG_FUNCTION /* of kernels/window.h, where the compiler decides what it inlines */
#define PG_FUNCTION static __host__ __device__ __forceinline__
#else
#define PG_FUNCTION static inline
#endif

#define PG_INFINITY pg_double_of_bits(UINT64_C(0x7ff) << 52)
#define PG_NAN pg_double_of_bits(UINT64_C(0x7ff8) << 48)

PG_FUNCTION double pg_double_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

PG_FUNCTION uint64_t pg_bits_of_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

PG_FUNCTION double pg_magnitude(double a) {
  return pg_double_of_bits(pg_bits_of_double(a) & INT64_MAX);
}

/* 2 to the power n, for n in [-1022, 1023]. */
PG_FUNCTION double pg_power_of_two(int n) { return pg_double_of_bits((uint64_t)(n + 1023) << 52); }

/* Truncated and clamped to 64 bits; 0 for a NaN. */
PG_FUNCTION int64_t pg_integer_of_double(double a) {
  if (a >= 0x1p63) return INT64_MAX;
  if (a < -0x1p63) return INT64_MIN;
  return a == a ? (int64_t)a : 0;
}

/* --- Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers", 2011 ---------------
 */

struct pg_philox {
  uint32_t word[4];
};

PG_FUNCTION struct pg_philox pg_philox_block(struct pg_philox counter, uint64_t key) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  struct pg_philox c = counter;
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = (uint64_t)0xd2511f53u * c.word[0], p1 = (uint64_t)0xcd9e8d57u * c.word[2];
    c.word[0] = (uint32_t)(p1 >> 32) ^ c.word[1] ^ k0;
    c.word[1] = (uint32_t)p1;
    c.word[2] = (uint32_t)(p0 >> 32) ^ c.word[3] ^ k1;
    c.word[3] = (uint32_t)p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return c;
}

/* The four words of one position: its counter is `offset` + the position, modulo 2^64. */
PG_FUNCTION struct pg_philox pg_philox_at(uint64_t seed, uint64_t counter) {
  const struct pg_philox c = {{(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0}};
  return pg_philox_block(c, seed);
}

PG_FUNCTION uint64_t pg_philox_low(const struct pg_philox *p) {
  return (uint64_t)p->word[1] << 32 | p->word[0];
}

PG_FUNCTION uint64_t pg_philox_high(const struct pg_philox *p) {
  return (uint64_t)p->word[3] << 32 | p->word[2];
}

/* --- integers ----------------------------------------------------------------------------------
 */

/* The high 64 bits of a product. */
PG_FUNCTION uint64_t pg_high_product(uint64_t a, uint64_t b) {
  const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (middle >> 32) + ((a0 * b1 + (uint32_t)middle) >> 32);
}

/* An integer from s to t, t excluded; s if there is none.  The block, read as a fraction of 128
 * bits, times t - s: the chances of two integers differ by less than 2^-64 of a chance. */
PG_FUNCTION int64_t pg_random_integer(struct pg_philox p, int64_t s, int64_t t) {
  const uint64_t span = s < t ? (uint64_t)t - (uint64_t)s : 0;
  const uint64_t product = pg_philox_high(&p) * span;
  const uint64_t carried = product + pg_high_product(pg_philox_low(&p), span);
  const uint64_t whole = pg_high_product(pg_philox_high(&p), span) + (carried < product);
  return (int64_t)((uint64_t)s + whole);
}

/* --- uniform -----------------------------------------------------------------------------------
 */

/* What all numbers of one call share. */
struct pg_uniform {
  double s, t;
  double last; /* the greatest number of the output's type below t */
  double unit; /* a fraction is a multiple of this */
  int digits;  /* of a significand of the output's type */
};

/* The greatest number below t whose significand has so many digits and whose exponents are those
 * of the output's type. */
PG_FUNCTION double pg_greatest_below(double t, int digits, int least_exponent, int most_exponent) {
  const double most = (2 - pg_power_of_two(1 - digits)) * pg_power_of_two(most_exponent);
  if (t > most) return most;
  int exponent = (int)(pg_bits_of_double(t) >> 52 & 0x7ff) - 1023;
  if (t > 0 && (pg_bits_of_double(t) & ((UINT64_C(1) << 52) - 1)) == 0)
    exponent--; /* below a power of two numbers are twice as dense */
  if (exponent < least_exponent) exponent = least_exponent;
  /* t in units of its last digit: two factors, because the unit may be subnormal */
  const double in_units =
      t * pg_power_of_two(-(exponent / 2)) * pg_power_of_two(digits - 1 - exponent + exponent / 2);
  return (ceil(in_units) - 1) * pg_power_of_two(exponent / 2) *
         pg_power_of_two(exponent - exponent / 2 - digits + 1);
}

PG_FUNCTION struct pg_uniform pg_uniform_of(double s, double t, aclDataType dtype) {
  struct pg_uniform u = {s, t, 0, 0, 24};
  int most = 127;
  if (dtype == ACL_DOUBLE) u.digits = 53, most = 1023;
  if (dtype == ACL_BF16) u.digits = 8;
  if (dtype == ACL_FLOAT16) u.digits = 11, most = 15;
  u.unit = pg_power_of_two(-u.digits);
  u.last = pg_greatest_below(t, u.digits, 1 - most, most);
  return u;
}

/* A number from s to t.  It is s + (t - s) * a fraction of as many digits as the output's type has,
 * as in PyTorch, computed in double so that t - s may be as large as it likes.  It is at most the
 * greatest number of that type below t, so rounding it to the type never gives t.  If s is not
 * less than t, it is s. */
PG_FUNCTION double pg_uniform_at(const struct pg_uniform *u, struct pg_philox p) {
  const uint64_t digits = u->digits > 32 ? pg_philox_low(&p) >> (64 - u->digits)
                                         : (uint64_t)(p.word[0] >> (32 - u->digits));
  const double fraction = (double)(int64_t)digits * u->unit;
  const double x = fraction * u->t + (1 - fraction) * u->s;
  if (!(x > u->s)) return u->s;
  return x < u->last ? x : u->last > u->s ? u->last : u->s;
}

/* --- products in two parts ---------------------------------------------------------------------
 */

struct pg_parts {
  double hi, lo;
};

/* a + b, where |a| >= |b| or a is 0. */
PG_FUNCTION struct pg_parts pg_exact_sum(double a, double b) {
  const double sum = a + b;
  const struct pg_parts parts = {sum, b - (sum - a)};
  return parts;
}

/* The 26 leading digits of a; |a| below 2^990. */
PG_FUNCTION double pg_leading(double a) {
  const double scaled = a * 134217729.0; /* 2^27 + 1 */
  return scaled - (scaled - a);
}

/* a * b, exactly: Dekker's product. */
PG_FUNCTION struct pg_parts pg_exact_product(double a, double b) {
  const double product = a * b;
  const double a1 = pg_leading(a), a0 = a - a1, b1 = pg_leading(b), b0 = b - b1;
  const struct pg_parts parts = {product, ((a1 * b1 - product) + a1 * b0 + a0 * b1) + a0 * b0};
  return parts;
}

/* --- logarithm, exponential, sine and cosine ---------------------------------------------------
 */

/* The logarithm of a, which is positive and finite, to base 2.  a = m * 2^k with m between
 * sqrt(1/2) and sqrt(2), and ln m = 2 artanh z = 2 z + z^3 (2/3 + 2/5 z^2 + ...) with
 * z = (m - 1) / (m + 1), of which only 2 z needs two parts.  The error is below 2^-57 of ln m. */
PG_FUNCTION struct pg_parts pg_log2(double a) {
  const bool is_subnormal = a < 0x1p-1022;
  const uint64_t bits = pg_bits_of_double(is_subnormal ? a * 0x1p54 : a);
  int k = (int)(bits >> 52) - 1023 - (is_subnormal ? 54 : 0);
  double m = pg_double_of_bits((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52);
  if (m > 0x1.6a09e667f3bcdp+0) m = m * 0.5, k++;
  const double above = m - 1, below = m + 1, rest_below = m - (below - 1);
  const double z = above / below;
  const struct pg_parts back = pg_exact_product(z, below);
  const double rest_z = (((above - back.hi) - back.lo) - z * rest_below) / below;
  const double w = z * z;
  double series = 2.0 / 25;
  for (int n = 23; n >= 3; n -= 2) series = series * w + 2.0 / n;
  const double rest = z * w * series + 2 * rest_z;
  /* 1 / ln 2 in two parts */
  const struct pg_parts p = pg_exact_product(2 * z, 0x1.71547652b82fep+0);
  const double lo = p.lo + 2 * z * 0x1.777d0ffda0d24p-56 + rest * 0x1.71547652b82fep+0;
  const struct pg_parts first = pg_exact_sum(k, p.hi);
  const struct pg_parts sum = pg_exact_sum(first.hi, first.lo + lo);
  return sum;
}

/* 2 to the power hi + lo: 2^n * e^x, where |x| is at most ln 2 / 2; e^x = 1 + x + x^2 / 2 + ... */
PG_FUNCTION double pg_exp2(struct pg_parts power) {
  /* 1 / 13! to 1 / 2! */
  const double taylor[12] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                             1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                             1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
  if (power.hi > 1100) return PG_INFINITY;
  if (power.hi < -1100) return 0;
  const int n = (int)(power.hi + (power.hi < 0 ? -0.5 : 0.5));
  const struct pg_parts x = pg_exact_product(power.hi - n, 0x1.62e42fefa39efp-1); /* ln 2 */
  const double lo = x.lo + (power.hi - n) * 0x1.abc9e3b39803fp-56 + power.lo * 0x1.62e42fefa39efp-1;
  double series = 0;
  for (int i = 0; i < 12; i++) series = series * x.hi + taylor[i];
  const double tail = x.hi * x.hi * series;
  const struct pg_parts sum = pg_exact_sum(1, x.hi);
  const double result = sum.hi + (sum.lo + tail + lo * (sum.hi + tail));
  return result * pg_power_of_two(n / 2) * pg_power_of_two(n - n / 2);
}

/* The natural logarithm of a, which is positive and finite; the error is below 1.5 units in the
 * last place. */
PG_FUNCTION double pg_log(double a) {
  const struct pg_parts log2 = pg_log2(a);
  return log2.hi * 0x1.62e42fefa39efp-1 + log2.lo * 0x1.62e42fefa39efp-1;
}

/* The cosine of `turns` full turns, for turns in [0, 1); its error is below 2^-52. */
PG_FUNCTION double pg_cosine_of_turns(double turns) {
  /* 1 / 16! to 1 / 0!, and 1 / 17! to 1 / 1! */
  const double even[9] = {1.0 / 20922789888000,
                          1.0 / 87178291200,
                          1.0 / 479001600,
                          1.0 / 3628800,
                          1.0 / 40320,
                          1.0 / 720,
                          1.0 / 24,
                          1.0 / 2,
                          1};
  const double odd[9] = {1.0 / 355687428096000,
                         1.0 / 1307674368000,
                         1.0 / 6227020800,
                         1.0 / 39916800,
                         1.0 / 362880,
                         1.0 / 5040,
                         1.0 / 120,
                         1.0 / 6,
                         1};
  const int quarter = (int)(turns * 4 + 0.5);
  const double x = (turns - quarter * 0.25) * 0x1.921fb54442d18p+2; /* within pi / 4 of 0 */
  const double w = -x * x;
  double cosine = 0, sine = 0;
  for (int i = 0; i < 9; i++) {
    cosine = cosine * w + even[i];
    sine = sine * w + odd[i];
  }
  sine = sine * x;
  switch (quarter & 3) {
    case 0:
      return cosine;
    case 1:
      return -sine;
    case 2:
      return -cosine;
    default:
      return sine;
  }
}

/* A normal number, by Box and Muller's method: one for each block, from 2 x 53 of its bits. */
PG_FUNCTION double pg_normal_at(double mean, double deviation, struct pg_philox p) {
  const double radius_bits = (double)(int64_t)((pg_philox_low(&p) >> 11) + 1) * 0x1p-53;
  const double turns = (double)(int64_t)(pg_philox_high(&p) >> 11) * 0x1p-53;
  const double z = sqrt(-2 * pg_log(radius_bits)) * pg_cosine_of_turns(turns);
  return mean + deviation * z;
}

/* --- power -------------------------------------------------------------------------------------
 */

/* 0: s is no integer; 1: it is odd; 2: it is even. */
PG_FUNCTION int pg_parity(double s) {
  const double size = pg_magnitude(s);
  if (size >= 0x1p53) return 2; /* infinities too */
  const int64_t whole = (int64_t)size;
  if ((double)whole != size) return 0;
  return (whole & 1) != 0 ? 1 : 2;
}

/* a to the power s where one of them is 0, infinite or a NaN, or a is 1, as C's pow has it. */
PG_FUNCTION double pg_power_of_special(double a, double s) {
  const double size = pg_magnitude(a);
  if (s == 0 || a == 1) return 1;
  if (a != a || s != s) return PG_NAN;
  if (pg_magnitude(s) == PG_INFINITY) {
    if (size == 1) return 1;
    return (size > 1) == (s > 0) ? PG_INFINITY : 0;
  }
  const double result = (size == 0) == (s > 0) ? 0 : PG_INFINITY;
  return pg_parity(s) == 1 && (pg_bits_of_double(a) >> 63) != 0 ? -result : result;
}

/* a to the power s, as C's pow, but for the exponents below, which are PyTorch's.  Of a double the
 * error is below 4 units in the last place while the result is between 2^-64 and 2^64, and below 64
 * elsewhere; a float, computed so, is off by its rounding alone (tests/test_functions.c). */
PG_FUNCTION double pg_power(double a, double s) {
  if (s == 2) return a * a;
  if (s == 1) return a;
  if (s == 3) return a * a * a;
  if (s == 0.5) return sqrt(a);
  if (s == -0.5) return 1 / sqrt(a);
  if (s == -1) return 1 / a;
  if (s == -2) return 1 / (a * a);
  const double size = pg_magnitude(a);
  if (s == 0 || a == 1 || size == 0 || !(size < PG_INFINITY) || !(pg_magnitude(s) < PG_INFINITY))
    return pg_power_of_special(a, s);
  const int parity = pg_parity(s);
  if (a < 0 && parity == 0) return PG_NAN;
  const struct pg_parts log2 = pg_log2(size);
  /* beyond 2^70 only the sign of s * log2 counts, and it must not overflow */
  const double exponent = s > 0x1p70 ? 0x1p70 : s < -0x1p70 ? -0x1p70 : s;
  struct pg_parts product = pg_exact_product(exponent, log2.hi);
  product.lo += exponent * log2.lo;
  const double result = pg_exp2(product);
  return a < 0 && parity == 1 ? -result : result;
}

/* The same in fp32: the exponents of PyTorch are computed in it, others rounded once. */
PG_FUNCTION float pg_power_float(float a, float s) {
  if (s == 2) return a * a;
  if (s == 1) return a;
  if (s == 3) return a * a * a;
  if (s == 0.5f) return sqrtf(a);
  if (s == -0.5f) return 1 / sqrtf(a);
  if (s == -1) return 1 / a;
  if (s == -2) return 1 / (a * a);
  return (float)pg_power(a, s);
}

/* Of integers, modulo 2^64.  1 / a to the power -s is truncated: 0 unless a is 1 or -1. */
PG_FUNCTION int64_t pg_power_integer(int64_t a, int64_t s) {
  if (s < 0) return a == 1 ? 1 : a == -1 ? ((s & 1) != 0 ? -1 : 1) : 0;
  uint64_t result = 1, factor = (uint64_t)a;
  for (uint64_t left = (uint64_t)s; left != 0; left >>= 1) {
    if ((left & 1) != 0) result *= factor;
    factor *= factor;
  }
  return (int64_t)result;
}

#endif
