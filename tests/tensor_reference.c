/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_reference.h"

#include <math.h>
#include <string.h>

#include "float_format.h"
#include "kernels/functions.h"

const aclDataType tensor_types[TENSOR_TYPES] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16,  ACL_DOUBLE,
                                                ACL_INT8,  ACL_INT16,   ACL_INT32, ACL_INT64,
                                                ACL_UINT8, ACL_BOOL};

bool tensor_is_real(aclDataType dtype) {
  return dtype == ACL_FLOAT || dtype == ACL_FLOAT16 || dtype == ACL_BF16 || dtype == ACL_DOUBLE;
}

size_t tensor_bytes(aclDataType dtype) {
  switch (dtype) {
    case ACL_DOUBLE:
    case ACL_INT64:
      return 8;
    case ACL_FLOAT:
    case ACL_INT32:
      return 4;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
      return 2;
    default:
      return 1;
  }
}

enum pg_class tensor_class(aclDataType dtype) {
  if (dtype == ACL_DOUBLE) return PG_CLASS_DOUBLE;
  return tensor_is_real(dtype) ? PG_CLASS_FLOAT : PG_CLASS_INT;
}

/* --- Converting --- */

static const struct float_format *format_of(aclDataType dtype) {
  return &float_formats[dtype == ACL_FLOAT     ? F32
                        : dtype == ACL_FLOAT16 ? F16
                        : dtype == ACL_BF16    ? BF16
                                               : F64];
}

/* A double as the class has it. */
static double in_class(enum pg_class c, double x) {
  return c == PG_CLASS_FLOAT ? (double)(float)x : x;
}

