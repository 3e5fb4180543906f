/* SPDX-License-Identifier: Apache-2.0 */
#include "core/thread_memory.h"

#include <pthread.h>
#include <stdbool.h>

#include "core/alloc.h"

static _Thread_local void *memory[PG_THREAD_MEMORIES];

/* The key is there for its destructor alone: its value says that there is something to free. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key; /* a process has 1024 keys, and the program may have them all */

static void free_all(void *unused) {
  (void)unused;
  for (int i = 0; i < PG_THREAD_MEMORIES; i++) {
    pg_free(memory[i]);
    memory[i] = NULL; /* a later destructor of the program's may fail again */
  }
}

static void make_key(void) { has_key = pthread_key_create(&key, free_all) == 0; }

void *pg_thread_memory(enum pg_thread_memory which) { return memory[which]; }

void *pg_thread_memory_made(enum pg_thread_memory which, size_t bytes) {
  if (memory[which] != NULL) return memory[which];
  (void)pthread_once(&once, make_key);
  if (!has_key || pthread_setspecific(key, memory) != 0) return NULL;
  return memory[which] = pg_alloc_zeroed(bytes);
}
