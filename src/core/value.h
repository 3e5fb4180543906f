/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream's wait for a value waits for. */
#ifndef PG_VALUE_H_
#define PG_VALUE_H_

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_rt.h"

/* Does the found value satisfy the wanted one?  The comparison is an ACL_STREAM_WAIT_VALUE_*. */
static inline bool pg_value_satisfies(uint64_t found, uint64_t wanted, uint32_t comparison) {
  switch (comparison) {
    case ACL_STREAM_WAIT_VALUE_EQ:
      return found == wanted;
    case ACL_STREAM_WAIT_VALUE_AND:
      return (found & wanted) != 0;
    case ACL_STREAM_WAIT_VALUE_NOR:
      return ~(found | wanted) != 0;
    default: /* ACL_STREAM_WAIT_VALUE_GEQ: counters may wrap */
      return (int64_t)(found - wanted) >= 0;
  }
}

#endif
