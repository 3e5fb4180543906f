/* SPDX-License-Identifier: Apache-2.0 */
/* The last part of average-forward: sums are divided by their divisors, in vectors.
 *
 * Sums begin at +0, so they are never -0.  Methods begin with the first cell instead where that is
 * shorter.  The sum then differs at most in the sign of a zero, and adding it to +0 here puts that
 * right. */
#ifndef PG_AVG_FORWARD_QUOTIENTS_H_
#define PG_AVG_FORWARD_QUOTIENTS_H_

#include "cpu/kernels/avg_quotients.h"

/* Where the divisors of outputs are, and their reciprocals in two parts (avg_quotients.h). */
struct parts {
  const float *divisor, *high, *low;
};

/* The parts of the divisors of LANES outputs. */
struct part_vectors {
  floats divisor, high, low;
};

/* Do the two parts of a reciprocal give the quotient for every divisor of the problem? */
static inline bool divides_by_products(const struct pg_problem *problem) {
  return problem->args.avg_forward.divisor >= 0 && problem->facts.largest_divisor < 1 << 21;
}

/* The parts of a divisor.  That of a power of two has no second part.  It gets one that is too
 * small to change a quotient, because the product of an infinite sum and 0 would be NaN. */
static inline void set_parts(float value, float *divisor, float *high, float *low) {
  const struct divisor_run run = one_divisor(&value, 0);
  *divisor = value;
  *high = run.high;
  *low = run.low == 0 ? run.high * 0x1p-60f : run.low;
}

static inline struct part_vectors parts_at(const struct parts *p, int64_t at) {
  return (struct part_vectors){load_f32(p->divisor + at), load_f32(p->high + at),
                               load_f32(p->low + at)};
}

static inline struct part_vectors parts_of_one(const struct parts *p, int64_t at) {
  return (struct part_vectors){all(p->divisor[at]), all(p->high[at]), all(p->low[at])};
}

static inline __attribute__((always_inline)) floats average(floats sum,
                                                            const struct part_vectors *p,
                                                            const bool products) {
  sum = add(zeros(), sum);
  if (!products || (ELEMENT_MAY_BE_TINY && __builtin_expect(any_tiny(sum), 0)))
    return over(sum, p->divisor);
  return over_one(sum, p->divisor, p->high, p->low);
}

#endif
