/* SPDX-License-Identifier: Apache-2.0 */
/* What programs ask of Ascend's profiler while they load and run, without profiling anything.  What
 * they would report to it is refused in unsupported.c.  No header declares these functions. */
#include "acl/acl_base.h"
#include "core/clock.h"
#include "core/status.h"

typedef int32_t callback(uint32_t type, void *data, uint32_t length);

ACL_FUNC_VISIBILITY int32_t MsprofRegisterCallback(uint32_t moduleId, callback *handle);
ACL_FUNC_VISIBILITY uint64_t MsprofGetHashId(const char *hashInfo, size_t length);
ACL_FUNC_VISIBILITY uint64_t MsprofSysCycleTime(void);

/* Programs do this when they are loaded.  The callback would be told when profiling begins and
 * ends; here it never begins, so there is nothing to tell, and a sentence about it would stand in
 * the way of those about real failures. */
int32_t MsprofRegisterCallback(uint32_t moduleId, callback *handle) {
  (void)moduleId;
  if (handle == NULL) return pg_fail_null(__func__, ACL_ERROR_INVALID_PARAM, "handle");
  return ACL_SUCCESS;
}

/* A number for a text, the same in every process: 64-bit FNV-1a. */
uint64_t MsprofGetHashId(const char *hashInfo, size_t length) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  if (hashInfo == NULL) return 0;
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ (unsigned char)hashInfo[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* Cycles of a clock of 1 GHz that only runs forward. */
uint64_t MsprofSysCycleTime(void) { return (uint64_t)pg_now_ns(); }
