/* SPDX-License-Identifier: Apache-2.0 */
/* A queue runs its steps in order, one at a time, on its executor thread or on a thread that
 * synchronises, whichever comes first:
 *
 *     submit ──▶ [ step | step | step ] ──▶ run_one ◀── executor thread
 *                                              ▲─────── thread inside sync
 *
 * so that a lone small step costs no hand-over.  For the same reason submit does not wake the
 * executor for small steps while it dozes: after work the executor looks at its queue every
 * DOZE_POLL_NS for DOZE_NS, and only then sleeps until woken.  Whoever observes the queue
 * (sync, query, a wait in another queue) wakes it.  A thread inside sync that finds the executor
 * at work spins while steps end quickly, then sleeps.
 *
 * Steps are counted by tickets, 1, 2, ... in the order of submission.  completed() is the ticket
 * of the last finished one; a mark is done when that is no less than its own ticket.
 *
 * Abort and forced destruction discard the steps that have not begun and set `stop`, at which the
 * running one gives up: a kernel between two items, a wait at once, a host function never.
 *
 * Locks: one per queue, held for bookkeeping only, never while a step runs, never two at once. */
#include "cpu/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/fork.h"
#include "core/handle.h"
#include "core/thread.h"
#include "cpu/step.h"

enum {
  RING_START = 16,
  RING_KEEP = 1024,      /* a larger ring is given back when the queue runs empty */
  SMALL_BYTES = 8388608, /* a step below this can wait for the dozing executor's next look */
  DOZE_POLL_NS = 100000,
  DOZE_NS = 2000000,
  SPIN_NS = 30000 /* what a sleep and its wake-up cost */
};

enum executor_state { AWAKE, DOZING, ASLEEP };

struct pg_queue {
  struct pg_queue_options options;
  atomic_int refs;           /* owner, executor thread, marks */
  atomic_bool dropped;       /* destroyed by force */
  atomic_bool stop;          /* the running step should give up; raised with the lock held */
  _Atomic uint64_t finished; /* completed(), for those who spin; written with the lock held */
  pthread_t thread;

  pthread_mutex_t lock;    /* guards everything below */
  pthread_cond_t wake;     /* the executor waits here; woken by submit, observers, close */
  pthread_cond_t progress; /* observers wait here; woken by run_one and discard */
  struct pg_step *ring;
  size_t capacity, head, count; /* capacity is a power of two */
  uint64_t pushed;              /* ticket of the newest step */
  uint64_t given_up;            /* ticket of the newest step at the time of the last discard */
  uint64_t undone;              /* ticket of the newest step that was skipped or stopped */
  bool busy;                    /* some thread is inside a step */
  uint64_t running;             /* that step's ticket */
  bool waiting;                 /* that step waits for something outside this queue */
  bool stoppable;               /* that step looks at stop: it is no function of the program's */
  bool touching;                /* that step is a kernel, copy or fill, and at its memory now */
  pthread_t runner;             /* that thread */
  struct waiter *waiters;       /* threads inside sync, on their stacks */
  struct pg_scratch scratch;    /* the running step's */
  unsigned observers;
  bool closing, held, stop_on_failure;
  enum executor_state executor;
  int64_t last_active_ns;
  struct pg_failure failure;   /* the first one not yet reported */
  struct pg_queue *blocked_on; /* whose progress the running step waits for, holding its mark */
};

/* A thread inside sync: it is told when a step that it waits for is discarded or stopped. */
struct waiter {
  uint64_t ticket;
  bool lost;
  struct waiter *next;
};

struct pg_mark {
  atomic_int refs;
  struct pg_queue *queue; /* holds a reference */
  uint64_t ticket;
  bool has_work;           /* it was submitted with a step, which is the one before it */
  _Atomic int64_t time_ns; /* when the queue passed it; 0: not yet, or it was discarded */
};

/* Executor threads of dropped queues, which nobody joins: shutting down waits for them. */
static pthread_mutex_t detached_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the count */
static pthread_cond_t detached_none = PTHREAD_COND_INITIALIZER;
static int detached;

static void count_detached(int change) {
  pthread_mutex_lock(&detached_lock);
  detached += change;
  if (detached == 0) pthread_cond_broadcast(&detached_none);
  pthread_mutex_unlock(&detached_lock);
}

