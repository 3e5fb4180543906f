/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/workers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/environment.h"
#include "core/fork.h"
#include "core/status.h"
#include "core/thread.h"
#include "cpu/cpu_count.h"
#include "cpu/float_env.h"
#include "poolgrad.h"

enum {
  THREADS_MAX = 1024,
  SHARES_MAX = 64,
  PORTIONS_PER_SHARE = 4,
  SPIN_NS = 100000,  /* how long workers look for the next job before they sleep */
  LONG_NS = 1000000, /* the same while jobs follow each other within this time */
  WAKE_NS = 60000,   /* work for which it pays to wake a worker that sleeps */
  LOCK_TRIES = 200
};

/* Items that follow each other, taken in PORTIONS_PER_SHARE portions. */
struct share {
  _Alignas(64) atomic_int next; /* the first portion that nobody has taken */
};

/* A job is on the stack of its caller, which may be small, so the shares are elsewhere.  Every
 * thread begins with the share that it also had in the last job of as many items, because its
 * caches may still hold that memory, and then helps with the others. */
struct job {
  pg_items_fn *fn;
  const void *args;
  const atomic_bool *stop;
  int64_t items;
  int shares;
  int vacancies;     /* workers that may still join */
  atomic_int inside; /* workers that have joined and not left; changed with the lock held */
  int64_t begun_ns;  /* of a job whose caller has not woken anybody yet; else 0 */
  struct job *link;
  struct share *share; /* SHARES_MAX */
};
_Static_assert(sizeof(struct share) * SHARES_MAX <= PG_SCRATCH_SHARES, "shares need more memory");

/* The lock guards every field; atomic ones may be read without it.  It is never held together with
 * that of a queue. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake; /* workers sleep here; woken by a new job and by stop */
  pthread_cond_t left; /* callers wait here for workers to leave their job; woken by those */
  struct job *jobs;
  pthread_t ids[THREADS_MAX];
  atomic_int running; /* worker threads that exist */
  atomic_int sleeping;
  bool stop;
  atomic_int count;   /* threads a job may have; 0: not decided yet */
  atomic_uint posted; /* rises with each job; spinning workers watch it */
  int64_t last_ns;    /* when the last job ended */
  int64_t spin_ns;    /* how long workers spin */
} workers = {.lock = PTHREAD_MUTEX_INITIALIZER,
             .wake = PTHREAD_COND_INITIALIZER,
             .left = PTHREAD_COND_INITIALIZER,
             .spin_ns = SPIN_NS};

/* The lock is held for less time than it takes to sleep and be woken, so it is tried first. */
static void lock_workers(void) {
  for (int i = 0; i < LOCK_TRIES; i++) {
    if (pthread_mutex_trylock(&workers.lock) == 0) return;
    pg_relax();
  }
  pthread_mutex_lock(&workers.lock);
}

/* Guards the changing of the set itself: start, stop, resize. */
static pthread_mutex_t resize = PTHREAD_MUTEX_INITIALIZER;

