/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables.  A program whose privileges changed when it was started (set-user-id,
 * set-group-id, capabilities) must not obey the environment of who started it: it finds none. */
#ifndef PG_ENVIRONMENT_H_
#define PG_ENVIRONMENT_H_

#include <stdlib.h>

static inline const char *pg_getenv(const char *name) { return secure_getenv(name); }

#endif