static int64_t truncated(double x) {
  if (isnan(x)) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

/* Integers are sign-extended, but for UINT8. */
static int64_t load_integer(aclDataType dtype, const void *at) {
  const size_t bytes = tensor_bytes(dtype);
  uint64_t low = 0;
  memcpy(&low, at, bytes);
  if (dtype == ACL_BOOL) return low != 0;
  if (dtype == ACL_UINT8 || bytes == 8) return (int64_t)low;
  const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
  return (low & sign) != 0 ? (int64_t)(low | ~(2 * sign - 1)) : (int64_t)low;
}

union pg_number reference_load(enum pg_class c, aclDataType dtype, const void *at) {
  union pg_number n = {.integer = 0};
  if (tensor_is_real(dtype)) {
    const double x = float_decode(format_of(dtype), at);
    if (c == PG_CLASS_INT)
      n.integer = truncated(x);
    else
      n.real = in_class(c, x);
    return n;
  }
  const int64_t x = load_integer(dtype, at);
  if (c == PG_CLASS_INT)
    n.integer = x;
  else
    n.real = c == PG_CLASS_FLOAT ? (double)(float)x : (double)x;
  return n;
}

static void store_real(double x, aclDataType dtype, void *at) {
  if (dtype == ACL_DOUBLE)
    memcpy(at, &x, sizeof x);
  else /* an fp32 first, whatever comes then */
    float_encode(format_of(dtype), float_round(&float_formats[F32], x), at);
}

void reference_store(enum pg_class c, union pg_number n, aclDataType dtype, void *at) {
  const bool is_integer = c == PG_CLASS_INT;
  if (dtype == ACL_BOOL) {
    memcpy(at, &(uint8_t){is_integer ? n.integer != 0 : n.real != 0}, 1);
  } else if (!tensor_is_real(dtype)) {
    memcpy(at, &(int64_t){is_integer ? n.integer : truncated(n.real)}, tensor_bytes(dtype));
  } else if (!is_integer) {
    store_real(n.real, dtype, at);
  } else { /* by way of a double an integer would be rounded twice */
    store_real(dtype == ACL_DOUBLE ? (double)n.integer : (double)(float)n.integer, dtype, at);
  }
}

bool tensor_is_same(aclDataType dtype, const void *a, const void *b) {
  if (memcmp(a, b, tensor_bytes(dtype)) == 0) return true;
  return tensor_is_real(dtype) && isnan(float_decode(format_of(dtype), a)) &&
         isnan(float_decode(format_of(dtype), b));
}

/* --- Maps --- */

static double sign_of(double a) {
  if (isnan(a)) return a;
  return a > 0 ? 1 : a < 0 ? -1 : 0;
}

/* The tolerance is computed as the class does. */
static bool is_close(enum pg_class c, double a, double b, double rtol, double atol, bool nans) {
  const double apart = fabs(in_class(c, a - b));
  const volatile double fraction = in_class(c, rtol * fabs(b));
  if (a == b || (nans && isnan(a) && isnan(b))) return true;
  return isfinite(apart) && apart <= in_class(c, atol + fraction);
}

static bool compares(enum pg_map_function f, double a, double b) {
  switch (f) {
    case PG_MAP_EQ:
    case PG_MAP_EQ_VALUE:
      return a == b;
    case PG_MAP_NE:
    case PG_MAP_NE_VALUE:
      return a != b;
    case PG_MAP_LT:
    case PG_MAP_LT_VALUE:
      return a < b;
    case PG_MAP_LE:
    case PG_MAP_LE_VALUE:
      return a <= b;
    case PG_MAP_GT:
    case PG_MAP_GT_VALUE:
      return a > b;
    default:
      return a >= b;
  }
}

/* Rounding a sum, product, quotient or root of floats to a double first changes nothing. */
static double map_real(const struct pg_map *m, double a, double b) {
  const enum pg_class c = m->class_of;
  const double s = in_class(c, m->s.real), t = in_class(c, m->t.real);
  const volatile double product = in_class(c, s * b); /* must not become part of the sum */
  switch (m->function) {
    case PG_MAP_VALUE:
      return s;
    case PG_MAP_ADD:
      return in_class(c, a + product);
    case PG_MAP_ADD_VALUE:
      return in_class(c, a + s);
    case PG_MAP_MUL:
      return in_class(c, a * b);
    case PG_MAP_MUL_VALUE:
      return in_class(c, a * s);
    case PG_MAP_DIV:
      return in_class(c, a / b);
    case PG_MAP_DIV_VALUE:
      return in_class(c, a / s);
    case PG_MAP_ABS:
      return fabs(a);
    case PG_MAP_NEG:
      return -a;
    case PG_MAP_SIGN:
      return sign_of(a);
    case PG_MAP_RELU:
      return a < 0 ? 0 : a;
    case PG_MAP_CEIL:
      return ceil(a);
    case PG_MAP_FLOOR:
      return floor(a);
    case PG_MAP_SQRT:
      return in_class(c, sqrt(a));
    case PG_MAP_POW_VALUE:
      return c == PG_CLASS_FLOAT ? (double)pg_power_float((float)a, (float)s) : pg_power(a, s);
    case PG_MAP_IS_FINITE:
      return isfinite(a);
    case PG_MAP_IS_CLOSE:
      return is_close(c, a, b, s, t, m->flag);
    case PG_MAP_SET_WHERE:
      return b != 0 ? s : a;
    case PG_MAP_PASS:
      return b <= s ? 0 : a;
    case PG_MAP_COPY:
      return a;
    default:
      return compares(m->function, a, m->function >= PG_MAP_EQ_VALUE ? s : b);
  }
}

static int64_t power(int64_t a, int64_t s) {
  uint64_t result = 1, factor = (uint64_t)a;
  for (; s > 0; s /= 2, factor *= factor)
    if (s % 2 != 0) result *= factor;
  return (int64_t)result;
}

/* a - b without a sum that wraps around, as doubles would lose bits. */
static int order(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

static int64_t map_integer(const struct pg_map *m, int64_t a, int64_t b) {
  const uint64_t x = (uint64_t)a, y = (uint64_t)b, s = (uint64_t)m->s.integer;
  switch (m->function) {
    case PG_MAP_VALUE:
      return (int64_t)s;
    case PG_MAP_ADD:
      return (int64_t)(x + s * y);
    case PG_MAP_ADD_VALUE:
      return (int64_t)(x + s);
    case PG_MAP_MUL:
      return (int64_t)(x * y);
    case PG_MAP_MUL_VALUE:
      return (int64_t)(x * s);
    case PG_MAP_ABS:
      return a < 0 ? (int64_t)(0 - x) : a;
    case PG_MAP_NEG:
      return (int64_t)(0 - x);
    case PG_MAP_SIGN:
      return order(a, 0);
    case PG_MAP_RELU:
      return a < 0 ? 0 : a;
    case PG_MAP_POW_VALUE:
      return power(a, m->s.integer);
    case PG_MAP_AND:
      return (int64_t)(x & y);
    case PG_MAP_AND_VALUE:
      return (int64_t)(x & s);
    case PG_MAP_IS_FINITE:
      return 1;
    case PG_MAP_SET_WHERE:
      return b != 0 ? m->s.integer : a;
    case PG_MAP_PASS:
      return b <= m->s.integer ? 0 : a;
    case PG_MAP_COPY:
    case PG_MAP_CEIL:
    case PG_MAP_FLOOR:
      return a;
    default:
      return compares(m->function, order(a, m->function >= PG_MAP_EQ_VALUE ? m->s.integer : b), 0);
  }
}

/* Real ones are drawn as doubles. */
static union pg_number draw(const struct pg_map *m, int64_t position) {
  const struct pg_philox words = pg_philox_at(m->seed, m->offset + (uint64_t)position);
  union pg_number n;
  if (m->function == PG_MAP_RANDOM) {
    n.integer = pg_random_integer(words, m->s.integer, m->t.integer);
    return n;
  }
  if (m->function == PG_MAP_UNIFORM) {
    const struct pg_uniform u = pg_uniform_of(m->s.real, m->t.real, m->out.dtype);
    n.real = pg_uniform_at(&u, words);
  } else {
    n.real = pg_normal_at(m->s.real, m->t.real, words);
  }
  n.real = in_class(m->class_of, n.real);
  return n;
}

union pg_number reference_map(const struct pg_map *m, union pg_number a, union pg_number b,
                              int64_t position) {
  union pg_number n;
  if (m->function == PG_MAP_UNIFORM || m->function == PG_MAP_NORMAL || m->function == PG_MAP_RANDOM)
    return draw(m, position);
  if (m->class_of == PG_CLASS_INT)
    n.integer = map_integer(m, a.integer, b.integer);
  else
    n.real = map_real(m, a.real, b.real);
  return n;
}

/* --- Reductions --- */

static union pg_number plus(enum pg_class c, union pg_number a, union pg_number b) {
  if (c == PG_CLASS_INT)
    a.integer = (int64_t)((uint64_t)a.integer + (uint64_t)b.integer);
  else
    a.real = in_class(c, a.real + b.real);
  return a;
}

static union pg_number sum_of_block(enum pg_class c, const union pg_number *x, int64_t count) {
  union pg_number partial[PG_REDUCE_PARTIAL];
  memset(partial, 0, sizeof partial); /* of a double it is +0 too */
  for (int64_t i = 0; i < count; i++)
    partial[i % PG_REDUCE_PARTIAL] = plus(c, partial[i % PG_REDUCE_PARTIAL], x[i]);
  for (int half = PG_REDUCE_PARTIAL / 2; half > 0; half /= 2)
    for (int p = 0; p < half; p++) partial[p] = plus(c, partial[p], partial[half + p]);
  return partial[0];
}

static union pg_number sum_of(enum pg_class c, union pg_number *x, int64_t count) {
  do {
    int64_t blocks = 0;
    for (int64_t first = 0; first < count; first += PG_REDUCE_BLOCK) {
      const int64_t left = count - first;
      x[blocks++] =
          sum_of_block(c, x + first, left < PG_REDUCE_BLOCK ? left : (int64_t)PG_REDUCE_BLOCK);
    }
    count = blocks;
  } while (count > 1);
  return x[0];
}

static bool is_set(enum pg_class c, union pg_number x) {
  return c == PG_CLASS_INT ? x.integer != 0 : x.real != 0;
}

/* Does x, which comes after best, count instead of it? */
static bool replaces(const struct pg_reduce *r, union pg_number best, union pg_number x) {
  const bool greatest = r->function == PG_REDUCE_MAX;
  if (r->class_of == PG_CLASS_INT)
    return greatest ? x.integer > best.integer : x.integer < best.integer;
  if (isnan(x.real)) return true;
  return greatest ? x.real > best.real : x.real < best.real;
}

union pg_number reference_reduce(const struct pg_reduce *r, union pg_number *x, int64_t count,
                                 int64_t *position) {
  const enum pg_class c = r->class_of;
  union pg_number n = {.integer = 0};
  *position = 0;
  if (r->function == PG_REDUCE_SUM) {
    n = sum_of(c, x, count);
    if (c != PG_CLASS_INT) n.real = in_class(c, n.real / in_class(c, (double)r->divisor));
    return n;
  }
  if (r->function == PG_REDUCE_ALL || r->function == PG_REDUCE_ANY) {
    int64_t set = 0;
    for (int64_t i = 0; i < count; i++) set += is_set(c, x[i]);
    const bool truth = r->function == PG_REDUCE_ALL ? set == count : set > 0;
    if (c == PG_CLASS_INT)
      n.integer = truth;
    else
      n.real = truth;
    return n;
  }
  n = x[0];
  for (int64_t i = 1; i < count; i++)
    if (replaces(r, n, x[i])) {
      n = x[i];
      *position = i;
    }
  return n;
}
