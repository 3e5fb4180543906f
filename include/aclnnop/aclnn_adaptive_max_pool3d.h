/* SPDX-License-Identifier: Apache-2.0 */

/* Max pooling over depth, height and width to a given size, with the positions of the maxima.
 *
 *     outputOut[n, c, o] = the greatest cell in the window of o
 *     indicesOut[n, c, o] = (d * H + h) * W + w of that cell in the plane (n, c)
 *
 * The window of output o of an axis with I cells and O outputs is [floor(o * I / O),
 * ceil((o + 1) * I / O)).
 * Of equal cells the first one in row-major order counts, and +0 equals -0. A NaN counts more than
 * any number; of several the last one counts. */

#ifndef PG_ACLNN_ADAPTIVE_MAX_POOL3D_H_
#define PG_ACLNN_ADAPTIVE_MAX_POOL3D_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   self        FLOAT, FLOAT16 or BF16; [N,] C, D, H, W
 *   outputSize  3 positive values (Do, Ho, Wo); one counts for all axes, and none means self's
 *               sizes (on Ascend910B and Ascend910_93: 3 values)
 *   outputOut   self's type and format; [N,] C, Do, Ho, Wo; written everywhere
 *   indicesOut  INT32, or INT64 unless on Ascend910B and Ascend910_93; outputOut's shape
 *
 * Every axis of self but the first has a cell at least. Formats: ND, NCHW or NCDHW; NCHW or NCDHW
 * on Ascend910B and Ascend910_93. Any strides and offsets that are not negative; the elements of
 * what is written must not share memory. 161001: an argument is NULL. 161002: anything else.
 * aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the
 * environment it is printed. */
ACLNN_API aclnnStatus aclnnAdaptiveMaxPool3dGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *outputSize, aclTensor *outputOut,
    aclTensor *indicesOut, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; the memory behind them must live until the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, outputOut or indicesOut overlapping another
 * tensor, or a view that leaves its allocation. 561000: spent executor. 361001: the stream refused.
 */
ACLNN_API aclnnStatus aclnnAdaptiveMaxPool3d(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
