/* SPDX-License-Identifier: Apache-2.0 */
/* The operators by their definitions: plain loops over windows, in double precision, over
 * dense arrays [plane][depth][height][width].  Slow, short, and without a line of the library. */
#ifndef PG_TESTS_REFERENCE_H_
#define PG_TESTS_REFERENCE_H_

#include <stdbool.h>
#include <stdint.h>

/* Windows along one axis; kernel 0 means adaptive. */
struct reference_axis {
  int64_t in, out;
  int64_t kernel, stride, pad, dilation;
  int64_t pad_behind; /* after the last cell; averages have `pad` on both sides */
};

/* Two-dimensional pooling has the unit axis as its depth. */
struct reference_pooling {
  int64_t planes;
  struct reference_axis axis[3]; /* depth, height, width */
  bool include_pad;              /* averages: padding counts in the divisor */
  int64_t divisor;               /* averages: 0, or what divides instead of the count */
};

/* What reaches the cells of grad_in, or the outputs of a forward average. */
struct reference_sums {
  double *sum;       /* of the terms; of an average divided */
  double *magnitude; /* of their absolute values; of an average not divided */
  int64_t *terms;    /* how many */
  bool whole;        /* every term is an integer */
  int64_t dropped;   /* outputs whose index lies outside the plane */
};

struct reference_axis reference_unit_axis(void);

/* The outputs of a sliding axis; 0 or less when no window fits. */
int64_t reference_sliding_out(const struct reference_axis *axis, bool ceil_mode);

int64_t reference_in_cells(const struct reference_pooling *pool);  /* of one plane */
int64_t reference_out_cells(const struct reference_pooling *pool); /* of one plane */

/* The cells of an axis that an output's window holds, `dilation` (adaptive: 1) apart; none when
 * first > last. */
struct reference_span {
  int64_t first, last, step;
};
struct reference_span reference_window(const struct reference_axis *axis, int64_t o);

/* What an average divides by at one output. */
double reference_divisor(const struct reference_pooling *pool, const int64_t at[3]);

/* The arrays of *sums hold planes * reference_in_cells and are overwritten. */
void reference_max_backward(const struct reference_pooling *pool, const double *grad_out,
                            const int64_t *index, struct reference_sums *sums);
void reference_avg_backward(const struct reference_pooling *pool, const double *grad_out,
                            struct reference_sums *sums);

/* The first maximum of each window and its flat position in the plane; a NaN wins over numbers, the
 * last of several as in PyTorch.  A window without a cell has index -1. */
void reference_max_forward(const struct reference_pooling *pool, const double *in, double *out,
                           int64_t *index);

/* Likewise; the arrays hold planes * reference_out_cells. */
void reference_avg_forward(const struct reference_pooling *pool, const double *in,
                           struct reference_sums *sums);

#endif
