/* SPDX-License-Identifier: Apache-2.0 */

/* Model interface (aclmdl*). poolgrad runs operators, not models; of this interface there are the
 * calls with which a program asks for dumps of its tensors, and they are refused. */

#ifndef PG_ACL_MDL_H_
#define PG_ACL_MDL_H_

#include "acl_base.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Always refused: 200001 API_NOT_SUPPORT. What a tensor holds can be read with aclrtMemcpy, and
 * aclDumpOpTensors (aclnn/aclnn_base.h) describes tensors in the log.
 * aclGetRecentErrMsg() (acl_rt.h) has the sentence, and ASCEND_LOG_PRINT_TO_STDOUT=1 prints it. */
ACL_FUNC_VISIBILITY aclError aclmdlInitDump(void);
ACL_FUNC_VISIBILITY aclError aclmdlSetDump(const char *dumpCfgPath);
ACL_FUNC_VISIBILITY aclError aclmdlFinalizeDump(void);

#ifdef __cplusplus
}
#endif

#endif
