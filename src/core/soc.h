/* SPDX-License-Identifier: Apache-2.0 */
/* Product profiles: what POOLGRAD_SOC chooses.  One row per product; checks ask the row, never
 * the name. */
#ifndef PG_SOC_H_
#define PG_SOC_H_

#include <stdbool.h>

#include "acl/acl_base.h"

struct pg_soc {
  const char *prefix;       /* names that start so belong to the row; NULL: the portable profile */
  const char *older_prefix; /* likewise; optional */
  int npu_arch;             /* ACL_DEV_ATTR_NPU_ARCH */
  /* MaxPool2dWithIndicesBackward: half types, INT64 indices, dilation above 1, NHWC */
  bool max_half, max_int64, max_dilation, max_nhwc;
  bool adaptive_max3d_int64; /* AdaptiveMaxPool3dBackward: INT64 indices */
  bool large_planes;         /* adaptive max: more than 2^31 - 1 cells with INT64 indices */
  bool empty_batch;          /* AdaptiveAvgPool3dBackward: first axis may be 0 */
};

/* Reads POOLGRAD_SOC again.  ACL_ERROR_INVALID_PARAM with a sentence for an unknown name. */
aclError pg_soc_configure(const char *api);

/* The row in force; the portable one until configured. */
const struct pg_soc *pg_soc(void);

/* The row a product name belongs to, or NULL. */
const struct pg_soc *pg_soc_find(const char *name);

#endif
