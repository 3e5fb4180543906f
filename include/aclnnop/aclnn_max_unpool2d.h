/* SPDX-License-Identifier: Apache-2.0 */

/* Puts pooled elements back where they were in their planes.
 *
 * self is FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64 or UINT8; [N,] C, H, W. indices is INT32
 * or INT64, of the same shape: flat positions in a plane of out. outputSize has the height and
 * width of out, which has the type of self. Cells that no index names are 0; of several values
 * for one cell the last one stays. An index outside the plane is dropped; POOLGRAD_INDEX_CHECK
 * says what else happens.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_MAX_UNPOOL2D_H_
#define PG_ACLNN_MAX_UNPOOL2D_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnMaxUnpool2dGetWorkspaceSize(const aclTensor *self,
                                                       const aclTensor *indices,
                                                       const aclIntArray *outputSize,
                                                       aclTensor *out, uint64_t *workspaceSize,
                                                       aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnMaxUnpool2d(void *workspace, uint64_t workspaceSize,
                                       aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
