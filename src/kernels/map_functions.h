/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of PG_MAP give for one position, in each class.  A loop passes its function as
 * a constant, so nothing is decided in it.  Random numbers depend on the position as well, and are
 * in kernels/functions.h; so are powers. */
#ifndef PG_MAP_FUNCTIONS_H_
#define PG_MAP_FUNCTIONS_H_

#include "kernels/functions.h"
#include "kernels/tensor_kernels.h"

/* The scalars of a problem, in its class. */
struct pg_float_scalars {
  float s, t;
  bool flag;
};
struct pg_double_scalars {
  double s, t;
  bool flag;
};
struct pg_integer_scalars {
  int64_t s, t;
  bool flag;
};

PG_FUNCTION float pg_map_float(enum pg_map_function function, float a, float b,
                               struct pg_float_scalars k) {
  switch (function) {
    case PG_MAP_VALUE:
      return k.s;
    case PG_MAP_ADD:
      return a + k.s * b;
    case PG_MAP_ADD_VALUE:
      return a + k.s;
    case PG_MAP_MUL:
      return a * b;
    case PG_MAP_MUL_VALUE:
      return a * k.s;
    case PG_MAP_DIV:
      return a / b;
    case PG_MAP_DIV_VALUE:
      return a / k.s;
    case PG_MAP_ABS:
      return fabsf(a);
    case PG_MAP_NEG:
      return -a;
    case PG_MAP_SIGN:
      return a > 0 ? 1.0f : a < 0 ? -1.0f : a == 0 ? 0.0f : a;
    case PG_MAP_RELU:
      return a < 0 ? 0.0f : a;
    case PG_MAP_CEIL:
      return ceilf(a);
    case PG_MAP_FLOOR:
      return floorf(a);
    case PG_MAP_SQRT:
      return sqrtf(a);
    case PG_MAP_POW_VALUE:
      return pg_power_float(a, k.s);
    case PG_MAP_EQ:
      return a == b ? 1.0f : 0.0f;
    case PG_MAP_NE:
      return a != b ? 1.0f : 0.0f;
    case PG_MAP_LT:
      return a < b ? 1.0f : 0.0f;
    case PG_MAP_LE:
      return a <= b ? 1.0f : 0.0f;
    case PG_MAP_GT:
      return a > b ? 1.0f : 0.0f;
    case PG_MAP_GE:
      return a >= b ? 1.0f : 0.0f;
    case PG_MAP_EQ_VALUE:
      return a == k.s ? 1.0f : 0.0f;
    case PG_MAP_NE_VALUE:
      return a != k.s ? 1.0f : 0.0f;
    case PG_MAP_LT_VALUE:
      return a < k.s ? 1.0f : 0.0f;
    case PG_MAP_LE_VALUE:
      return a <= k.s ? 1.0f : 0.0f;
    case PG_MAP_GT_VALUE:
      return a > k.s ? 1.0f : 0.0f;
    case PG_MAP_GE_VALUE:
      return a >= k.s ? 1.0f : 0.0f;
    case PG_MAP_IS_FINITE:
      return a - a == 0 ? 1.0f : 0.0f;
    case PG_MAP_IS_CLOSE: {
      const float apart = fabsf(a - b);
      const bool close = apart <= k.t + k.s * fabsf(b) && apart - apart == 0;
      return close || a == b || (k.flag && a != a && b != b) ? 1.0f : 0.0f;
    }
    case PG_MAP_SET_WHERE:
      return b != 0 ? k.s : a;
    case PG_MAP_PASS:
      return b <= k.s ? 0.0f : a;
    default:
      return a;
  }
}

