/* SPDX-License-Identifier: Apache-2.0 */
/* When results go past the caches: when no cache would keep them anyway. */
#ifndef PG_STREAM_H_
#define PG_STREAM_H_

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_base.h"

/* Reads POOLGRAD_STREAM_BYTES, from where on that is; a sentence for what is not a positive number.
 * If it is not set: half of the last-level cache, 16 MiB at most. */
aclError pg_stream_configure(const char *api);

/* For a gradInput of so many bytes. */
bool pg_prefers_stream(int64_t bytes);

#endif
