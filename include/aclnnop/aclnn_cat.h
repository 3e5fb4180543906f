/* SPDX-License-Identifier: Apache-2.0 */

/* Puts tensors one behind the other along an axis.
 *
 * The tensors are FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64, UINT8 or BOOL, and have out's shape,
 * but for axis dim, along which their lengths add up to out's. They become out's type, which is
 * any of these that all of them may become: a real does not become an integer or BOOL, and an
 * integer not BOOL. dim counts from the end if negative. A tensor of shape [0] is passed over,
 * whatever the shape of the others.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_CAT_H_
#define PG_ACLNN_CAT_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnCatGetWorkspaceSize(const aclTensorList *tensors, int64_t dim,
                                               aclTensor *out, uint64_t *workspaceSize,
                                               aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnCat(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                               aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
