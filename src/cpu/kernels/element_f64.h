/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of type DOUBLE, which only the methods in plain C know: they are summed in fp64. */
#ifndef PG_ELEMENT_F64_H_
#define PG_ELEMENT_F64_H_

#include <stdbool.h>

typedef double element;
typedef double sum_type;

static inline sum_type widen_one(element x) { return x; }
static inline bool is_nan(sum_type x) { return x != x; }
static inline element round_one(sum_type x) { return x; }

#endif
