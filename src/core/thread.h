/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library. */
#ifndef PG_THREAD_H_
#define PG_THREAD_H_

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Starts a thread that takes no signals: the program's handlers stay on the program's threads. */
static inline bool pg_thread_create(pthread_t *thread, void *(*body)(void *), void *argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool created = pthread_create(thread, NULL, body, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return created;
}

/* Between two looks of a thread that spins. */
static inline void pg_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
