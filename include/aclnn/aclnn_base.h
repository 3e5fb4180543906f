/* SPDX-License-Identifier: Apache-2.0 */

/* Start and end of the operator interface. Both calls are optional: a program that calls aclInit
 * and aclFinalize needs neither. A call that fails leaves a sentence for aclGetRecentErrMsg()
 * (acl/acl_rt.h); ASCEND_LOG_PRINT_TO_STDOUT=1 in the environment prints it. */

#ifndef PG_ACLNN_BASE_H_
#define PG_ACLNN_BASE_H_

#include <stdint.h>
#include <stdlib.h>

#include "acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prepares the operators. configPath may be NULL; a file it names is not needed and its content
 * is ignored. May be called more than once, before or after aclInit.
 * 0, or 100000 ACL_ERROR_INVALID_PARAM when a POOLGRAD_ variable has a value it may not have. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char *configPath);

/* Counterpart of aclnnInit; releases nothing that is still in use. Returns 0. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif
