/* SPDX-License-Identifier: Apache-2.0 */

/* The objects operators take: tensors, scalars, arrays, lists, and the executor between the two
 * calls of an operator.
 *
 * Life of an operator call:
 *
 *   1. Describe the device memory:       aclTensor *self = aclCreateTensor(...);
 *   2. Ask for the plan and its needs:   aclnnXxxGetWorkspaceSize(..., &bytes, &executor);
 *   3. Give it scratch, if bytes > 0:    aclrtMalloc(&workspace, bytes, ...);
 *   4. Queue the work:                   aclnnXxx(workspace, bytes, executor, stream);
 *   5. Destroy the descriptions at once, or use them again.
 *   6. Wait:                             aclrtSynchronizeStream(stream);
 *   7. Free workspace and tensor memory.
 *
 * Step 2 checks every argument, touches no tensor data and queues nothing. When it fails, neither
 * bytes nor executor is written. Step 4 copies what it needs: afterwards the tensors, arrays and
 * scalars may go; the memory behind them may go only after step 6. Steps 2 and 4 may run on
 * different threads.
 *
 * The executor of step 2 is spent by step 4, whatever that returns; a second run with it gives
 * 561000 and does nothing. Exceptions: aclSetAclOpExecutorRepeatable, and an executor that never
 * reaches step 4, which aclDestroyAclOpExecutor releases.
 *
 * Descriptions own no device memory and copy every array they are given. They need no device and
 * no aclInit. One object must not be used by two threads at a time while one of them changes or
 * destroys it; everything else is safe from any thread.
 *
 * Codes (names in aclnn/opdev/op_errno.h): 0 for success, 161001 PARAM_NULLPTR for a NULL that must
 * not be, 161002 PARAM_INVALID for any other bad argument, 561000 INNER and 561103 INNER_NULLPTR
 * for bad executors. Every failure leaves a sentence for aclGetRecentErrMsg(), which
 * ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment prints. */

#ifndef PG_ACL_META_H_
#define PG_ACL_META_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program that declares these names itself defines ACLNN_META first. */
#ifndef ACLNN_META
#define ACLNN_META
typedef struct aclOpExecutor aclOpExecutor;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;

typedef int32_t aclnnStatus;
#ifdef __cplusplus
constexpr aclnnStatus OK = 0;
#else
static const aclnnStatus OK = 0;
#endif
#endif

/* Tensors.
 *
 * A tensor is a view of device memory. Element (i0, i1, ...) lies at
 *
 *   tensorData + (offset + i0 * stride[0] + i1 * stride[1] + ...) * size of dataType
 *
 * viewDims and stride hold viewDimsNum entries; strides and offset count elements, not bytes.
 * stride NULL means contiguous, last axis fastest. viewDimsNum 0 is a scalar of one element; a 0
 * among viewDims makes the tensor empty. storageDims is recorded and returned by the getter,
 * nothing more. tensorData may be NULL and be set later.
 *
 * Nothing is judged here; the operators judge. NULL comes back only when viewDims or storageDims is
 * NULL with a count above 0, when there are more than 25 axes, or when memory is short. */
ACL_FUNC_VISIBILITY aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum,
                                               aclDataType dataType, const int64_t *stride,
                                               int64_t offset, aclFormat format,
                                               const int64_t *storageDims, uint64_t storageDimsNum,
                                               void *tensorData);

/* Releases the description, never the memory it describes. NULL is fine. Returns 0. */
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensor(const aclTensor *tensor);

/* Describes anew. What is not given stays: the view with viewDims NULL or viewDimsNum 0, the
 * storage shape likewise, the address with tensorDataAddr NULL. 0, or 161001 for a NULL tensor. */
ACL_FUNC_VISIBILITY aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims,
                                              uint64_t viewDimsNum, aclDataType dataType,
                                              const int64_t *stride, int64_t offset,
                                              aclFormat format, const int64_t *storageDims,
                                              uint64_t storageDimsNum, void *tensorDataAddr);

/* Shapes and strides come in an array of their own which the caller owns: release it with
 * delete[] in C++, with free() in C. It is never NULL on success, also for 0 axes.
 * 0, or 161001 for any NULL; then nothing is written. */
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims,
                                                uint64_t *viewDimsNum);
