/* SPDX-License-Identifier: Apache-2.0 */

/* Multiplies the tensors of a list with a number.
 *
 * out[i] = x[i] * scalar for each i; the lists are equally long. Tensors are FLOAT, FLOAT16, BF16,
 * DOUBLE, INT8 to INT64, UINT8 or BOOL. Types are promoted as in PyTorch; integers wrap around.
 * out has the shape of the result, and a type that the result may become. A tensor of out may be
 * one of x.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_FOREACH_MUL_SCALAR_V2_H_
#define PG_ACLNN_FOREACH_MUL_SCALAR_V2_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnForeachMulScalarV2GetWorkspaceSize(const aclTensorList *x,
                                                              const aclScalar *scalar,
                                                              const aclTensorList *out,
                                                              uint64_t *workspaceSize,
                                                              aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnForeachMulScalarV2(void *workspace, uint64_t workspaceSize,
                                              aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
