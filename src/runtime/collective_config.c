/* SPDX-License-Identifier: Apache-2.0 */
/* How collective communication is set up.  There is none (unsupported.c), but PyTorch's adapter
 * says before its first operator whether results are to be deterministic, those of collectives too,
 * and warns on stderr where nobody listens.  Everything here is deterministic in both modes. */
#include "core/status.h"
#include "hccl/hccl.h"

enum { HCCL_DETERMINISTIC = 0 };

union config_value {
  int32_t value;
};

/* No header declares it. */
ACL_FUNC_VISIBILITY HcclResult HcclSetConfig(int config, union config_value configValue);

HcclResult HcclSetConfig(int config, union config_value configValue) {
  if (config == HCCL_DETERMINISTIC && configValue.value >= 0) return HCCL_SUCCESS;
  return (HcclResult)pg_fail_titled(
      ACL_ERROR_API_NOT_SUPPORT, __func__, HCCL_E_NOT_SUPPORT,
      "config is %d with the value %d; only HCCL_DETERMINISTIC (0) exists here, with values from 0",
      config, (int)configValue.value);
}