void pg_queues_wait_gone(void) {
  pthread_mutex_lock(&detached_lock);
  while (detached > 0) (void)pg_cond_wait_until(&detached_none, &detached_lock, PG_FOREVER);
  pthread_mutex_unlock(&detached_lock);
}

static void after_fork_in_child(void) {
  if (detached > 0) pg_fork_lost();
}
__attribute__((constructor(PG_FORK_OUTER))) static void watch_forks(void) {
  (void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void retain(struct pg_queue *queue) { atomic_fetch_add(&queue->refs, 1); }

void pg_queue_release(struct pg_queue *queue) {
  if (atomic_fetch_sub(&queue->refs, 1) != 1) return;
  pthread_mutex_destroy(&queue->lock);
  pthread_cond_destroy(&queue->wake);
  pthread_cond_destroy(&queue->progress);
  free(queue->scratch.room);
  free(queue->ring);
  free(queue);
}

/* The struct is as large as a kernel's step; of other steps only the beginning is copied. */
static void copy_step(struct pg_step *to, const struct pg_step *from) {
  memcpy(to, from,
         from->kind == PG_STEP_KERNEL ? sizeof *to
                                      : offsetof(struct pg_step, u) + sizeof(struct pg_copy));
}
_Static_assert(sizeof(struct pg_copy) >= sizeof(struct pg_fill) &&
                   sizeof(struct pg_copy) >= sizeof(struct pg_call) &&
                   sizeof(struct pg_copy) >= sizeof(struct pg_value) &&
                   sizeof(struct pg_copy) >= sizeof(struct pg_wait),
               "a copy is the largest of the other steps");

/* The lock is held in this function and the next five. */
static uint64_t completed(const struct pg_queue *queue) {
  return queue->busy ? queue->running - 1 : queue->pushed - queue->count;
}

static void note_progress(struct pg_queue *queue) {
  atomic_store_explicit(&queue->finished, completed(queue), memory_order_release);
  if (queue->observers > 0) pthread_cond_broadcast(&queue->progress);
}

static void kick(struct pg_queue *queue) {
  if (queue->count > 0 && queue->executor != AWAKE) pthread_cond_signal(&queue->wake);
}

static int observe(struct pg_queue *queue, int64_t deadline) {
  queue->observers++;
  kick(queue);
  const int status = pg_cond_wait_until(&queue->progress, &queue->lock, deadline);
  queue->observers--;
  return status;
}

static bool reserve(struct pg_queue *queue, size_t more) {
  size_t capacity = queue->capacity == 0 ? RING_START : queue->capacity;
  while (capacity < queue->count + more) capacity *= 2;
  if (capacity == queue->capacity) return true;
  struct pg_step *ring = malloc(capacity * sizeof *ring);
  if (ring == NULL) return false;
  for (size_t i = 0; i < queue->count; i++)
    copy_step(&ring[i], &queue->ring[(queue->head + i) & (queue->capacity - 1)]);
  free(queue->ring);
  queue->ring = ring;
  queue->capacity = capacity;
  queue->head = 0;
  return true;
}

static void trim(struct pg_queue *queue) {
  if (queue->count > 0 || queue->capacity <= RING_KEEP) return;
  free(queue->ring);
  queue->ring = NULL;
  queue->capacity = queue->head = 0;
}

/* A step that will not run still releases what it owns. */
static void discard_step(const struct pg_step *step) {
  if (step->kind == PG_STEP_WAIT)
    pg_mark_release(step->u.wait.mark);
  else if (step->kind == PG_STEP_MARK)
    pg_mark_release(step->u.mark);
  else if (step->kind == PG_STEP_CALL && step->u.call.discard != NULL)
    step->u.call.discard(&step->u.call);
  else if (step->kind == PG_STEP_WRITE_VALUE || step->kind == PG_STEP_WAIT_VALUE)
    pg_release(step->u.value.owner);
}

/* Tells the threads inside sync that wait for this ticket or a later one that it is lost.  The lock
 * is held. */
static void tell_waiters(struct pg_queue *queue, uint64_t lost) {
  for (struct waiter *w = queue->waiters; w != NULL; w = w->next)
    w->lost = w->lost || w->ticket >= lost;
}

void pg_queue_discard(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  struct pg_step *ring = queue->ring;
  const size_t capacity = queue->capacity, head = queue->head, count = queue->count;
  queue->ring = NULL;
  queue->capacity = queue->head = queue->count = 0;
  queue->given_up = queue->pushed;
  if (count > 0) tell_waiters(queue, queue->pushed - count + 1);
  note_progress(queue);
  pthread_mutex_unlock(&queue->lock);
  for (size_t i = 0; i < count; i++) discard_step(&ring[(head + i) & (capacity - 1)]);
  free(ring);
}

/* Waits for another queue's mark.  blocked_on lets an interrupt end the wait. */
static aclError wait_for_mark(struct pg_queue *self, const struct pg_wait *wait,
                              struct pg_failure *why) {
  struct pg_queue *other = wait->mark->queue;
  const int64_t deadline = pg_deadline(wait->timeout_ns);
  bool late = false;
  pthread_mutex_lock(&self->lock);
  self->blocked_on = other;
  pthread_mutex_unlock(&self->lock);
  pthread_mutex_lock(&other->lock);
  while (completed(other) < wait->mark->ticket && !late && !atomic_load(&self->stop))
    late = observe(other, deadline) == ETIMEDOUT && completed(other) < wait->mark->ticket;
  pthread_mutex_unlock(&other->lock);
  pthread_mutex_lock(&self->lock);
  self->blocked_on = NULL;
  pthread_mutex_unlock(&self->lock);
  pg_mark_release(wait->mark);
  if (!late) return ACL_SUCCESS;
  pg_failure_set(why, ACL_ERROR_RT_WAIT_TIMEOUT,
                 "a wait for an event was not satisfied within %lld ms",
                 (long long)(wait->timeout_ns / PG_NS_PER_MS));
  return why->code;
}

/* A mark is discarded if the step that it was submitted with was skipped or stopped.  `undone` says
 * so: the failure may have been taken by another thread since then, and `stop` is now about this
 * step.  Only the thread that runs steps writes `undone`, so it is read without the lock. */
static void pass_mark(const struct pg_queue *queue, struct pg_mark *mark) {
  const bool discarded = mark->has_work && queue->undone == mark->ticket - 1;
  if (!discarded) atomic_store(&mark->time_ns, pg_now_ns());
  pg_mark_release(mark);
}

static aclError run_step(struct pg_queue *queue, struct pg_step *step, struct pg_failure *why) {
  switch (step->kind) {
    case PG_STEP_WAIT:
      return wait_for_mark(queue, &step->u.wait, why);
    case PG_STEP_MARK:
      pass_mark(queue, step->u.mark);
      return ACL_SUCCESS;
    default:
      return pg_step_run(step, &queue->scratch, why);
  }
}

static bool is_wait(const struct pg_step *step) {
  return step->kind == PG_STEP_WAIT || step->kind == PG_STEP_WAIT_VALUE ||
         (step->kind == PG_STEP_CALL && step->u.call.waits);
}

static void stop_touching(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->touching = false;
  note_progress(queue);
  pthread_mutex_unlock(&queue->lock);
}

/* Runs the first step of a queue that has one and is not busy.  The lock is held on entry and on
 * return, and free while the step runs. */
static void run_one(struct pg_queue *queue) {
  struct pg_step step;
  copy_step(&step, &queue->ring[queue->head]);
  const bool skip = queue->stop_on_failure && queue->failure.code != ACL_SUCCESS;
  struct pg_failure failure;
  failure.code = ACL_SUCCESS; /* its text is large and rarely used, so it is not cleared */
  queue->head = (queue->head + 1) & (queue->capacity - 1);
  queue->count--;
  queue->busy = true;
  atomic_store(&queue->stop, atomic_load(&queue->dropped));
  queue->waiting = is_wait(&step);
  queue->stoppable = step.kind != PG_STEP_CALL || queue->waiting;
  queue->touching =
      step.kind == PG_STEP_KERNEL || step.kind == PG_STEP_COPY || step.kind == PG_STEP_FILL;
  queue->runner = pthread_self();
  queue->running = queue->pushed - queue->count;
  const uint64_t ticket = queue->running;
  pthread_mutex_unlock(&queue->lock);
  if (skip)
    discard_step(&step);
  else if (run_step(queue, &step, &failure) != ACL_SUCCESS && queue->options.on_failure != NULL) {
    stop_touching(queue); /* before the program's function, which may wait for anybody */
    queue->options.on_failure(&queue->options, ticket, &failure);
  }
  pthread_mutex_lock(&queue->lock);
  if (skip || (queue->stoppable && atomic_load(&queue->stop))) queue->undone = ticket;
  queue->busy = queue->touching = false;
  queue->last_active_ns = 0;
  if (failure.code != ACL_SUCCESS && queue->failure.code == ACL_SUCCESS) queue->failure = failure;
  trim(queue);
  note_progress(queue);
  if (queue->closing && queue->executor != AWAKE) pthread_cond_signal(&queue->wake);
}

static void *execute(void *argument) {
  struct pg_queue *queue = argument;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    if (queue->count > 0 && !queue->busy && !queue->held) {
      run_one(queue);
      continue;
    }
    if (queue->closing && queue->count == 0 && !queue->busy) break;
    const int64_t now = pg_now_ns();
    if (queue->last_active_ns == 0) queue->last_active_ns = now; /* a step was run since */
    const bool doze = now - queue->last_active_ns < DOZE_NS && !queue->closing;
    queue->executor = doze ? DOZING : ASLEEP;
    (void)pg_cond_wait_until(&queue->wake, &queue->lock, doze ? now + DOZE_POLL_NS : PG_FOREVER);
    queue->executor = AWAKE;
  }
  pthread_mutex_unlock(&queue->lock);
  const bool dropped = atomic_load(&queue->dropped);
  pg_queue_release(queue);
  if (dropped) {
    (void)pthread_detach(pthread_self()); /* another thread might do it after this one has ended */
    count_detached(-1);
  }
  return NULL;
}

aclError pg_queue_create(const struct pg_queue_options *options, struct pg_queue **out) {
  struct pg_queue *queue = calloc(1, sizeof *queue);
  void *room = NULL;
  if (queue == NULL) return ACL_ERROR_BAD_ALLOC;
  if (posix_memalign(&room, PG_SCRATCH_ALIGNMENT, PG_SCRATCH_BYTES + PG_SCRATCH_SHARES) != 0) {
    free(queue);
    return ACL_ERROR_BAD_ALLOC;
  }
  queue->scratch = (struct pg_scratch){&queue->stop, room};
  queue->options = *options;
  atomic_init(&queue->refs, 2); /* owner and executor thread */
  pthread_mutex_init(&queue->lock, NULL);
  pg_cond_init(&queue->wake);
  pg_cond_init(&queue->progress);
  if (!pg_thread_create(&queue->thread, execute, queue)) {
    atomic_store(&queue->refs, 1);
    pg_queue_release(queue);
    return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  }
  *out = queue;
  return ACL_SUCCESS;
}

/* Can the step wait until the dozing executor looks at its queue the next time? */
static bool is_quiet(const struct pg_step *step) {
  switch (step->kind) {
    case PG_STEP_KERNEL:
    case PG_STEP_COPY:
    case PG_STEP_FILL:
      return step->bytes < SMALL_BYTES;
    case PG_STEP_MARK:
      return true;
    default:
      return false;
  }
}

/* The lock is held, and the ring has space for the steps. */
static void push(struct pg_queue *queue, const struct pg_step *steps, size_t count) {
  bool quiet = true;
  for (size_t i = 0; i < count; i++) {
    copy_step(&queue->ring[(queue->head + queue->count + i) & (queue->capacity - 1)], &steps[i]);
    quiet = quiet && is_quiet(&steps[i]);
  }
  queue->count += count;
  queue->pushed += count;
  if (queue->executor == ASLEEP || (queue->executor == DOZING && !quiet))
    pthread_cond_signal(&queue->wake);
}

/* A mark that has no ticket yet, or NULL if memory is short. */
static struct pg_mark *new_mark(struct pg_queue *queue) {
  struct pg_mark *mark = calloc(1, sizeof *mark);
  if (mark == NULL) return NULL;
  atomic_init(&mark->refs, 2); /* the caller and the step */
  retain(queue);
  mark->queue = queue;
  return mark;
}

/* The lock is held. */
static aclError push_all(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                         struct pg_mark *behind) {
  if (queue->closing || queue->held) return ACL_ERROR_RT_INVALID_HANDLE;
  if (!reserve(queue, count + (behind != NULL))) return ACL_ERROR_BAD_ALLOC;
  if (count > 0) push(queue, steps, count);
  if (behind != NULL) {
    const struct pg_step step = {.kind = PG_STEP_MARK, .u.mark = behind};
    behind->ticket = queue->pushed + 1;
    behind->has_work = count > 0;
    push(queue, &step, 1);
  }
  return ACL_SUCCESS;
}

aclError pg_queue_submit(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                         struct pg_mark **behind) {
  struct pg_mark *mark = NULL;
  if (behind != NULL && (mark = new_mark(queue)) == NULL) return ACL_ERROR_BAD_ALLOC;
  pthread_mutex_lock(&queue->lock);
  const aclError status = push_all(queue, steps, count, mark);
  pthread_mutex_unlock(&queue->lock);
  if (behind == NULL) return status;
  if (status == ACL_SUCCESS) {
    *behind = mark;
  } else {
    pg_mark_release(mark); /* the step's */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): of its two references this is the second */
    pg_mark_release(mark);
  }
  return status;
}

