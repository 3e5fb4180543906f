/* SPDX-License-Identifier: Apache-2.0 */

/* The gradient of adaptive max pooling over height and width.
 *
 *     gradInput[n, c, i] = sum of gradOutput[n, c, o] over the outputs o with indices[n, c, o] == i
 *
 * indices holds flat positions in the plane (n, c): h * W + w. Gradients are added in fp32, in
 * ascending order of o, and rounded once. An index outside its plane is dropped and reported as
 * POOLGRAD_INDEX_CHECK says (poolgrad.h). */

#ifndef PG_ACLNN_ADAPTIVE_MAX_POOL2D_BACKWARD_H_
#define PG_ACLNN_ADAPTIVE_MAX_POOL2D_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   gradOutput  FLOAT, FLOAT16 or BF16; [N,] C, Ho, Wo
 *   self        same type; [N,] C, H, W; its values are never read
 *   indices     INT32 or INT64; gradOutput's shape
 *   gradInput   self's type and shape; written everywhere
 *
 * All four have the same format, one of ND, NCHW, NCL, NCDHW, NC. Any strides and offsets that are
 * not negative; gradInput's cells must not share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; workspace and the memory behind the tensors must live until
 * the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, gradInput overlapping an input, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnAdaptiveMaxPool2dBackward(void *workspace, uint64_t workspaceSize,
                                                     aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
