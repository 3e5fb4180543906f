/* SPDX-License-Identifier: Apache-2.0 */

/* Casts between private formats of an NPU, of which poolgrad has none: a copy.
 *
 * dstTensor = srcTensor. Both have the same type, FLOAT, FLOAT16, BF16, DOUBLE, INT8 to INT64,
 * UINT8 or BOOL, the same shape and plain formats.
 *
 * docs/ops/tensors.md has what these operators have in common: views, refusals, results. */

#ifndef PG_ACLNN_NPU_FORMAT_CAST_H_
#define PG_ACLNN_NPU_FORMAT_CAST_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the call and plans it; touches no data. 161001: an argument is NULL; 161002: anything
 * else. aclGetRecentErrMsg() has the sentence that says what; with ASCEND_LOG_PRINT_TO_STDOUT=1
 * in the environment it is printed. */
ACLNN_API aclnnStatus aclnnNpuFormatCastGetWorkspaceSize(const aclTensor *srcTensor,
                                                         aclTensor *dstTensor,
                                                         uint64_t *workspaceSize,
                                                         aclOpExecutor **executor);

/* Queues the work on the stream (NULL: the default stream) and returns. */
ACLNN_API aclnnStatus aclnnNpuFormatCast(void *workspace, uint64_t workspaceSize,
                                         aclOpExecutor *executor, aclrtStream stream);

/* Says what NpuFormatCast makes of srcTensor: its own shape, and dstFormat if that is a plain
 * format, else the format of srcTensor. additionalDtype is not read. *dstShape has *dstShapeSize
 * dims and is the caller's: release it with delete[] in C++, with free() in C. */
ACLNN_API aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(
    const aclTensor *srcTensor, const int dstFormat, int additionalDtype, int64_t **dstShape,
    uint64_t *dstShapeSize, int *actualFormat);

#ifdef __cplusplus
}
#endif

#endif