static bool may_run_here(const struct pg_queue *queue) {
  if (queue->busy || queue->held || queue->count == 0) return false;
  const struct pg_step *step = &queue->ring[queue->head];
  return !(step->kind == PG_STEP_CALL && step->u.call.own_thread);
}

/* Waits for a thread that runs the steps.  While that ends one every SPIN_NS, going to sleep would
 * cost more than spinning.  False when no step ended.  The lock is held on entry and on return, and
 * free in between. */
static bool spin(struct pg_queue *queue, uint64_t ticket) {
  const uint64_t before = completed(queue);
  uint64_t seen = before;
  pthread_mutex_unlock(&queue->lock);
  int64_t end = pg_now_ns() + SPIN_NS;
  while (seen < ticket && pg_now_ns() < end) {
    for (int i = 0; i < 64; i++) pg_relax();
    const uint64_t now = atomic_load_explicit(&queue->finished, memory_order_acquire);
    if (now != seen) end = pg_now_ns() + SPIN_NS;
    seen = now;
  }
  pthread_mutex_lock(&queue->lock);
  return completed(queue) != before; /* asked under the lock: observe() must not miss a step */
}

/* Waits until the ticket is completed; without a time limit the caller runs steps itself.  False
 * when the time is up.  The lock is held on entry and on return. */
