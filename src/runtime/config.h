/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PG_CONFIG_H_
#define PG_CONFIG_H_

#include <stdint.h>

#include "core/status.h"

/* Reads aclInit's JSON file: it must be well formed; none of its keys has a meaning here.  The
 * hash tells one content from another; NULL and "" are the empty configuration. */
aclError pg_config_read(const char *api, const char *path, uint64_t *hash);

#endif
