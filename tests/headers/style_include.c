/* SPDX-License-Identifier: Apache-2.0 */

/* Every header through -I include, in C11 and C++11: constants where clients use them, struct
 * layouts, and the log macro without a trailing argument. */

#include "acl/acl.h"
#include "acl/acl_base.h"
#include "acl/acl_base_mdl.h"
#include "acl/acl_base_rt.h"
#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_rt.h"
#include "acl/acl_rt_allocator.h"
#include "acl/error_codes/ge_error_codes.h"
#include "acl/error_codes/rt_error_codes.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_ops_nn.h"
#include "aclnnop/aclnn_util.h"
#include "aclnnop/level2/aclnn_util.h"
#include "hccl/hccl.h"
#include "hccl/hccl_types.h"
#include "poolgrad.h"

#ifndef __cplusplus
#define static_assert _Static_assert
#endif

static_assert(ACLNN_SUCCESS == 0, "success");
static_assert(ACLNN_ERR_INNER_KEY_CONFILICT == ACLNN_ERR_INNER_KEY_CONFLICT, "old spelling");
static_assert(ACL_FORMAT_NCDHW == 30 && ACL_BF16 == 27, "values");
static_assert(sizeof(aclrtMallocAttribute) == 12, "the value aligns to 4");
static_assert(sizeof(aclrtErrorInfo) == 2576, "error info");
static_assert(offsetof(aclrtErrorInfo, detail) == 8, "error info");
static_assert(offsetof(aclrtStreamConfigHandle, priority) == 24, "stream config");
static_assert(ACL_HOST_REG_PINNED == 0x10000000UL, "flags");

ACLNN_API aclnnStatus header_probe(void);

aclnnStatus header_probe(void) {
  aclrtStream stream = NULL;
  void *memory = NULL;
  aclError status = aclInit(NULL);
  if (status != ACL_SUCCESS && status != ACL_ERROR_REPEAT_INITIALIZE) return status;
  if (aclrtCreateStream(&stream) != OK) return ACL_ERROR_INTERNAL_ERROR;
  if (aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_MEMORY_ALLOCATION) {
    ACL_APP_LOG(ACL_ERROR, "no memory");
    ACL_APP_LOG(ACL_ERROR, "%d bytes", 64);
  }
  if (aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1) != ACL_ERROR_NONE) return (aclnnStatus)1;
  if (ACL_ERROR_GE_PARAM_INVALID != 145000U) return poolgrad_set_threads(0);
  return aclFinalize();
}
