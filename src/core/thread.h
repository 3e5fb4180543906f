/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library. */
#ifndef PG_THREAD_H_
#define PG_THREAD_H_

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Workers keep a kernel's scratch here; the default may be less (ulimit -s), and the program's
 * functions run here too. */
enum { PG_STACK_LEAST = 2 << 20 };

/* Starts a thread that takes no signals: the program's handlers stay on the program's threads. */
static inline bool pg_thread_create(pthread_t *thread, void *(*body)(void *), void *argument) {
  pthread_attr_t attributes;
  size_t stack = 0;
  sigset_t all, before;
  if (pthread_attr_init(&attributes) != 0) return false;
  (void)pthread_attr_getstacksize(&attributes, &stack);
  if (stack < PG_STACK_LEAST) (void)pthread_attr_setstacksize(&attributes, PG_STACK_LEAST);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool created = pthread_create(thread, &attributes, body, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  return created;
}

/* A thread that is cancelled inside the library would leave a lock held or a step half done, so
 * cancellation waits while the library waits: between these two. */
static inline int pg_cancel_off(void) {
  int before;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static inline void pg_cancel_restore(int before) { (void)pthread_setcancelstate(before, NULL); }

/* Between two looks of a thread that spins. */
static inline void pg_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
