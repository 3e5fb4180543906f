/* SPDX-License-Identifier: Apache-2.0 */
/* aclnn's own beginning and end, and the names clients look for when they load the library. */
#include "aclnn/aclnn_base.h"

#include "core/log.h"
#include "core/status.h"
#include "runtime/device.h"

aclnnStatus aclnnInit(const char *configPath) {
  PG_TRY(pg_configure(__func__));
  if (configPath != NULL) pg_log(ACL_INFO, "aclnnInit: '%s' is not read", configPath);
  return ACL_SUCCESS;
}

aclnnStatus aclnnFinalize(void) { return ACL_SUCCESS; }

/* torch_npu brackets calls with these to reuse big host blocks; there is nothing to reuse here. */
ACL_FUNC_VISIBILITY int InitHugeMemThreadLocal(void *arg, bool sync);
ACL_FUNC_VISIBILITY void UnInitHugeMemThreadLocal(void *arg, bool sync);
ACL_FUNC_VISIBILITY void ReleaseHugeMem(void *arg, bool sync);

int InitHugeMemThreadLocal(void *arg, bool sync) {
  (void)arg;
  (void)sync;
  return 0;
}

void UnInitHugeMemThreadLocal(void *arg, bool sync) {
  (void)arg;
  (void)sync;
}

void ReleaseHugeMem(void *arg, bool sync) {
  (void)arg;
  (void)sync;
}
