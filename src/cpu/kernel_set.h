/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel sets: one per instruction set, best first, the scalar one complete. */
#ifndef PG_KERNEL_SET_H_
#define PG_KERNEL_SET_H_

#include "acl/acl_base.h"
#include "cpu/scratch.h"
#include "kernels/kernels.h"

/* The types a kernel exists for; kernels that move bytes have only the first. */
enum pg_element { PG_F32, PG_F16, PG_BF16, PG_F64, PG_ELEMENT_COUNT };

struct pg_kernel_set {
  const char *isa;
  pg_kernel_fn *fn[PG_KERNEL_COUNT][PG_ELEMENT_COUNT]; /* NULL: look in the next set */
};

extern const struct pg_kernel_set pg_kernels_scalar, pg_kernels_avx2, pg_kernels_avx512,
    pg_kernels_neon;

/* Reads POOLGRAD_ISA; a sentence for a set that is not known or that this CPU cannot run. */
aclError pg_kernels_configure(const char *api);

/* The best kernel this CPU can run; never NULL for what an operator's check lets through. */
pg_kernel_fn *pg_kernel_find(enum pg_kernel id, aclDataType dtype);

/* Adds what one plane found to a report; the earliest position stays. */
void pg_index_report_merge(struct pg_index_report *report, const struct pg_index_report *found);

#endif
