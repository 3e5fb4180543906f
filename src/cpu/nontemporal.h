/* SPDX-License-Identifier: Apache-2.0 */
/* Whether results are written with non-temporal stores, past the caches: only if they are so large
 * that no cache would keep them. */
#ifndef PG_NONTEMPORAL_H_
#define PG_NONTEMPORAL_H_

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_base.h"

/* Reads POOLGRAD_STREAM_BYTES, the least size of such results; fails if it is not a positive
 * number. Where it is not set, the size is half of the last-level cache, and 16 MiB at most. */
aclError pg_nontemporal_configure(const char *api);

/* Is a gradInput of so many bytes written with non-temporal stores? */
bool pg_prefers_nontemporal(int64_t bytes);

#endif
