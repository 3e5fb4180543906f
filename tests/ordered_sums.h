/* SPDX-License-Identifier: Apache-2.0 */
/* The sums once more, in single precision and in the one order that every backend, instruction set
 * and number of threads keeps: the same bits are expected, not only the same value.
 *
 *   maxima     the outputs of a plane in ascending order
 *   averages   along W, then H, then D, each ascending, each sum from +0 */
#ifndef PG_TESTS_ORDERED_SUMS_H_
#define PG_TESTS_ORDERED_SUMS_H_

#include "reference.h"

void ordered_max_backward(const struct reference_pooling *pool, const double *grad_out,
                          const int64_t *index, float *sum);

/* False when memory is short. */
bool ordered_avg_backward(const struct reference_pooling *pool, const double *grad_out, float *sum);

#endif
