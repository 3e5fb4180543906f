/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that arithmetic, comparisons and functions of one number have in common. */
#ifndef PG_ELEMENTWISE_H_
#define PG_ELEMENTWISE_H_

#include "ops/map_plan.h"

/* What type a result has: that which the inputs are promoted to, a real one (FLOAT of integers), or
 * BOOL, which any type can hold as 0 and 1. */
enum pg_result { PG_PROMOTED, PG_REAL, PG_TRUTH };

/* What an operator is called with besides self. */
enum {
  PG_IN_PLACE = 1,    /* the result is self, and there is no out */
  PG_WITH_OTHER = 2,  /* a second tensor */
  PG_WITH_SCALAR = 4, /* a scalar in its place */
  PG_WITH_ALPHA = 8   /* what that is multiplied with */
};

struct pg_elementwise {
  enum pg_map_function function;
  unsigned types; /* of self, other and the scalar */
  enum pg_result result;
  unsigned form;
  bool subtracts; /* alpha counts with its sign turned round */
};

struct pg_elementwise_call {
  struct pg_elementwise row;
  struct pg_view *self, *other, *out; /* other: NULL where there is none; out may be self */
  const char *scalar_name;
  struct pg_scalar_value scalar, alpha; /* 1 where there is none */
  /* What pg_check_elementwise finds out. */
  aclDataType computed; /* the type that is computed as */
  union pg_number number;
};

aclnnStatus pg_check_elementwise(const char *api, struct pg_elementwise_call *call);

/* Adds the steps of a checked call. */
aclnnStatus pg_plan_elementwise(const char *api, struct pg_plan *plan,
                                const struct pg_elementwise_call *call);

#endif
