/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time in nanoseconds, and deadlines made of it. */
#ifndef PG_CLOCK_H_
#define PG_CLOCK_H_

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "core/thread.h"

#define PG_NS_PER_MS INT64_C(1000000)
#define PG_NS_PER_S INT64_C(1000000000)
#define PG_FOREVER INT64_C(-1) /* a time-out that never comes */

static inline int64_t pg_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * PG_NS_PER_S + t.tv_nsec;
}

static inline struct timespec pg_timespec(int64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / PG_NS_PER_S),
                           .tv_nsec = (long)(ns % PG_NS_PER_S)};
}

/* A condition variable whose timed waits take pg_now_ns() deadlines. */
static inline void pg_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &attr);
  pthread_condattr_destroy(&attr);
}

/* Waits until woken or the deadline (PG_FOREVER: none) has passed; returns 0 or ETIMEDOUT.  Not a
 * cancellation point: the lock would stay held. */
static inline int pg_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
                                     int64_t deadline) {
  const struct timespec at = pg_timespec(deadline == PG_FOREVER ? 0 : deadline);
  const int before = pg_cancel_off();
  const int status = deadline == PG_FOREVER ? pthread_cond_wait(cond, lock)
                                            : pthread_cond_timedwait(cond, lock, &at);
  pg_cancel_restore(before);
  return status;
}

/* The deadline that lies timeout_ns from now. */
static inline int64_t pg_deadline(int64_t timeout_ns) {
  return timeout_ns == PG_FOREVER ? PG_FOREVER : pg_now_ns() + timeout_ns;
}

#endif
