/* SPDX-License-Identifier: Apache-2.0 */

/* Fills a tensor with a value where a mask is set.
 *
 * selfRef is FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64, UINT8 or BOOL; value becomes its type.
 * mask is BOOL or UINT8, and is broadcast to the shape of selfRef.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_MASKED_FILL_SCALAR_H_
#define PG_ACLNN_MASKED_FILL_SCALAR_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnInplaceMaskedFillScalarGetWorkspaceSize(aclTensor *selfRef,
                                                                   const aclTensor *mask,
                                                                   const aclScalar *value,
                                                                   uint64_t *workspaceSize,
                                                                   aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnInplaceMaskedFillScalar(void *workspace, uint64_t workspaceSize,
                                                   aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
