/* SPDX-License-Identifier: Apache-2.0 */

/* Passes a gradient where the input was above a threshold: the gradient of a ReLU with threshold 0.
 *
 * out = self <= threshold ? 0 : gradOutput; where self is NaN the gradient passes. All three have
 * one type, FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64 or UINT8; gradOutput and self are
 * broadcast to out's shape. self may be the input of the ReLU or its output.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_THRESHOLD_BACKWARD_H_
#define PG_ACLNN_THRESHOLD_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnThresholdBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclScalar *threshold, aclTensor *out,
    uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnThresholdBackward(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
