/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fork.h"

#include <stdatomic.h>

#include "core/status.h"

static atomic_bool lost; /* for the rest of this process: only an exec brings threads back */

void pg_fork_lost(void) { atomic_store(&lost, true); }

bool pg_fork_has_lost(void) { return atomic_load_explicit(&lost, memory_order_relaxed); }

/* Not 207000, which would fit: PyTorch's adapter goes on after that code, and computes with memory
 * that was never written. */
aclError pg_fork_check(const char *api) {
  if (!pg_fork_has_lost()) return ACL_SUCCESS;
  return pg_fail(api, ACL_ERROR_RT_CONTEXT_NULL,
                 "this process was forked from one whose devices were in use, and threads do not "
                 "survive a fork; call exec, or fork before the first aclrtSetDevice");
}