static bool run_until(struct pg_queue *queue, uint64_t ticket, int64_t timeout_ns) {
  const int64_t deadline = pg_deadline(timeout_ns);
  while (completed(queue) < ticket) {
    if (timeout_ns == PG_FOREVER && may_run_here(queue))
      run_one(queue);
    else if (timeout_ns == PG_FOREVER && queue->busy && spin(queue, ticket))
      continue;
    else if (observe(queue, deadline) == ETIMEDOUT && completed(queue) < ticket)
      return false;
  }
  kick(queue); /* others may have submitted more while we ran steps */
  return true;
}

/* Is the caller inside the running step?  The lock is held. */
static bool is_own(const struct pg_queue *queue) {
  return queue->busy && pthread_equal(queue->runner, pthread_self());
}

/* The steps that the caller runs may call the program's functions, so it must not be cancelled in
 * any of them. */
aclError pg_queue_sync(struct pg_queue *queue, int64_t timeout_ns, struct pg_failure *failure) {
  const int cancel = pg_cancel_off();
  pthread_mutex_lock(&queue->lock);
  const bool own = is_own(queue);
  struct waiter here = {.ticket = queue->pushed, .next = queue->waiters};
  queue->waiters = &here; /* cppcheck-suppress autoVariables; out of the list before it ends */
  const bool in_time = !own && run_until(queue, here.ticket, timeout_ns);
  struct waiter **link = &queue->waiters;
  while (*link != &here) link = &(*link)->next;
  *link = here.next;
  if (in_time && queue->failure.code != ACL_SUCCESS) {
    *failure = queue->failure;
    queue->failure.code = ACL_SUCCESS;
  }
  pthread_mutex_unlock(&queue->lock);
  pg_cancel_restore(cancel);
  if (own) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  if (!in_time) return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
  return here.lost ? ACL_ERROR_RT_STREAM_ABORT : ACL_SUCCESS;
}

