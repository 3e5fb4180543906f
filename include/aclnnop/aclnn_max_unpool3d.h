/* SPDX-License-Identifier: Apache-2.0 */

/* Puts pooled elements back where they were in their planes, with depth.
 *
 * self is FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64 or UINT8; [N,] C, D, H, W. indices is
 * INT32 or INT64, of the same shape: flat positions in a plane of outRef. outputSize has the
 * depth, height and width of outRef, which has the type of self. stride and padding have 3
 * values each; stride is positive. Cells that no index names are 0; of several values for one
 * cell the last one stays. An index outside the plane is dropped; POOLGRAD_INDEX_CHECK says what
 * else happens.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_MAX_UNPOOL3D_H_
#define PG_ACLNN_MAX_UNPOOL3D_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnMaxUnpool3dGetWorkspaceSize(
    const aclTensor *self, const aclTensor *indices, const aclIntArray *outputSize,
    const aclIntArray *stride, const aclIntArray *padding, aclTensor *outRef,
    uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnMaxUnpool3d(void *workspace, uint64_t workspaceSize,
                                       aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
