/* SPDX-License-Identifier: Apache-2.0 */

/* The gradient of adaptive average pooling over height and width.
 *
 *     out[n, c, h, w] = sum of gradOutput[n, c, oh, ow] / (H(oh) * W(ow))
 *
 * over the outputs whose window holds the cell. The window of output o of an axis with I cells and
 * O outputs is [floor(o * I / O), ceil((o + 1) * I / O)); H and W are lengths of windows. Sums in
 * fp32 along W, then H, rounded once. */

#ifndef PG_ACLNN_ADAPTIVE_AVG_POOL2D_BACKWARD_H_
#define PG_ACLNN_ADAPTIVE_AVG_POOL2D_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   gradOutput  FLOAT, FLOAT16 or BF16; [N,] C, Ho, Wo
 *   self        same type; [N,] C, H, W; its values are never read
 *   out         self's type and shape; written everywhere
 *
 * All three have the same format, one of ND, NCHW, NCL, NCDHW, NC. Any strides and offsets that are
 * not negative; out's cells must not share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
                                                                     const aclTensor *self,
                                                                     aclTensor *out,
                                                                     uint64_t *workspaceSize,
                                                                     aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; workspace and the memory behind the tensors must live until
 * the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out overlapping an input, or a view that
 * leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnAdaptiveAvgPool2dBackward(void *workspace, uint64_t workspaceSize,
                                                     aclOpExecutor *executor,
                                                     const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
