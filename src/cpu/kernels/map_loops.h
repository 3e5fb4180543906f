/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of PG_MAP over numbers that follow each other. */
#ifndef PG_MAP_LOOPS_H_
#define PG_MAP_LOOPS_H_

#include "cpu/kernels/variant.h"
#include "kernels/map_functions.h"

/* The scalars of a problem in every class, and what its uniform numbers share. */
struct map_scalars {
  struct pg_float_scalars floats;
  struct pg_double_scalars doubles;
  struct pg_integer_scalars integers;
  struct pg_uniform uniform;
};

static inline bool is_random(enum pg_map_function function) {
  return function == PG_MAP_UNIFORM || function == PG_MAP_NORMAL || function == PG_MAP_RANDOM;
}

static inline struct map_scalars map_scalars_of(const struct pg_map *a) {
  struct map_scalars k = {.floats = {.flag = a->flag}};
  if (a->class_of == PG_CLASS_FLOAT)
    k.floats = (struct pg_float_scalars){(float)a->s.real, (float)a->t.real, a->flag};
  else if (a->class_of == PG_CLASS_DOUBLE)
    k.doubles = (struct pg_double_scalars){a->s.real, a->t.real, a->flag};
  else
    k.integers = (struct pg_integer_scalars){a->s.integer, a->t.integer, a->flag};
  if (a->function == PG_MAP_UNIFORM) k.uniform = pg_uniform_of(a->s.real, a->t.real, a->out.dtype);
  return k;
}

/* out[i] = f(a[i], b[i]), all of the problem's class.  `out` may be `a` or `b`. */
void VARIANT(map_numbers)(void *out, const void *a, const void *b, const struct pg_map *map,
                          const struct map_scalars *k, int64_t count);

/* The random numbers of positions that follow each other. */
void VARIANT(map_random)(void *out, const struct pg_map *map, const struct map_scalars *k,
                         uint64_t first, int64_t count);

#endif
