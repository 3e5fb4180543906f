/* SPDX-License-Identifier: Apache-2.0 */
#include "core/environment.h"
#include "core/index_policy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"

static atomic_int policy = PG_INDEX_WARN;
static atomic_bool configured;
static pthread_once_t once = PTHREAD_ONCE_INIT;

aclError pg_index_policy_configure(const char *api) {
  static const char *const words[] = {"warn", "error", "off"};
  const char *text = pg_getenv("POOLGRAD_INDEX_CHECK");
  if (text == NULL || text[0] == '\0') text = "warn";
  for (int i = 0; i < 3; i++)
    if (strcmp(text, words[i]) == 0) {
      atomic_store(&policy, i);
      atomic_store(&configured, true);
      return ACL_SUCCESS;
    }
  return PG_REFUSE_VARIABLE(api, "POOLGRAD_INDEX_CHECK", text);
}

/* For programs that never call aclInit; a wrong word keeps the warning. */
static void configure_once(void) {
  if (!atomic_load(&configured)) (void)pg_index_policy_configure("POOLGRAD_INDEX_CHECK");
}

enum pg_index_policy pg_index_policy(void) {
  (void)pthread_once(&once, configure_once);
  return (enum pg_index_policy)atomic_load(&policy);
}
