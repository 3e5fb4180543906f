/* SPDX-License-Identifier: Apache-2.0 */

/* The gradient of max pooling over height and width, from the positions of the maxima.
 *
 *     gradInput[n, c, i] = sum of gradOutput[n, c, o] over the outputs o with indices[n, c, o] == i
 *
 * indices holds h * W + w inside the plane (n, c), for NHWC too. The index decides alone: a
 * gradient goes to any cell of its plane, in its window or not. Gradients are added in fp32, in
 * ascending order of o, and rounded once. An index outside its plane is dropped and reported as
 * POOLGRAD_INDEX_CHECK says (poolgrad.h). */

#ifndef PG_ACLNN_MAX_POOL2D_WITH_INDICES_BACKWARD_H_
#define PG_ACLNN_MAX_POOL2D_WITH_INDICES_BACKWARD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data.
 *
 *   gradOutput  FLOAT, FLOAT16 or BF16; [N,] C, Ho, Wo, or with format NHWC [N,] Ho, Wo, C
 *   self        same type; [N,] C, H, W or [N,] H, W, C; its values are never read
 *   indices     INT32 or INT64; gradOutput's shape
 *   kernelSize, padding, dilation   1 or 2 values (H, W)
 *   stride      0, 1 or 2 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   gradInput   self's type and shape; written everywhere
 *
 * All four tensors have the same format, one of ND, NCHW, NCL, NHWC. Padding is at most half of the
 * kernel. gradOutput must have the pooled size. Any strides and offsets that are not negative;
 * gradInput's cells must not share memory.
 * 161001: an argument is NULL. 161002: anything else. aclGetRecentErrMsg() has the
 * sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment it is printed. */
ACLNN_API aclnnStatus aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
    const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput, uint64_t *workspaceSize,
    aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; workspace and the memory behind the tensors must live until
 * the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, gradInput overlapping an input, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnMaxPool2dWithIndicesBackward(void *workspace, uint64_t workspaceSize,
                                                        aclOpExecutor *executor,
                                                        aclrtStream stream);

/* The same from the mask of aclnnMaxPool2dWithMask. Not on Ascend950, which answers 161002.
 *
 *   gradOutput  FLOAT, FLOAT16 or BF16; [N,] C, Ho, Wo
 *   self        same type; [N,] C, H, W; its values are never read
 *   indices     INT8; contiguous; [N,] C, kH * kW, (ceil(Ho * Wo / 16) + 1) * 32
 *   kernelSize, padding, dilation   1 or 2 values (H, W)
 *   stride      0, 1 or 2 values; none means kernelSize
 *   ceilMode    rounds the output size up
 *   gradInput   self's type and shape; written everywhere
 *
 * The indices, which are INT32, are packed from the first byte of their container on. If a window
 * is one cell, there are none, and the container is not read.
 *
 * All four tensors have the same format, one of ND, NCHW, NCL. dilation is 1, padding at most half
 * of the kernel. gradOutput must have the pooled size. Any strides and offsets of tensors other
 * than indices that are not negative; gradInput's cells must not share memory.
 * 161001: an argument is NULL, or kernelSize has neither 1 nor 2 values. 161002: anything else.
 * aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1 in the
 * environment it is printed. */
ACLNN_API aclnnStatus aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
    const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput, uint64_t *workspaceSize,
    aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. Afterwards the executor is
 * spent and tensors may be destroyed; workspace and the memory behind the tensors must live until
 * the stream has passed.
 * 161001: executor NULL, workspace NULL with a size, or a tensor without data address. 161002:
 * workspaceSize below what the first phase asked for, gradInput overlapping an input, or a view
 * that leaves its allocation. 561000: spent executor. 361001: the stream refused. */
ACLNN_API aclnnStatus aclnnMaxPool2dWithMaskBackward(void *workspace, uint64_t workspaceSize,
                                                     aclOpExecutor *executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