/* The child of a fork has no workers, and nobody releases the locks that they may have held. */
static void after_fork_in_child(void) {
  if (atomic_load(&workers.running) > 0) pg_fork_lost();
}
__attribute__((constructor(PG_FORK_OUTER))) static void watch_forks(void) {
  (void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void run_portion(const struct job *job, int64_t portion, struct pg_scratch *scratch) {
  /* portions of about equal size, without a product that could overflow */
  const int64_t portions = (int64_t)job->shares * PORTIONS_PER_SHARE;
  const int64_t base = job->items / portions, rest = job->items % portions;
  const int64_t begin = base * portion + (portion < rest ? portion : rest);
  const int64_t end = begin + base + (portion < rest);
  if (begin < end && !pg_is_stopped(scratch)) job->fn(job->args, begin, end, scratch);
}

static void wake_workers(struct job *job);

static int count_untaken(struct job *job) {
  int count = 0;
  for (int i = 0; i < job->shares; i++) {
    const int taken = atomic_load_explicit(&job->share[i].next, memory_order_relaxed);
    if (taken < PORTIONS_PER_SHARE) count += PORTIONS_PER_SHARE - taken;
  }
  return count;
}

/* How long a job takes is not known before some of it is done: the same number of bytes may take
 * ten times as long with other windows.  So the caller of a small job begins alone, and wakes
 * workers when what is left will take long enough. */
static void consider_waking(struct job *job, int done) {
  const int64_t elapsed = pg_now_ns() - job->begun_ns;
  if (elapsed / done * count_untaken(job) < WAKE_NS) return;
  wake_workers(job);
}

static void work(struct job *job, int thread, struct pg_scratch *scratch) {
  int done = 0;
  for (int i = 0; i < job->shares; i++) {
    const int share = (thread + i) % job->shares;
    for (;;) {
      const int taken = atomic_fetch_add_explicit(&job->share[share].next, 1, memory_order_relaxed);
      if (taken >= PORTIONS_PER_SHARE) break;
      run_portion(job, (int64_t)share * PORTIONS_PER_SHARE + taken, scratch);
      done++;
      if (thread == 0 && job->begun_ns != 0) consider_waking(job, done);
    }
  }
}

static struct job *open_job(void) {
  for (struct job *job = workers.jobs; job != NULL; job = job->link)
    if (job->vacancies > 0 && count_untaken(job) > 0) return job;
  return NULL;
}

static void help(struct job *job, int thread, struct pg_scratch *scratch) {
  job->vacancies--;
  atomic_fetch_add(&job->inside, 1);
  pthread_mutex_unlock(&workers.lock);
  scratch->stop = job->stop;
  work(job, thread, scratch);
  lock_workers();
  if (atomic_fetch_sub(&job->inside, 1) == 1) pthread_cond_broadcast(&workers.left);
}

/* Waits for a job to be posted, but not for long.  The lock is held on entry and on return. */
static void spin(void) {
  const unsigned seen = atomic_load(&workers.posted);
  const int64_t end = pg_now_ns() + workers.spin_ns;
  pthread_mutex_unlock(&workers.lock);
  bool posted = false;
  while (!posted && pg_now_ns() < end)
    for (int i = 0; i < 64 && !posted; i++) {
      pg_relax();
      posted = atomic_load_explicit(&workers.posted, memory_order_relaxed) != seen;
    }
  lock_workers();
}

static void *worker(void *number) {
  _Alignas(
      PG_SCRATCH_ALIGNMENT) unsigned char room[PG_SCRATCH_BYTES]; /* pg_thread_create's stack */
  struct pg_scratch scratch = {.room = room};
  (void)pg_float_env_enter(); /* for the life of the thread */
  pthread_mutex_lock(&workers.lock);
  while (!workers.stop) {
    struct job *job = open_job();
    if (job == NULL) {
      spin();
      job = open_job();
    }
    if (job != NULL) {
      help(job, (int)(intptr_t)number, &scratch);
    } else if (!workers.stop) {
      workers.sleeping++;
      pthread_cond_wait(&workers.wake, &workers.lock);
      workers.sleeping--;
    }
  }
  pthread_mutex_unlock(&workers.lock);
  return NULL;
}

/* Starts the workers that are missing.  With fewer threads than wanted, jobs are only slower. */
static void start_workers(int wanted) {
  pthread_mutex_lock(&resize);
  pthread_mutex_lock(&workers.lock);
  while (workers.running < wanted && pg_thread_create(&workers.ids[workers.running], worker,
                                                      (void *)(intptr_t)(workers.running + 1)))
    workers.running++;
  pthread_mutex_unlock(&workers.lock);
  pthread_mutex_unlock(&resize);
}

static void stop_workers(void) {
  pthread_mutex_lock(&workers.lock);
  workers.stop = true;
  atomic_fetch_add(&workers.posted, 1);
  pthread_cond_broadcast(&workers.wake);
  const int running = workers.running;
  pthread_mutex_unlock(&workers.lock);
  const int cancel = pg_cancel_off();
  for (int i = 0; i < running; i++) pthread_join(workers.ids[i], NULL);
  pg_cancel_restore(cancel);
  pthread_mutex_lock(&workers.lock);
  workers.running = 0;
  workers.stop = false;
  pthread_mutex_unlock(&workers.lock);
}

/* Wakes, or starts, workers that have something to do for a job. */
static void wake_workers(struct job *job) {
  const int wanted = pg_workers_count() - 1;
  job->begun_ns = 0;
  if (atomic_load(&workers.running) < wanted) start_workers(wanted);
  if (atomic_load(&workers.sleeping) == 0) return;
  lock_workers();
  for (int i = 0; i < job->vacancies && i < workers.sleeping; i++)
    pthread_cond_signal(&workers.wake);
  pthread_mutex_unlock(&workers.lock);
}

/* Jobs that follow each other soon are likely to go on doing so, and then waiting for the next one
 * costs less than being woken for it.  Returns whether they do. */
static bool post(struct job *job) {
  lock_workers();
  job->link = workers.jobs;
  workers.jobs = job;
  const bool soon = job->begun_ns - workers.last_ns < LONG_NS;
  workers.spin_ns = soon ? LONG_NS : SPIN_NS;
  pthread_mutex_unlock(&workers.lock);
  atomic_fetch_add(&workers.posted, 1); /* now that spinning workers find the lock free */
  return soon;
}

/* Workers are in their last portion now, so going to sleep would cost more than spinning. */
static void spin_until_left(const struct job *job) {
  const int64_t end = pg_now_ns() + SPIN_NS;
  while (atomic_load(&job->inside) > 0 && pg_now_ns() < end)
    for (int i = 0; i < 64 && atomic_load(&job->inside) > 0; i++) pg_relax();
}

static void withdraw(struct job *job) {
  lock_workers();
  struct job **link = &workers.jobs;
  while (*link != job) link = &(*link)->link;
  *link = job->link;
  if (atomic_load(&job->inside) > 0) {
    pthread_mutex_unlock(&workers.lock);
    spin_until_left(job);
    lock_workers();
  }
  while (atomic_load(&job->inside) > 0)
    (void)pg_cond_wait_until(&workers.left, &workers.lock, PG_FOREVER);
  workers.last_ns = pg_now_ns();
  pthread_mutex_unlock(&workers.lock);
}

static void run_job(struct job *job, struct share *share, bool wake, struct pg_scratch *scratch) {
  job->share = share;
  for (int i = 0; i < job->shares; i++) atomic_init(&share[i].next, 0);
  if (post(job) || wake) wake_workers(job);
  work(job, 0, scratch);
  withdraw(job);
}

static __attribute__((noinline)) void run_job_on_stack(struct job *job, bool wake,
                                                       struct pg_scratch *scratch) {
  struct share share[SHARES_MAX];
  run_job(job, share, wake, scratch);
}

void pg_workers_run(pg_items_fn *fn, const void *args, int64_t items, int threads, bool wake,
                    struct pg_scratch *scratch) {
  const int count = pg_workers_count();
  if (threads > count) threads = count;
  if (threads > items) threads = (int)items;
  if (threads <= 1) {
    if (items > 0) fn(args, 0, items, scratch);
    return;
  }
  struct job job = {.fn = fn,
                    .args = args,
                    .stop = scratch->stop,
                    .items = items,
                    .vacancies = threads - 1,
                    .shares = threads < SHARES_MAX ? threads : SHARES_MAX,
                    .begun_ns = pg_now_ns()};
  if (scratch->room != NULL)
    run_job(&job, (struct share *)(void *)((char *)scratch->room + PG_SCRATCH_BYTES), wake,
            scratch);
  else
    run_job_on_stack(&job, wake, scratch);
}

void pg_workers_stop(void) {
  pthread_mutex_lock(&resize);
  stop_workers();
  pthread_mutex_unlock(&resize);
}

static aclError environment_count(const char *api, int *count) {
  const char *text = pg_getenv("POOLGRAD_THREADS");
  char *end = NULL;
  *count = pg_cpu_count();
  if (text == NULL || text[0] == '\0') return ACL_SUCCESS;
  const long value = strtol(text, &end, 10);
  if (*end != '\0' || value < 1 || value > THREADS_MAX)
    return PG_REFUSE_VARIABLE(api, "POOLGRAD_THREADS", text);
  *count = (int)value;
  return ACL_SUCCESS;
}

aclError pg_workers_configure(const char *api) {
  int count;
  PG_TRY(environment_count(api, &count));
  int undecided = 0;
  atomic_compare_exchange_strong(&workers.count, &undecided, count);
  return ACL_SUCCESS;
}

/* If there was no aclInit and POOLGRAD_THREADS is wrong, its error message stays with the thread,
 * and one thread is used. */
int pg_workers_count(void) {
  int count = atomic_load(&workers.count);
  if (count == 0) {
    if (pg_workers_configure("POOLGRAD_THREADS") != ACL_SUCCESS) return 1;
    count = atomic_load(&workers.count);
  }
  return count;
}

int poolgrad_threads(void) { return pg_workers_count(); }

int poolgrad_set_threads(int count) {
  PG_CHECK(count >= 0 && count <= THREADS_MAX, ACL_ERROR_INVALID_PARAM,
           "count is %d, allowed is 1 to %d, or 0 for the default", count, THREADS_MAX);
  PG_TRY(pg_fork_check(__func__));
  if (count == 0) PG_TRY(environment_count(__func__, &count));
  pthread_mutex_lock(&resize);
  stop_workers();
  atomic_store(&workers.count, count);
  pthread_mutex_unlock(&resize);
  return ACL_SUCCESS;
}
