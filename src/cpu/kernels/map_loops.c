/* SPDX-License-Identifier: Apache-2.0 */
/* A loop for each function and class.  The function is a constant in its loop, so nothing is
 * decided there and the compiler makes vectors of it. */
#include "cpu/kernels/map_loops.h"

#include "cpu/kernels/specialised.h"

/* All but random numbers. */
#define EACH_FUNCTION(row)                                                                        \
  row(PG_MAP_COPY) row(PG_MAP_VALUE) row(PG_MAP_ADD) row(PG_MAP_ADD_VALUE) row(PG_MAP_MUL)        \
      row(PG_MAP_MUL_VALUE) row(PG_MAP_DIV) row(PG_MAP_DIV_VALUE) row(PG_MAP_ABS) row(PG_MAP_NEG) \
          row(PG_MAP_SIGN) row(PG_MAP_RELU) row(PG_MAP_CEIL) row(PG_MAP_FLOOR) row(PG_MAP_SQRT)   \
              row(PG_MAP_POW_VALUE) row(PG_MAP_AND) row(PG_MAP_AND_VALUE) row(PG_MAP_EQ)          \
                  row(PG_MAP_NE) row(PG_MAP_LT) row(PG_MAP_LE) row(PG_MAP_GT) row(PG_MAP_GE)      \
                      row(PG_MAP_EQ_VALUE) row(PG_MAP_NE_VALUE) row(PG_MAP_LT_VALUE)              \
                          row(PG_MAP_LE_VALUE) row(PG_MAP_GT_VALUE) row(PG_MAP_GE_VALUE)          \
                              row(PG_MAP_IS_FINITE) row(PG_MAP_IS_CLOSE) row(PG_MAP_SET_WHERE)    \
                                  row(PG_MAP_PASS)

#define LOOP(f)                                                                         \
  case f:                                                                               \
    EACH_ALONE for (int64_t i = 0; i < count; i++) out[i] = function(f, a[i], b[i], k); \
    return;

static FLATTENED void map_floats(float *out, const float *a, const float *b,
                                 enum pg_map_function wanted, struct pg_float_scalars k,
                                 int64_t count) {
#define function pg_map_float
  switch (wanted) {
    EACH_FUNCTION(LOOP)
    default:
      return;
  }
#undef function
}

static FLATTENED void map_doubles(double *out, const double *a, const double *b,
                                  enum pg_map_function wanted, struct pg_double_scalars k,
                                  int64_t count) {
#define function pg_map_double
  switch (wanted) {
    EACH_FUNCTION(LOOP)
    default:
      return;
  }
#undef function
}

static FLATTENED void map_integers(int64_t *out, const int64_t *a, const int64_t *b,
                                   enum pg_map_function wanted, struct pg_integer_scalars k,
                                   int64_t count) {
#define function pg_map_integer
  switch (wanted) {
    EACH_FUNCTION(LOOP)
    default:
      return;
  }
#undef function
}

void VARIANT(map_numbers)(void *out, const void *a, const void *b, const struct pg_map *map,
                          const struct map_scalars *k, int64_t count) {
  if (map->class_of == PG_CLASS_FLOAT)
    map_floats(out, a, b, map->function, k->floats, count);
  else if (map->class_of == PG_CLASS_DOUBLE)
    map_doubles(out, a, b, map->function, k->doubles, count);
  else
    map_integers(out, a, b, map->function, k->integers, count);
}

/* --- Random numbers --- */

#define AS_FLOAT(x) ((float)(x))
#define AS_DOUBLE(x) ((double)(x))
#define AS_INTEGER(x) pg_integer_of_double(x)

/* NOLINTBEGIN(bugprone-macro-parentheses): types */
#define DEFINE_RANDOM(name, number, as, as_integer)                                                \
  static void name(number *out, const struct pg_map *map, const struct pg_uniform *u,              \
                   uint64_t first, int64_t count) {                                                \
    const uint64_t seed = map->seed, at = map->offset + first;                                     \
    if (map->function == PG_MAP_UNIFORM)                                                           \
      for (int64_t i = 0; i < count; i++)                                                          \
        out[i] = as(pg_uniform_at(u, pg_philox_at(seed, at + (uint64_t)i)));                       \
    else if (map->function == PG_MAP_NORMAL)                                                       \
      for (int64_t i = 0; i < count; i++)                                                          \
        out[i] = as(pg_normal_at(map->s.real, map->t.real, pg_philox_at(seed, at + (uint64_t)i))); \
    else                                                                                           \
      for (int64_t i = 0; i < count; i++)                                                          \
        out[i] = as_integer(pg_random_integer(pg_philox_at(seed, at + (uint64_t)i),                \
                                              map->s.integer, map->t.integer));                    \
  }
/* NOLINTEND(bugprone-macro-parentheses) */

DEFINE_RANDOM(random_floats, float, AS_FLOAT, AS_FLOAT)
DEFINE_RANDOM(random_doubles, double, AS_DOUBLE, AS_DOUBLE)
DEFINE_RANDOM(random_integers, int64_t, AS_INTEGER, )

void VARIANT(map_random)(void *out, const struct pg_map *map, const struct map_scalars *k,
                         uint64_t first, int64_t count) {
  if (map->class_of == PG_CLASS_FLOAT)
    random_floats(out, map, &k->uniform, first, count);
  else if (map->class_of == PG_CLASS_DOUBLE)
    random_doubles(out, map, &k->uniform, first, count);
  else
    random_integers(out, map, &k->uniform, first, count);
}
