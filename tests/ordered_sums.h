/* SPDX-License-Identifier: Apache-2.0 */
/* The sums once more, in single precision and in the one order that every backend, instruction set
 * and number of threads keeps: the same bits are expected, not only the same value.
 *
 *   maxima     the outputs of a plane in ascending order
 *   averages   along W, then H, then D, each ascending, each sum from +0
 *
 * And forward: of the maxima the bits of the cell that counts, and of averages
 *
 *   the cells of each column of a window, ascending in D, then H; then the columns, ascending, or
 *   where there are more than 16 in 16 sums, which are halved three times and added at last.  A
 *   plane that is one window is one row. */
#ifndef PG_TESTS_ORDERED_SUMS_H_
#define PG_TESTS_ORDERED_SUMS_H_

#include "reference.h"

void ordered_max_backward(const struct reference_pooling *pool, const double *grad_out,
                          const int64_t *index, float *sum);

/* False when memory is short. */
bool ordered_avg_backward(const struct reference_pooling *pool, const double *grad_out, float *sum);

/* The values of the outputs, in single precision. */
void ordered_avg_forward(const struct reference_pooling *pool, const double *in, float *out);

/* Elements of a type of float_format.h in place of doubles: `out` gets the bits of the cell that
 * counts, `index` its position in the plane. */
void ordered_max_forward(const struct reference_pooling *pool, int type, const char *in, char *out,
                         int64_t *index);

#endif
