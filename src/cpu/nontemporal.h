/* SPDX-License-Identifier: Apache-2.0 */
/* Whether results are written with non-temporal stores, past the caches: only if they are
 * large. */
#ifndef PG_NONTEMPORAL_H_
#define PG_NONTEMPORAL_H_

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_base.h"

/* Reads POOLGRAD_STREAM_BYTES, the least size of such results; fails if it is not a positive
 * number. Where it is not set, the size is an eighth of the last-level cache, and 4 MiB at most. */
aclError pg_nontemporal_configure(const char *api);

/* Is a gradInput of so many bytes written with non-temporal stores? */
bool pg_prefers_nontemporal(int64_t bytes);

#endif
