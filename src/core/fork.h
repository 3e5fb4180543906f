/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of the library in the child of a fork.
 *
 * The child has its parent's memory but none of the library's threads, and a lock that another
 * thread held stays locked in it for ever.  So the locks that guard the library's tables are held
 * across every fork, which makes the tables whole in the child: tensors, arrays, executors, memory
 * and the log go on working there.  What lives by threads (contexts, streams, events) cannot, and
 * if any of it was alive at the fork, every call that would need it is refused with a sentence. */
#ifndef PG_FORK_H_
#define PG_FORK_H_

#include <pthread.h>
#include <stdbool.h>

#include "acl/acl_base.h"

/* 207000 with a sentence in a child that has lost threads, else 0. */
aclError pg_fork_check(const char *api);

/* The same as a question. */
bool pg_fork_has_lost(void);

/* For child handlers: something alive was lost. */
void pg_fork_lost(void);

/* Holds a static lock across forks.  Locks are registered at load, by functions that run in the
 * order of these priorities, and a fork takes them in the reverse order: OUTER locks, which are
 * held while others are taken, are registered later and so taken first; INNERMOST ones, which are
 * taken while INNER ones are held, come last. */
enum { PG_FORK_INNERMOST = 200, PG_FORK_INNER, PG_FORK_OUTER }; /* priorities of constructors */

#define PG_HOLD_ACROSS_FORK(mutex, level)                                  \
  static void fork_lock(void) { (void)pthread_mutex_lock(&(mutex)); }      \
  static void fork_unlock(void) { (void)pthread_mutex_unlock(&(mutex)); }  \
  __attribute__((constructor(level))) static void hold_across_fork(void) { \
    (void)pthread_atfork(fork_lock, fork_unlock, fork_unlock);             \
  }                                                                        \
  _Static_assert(1, "takes the semicolon")

#endif
