/* SPDX-License-Identifier: Apache-2.0 */

/* The sum along some axes.
 *
 * self and dtype are FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64, UINT8 or BOOL; dtype is what
 * is computed with. dims has the axes, negative ones count from the end; none means all. Reduced
 * axes are left out of out, or have length 1 with keepDims. The sum of nothing is 0. The order
 * of a sum is fixed.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_REDUCE_SUM_H_
#define PG_ACLNN_REDUCE_SUM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnReduceSumGetWorkspaceSize(const aclTensor *self, const aclIntArray *dims,
                                                     bool keepDims, aclDataType dtype,
                                                     aclTensor *out, uint64_t *workspaceSize,
                                                     aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnReduceSum(void *workspace, uint64_t workspaceSize,
                                     aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
