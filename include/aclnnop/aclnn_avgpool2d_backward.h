/* SPDX-License-Identifier: Apache-2.0 */

/* The gradient of average pooling over height and width.
 *
 *     gradInput[n, c, h, w] = sum of gradOutput[n, c, oh, ow] / divisor(oh, ow)
 *
 * over the outputs whose window holds the cell. The divisor is divisorOverride unless that is 0;
 * else the cells of the window, cut to input and padding (countIncludePad) or to the input alone.
 * Sums in fp32 along W, then H, rounded once. */

#ifndef PG_ACLNN_AVGPOOL2D_BACKWARD_H_
#define PG_ACLNN_AVGPOOL2D_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   gradOutput  FLOAT, FLOAT16 or BF16; [N,] C, Ho, Wo
 *   self        same type; [N,] C, H, W; its values are never read
 *   kernelSize, padding   1 or 2 values (H, W)
 *   stride      NULL, or 0, 1 or 2 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   divisorOverride  0: count the cells; any other value, negative too, divides
 *   cubeMathType     0 to 3, checked; precision is never lowered
 *   gradInput   self's type and shape; written everywhere
 *
 * Formats: NCHW, or NCL for 3 axes. Padding is at most half of the kernel. gradOutput must have the
 * pooled size. Any strides and offsets that are not negative; gradInput's cells must not share
 * memory.
 * 161001: an argument other than stride is NULL. 161002: anything else. aclGetRecentErrMsg() has
 * the sentence about it, which ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment prints. */
ACLNN_API aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *kernelSize,
    const aclIntArray *stride, const aclIntArray *padding, bool ceilMode, bool countIncludePad,
    int64_t divisorOverride, int8_t cubeMathType, aclTensor *gradInput, uint64_t *workspaceSize,
    aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; workspace and the memory behind the tensors must live until
 * the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, gradInput overlapping an input, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnAvgPool2dBackward(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
