/* SPDX-License-Identifier: Apache-2.0 */

/* Start and end of the operator interface. Both calls are optional: a program that calls aclInit
 * and aclFinalize needs neither. */

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
 * 0, or 100000 ACL_ERROR_INVALID_PARAM when POOLGRAD_SOC holds an unknown name. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char *configPath);

/* Counterpart of aclnnInit; releases nothing that is still in use. Returns 0. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif
