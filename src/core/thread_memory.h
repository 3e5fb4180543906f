/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the calling thread, which ends with it.  The few bytes of _Thread_local that hold on to
 * it are all that a thread's stack pays: programs run threads with stacks of 16 KiB. */
#ifndef PG_THREAD_MEMORY_H_
#define PG_THREAD_MEMORY_H_

#include <stddef.h>

enum pg_thread_memory { PG_THREAD_ERRORS, PG_THREAD_DEVICES, PG_THREAD_MEMORIES };

/* What the thread has, or NULL. */
void *pg_thread_memory(enum pg_thread_memory which);

/* The same, made of so many zeros when there is none yet.  NULL when there is no memory, or no way
 * to have it freed at the thread's end. */
void *pg_thread_memory_made(enum pg_thread_memory which, size_t bytes);

#endif
