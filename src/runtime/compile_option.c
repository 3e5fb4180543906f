/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the operator compiler: kept for those who ask for them, as nothing is compiled. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl_op_compiler.h"
#include "core/fork.h"
#include "core/status.h"

enum { OPTION_COUNT = ACL_OP_DEBUG_OPTION + 1 };

/* Guards the values. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *values[OPTION_COUNT]; /* NULL: "" */

PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

static aclError check_option(const char *api, aclCompileOpt opt) {
  if ((int)opt >= 0 && (int)opt < OPTION_COUNT) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_INVALID_PARAM, "opt is %d, allowed is 0 to %d", (int)opt,
                 OPTION_COUNT - 1);
}

/* Lock held. */
static const char *value_of(aclCompileOpt opt) { return values[opt] == NULL ? "" : values[opt]; }

aclError aclSetCompileopt(aclCompileOpt opt, const char *value) {
  PG_TRY(check_option(__func__, opt));
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  char *copy = strdup(value);
  PG_CHECK(copy != NULL, ACL_ERROR_BAD_ALLOC, "no memory for the value of option %d", (int)opt);
  pthread_mutex_lock(&lock);
  char *before = values[opt];
  values[opt] = copy;
  pthread_mutex_unlock(&lock);
  free(before);
  return ACL_SUCCESS;
}

size_t aclGetCompileoptSize(aclCompileOpt opt) {
  if (check_option(__func__, opt) != ACL_SUCCESS) return 0;
  pthread_mutex_lock(&lock);
  const size_t bytes = strlen(value_of(opt)) + 1;
  pthread_mutex_unlock(&lock);
  return bytes;
}

aclError aclGetCompileopt(aclCompileOpt opt, char *value, size_t length) {
  PG_TRY(check_option(__func__, opt));
  PG_CHECK_PTR(value, ACL_ERROR_INVALID_PARAM);
  pthread_mutex_lock(&lock);
  const size_t bytes = strlen(value_of(opt)) + 1;
  if (bytes <= length) memcpy(value, value_of(opt), bytes);
  pthread_mutex_unlock(&lock);
  PG_CHECK(bytes <= length, ACL_ERROR_INVALID_PARAM, "length is %zu, the value has %zu bytes",
           length, bytes);
  return ACL_SUCCESS;
}
