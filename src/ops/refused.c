/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that exist only to be refused.  torch_npu looks whether their names are there before it
 * decides how to compute something, and then calls another operator: x[mask] = 2 is
 * aclnnInplaceMaskedFillScalar, but only where aclnnIndexPutImpl is found.  No header declares
 * them. */
#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"
#include "core/status.h"

/* Nobody reads the arguments, which callers pass all the same: the C calling conventions of all our
 * targets leave those to the caller. */
#define REFUSED(name, why)                                                  \
  ACL_FUNC_VISIBILITY aclnnStatus name(void);                               \
  ACL_FUNC_VISIBILITY aclnnStatus name##GetWorkspaceSize(void);             \
  aclnnStatus name(void) {                                                  \
    return pg_fail(__func__, ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "%s", why); \
  }                                                                         \
  aclnnStatus name##GetWorkspaceSize(void) {                                \
    return pg_fail(__func__, ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "%s", why); \
  }

REFUSED(aclnnIndexPutImpl,
        "elements cannot be written by their indices here; a mask and one number can be given to "
        "aclnnInplaceMaskedFillScalar")
