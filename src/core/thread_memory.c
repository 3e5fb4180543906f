/* SPDX-License-Identifier: Apache-2.0 */
#include "core/thread_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/fork.h"

static _Thread_local void *memory[PG_THREAD_MEMORIES];

/* The key is there for its destructor alone: its value says that there is something to free.  A
 * process has 1024 keys, and the program may have them all: then the next call asks again. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the making of the key */
static pthread_key_t key;
static atomic_bool has_key;

PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

static void free_all(void *unused) {
  (void)unused;
  for (int i = 0; i < PG_THREAD_MEMORIES; i++) {
    free(memory[i]);
    memory[i] = NULL; /* a later destructor of the program's may fail again */
  }
}

static bool make_key(void) {
  if (atomic_load_explicit(&has_key, memory_order_acquire)) return true;
  pthread_mutex_lock(&lock);
  const bool made = atomic_load(&has_key) || pthread_key_create(&key, free_all) == 0;
  atomic_store_explicit(&has_key, made, memory_order_release);
  pthread_mutex_unlock(&lock);
  return made;
}

void *pg_thread_memory(enum pg_thread_memory which) { return memory[which]; }

void *pg_thread_memory_made(enum pg_thread_memory which, size_t bytes) {
  if (memory[which] != NULL) return memory[which];
  if (!make_key() || pthread_setspecific(key, memory) != 0) return NULL;
  return memory[which] = calloc(1, bytes);
}
