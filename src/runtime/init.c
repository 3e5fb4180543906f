/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of a process's use of the library. */
#include "core/fork.h"
#include "core/thread.h"
#include "runtime/config.h"
#include "runtime/context.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

/* Guards the state.  Held through a whole init or finalize: the second caller waits. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t references;   /* aclInit calls not yet undone */
static uint64_t config_hash;  /* of the first one's file */
static atomic_bool finalized; /* since the last aclInit; read without the lock too */

bool pg_is_finalized(void) { return atomic_load(&finalized); }

/* The lock may be held for long, so a fork does not wait for it.  If it cannot be had, another
 * thread is half-way through an init or a finalize, and will never be done with it in the child. */
static _Thread_local bool held_across_fork; /* threads may fork at the same time */
static void before_fork(void) { held_across_fork = pthread_mutex_trylock(&lock) == 0; }
static void after_fork_in_parent(void) {
  if (held_across_fork) (void)pthread_mutex_unlock(&lock);
}
static void after_fork_in_child(void) {
  if (!held_across_fork) pg_fork_lost();
  after_fork_in_parent();
}
__attribute__((constructor(PG_FORK_OUTER))) static void watch_forks(void) {
  (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static aclError init_locked(const char *api, const char *path) {
  uint64_t hash;
  PG_TRY(pg_config_read(api, path, &hash));
  if (references > 0) {
    if (hash != config_hash)
      return pg_fail(api, ACL_ERROR_INVALID_PARAM,
                     "the configuration differs from the one the process was initialised with");
    references++;
    return pg_fail(api, ACL_ERROR_REPEAT_INITIALIZE,
                   "already initialised, this is reference %llu (harmless)",
                   (unsigned long long)references);
  }
  PG_TRY(pg_configure(api));
  references = 1;
  config_hash = hash;
  atomic_store(&finalized, false);
  return ACL_SUCCESS;
}

aclError aclInit(const char *configPath) {
  PG_TRY(pg_fork_check(__func__));
  PG_CHECK(pg_inside_work == 0, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
           "called from work of a stream, which aclFinalize may be waiting for");
  const int cancel = pg_cancel_off(); /* files are read: a cancelled thread would keep the lock */
  pthread_mutex_lock(&lock);
  const aclError status = init_locked(__func__, configPath);
  pthread_mutex_unlock(&lock);
  pg_cancel_restore(cancel);
  return status;
}

static void close_all(enum pg_kind kind) {
  for (void *h = pg_handle_next(kind, NULL); h != NULL; h = pg_handle_next(kind, h))
    pg_release(pg_handle_close(h, kind));
}

/* Contexts first: their streams hold marks of events and words of notifies. */
static aclError finalize_locked(const char *api) {
  if (pg_is_finalized())
    return pg_fail(api, ACL_ERROR_REPEAT_FINALIZE, "already finalised, aclInit must come between");
  atomic_store(&finalized, true); /* first: who frees, or asks for, what ends here must not fail */
  pg_devices_release_all(api);
  close_all(PG_EVENT);
  close_all(PG_NOTIFY);
  pg_reservations_release_all();
  close_all(PG_PHYSICAL_MEMORY);
  pg_memory_release_all();
  pg_strict_forget();
  references = 0;
  return ACL_SUCCESS;
}

aclError aclFinalize(void) {
  PG_TRY(pg_fork_check(__func__));
  PG_CHECK(pg_inside_work == 0, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
           "called from work of a stream, it would wait for its own end");
  const int cancel = pg_cancel_off(); /* files are read: a cancelled thread would keep the lock */
  pthread_mutex_lock(&lock);
  const aclError status = finalize_locked(__func__);
  pthread_mutex_unlock(&lock);
  pg_cancel_restore(cancel);
  return status;
}

aclError aclFinalizeReference(uint64_t *refCount) {
  aclError status = ACL_SUCCESS;
  PG_TRY(pg_fork_check(__func__));
  PG_CHECK(pg_inside_work == 0, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
           "called from work of a stream, it would wait for its own end");
  const int cancel = pg_cancel_off(); /* files are read: a cancelled thread would keep the lock */
  pthread_mutex_lock(&lock);
  if (references == 0)
    status = pg_fail(__func__, ACL_ERROR_REPEAT_FINALIZE,
                     "the reference count is 0, aclInit must come first");
  else if (references == 1)
    status = finalize_locked(__func__);
  else
    references--;
  if (status == ACL_SUCCESS && refCount != NULL) *refCount = references;
  pthread_mutex_unlock(&lock);
  pg_cancel_restore(cancel);
  return status;
}
