/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a row: dense random gradients, and the maxima of random data as indices. */
#ifndef PG_BENCH_DATA_H_
#define PG_BENCH_DATA_H_

#include "guarded.h"

/* Fills one set, in threads; index and wide_index may be NULL. */
void data_fill(const struct problem *p, const struct tensor_layout layout[POOL_TENSORS],
               void *grad_out, void *index, int64_t *wide_index, int threads);

/* The random data itself, in the order of gradInput's memory. */
void data_field(const struct problem *p, const struct tensor_layout *grad_in, void *to);

#endif
