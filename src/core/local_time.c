/* SPDX-License-Identifier: Apache-2.0 */
#include "core/local_time.h"

#include "core/fork.h"
#include "core/thread.h"

/* Held while a thread of the library is inside localtime_r. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNERMOST);

void pg_local_time(time_t seconds, struct tm *local) {
  const int cancel =
      pg_cancel_off(); /* it may read a file: a cancelled thread would keep the lock */
  (void)pthread_mutex_lock(&lock);
  (void)localtime_r(&seconds, local);
  (void)pthread_mutex_unlock(&lock);
  pg_cancel_restore(cancel);
}