bool pg_queue_idle(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  const bool idle = completed(queue) == queue->pushed;
  kick(queue);
  pthread_mutex_unlock(&queue->lock);
  return idle;
}

enum pg_activity pg_queue_activity(struct pg_queue *queue, uint64_t *done) {
  pthread_mutex_lock(&queue->lock);
  *done = completed(queue);
  const enum pg_activity activity = *done == queue->pushed          ? PG_IDLE
                                    : queue->busy && queue->waiting ? PG_WAITING
                                                                    : PG_WORKING;
  kick(queue);
  pthread_mutex_unlock(&queue->lock);
  return activity;
}

void pg_queue_set_stop_on_failure(struct pg_queue *queue, bool stop) {
  pthread_mutex_lock(&queue->lock);
  queue->stop_on_failure = stop;
  pthread_mutex_unlock(&queue->lock);
}

bool pg_queue_on_own_step(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  const bool own = is_own(queue);
  pthread_mutex_unlock(&queue->lock);
  return own;
}

void pg_queue_hold(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->held = true;
  pthread_mutex_unlock(&queue->lock);
}

/* Raises stop and wakes the running step, whatever it waits for. */
void pg_queue_interrupt(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  /* a step that came after the discard is not meant: what follows it would run without it */
  const bool meant = queue->busy && queue->running <= queue->given_up;
  if (meant) atomic_store(&queue->stop, true);
  if (meant && queue->stoppable) tell_waiters(queue, queue->running);
  struct pg_queue *other = queue->blocked_on;
  if (other != NULL) retain(other); /* alive: the running step holds its mark */
  pthread_mutex_unlock(&queue->lock);
  if (other != NULL) {
    pthread_mutex_lock(&other->lock);
    pthread_cond_broadcast(&other->progress);
    pthread_mutex_unlock(&other->lock);
    pg_queue_release(other);
  }
  pg_values_changed();
}

