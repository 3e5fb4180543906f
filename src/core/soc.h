/* SPDX-License-Identifier: Apache-2.0 */
/* Product profiles: what POOLGRAD_SOC chooses.  One row per product; checks ask the row, never
 * the name. */
#ifndef PG_SOC_H_
#define PG_SOC_H_

#include "acl/acl_base.h"

struct pg_soc {
  const char *prefix; /* names that start so belong to the row; NULL: the portable profile */
  int npu_arch;       /* ACL_DEV_ATTR_NPU_ARCH */
};

/* Reads POOLGRAD_SOC again.  ACL_ERROR_INVALID_PARAM with a sentence for an unknown name. */
aclError pg_soc_configure(const char *api);

/* The row in force; the portable one until configured. */
const struct pg_soc *pg_soc(void);

/* The row a product name belongs to, or NULL. */
const struct pg_soc *pg_soc_find(const char *name);

#endif
