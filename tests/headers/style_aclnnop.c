/* SPDX-License-Identifier: Apache-2.0 */

/* Headers of aclnnop/ by bare name, through -I include -I include/aclnnop. */

#include "level2/aclnn_util.h"
#include "aclnn_util.h"
#include "aclnn_ops_nn.h"
#include "acl/acl.h"

ACLNN_API aclnnStatus header_probe(aclOpExecutor *executor);

aclnnStatus header_probe(aclOpExecutor *executor) { return aclDestroyAclOpExecutor(executor); }
