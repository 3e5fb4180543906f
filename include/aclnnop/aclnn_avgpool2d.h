/* SPDX-License-Identifier: Apache-2.0 */

/* Average pooling over height and width.
 *
 *     out[n, c, oh, ow] = (sum of the cells in the window of (oh, ow)) / divisor(oh, ow)
 *
 * The divisor is divisorOverride unless that is 0; else the cells of the window, cut to input and
 * padding (countIncludePad) or to the input alone. Cells are added in fp32 in one fixed
 * order, divided once and rounded once. */

#ifndef PG_ACLNN_AVGPOOL2D_H_
#define PG_ACLNN_AVGPOOL2D_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   self        FLOAT, FLOAT16 or BF16; N, C, H, W with format NCHW, or C, H, W with format NCL
 *   kernelSize, paddings   1 or 2 values (H, W)
 *   strides     0, 1 or 2 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   divisorOverride  0: count the cells; any other value, negative too, divides
 *   cubeMathType     0 to 3, checked; precision is never lowered
 *   out         self's type and format; [N,] C, Ho, Wo of the pooled size; written everywhere
 *
 * Padding is at most half of the kernel. Any strides and offsets that are not negative; out's
 * elements must not share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnAvgPool2dGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *strides,
    const aclIntArray *paddings, const bool ceilMode, const bool countIncludePad,
    const int64_t divisorOverride, const int8_t cubeMathType, aclTensor *out,
    uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; the memory behind them must live until the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out overlapping another tensor, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnAvgPool2d(void *workspace, uint64_t workspaceSize,
                                     aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
