/* SPDX-License-Identifier: Apache-2.0 */

/* Headers of aclnn/ by bare name, through -I include -I include/aclnn. */

#include "aclnn_base.h"
#include "acl_meta.h"
#include "opdev/op_errno.h"

aclnnStatus header_probe(const aclTensor *tensor);

aclnnStatus header_probe(const aclTensor *tensor) {
  if (aclnnInit(NULL) != ACLNN_SUCCESS) return ACLNN_ERR_RUNTIME_ERROR;
  return aclDestroyTensor(tensor);
}
