/* SPDX-License-Identifier: Apache-2.0 */
/* A call that may block for ever, on a thread of its own, with a limit on how long a test waits. */
#ifndef PG_TESTS_BLOCKED_CALL_H_
#define PG_TESTS_BLOCKED_CALL_H_

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"

enum { LONG_MS = 30000 }; /* what no call here may take, on the slowest machine */

static inline bool arrives(sem_t *sem, int ms) {
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  const long long ns = limit.tv_nsec + ms * 1000000LL;
  limit.tv_sec += (time_t)(ns / 1000000000);
  limit.tv_nsec = (long)(ns % 1000000000);
  int status;
  do status = sem_timedwait(sem, &limit);
  while (status != 0 && errno == EINTR);
  return status == 0;
}

struct blocked_call {
  int (*fn)(void);
  aclrtContext context;
  pthread_t thread;
  atomic_int tid;
  sem_t left;
  int status;
};

static inline void *blocked_call_run(void *argument) {
  struct blocked_call *call = argument;
  int status = aclrtSetCurrentContext(call->context);
  atomic_store(&call->tid, (int)gettid());
  if (status == ACL_SUCCESS) status = call->fn();
  call->status = status;
  sem_post(&call->left);
  return NULL;
}

static inline bool is_asleep(int tid) {
  char path[64], state = '?';
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE *file = fopen(path, "r");
  if (file != NULL && fscanf(file, "%*d %*s %c", &state) != 1) state = '?';
  if (file != NULL) (void)fclose(file);
  return state == 'S';
}

/* Starts the call in the caller's context, which may end as soon as this returns. */
static inline void start_call(struct blocked_call *call, int (*fn)(void)) {
  *call = (struct blocked_call){.fn = fn};
  sem_init(&call->left, 0, 0);
  OK_OR_SAY(aclrtGetCurrentContext(&call->context));
  assert_int_equal(pthread_create(&call->thread, NULL, blocked_call_run, call), 0);
  while (atomic_load(&call->tid) == 0) sched_yield();
}

/* Also looks until its thread sleeps, that is, waits, or is done. */
static inline void begin_call(struct blocked_call *call, int (*fn)(void)) {
  const time_t limit = time(NULL) + LONG_MS / 1000;
  int over = 0;
  start_call(call, fn);
  while (!is_asleep(atomic_load(&call->tid)) && over == 0 && time(NULL) < limit) {
    sched_yield();
    sem_getvalue(&call->left, &over);
  }
}

/* The call's status; fails when it does not come back. */
static inline int finish_call(struct blocked_call *call) {
  assert_true(arrives(&call->left, LONG_MS));
  pthread_join(call->thread, NULL);
  sem_destroy(&call->left);
  return call->status;
}

#endif
