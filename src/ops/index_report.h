/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PG_INDEX_REPORT_H_
#define PG_INDEX_REPORT_H_

#include "core/status.h"
#include "kernels/kernels.h"

/* What becomes of a call whose indices pointed outside their planes: a line on stderr, a failed
 * stream or silence, as POOLGRAD_INDEX_CHECK wants it.  The gradients were dropped already. */
aclError pg_index_judge(const union pg_kernel_args *args, const struct pg_index_report *report,
                        struct pg_failure *why);

/* The same for PG_GATHER and PG_UNPOOL. */
aclError pg_gather_judge(const union pg_kernel_args *args, const struct pg_index_report *report,
                         struct pg_failure *why);
aclError pg_unpool2d_judge(const union pg_kernel_args *args, const struct pg_index_report *report,
                           struct pg_failure *why);
aclError pg_unpool3d_judge(const union pg_kernel_args *args, const struct pg_index_report *report,
                           struct pg_failure *why);

#endif
