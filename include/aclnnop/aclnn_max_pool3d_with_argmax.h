/* SPDX-License-Identifier: Apache-2.0 */

/* Max pooling over depth, height and width, with the positions of the maxima.
 *
 *     out[n, c, o] = the greatest cell in the window of o
 *     indices[n, c, o] = (d * H + h) * W + w of that cell in the plane (n, c), for NDHWC too
 *
 * Of equal cells the first one in row-major order counts, and +0 equals -0. A NaN counts more than
 * any number; of several the last one counts. Every window must hold a cell. */

#ifndef PG_ACLNN_MAX_POOL3D_WITH_ARGMAX_H_
#define PG_ACLNN_MAX_POOL3D_WITH_ARGMAX_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   self        FLOAT, FLOAT16 or BF16; [N,] C, D, H, W, or with format NDHWC [N,] D, H, W, C
 *   kernelSize, padding, dilation   1 or 3 values (D, H, W)
 *   stride      0, 1 or 3 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   out         self's type; the pooled size, in self's order of axes; written everywhere
 *   indices     INT32, or INT64 unless on Ascend910B and Ascend910_93; out's shape
 *
 * All but N are positive. All three have the same format, one of ND, NCHW, NCDHW, NDHWC. On
 * Ascend910B and Ascend910_93 there is no NDHWC, and dilation is 1. Padding is at most half of the
 * kernel. Any strides and offsets that are not negative; the elements of what is written must not
 * share memory. 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnMaxPool3dWithArgmaxGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
    const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out,
    aclTensor *indices, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; the memory behind them must live until the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out or indices overlapping another tensor, or
 * a view that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnMaxPool3dWithArgmax(void *workspace, uint64_t workspaceSize,
                                               aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
