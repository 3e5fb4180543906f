/* SPDX-License-Identifier: Apache-2.0 */
/* Filling memory with one value: the step of a stream, and the kernel PG_FILL.  It is the same for
 * all instruction sets. */
#ifndef PG_FILL_H_
#define PG_FILL_H_

#include "cpu/scratch.h"
#include "kernels/kernels.h"

/* Computes items of a struct pg_fill_args, which are its rows. */
void pg_fill_items(const void *args, int64_t begin, int64_t end, struct pg_scratch *scratch);

/* The kernel PG_FILL has one method. */
extern const struct pg_cpu_method pg_cpu_fill;

#endif
