/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that CANN compiles when they are called by their type.  There are none here: the
 * attributes that a program collects for such a call are checked and counted, and the call is
 * refused with the operator's type. */
#include <stdlib.h>

#include "acl/acl_op_compiler.h"
#include "core/handle.h"
#include "core/status.h"

struct attributes {
  struct pg_object object;
  atomic_int count; /* of calls that set one */
};

static void destroy(struct pg_object *self) { free(self); }

aclopAttr *aclopCreateAttr(void) {
  struct attributes *made = calloc(1, sizeof *made);
  if (made != NULL) {
    atomic_init(&made->object.refs, 1);
    made->object.destroy = destroy;
    atomic_init(&made->count, 0);
    aclopAttr *handle = pg_handle_open(PG_OPERATOR_ATTRIBUTE, &made->object);
    if (handle != NULL) return handle;
    pg_release(&made->object);
  }
  pg_fail_with(__func__, ACL_ERROR_BAD_ALLOC, "no memory for attributes of an operator");
  return NULL;
}

void aclopDestroyAttr(const aclopAttr *attr) {
  struct pg_object *object = pg_handle_close(attr, PG_OPERATOR_ATTRIBUTE);
  if (object == NULL && attr != NULL)
    pg_fail_with(__func__, ACL_ERROR_INVALID_PARAM, "attr is %s, live attributes are required",
                 pg_handle_what(attr));
  pg_release(object);
}

static aclError count_one(const char *api, aclopAttr *attr, const char *name) {
  if (attr == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "attr");
  if (name == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "attrName");
  struct attributes *found = pg_acquire(attr, PG_OPERATOR_ATTRIBUTE);
  PG_CHECK_AS(api, found != NULL, ACL_ERROR_INVALID_PARAM,
              "attr is %s, live attributes are required", pg_handle_what(attr));
  atomic_fetch_add(&found->count, 1);
  pg_release(&found->object);
  return ACL_SUCCESS;
}

static aclError count_list(const char *api, aclopAttr *attr, const char *name, int count,
                           const void *values) {
  PG_CHECK_AS(api, count >= 0, ACL_ERROR_INVALID_PARAM, "numValues is %d, at least 0 is required",
              count);
  if (count > 0 && values == NULL) return pg_fail_null(api, ACL_ERROR_INVALID_PARAM, "values");
  return count_one(api, attr, name);
}

aclError aclopSetAttrBool(aclopAttr *attr, const char *attrName, uint8_t attrValue) {
  (void)attrValue;
  return count_one(__func__, attr, attrName);
}

aclError aclopSetAttrInt(aclopAttr *attr, const char *attrName, int64_t attrValue) {
  (void)attrValue;
  return count_one(__func__, attr, attrName);
}

aclError aclopSetAttrFloat(aclopAttr *attr, const char *attrName, float attrValue) {
  (void)attrValue;
  return count_one(__func__, attr, attrName);
}

aclError aclopSetAttrString(aclopAttr *attr, const char *attrName, const char *attrValue) {
  PG_CHECK_PTR(attrValue, ACL_ERROR_INVALID_PARAM);
  return count_one(__func__, attr, attrName);
}

aclError aclopSetAttrDataType(aclopAttr *attr, const char *attrName, aclDataType attrValue) {
  (void)attrValue;
  return count_one(__func__, attr, attrName);
}

aclError aclopSetAttrListBool(aclopAttr *attr, const char *attrName, int numValues,
                              const uint8_t *values) {
  return count_list(__func__, attr, attrName, numValues, values);
}

aclError aclopSetAttrListInt(aclopAttr *attr, const char *attrName, int numValues,
                             const int64_t *values) {
  return count_list(__func__, attr, attrName, numValues, values);
}

aclError aclopSetAttrListFloat(aclopAttr *attr, const char *attrName, int numValues,
                               const float *values) {
  return count_list(__func__, attr, attrName, numValues, values);
}

aclError aclopSetAttrListListInt(aclopAttr *attr, const char *attrName, int numLists,
                                 const int *numValues, const int64_t *const values[]) {
  PG_CHECK(numLists >= 0, ACL_ERROR_INVALID_PARAM, "numLists is %d, at least 0 is required",
           numLists);
  if (numLists > 0) PG_CHECK_PTR(numValues, ACL_ERROR_INVALID_PARAM);
  if (numLists > 0) PG_CHECK_PTR(values, ACL_ERROR_INVALID_PARAM);
  for (int i = 0; i < numLists; i++) {
    PG_CHECK(numValues[i] >= 0, ACL_ERROR_INVALID_PARAM,
             "numValues[%d] is %d, at least 0 is required", i, numValues[i]);
    PG_CHECK(numValues[i] == 0 || values[i] != NULL, ACL_ERROR_INVALID_PARAM,
             "values[%d] is NULL, numValues[%d] is %d", i, i, numValues[i]);
  }
  return count_one(__func__, attr, attrName);
}

static int count_of(const aclopAttr *attr) {
  struct attributes *found = pg_acquire(attr, PG_OPERATOR_ATTRIBUTE);
  if (found == NULL) return 0;
  const int count = atomic_load(&found->count);
  pg_release(&found->object);
  return count;
}

aclError aclopCompileAndExecute(const char *opType, int numInputs,
                                const aclTensorDesc *const inputDesc[],
                                const aclDataBuffer *const inputs[], int numOutputs,
                                const aclTensorDesc *const outputDesc[],
                                aclDataBuffer *const outputs[], const aclopAttr *attr,
                                aclopEngineType engineType, aclopCompileType compileFlag,
                                const char *opPath, aclrtStream stream) {
  (void)inputDesc, (void)inputs, (void)outputDesc, (void)outputs;
  (void)engineType, (void)compileFlag, (void)opPath, (void)stream;
  PG_CHECK_PTR(opType, ACL_ERROR_INVALID_PARAM);
  return pg_fail(
      __func__, ACL_ERROR_API_NOT_SUPPORT,
      "the operator %.100s (inputs: %d, outputs: %d, attributes: %d) is not implemented: "
      "nothing is compiled here, only the aclnn operators of aclnnop/ exist; compute "
      "it on the host, or with operators that do exist",
      opType, numInputs, numOutputs, count_of(attr));
}
