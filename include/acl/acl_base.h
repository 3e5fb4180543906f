/* SPDX-License-Identifier: Apache-2.0 */

/* Umbrella of the basic types and of every error code. What a code means in a given call, the
 * sentence of aclGetRecentErrMsg() says (acl_rt.h), which ASCEND_LOG_PRINT_TO_STDOUT=1 prints. */

#ifndef PG_ACL_BASE_H_
#define PG_ACL_BASE_H_

#include "acl_base_rt.h"
#include "acl_base_mdl.h"
#include "error_codes/rt_error_codes.h"
#include "error_codes/ge_error_codes.h"

#endif