ACL_FUNC_VISIBILITY aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims,
                                                   uint64_t *storageDimsNum);
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue,
                                                  uint64_t *stridesNum);

/* 0, or 161001 for any NULL. */
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset);
ACL_FUNC_VISIBILITY aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format);
ACL_FUNC_VISIBILITY aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType);

/* The address the tensor was given, without the offset. The second call of an operator reads it, so
 * it may be set up to then; for programs that also run on an NPU: before the first call or after
 * the second. addr may be NULL in Set. 0, or 161001 for a NULL tensor or, in Get, a NULL addr. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr);

/* Scalars and arrays. The values are copied.
 *
 * aclCreateScalar reads one element of dataType at value; NULL comes back for a NULL value or a
 * type that no scalar can have. An array made from NULL, or with size 0, is a valid array of size
 * 0. Destroy accepts NULL and returns 0. The sizes: 0, or 161001 for any NULL. */
ACL_FUNC_VISIBILITY aclScalar *aclCreateScalar(void *value, aclDataType dataType);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyScalar(const aclScalar *scalar);

ACL_FUNC_VISIBILITY aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyIntArray(const aclIntArray *array);
ACL_FUNC_VISIBILITY aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size);

ACL_FUNC_VISIBILITY aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyFloatArray(const aclFloatArray *array);
ACL_FUNC_VISIBILITY aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size);

ACL_FUNC_VISIBILITY aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyBoolArray(const aclBoolArray *array);
ACL_FUNC_VISIBILITY aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size);

/* Lists. A list takes over its members: destroying the list destroys them too, so they must not be
 * destroyed on their own. NULL members are allowed. The array value itself stays the caller's.
 * Destroy accepts NULL and returns 0. The sizes: 0, or 161001 for any NULL. */
ACL_FUNC_VISIBILITY aclTensorList *aclCreateTensorList(const aclTensor *const *value,
                                                       uint64_t size);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensorList(const aclTensorList *array);
ACL_FUNC_VISIBILITY aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList,
                                                     uint64_t *size);

ACL_FUNC_VISIBILITY aclScalarList *aclCreateScalarList(const aclScalar *const *value,
                                                       uint64_t size);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyScalarList(const aclScalarList *array);
ACL_FUNC_VISIBILITY aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList,
                                                     uint64_t *size);

/* Executors.
 *
 * aclSetAclOpExecutorRepeatable, called right after the first call of an operator, makes the
 * second one repeatable: the executor survives it and is the caller's to destroy. Between the runs
 * the addresses may change, see below; the tensors must then stay alive until the last run.
 * 0, or 561103 for NULL, 561000 for anything that is no executor of this library. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor);

/* Releases an executor that is repeatable or was never run. Work already queued goes on.
 * 0, 561103 for NULL, 561000 for anything that is no living executor. */
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);

/* A new address for a tensor of a repeatable executor, used from the next run on. tensor is the
 * object given to the operator's first call and names the argument; index (among the inputs, the
 * outputs, or both) is ignored. addr may be NULL only for an empty tensor.
 * 0, or 561103 for a NULL executor or tensor. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, size_t index,
                                                      aclTensor *tensor, void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, size_t index,
                                                       aclTensor *tensor, void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, size_t index,
                                                 aclTensor *tensor, void *addr);

/* The same for member relativeIndex of a list; irIndex is ignored.
 * 0, 561103 for a NULL executor or list, 161002 for a relativeIndex beyond the list. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor,
                                                             size_t irIndex, size_t relativeIndex,
                                                             aclTensorList *tensors, void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor *executor,
                                                              size_t irIndex, size_t relativeIndex,
                                                              aclTensorList *tensors, void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                                        size_t relativeIndex,
                                                        aclTensorList *tensors, void *addr);

/* Dumps tensors of an operator for debugging. poolgrad has no dump service: the arguments are
 * checked and nothing is written. 0, or 161001 for a NULL name, or NULL tensors with a count. */
ACL_FUNC_VISIBILITY aclnnStatus aclDumpOpTensors(const char *opType, const char *opName,
                                                 aclTensor **tensors, size_t inputTensorNum,
                                                 size_t outputTensorNum, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
