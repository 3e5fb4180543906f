/* SPDX-License-Identifier: Apache-2.0 */

/* Single-operator interface (aclop*): the attributes of an operator, for aclopCompileAndExecute
 * (acl_op_compiler.h). poolgrad offers its operators through aclnnop/ only, so an execution is
 * always refused, by name. The attributes are checked and counted, and their values are not kept.
 *
 * Codes: 0, or 100000 INVALID_PARAM for an attr that is not a live handle, NULL, and a negative
 * number of values. aclGetRecentErrMsg() (acl_rt.h) has the sentence, and
 * ASCEND_LOG_PRINT_TO_STDOUT=1 prints it. Every function here may be called from any thread, before
 * aclInit and after aclFinalize. */

#ifndef PG_ACL_OP_H_
#define PG_ACL_OP_H_

#include "acl_base.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclopAttr aclopAttr;

typedef enum aclEngineType {
  ACL_ENGINE_SYS = 0,
  ACL_ENGINE_AICORE = 1,
  ACL_ENGINE_VECTOR = 2
} aclopEngineType;

/* NULL when memory is short. */
ACL_FUNC_VISIBILITY aclopAttr *aclopCreateAttr(void);
ACL_FUNC_VISIBILITY void aclopDestroyAttr(const aclopAttr *attr);

/* One value, or numValues of them; values may be NULL if there are none. */
ACL_FUNC_VISIBILITY aclError aclopSetAttrBool(aclopAttr *attr, const char *attrName,
                                              uint8_t attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrInt(aclopAttr *attr, const char *attrName,
                                             int64_t attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrFloat(aclopAttr *attr, const char *attrName,
                                               float attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrString(aclopAttr *attr, const char *attrName,
                                                const char *attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrDataType(aclopAttr *attr, const char *attrName,
                                                  aclDataType attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListBool(aclopAttr *attr, const char *attrName,
                                                  int numValues, const uint8_t *values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListInt(aclopAttr *attr, const char *attrName,
                                                 int numValues, const int64_t *values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListFloat(aclopAttr *attr, const char *attrName,
                                                   int numValues, const float *values);

/* numLists lists, of which list i has numValues[i] values. */
ACL_FUNC_VISIBILITY aclError aclopSetAttrListListInt(aclopAttr *attr, const char *attrName,
                                                     int numLists, const int *numValues,
                                                     const int64_t *const values[]);

#ifdef __cplusplus
}
#endif

#endif