PG_FUNCTION double pg_map_double(enum pg_map_function function, double a, double b,
                                 struct pg_double_scalars k) {
  switch (function) {
    case PG_MAP_VALUE:
      return k.s;
    case PG_MAP_ADD:
      return a + k.s * b;
    case PG_MAP_ADD_VALUE:
      return a + k.s;
    case PG_MAP_MUL:
      return a * b;
    case PG_MAP_MUL_VALUE:
      return a * k.s;
    case PG_MAP_DIV:
      return a / b;
    case PG_MAP_DIV_VALUE:
      return a / k.s;
    case PG_MAP_ABS:
      return fabs(a);
    case PG_MAP_NEG:
      return -a;
    case PG_MAP_SIGN:
      return a > 0 ? 1.0 : a < 0 ? -1.0 : a == 0 ? 0.0 : a;
    case PG_MAP_RELU:
      return a < 0 ? 0.0 : a;
    case PG_MAP_CEIL:
      return ceil(a);
    case PG_MAP_FLOOR:
      return floor(a);
    case PG_MAP_SQRT:
      return sqrt(a);
    case PG_MAP_POW_VALUE:
      return pg_power(a, k.s);
    case PG_MAP_EQ:
      return a == b ? 1.0 : 0.0;
    case PG_MAP_NE:
      return a != b ? 1.0 : 0.0;
    case PG_MAP_LT:
      return a < b ? 1.0 : 0.0;
    case PG_MAP_LE:
      return a <= b ? 1.0 : 0.0;
    case PG_MAP_GT:
      return a > b ? 1.0 : 0.0;
    case PG_MAP_GE:
      return a >= b ? 1.0 : 0.0;
    case PG_MAP_EQ_VALUE:
      return a == k.s ? 1.0 : 0.0;
    case PG_MAP_NE_VALUE:
      return a != k.s ? 1.0 : 0.0;
    case PG_MAP_LT_VALUE:
      return a < k.s ? 1.0 : 0.0;
    case PG_MAP_LE_VALUE:
      return a <= k.s ? 1.0 : 0.0;
    case PG_MAP_GT_VALUE:
      return a > k.s ? 1.0 : 0.0;
    case PG_MAP_GE_VALUE:
      return a >= k.s ? 1.0 : 0.0;
    case PG_MAP_IS_FINITE:
      return a - a == 0 ? 1.0 : 0.0;
    case PG_MAP_IS_CLOSE: {
      const double apart = fabs(a - b);
      const bool close = apart <= k.t + k.s * fabs(b) && apart - apart == 0;
      return close || a == b || (k.flag && a != a && b != b) ? 1.0 : 0.0;
    }
    case PG_MAP_SET_WHERE:
      return b != 0 ? k.s : a;
    case PG_MAP_PASS:
      return b <= k.s ? 0.0 : a;
    default:
      return a;
  }
}

/* Arithmetic modulo 2^64. */
PG_FUNCTION int64_t pg_wrapped_sum(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}
PG_FUNCTION int64_t pg_wrapped_difference(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a - (uint64_t)b);
}
PG_FUNCTION int64_t pg_wrapped_product(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}
PG_FUNCTION int64_t pg_wrapped_magnitude(int64_t a) {
  return a < 0 ? pg_wrapped_difference(0, a) : a;
}

/* Functions of floats alone leave an integer as it is. */
PG_FUNCTION int64_t pg_map_integer(enum pg_map_function function, int64_t a, int64_t b,
                                   struct pg_integer_scalars k) {
  switch (function) {
    case PG_MAP_VALUE:
      return k.s;
    case PG_MAP_ADD:
      return pg_wrapped_sum(a, pg_wrapped_product(k.s, b));
    case PG_MAP_ADD_VALUE:
      return pg_wrapped_sum(a, k.s);
    case PG_MAP_MUL:
      return pg_wrapped_product(a, b);
    case PG_MAP_MUL_VALUE:
      return pg_wrapped_product(a, k.s);
    case PG_MAP_ABS:
      return pg_wrapped_magnitude(a);
    case PG_MAP_NEG:
      return pg_wrapped_difference(0, a);
    case PG_MAP_SIGN:
      return (a > 0) - (a < 0);
    case PG_MAP_RELU:
      return a < 0 ? 0 : a;
    case PG_MAP_POW_VALUE:
      return pg_power_integer(a, k.s);
    case PG_MAP_AND:
      return a & b;
    case PG_MAP_AND_VALUE:
      return a & k.s;
    case PG_MAP_EQ:
      return a == b;
    case PG_MAP_NE:
      return a != b;
    case PG_MAP_LT:
      return a < b;
    case PG_MAP_LE:
      return a <= b;
    case PG_MAP_GT:
      return a > b;
    case PG_MAP_GE:
      return a >= b;
    case PG_MAP_EQ_VALUE:
      return a == k.s;
    case PG_MAP_NE_VALUE:
      return a != k.s;
    case PG_MAP_LT_VALUE:
      return a < k.s;
    case PG_MAP_LE_VALUE:
      return a <= k.s;
    case PG_MAP_GT_VALUE:
      return a > k.s;
    case PG_MAP_GE_VALUE:
      return a >= k.s;
    case PG_MAP_IS_FINITE:
      return 1;
    case PG_MAP_IS_CLOSE: {
      const int64_t apart = pg_wrapped_magnitude(pg_wrapped_difference(a, b));
      const int64_t allowed = pg_wrapped_sum(k.t, pg_wrapped_product(k.s, pg_wrapped_magnitude(b)));
      return apart <= allowed || a == b;
    }
    case PG_MAP_SET_WHERE:
      return b != 0 ? k.s : a;
    case PG_MAP_PASS:
      return b <= k.s ? 0 : a;
    default:
      return a;
  }
}

#endif
