/* SPDX-License-Identifier: Apache-2.0 */

/* Converts a tensor to another type.
 *
 * out = self, with self's shape. Both are FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64, UINT8 or
 * BOOL, in any pair; dtype is out's type. A real becomes an integer by truncation, and anything but
 * 0 the BOOL 1.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_CAST_H_
#define PG_ACLNN_CAST_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor *self, const aclDataType dtype,
                                                aclTensor *out, uint64_t *workspaceSize,
                                                aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnCast(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
