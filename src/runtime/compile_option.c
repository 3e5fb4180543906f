/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the operator compiler: kept for those who ask for them, as nothing is compiled.
 *
 * All but the mode in which operators are compiled, which is refused.  A program sets it when an
 * operator is about to be compiled, and PyTorch's adapter does so in the thread that called the
 * operator, where the refusal becomes an exception.  It would meet that of aclopCompileAndExecute
 * in a thread of its own, after which it skips all later operators without a word. */
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
  PG_CHECK(opt != ACL_OP_JIT_COMPILE, ACL_ERROR_API_NOT_SUPPORT,
           "the mode in which operators are compiled cannot be set: nothing is compiled here, only "
           "the aclnn operators of aclnnop/ exist, and the one that is called here has none; "
           "compute it on the host, or with operators that do exist");
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
