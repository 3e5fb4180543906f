/* SPDX-License-Identifier: Apache-2.0 */

/* Max pooling over height and width, with the positions of the maxima.
 *
 *     out[n, c, o] = the greatest cell in the window of o
 *     indices[n, c, o] = h * W + w of that cell in the plane (n, c), for NHWC too
 *
 * Of equal cells the first one in row-major order counts, and +0 equals -0. A NaN counts more than
 * any number; of several the last one counts. Every window must hold a cell. */

#ifndef PG_ACLNN_MAX_POOL2D_WITH_INDICES_H_
#define PG_ACLNN_MAX_POOL2D_WITH_INDICES_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   self        FLOAT, FLOAT16 or BF16; [N,] C, H, W, or with format NHWC [N,] H, W, C
 *   kernelSize, padding, dilation   1 or 2 values (H, W)
 *   stride      0, 1 or 2 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   out         self's type; the pooled size, in self's order of axes; written everywhere
 *   indices     INT32 or INT64; out's shape; written everywhere
 *
 * C, H and W are positive. All three have the same format, one of ND, NCHW, NCL, NHWC. On
 * Ascend910B and Ascend910_93 there is no NHWC, and dilation is 1. Padding is at most half of the
 * kernel. Any strides and offsets that are not negative; the elements of what is written must not
 * share memory. 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnMaxPool2dWithIndicesGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
    const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out,
    aclTensor *indices, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; the memory behind them must live until the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out or indices overlapping another tensor, or
 * a view that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnMaxPool2dWithIndices(void *workspace, uint64_t workspaceSize,
                                                aclOpExecutor *executor, aclrtStream stream);

/* The same with the positions in a container of bytes. Not on Ascend950, which answers 161002.
 *
 *   self        FLOAT, FLOAT16 or BF16; [N,] C, H, W; C, H and W are positive
 *   kernelSize, padding, dilation   1 or 2 values (H, W)
 *   stride      0, 1 or 2 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   out         self's type; [N,] C, Ho, Wo of the pooled size; written everywhere
 *   indices     INT8; contiguous; [N,] C, kH * kW, (ceil(Ho * Wo / 16) + 1) * 32
 *
 * The indices, which are INT32, are packed from the first byte of their container on, and all other
 * bytes are 0. If a window is one cell, there are none, and all bytes are 0.
 *
 * All three have the same format, one of ND, NCHW, NCL. dilation is 1, padding at most half of the
 * kernel. Any strides and offsets of self and out that are not negative; out's elements must not
 * share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnMaxPool2dWithMaskGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
    const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out,
    aclTensor *indices, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; the memory behind them must live until the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out or indices overlapping another tensor, or
 * a view that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnMaxPool2dWithMask(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
