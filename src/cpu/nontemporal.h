/* SPDX-License-Identifier: Apache-2.0 */
/* When results are written with non-temporal stores, past the caches: when no cache would keep them
 * anyway. */
#ifndef PG_NONTEMPORAL_H_
#define PG_NONTEMPORAL_H_

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_base.h"

/* Reads POOLGRAD_STREAM_BYTES, from where on that is; a sentence for what is not a positive number.
 * If it is not set: half of the last-level cache, 16 MiB at most. */
aclError pg_nontemporal_configure(const char *api);

/* For a gradInput of so many bytes. */
bool pg_prefers_nontemporal(int64_t bytes);

#endif
