/* SPDX-License-Identifier: Apache-2.0 */
/* When results go past the caches: when no cache would keep them anyway. */
#ifndef PG_STREAM_H_
#define PG_STREAM_H_

#include <stdbool.h>
#include <stdint.h>

/* For a gradInput of so many bytes.  POOLGRAD_STREAM_BYTES says from where on; half of the
 * last-level cache if it is not set, 16 MiB if that is not known. */
bool pg_prefers_stream(int64_t bytes);

#endif
