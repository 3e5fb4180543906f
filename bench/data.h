/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a row: dense random gradients or data, and the maxima of random data as indices. */
#ifndef PG_BENCH_DATA_H_
#define PG_BENCH_DATA_H_

#include "guarded.h"

/* The bytes of a tensor in memory; 0 for one that is not there. */
int64_t data_bytes(const struct problem *p, const struct tensor_layout *t, int tensor);

/* The least bytes that a call must move of the tensors with this role. */
int64_t data_moved(const struct problem *p, const struct tensor_layout layout[POOL_TENSORS],
                   enum tensor_role role);

/* Where the tensors that are read begin; the others are NULL. */
struct data_places {
  void *of[POOL_TENSORS];
  int64_t *wide_index; /* the indices once more, or NULL */
};

/* Fills one set, in threads. */
void data_fill(const struct problem *p, const struct tensor_layout layout[POOL_TENSORS],
               const struct data_places *places, int threads);

/* The random data whose maxima the indices are, in the order of gradInput's memory. */
void data_field(const struct problem *p, const struct tensor_layout *grad_in, void *to);

#endif
