/* SPDX-License-Identifier: Apache-2.0 */

/* The gradient of average pooling over depth, height and width.
 *
 *     output[n, c, d, h, w] = sum of gradOutput[n, c, od, oh, ow] / divisor(od, oh, ow)
 *
 * over the outputs whose window holds the cell.
 * The divisor is divisorOverride unless that is 0; else the cells of the window, cut to input and
 * padding (countIncludePad) or to the input alone. Sums in fp32 along W, then H,
 * then D, rounded once. */

#ifndef PG_ACLNN_AVGPOOL3D_BACKWARD_H_
#define PG_ACLNN_AVGPOOL3D_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   gradOutput  FLOAT, FLOAT16 or BF16; [N,] C, Do, Ho, Wo of the pooled size
 *   self        same type; [N,] C, D, H, W; its values are never read
 *   kernelSize, padding   1 or 3 values (D, H, W)
 *   stride      0, 1 or 3 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   divisorOverride  0: count the cells; any other value, negative too, divides
 *   output      self's type and shape; written everywhere
 *
 * gradOutput and output have the same format, one of ND, NCHW, NCL, NCDHW, NC. Padding is at most
 * half of the kernel. Any strides and offsets that are not negative; output's cells must not share
 * memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnAvgPool3dBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *kernelSize,
    const aclIntArray *stride, const aclIntArray *padding, bool ceilMode, bool countIncludePad,
    int64_t divisorOverride, aclTensor *output, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; workspace and the memory behind the tensors must live until
 * the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, output overlapping an input, or a view that
 * leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnAvgPool3dBackward(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, const aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
