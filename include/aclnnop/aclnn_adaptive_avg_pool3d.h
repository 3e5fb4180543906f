/* SPDX-License-Identifier: Apache-2.0 */

/* Average pooling over depth, height and width to a given size.
 *
 *     out[n, c, od, oh, ow] = (sum of the cells in the window) / (the number of its cells)
 *
 * The window of output o of an axis with I cells and O outputs is [floor(o * I / O),
 * ceil((o + 1) * I / O)). Cells are added in fp32 in one fixed order, divided once and rounded
 * once. */

#ifndef PG_ACLNN_ADAPTIVE_AVG_POOL3D_H_
#define PG_ACLNN_ADAPTIVE_AVG_POOL3D_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   self        FLOAT, FLOAT16 or BF16; [N,] C, D, H, W; no axis is empty (on Ascend950 the first
 *               one may be)
 *   outputSize  3 positive values (Do, Ho, Wo)
 *   out         self's type and format; [N,] C, Do, Ho, Wo; written everywhere
 *
 * Formats: ND, NCHW, NCL, NCDHW or NC; ND, NCHW or NCDHW on Ascend950. Any strides and offsets that
 * are not negative; out's elements must not share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnAdaptiveAvgPool3dGetWorkspaceSize(const aclTensor *self,
                                                             const aclIntArray *outputSize,
                                                             aclTensor *out,
                                                             uint64_t *workspaceSize,
                                                             aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; the memory behind them must live until the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out overlapping another tensor, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnAdaptiveAvgPool3d(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
