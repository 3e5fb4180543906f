/* SPDX-License-Identifier: Apache-2.0 */

/* The bits of a tensor that are set in a number.
 *
 * out = self & other. self is INT8 to INT64, UINT8 or BOOL, and other a scalar of such a type.
 * Types are promoted as in PyTorch; integers wrap around. out has self's shape, and a type that
 * the result may become.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_BITWISE_AND_SCALAR_H_
#define PG_ACLNN_BITWISE_AND_SCALAR_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnBitwiseAndScalarGetWorkspaceSize(const aclTensor *self,
                                                            const aclScalar *other, aclTensor *out,
                                                            uint64_t *workspaceSize,
                                                            aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnBitwiseAndScalar(void *workspace, uint64_t workspaceSize,
                                            aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
