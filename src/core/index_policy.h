/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of indices that point outside their plane: POOLGRAD_INDEX_CHECK. */
#ifndef PG_INDEX_POLICY_H_
#define PG_INDEX_POLICY_H_

#include "acl/acl_base.h"

enum pg_index_policy {
  PG_INDEX_WARN,  /* one line on stderr for a call with such indices; the default */
  PG_INDEX_ERROR, /* the stream fails */
  PG_INDEX_OFF    /* silence */
};

/* Reads the variable again.  ACL_ERROR_INVALID_PARAM with a sentence for an unknown word. */
aclError pg_index_policy_configure(const char *api);

enum pg_index_policy pg_index_policy(void);

#endif
