/* SPDX-License-Identifier: Apache-2.0 */

/* Takes elements along an axis by their indices.
 *
 * out[i, j, ...] = self[i, index[i, j, ...], ...] for axis dim = 1, and so on. self is FLOAT,
 * FLOAT16, BF16, DOUBLE, INT8 to INT64, UINT8 or BOOL; index is INT32 or INT64, has as many axes
 * and is nowhere longer but along dim. out has the type of self and the shape of index. An index
 * outside the axis gives 0; POOLGRAD_INDEX_CHECK says what else happens.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_GATHER_H_
#define PG_ACLNN_GATHER_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnGatherGetWorkspaceSize(const aclTensor *self, int64_t dim,
                                                  const aclTensor *index, aclTensor *out,
                                                  uint64_t *workspaceSize,
                                                  aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnGather(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                  aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
