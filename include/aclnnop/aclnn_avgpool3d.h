/* SPDX-License-Identifier: Apache-2.0 */

/* Average pooling over depth, height and width.
 *
 *     out[n, c, o] = (sum of the cells in the window of o) / divisor(o)
 *
 * The divisor is divisorOverride unless that is 0; else the cells of the window, cut to input and
 * padding (countIncludePad) or to the input alone. Cells are added in fp32 in one fixed
 * order, divided once and rounded once. */

#ifndef PG_ACLNN_AVGPOOL3D_H_
#define PG_ACLNN_AVGPOOL3D_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   self        FLOAT, FLOAT16 or BF16; [N,] C, D, H, W
 *   kernelSize, padding   1 or 3 values (D, H, W)
 *   stride      0, 1 or 3 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   divisorOverride  0: count the cells; any other value, negative too, divides
 *   out         self's type and format; [N,] C, Do, Ho, Wo of the pooled size; written everywhere
 *
 * Formats: ND, NCHW, NCL, NCDHW or NC. Padding is at most half of the kernel, and the kernel not
 * longer than the input with its padding (without it if POOLGRAD_SOC names a product). Any strides
 * and offsets that are not negative; out's elements must not share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnAvgPool3dGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
    const aclIntArray *padding, bool ceilMode, bool countIncludePad, int64_t divisorOverride,
    aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; the memory behind them must live until the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out overlapping another tensor, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnAvgPool3d(void *workspace, uint64_t workspaceSize,
                                     aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
