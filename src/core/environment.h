/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables.  A program whose privileges changed when it was started (set-user-id,
 * set-group-id, capabilities) must not obey the environment of who started it: it finds none. */
#ifndef PG_ENVIRONMENT_H_
#define PG_ENVIRONMENT_H_

#include <stdlib.h>

static inline const char *pg_getenv(const char *name) { return secure_getenv(name); }

/* What a variable may be and what holds without it, in words for a sentence. */
struct pg_variable {
  const char *name, *values, *unset;
};

/* The row of a variable that the library reads; it must be in the table of environment.c. */
const struct pg_variable *pg_variable(const char *name);

/* Fails because of a variable's value.  A macro, so that the log names the place; it needs
 * core/status.h. */
#define PG_REFUSE_VARIABLE(api, name, value)                                                  \
  pg_fail(api, ACL_ERROR_INVALID_PARAM, "%s is '%s', allowed is %s (unset: %s)", name, value, \
          pg_variable(name)->values, pg_variable(name)->unset)

/* Says in the log, once in a process, which variables called POOLGRAD_... are set and have no
 * meaning: most are misspelt. */
void pg_variables_check(void);

#endif
