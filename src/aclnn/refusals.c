/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that well-known clients insist on finding when they load, and that are not ours.
 * The names exist; calling one is refused with a sentence.  No header declares them. */
#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"
#include "core/status.h"

static const char have[] = "poolgrad has the pooling operators that aclnnop/aclnn_ops_nn.h lists";

static aclnnStatus refuse(const char *name) {
  return pg_fail(name, ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "the operator is not implemented, %s",
                 have);
}

/* The callers pass arguments that nobody reads: the C calling conventions of all our targets
 * leave those to the caller. */
#define PG_REFUSE(name)                                         \
  ACL_FUNC_VISIBILITY aclnnStatus name(void);                   \
  aclnnStatus name(void) { return refuse(#name); }              \
  ACL_FUNC_VISIBILITY aclnnStatus name##GetWorkspaceSize(void); \
  aclnnStatus name##GetWorkspaceSize(void) { return refuse(#name "GetWorkspaceSize"); }

PG_REFUSE(aclnnAdd)
PG_REFUSE(aclnnMul)
PG_REFUSE(aclnnReduceSum)
PG_REFUSE(aclnnRelu)
