/* SPDX-License-Identifier: Apache-2.0 */

/* The gradient of adaptive average pooling over depth, height and width.
 *
 *     out[n, c, d, h, w] = sum of gradOutput[n, c, od, oh, ow] / (cells of the window)
 *
 * over the outputs whose window holds the cell. Along each axis the window of output o runs from
 * floor(o * in / out) to ceil((o + 1) * in / out), exclusive. Sums in fp32 along W, then H, then D,
 * rounded once. */

#ifndef PG_ACLNN_ADAPTIVE_AVG_POOL3D_BACKWARD_H_
#define PG_ACLNN_ADAPTIVE_AVG_POOL3D_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   gradOutput  FLOAT, FLOAT16 or BF16 (DOUBLE as well if Do = Ho = Wo = 1); [N,] C, Do, Ho, Wo
 *   self        same type; [N,] C, D, H, W; its values are never read
 *   out         self's type and shape; written everywhere
 *
 * All three have the same format, one of ND, NCHW, NCL, NCDHW, NC. Any strides and offsets that are
 * not negative; out's cells must not share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
                                                                     const aclTensor *self,
                                                                     aclTensor *out,
                                                                     uint64_t *workspaceSize,
                                                                     aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; workspace and the memory behind the tensors must live until
 * the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out overlapping an input, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnAdaptiveAvgPool3dBackward(void *workspace, uint64_t workspaceSize,
                                                     aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
