/* SPDX-License-Identifier: Apache-2.0 */

/* One header by two names in one file, with every folder on the path. */

#include "acl.h"
#include "acl/acl.h"
#include "acl_meta.h"
#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnn_ops_nn.h"
#include "aclnnop/aclnn_ops_nn.h"
#include "aclnnop/level2/aclnn_util.h"
#include "level2/aclnn_util.h"
#include "opdev/op_errno.h"

ACLNN_API aclnnStatus header_probe(void);

aclnnStatus header_probe(void) { return OK; }
