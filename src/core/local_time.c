/* SPDX-License-Identifier: Apache-2.0 */
#include "core/local_time.h"

#include "core/fork.h"
#include "core/thread.h"

/* Held around every localtime_r of the library, and across forks: so no thread of the library is
 * inside it, holding glibc's own lock, at the moment of a fork. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNERMOST);

void pg_local_time(time_t seconds, struct tm *local) {
  /* localtime_r may read a file, where a thread can be cancelled, and would keep the lock. */
  const int cancel = pg_cancel_off();
  (void)pthread_mutex_lock(&lock);
  (void)localtime_r(&seconds, local);
  (void)pthread_mutex_unlock(&lock);
  pg_cancel_restore(cancel);
}
