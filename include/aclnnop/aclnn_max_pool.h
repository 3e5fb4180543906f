/* SPDX-License-Identifier: Apache-2.0 */

/* Max pooling over height and width with the attributes of ONNX, without positions.
 *
 *     out[n, c, oh, ow] = the greatest cell in the window of (oh, ow)
 *
 * Of equal cells the first one in row-major order counts, and +0 equals -0. A NaN counts more than
 * any number; of several the last one counts. */

#ifndef PG_ACLNN_MAX_POOL_H_
#define PG_ACLNN_MAX_POOL_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   self         FLOAT, FLOAT16, BF16, INT8, INT16, INT32, INT64, UINT8, UINT16; [N,] C, H, W
 *   kernelShape  1 or 2 values (H, W)
 *   strides      0, 1 or 2 values; none means 1
 *   autoPad      0
 *   pads         none; 1 value for all sides; 2: top and bottom, left and right; or
 *                4: top, left, bottom, right
 *   dilations    0, 1, 2 or 4 values, all of them 1
 *   ceilMode     0 rounds the output size down, anything else up
 *   out          self's type and format; [N,] C, Ho, Wo of the pooled size; written everywhere
 *
 * On Ascend910B and Ascend910_93 self is FLOAT or FLOAT16.
 * Formats: ND, NCHW or NCL. The pads of an axis are together at most its kernelShape, and every
 * window must hold a cell. Any strides and offsets that are not negative; out's elements must not
 * share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnMaxPoolGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelShape, const aclIntArray *strides,
    const int64_t autoPad, const aclIntArray *pads, const aclIntArray *dilations,
    const int64_t ceilMode, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; the memory behind them must live until the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, out overlapping another tensor, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnMaxPool(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
