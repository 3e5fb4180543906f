/* SPDX-License-Identifier: Apache-2.0 */

/* The elements of a tensor whose mask is set.
 *
 * self is FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64, UINT8 or BOOL; mask is BOOL or UINT8.
 * They are broadcast. out has the type of self, one axis, no gaps, and room for all elements.
 * Once the stream is synchronised, aclGetViewShape(out) gives how many were selected.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_MASKED_SELECT_H_
#define PG_ACLNN_MASKED_SELECT_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnMaskedSelectGetWorkspaceSize(const aclTensor *self,
                                                        const aclTensor *mask, aclTensor *out,
                                                        uint64_t *workspaceSize,
                                                        aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnMaskedSelect(void *workspace, uint64_t workspaceSize,
                                        aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
