/* SPDX-License-Identifier: Apache-2.0 */

/* Whether any element along some axes is not 0.
 *
 * self is FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64, UINT8 or BOOL; a NaN is not 0. dim has
 * the axes, negative ones count from the end; none means all. Reduced axes are left out of out,
 * or have length 1 with keepDim. out is BOOL or UINT8. Any of nothing is 0.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_ANY_H_
#define PG_ACLNN_ANY_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnAnyGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim,
                                               bool keepDim, aclTensor *out,
                                               uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnAny(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                               aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
