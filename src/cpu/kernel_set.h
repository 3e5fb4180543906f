/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel sets: one per instruction set, best first, the scalar one complete. */
#ifndef PG_KERNEL_SET_H_
#define PG_KERNEL_SET_H_

#include "kernels/kernels.h"

struct pg_kernel_set {
  const char *isa;
  pg_kernel_fn *fn[PG_KERNEL_COUNT]; /* NULL: look in the next set */
};

extern const struct pg_kernel_set pg_kernels_scalar;

/* The best kernel this CPU can run; never NULL. */
pg_kernel_fn *pg_kernel_find(enum pg_kernel id);

#endif
