/* SPDX-License-Identifier: Apache-2.0 */

/* Tensor descriptions: type, shape and format of a tensor, without its memory. The model and
 * single-operator interfaces of CANN take them (acl_op.h); programs also keep them beside their own
 * memory. The operators of aclnnop/ take aclTensor instead.
 *
 * A description is a handle like all others: NULL, destroyed and foreign ones are refused. One
 * description is not to be changed by one thread while another thread uses it. What a call returns
 * when it fails is said below; the sentence of the failure is in aclGetRecentErrMsg() (acl_rt.h),
 * and ASCEND_LOG_PRINT_TO_STDOUT=1 prints it.
 *
 * Every function here may be called from any thread, before aclInit and after aclFinalize. */

#ifndef PG_ACL_BASE_MDL_H_
#define PG_ACL_BASE_MDL_H_

#include <stddef.h>
#include <stdint.h>

#include "acl_base_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a number of dimensions: not known. Such a description has one size, -2. */
#define ACL_UNKNOWN_RANK 0xFFFFFFFFFFFFFFFE

typedef struct aclTensorDesc aclTensorDesc;

/* A description with numDims sizes, which are copied: 0 to 25 of them; 0 is a scalar. A size may be
 * -1, which means not known yet, and a single -2 is a shape of which not even the number of
 * dimensions is known. NULL for anything else, for dims of NULL when numDims is not 0, and when
 * memory is short. dataType and format are kept as they are. */
ACL_FUNC_VISIBILITY aclTensorDesc *aclCreateTensorDesc(aclDataType dataType, int numDims,
                                                       const int64_t *dims, aclFormat format);
ACL_FUNC_VISIBILITY void aclDestroyTensorDesc(const aclTensorDesc *desc);

/* What the description says. Without a live one: ACL_DT_UNDEFINED, ACL_FORMAT_UNDEFINED, 0, NULL.
 *
 * NumDims is ACL_UNKNOWN_RANK for the shape -2. ElementCount is the product of the sizes, and Size
 * that times the bytes of an element; both are 0 while a size is not known, and if 64 bits cannot
 * hold them. The name is "" until it is set, and lives as long as the description, or until the
 * name is set again. */
ACL_FUNC_VISIBILITY aclDataType aclGetTensorDescType(const aclTensorDesc *desc);
ACL_FUNC_VISIBILITY aclFormat aclGetTensorDescFormat(const aclTensorDesc *desc);
ACL_FUNC_VISIBILITY size_t aclGetTensorDescNumDims(const aclTensorDesc *desc);
ACL_FUNC_VISIBILITY size_t aclGetTensorDescElementCount(const aclTensorDesc *desc);
ACL_FUNC_VISIBILITY size_t aclGetTensorDescSize(const aclTensorDesc *desc);
ACL_FUNC_VISIBILITY const char *aclGetTensorDescName(aclTensorDesc *desc);

/* The size with this index. V2: 0, or 100000 INVALID_PARAM for a wrong handle, an index that is not
 * below the number of dimensions, or NULL; the other function gives -1 then. */
ACL_DEPRECATED_MESSAGE("use aclGetTensorDescDimV2")
ACL_FUNC_VISIBILITY int64_t aclGetTensorDescDim(const aclTensorDesc *desc, size_t index);
ACL_FUNC_VISIBILITY aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index,
                                                   int64_t *dimSize);

/* The name; NULL means "". Copied. */
ACL_FUNC_VISIBILITY void aclSetTensorDescName(aclTensorDesc *desc, const char *name);

/* The format and shape in which the tensor is stored, and the memory it lies in, for an execution
 * with this description. They are kept beside the format and the shape that it was made with, which
 * the getters above go on answering.
 * 0, 100000 INVALID_PARAM for a wrong handle, a shape that aclCreateTensorDesc would refuse, or a
 * memType that is none. */
ACL_FUNC_VISIBILITY aclError aclSetTensorFormat(aclTensorDesc *desc, aclFormat format);
ACL_FUNC_VISIBILITY aclError aclSetTensorShape(aclTensorDesc *desc, int numDims,
                                               const int64_t *dims);
ACL_FUNC_VISIBILITY aclError aclSetTensorPlaceMent(aclTensorDesc *desc, aclMemType memType);

#ifdef __cplusplus
}
#endif

#endif