void pg_queue_close(struct pg_queue *queue, bool drop) {
  const int cancel = pg_cancel_off();
  if (drop) {
    count_detached(1); /* before the executor can see that it should end */
    atomic_store(&queue->dropped, true);
  }
  pthread_mutex_lock(&queue->lock);
  queue->closing = true;
  if (!drop) (void)run_until(queue, queue->pushed, PG_FOREVER);
  pthread_cond_signal(&queue->wake);
  pthread_mutex_unlock(&queue->lock);
  if (drop) {
    pg_queue_discard(queue);
    pg_queue_interrupt(queue);
    pthread_mutex_lock(&queue->lock);
    /* the step gives up between two items; only then may the program free its memory */
    while (queue->busy && queue->touching && !is_own(queue)) (void)observe(queue, PG_FOREVER);
    /* the executor may have looked before the queue was empty */
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&queue->lock);
  } else {
    pthread_join(queue->thread, NULL);
  }
  pg_cancel_restore(cancel);
}

void pg_mark_retain(struct pg_mark *mark) { atomic_fetch_add(&mark->refs, 1); }

void pg_mark_release(struct pg_mark *mark) {
  if (atomic_fetch_sub(&mark->refs, 1) != 1) return;
  pg_queue_release(mark->queue);
  free(mark);
}

bool pg_mark_done(struct pg_mark *mark) {
  struct pg_queue *queue = mark->queue;
  pthread_mutex_lock(&queue->lock);
  const bool done = completed(queue) >= mark->ticket;
  if (!done) kick(queue);
  pthread_mutex_unlock(&queue->lock);
  return done;
}

aclError pg_mark_sync(struct pg_mark *mark, int64_t timeout_ns) {
  struct pg_queue *queue = mark->queue;
  const int cancel = pg_cancel_off();
  pthread_mutex_lock(&queue->lock);
  const bool never = is_own(queue) && completed(queue) < mark->ticket;
  const bool in_time = !never && run_until(queue, mark->ticket, timeout_ns);
  pthread_mutex_unlock(&queue->lock);
  pg_cancel_restore(cancel);
  if (never) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  return in_time ? ACL_SUCCESS : ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;
}

bool pg_mark_discarded(struct pg_mark *mark) { return atomic_load(&mark->time_ns) == 0; }

int64_t pg_mark_time_ns(struct pg_mark *mark) { return atomic_load(&mark->time_ns); }
