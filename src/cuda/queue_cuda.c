/* SPDX-License-Identifier: Apache-2.0 */
/* Steps go one of two ways:
 *
 *     submit ──▶ CUDA stream                      direct: all the stream has to do is the device's
 *     submit ──▶ [ step | step ] ──▶ thread ──▶ CUDA stream, or the host
 *
 * A step that needs the host, and all behind it, wait in a list for the queue's thread, which puts
 * device steps onto the CUDA stream and runs the others itself when that is idle.  Once the list is
 * empty steps are direct again.  With stop_on_failure all go through the list, each waiting for the
 * judgement of the one before.
 *
 * Steps are counted by tickets, 1, 2, ... in the order of submission; completed() is the last one
 * that the thread is past.  It may still be at work on the CUDA stream.
 *
 * Locks: one per queue.  Direct steps are put onto the CUDA stream with it held, so that the order
 * is one; they end by themselves, whatever hosts do.  Never two queues' locks at once. */
#include "cuda/queue_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/thread.h"
#include "cuda/mark_cuda.h"
#include "cuda/report_cuda.h"
#include "cuda/step_cuda.h"

/* A thread inside sync: it is told when a step that it waits for is discarded or stopped. */
struct pg_cuda_waiter {
  uint64_t ticket;
  bool lost;
  struct pg_cuda_waiter *next;
};

enum { PG_CUDA_MARKED_STEPS = 1 }; /* how many steps a mark may be asked behind of at once */

struct pg_cuda_link {
  struct pg_cuda_link *next;
  struct pg_step step;
  bool together; /* it was submitted with the step before it */
};

/* Threads of dropped queues, which nobody joins: shutting down waits for them. */
static pthread_mutex_t detached_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the count */
static pthread_cond_t detached_none = PTHREAD_COND_INITIALIZER;
static int detached;

static void count_detached(int change) {
  pthread_mutex_lock(&detached_lock);
  detached += change;
  if (detached == 0) pthread_cond_broadcast(&detached_none);
  pthread_mutex_unlock(&detached_lock);
}

void pg_cuda_queues_wait_gone(void) {
  pthread_mutex_lock(&detached_lock);
  while (detached > 0) (void)pg_cond_wait_until(&detached_none, &detached_lock, PG_FOREVER);
  pthread_mutex_unlock(&detached_lock);
}

void pg_cuda_queue_unref(struct pg_queue *queue) {
  if (atomic_fetch_sub(&queue->refs, 1) != 1) return;
  pthread_mutex_destroy(&queue->lock);
  pthread_cond_destroy(&queue->wake);
  pthread_cond_destroy(&queue->progress);
  free(queue);
}

/* The last user waits for what is still on the stream: the reports are its to write to. */
void pg_cuda_queue_release(struct pg_queue *queue) {
  const int device = queue->options.device;
  CUcontext before;
  if (atomic_fetch_sub(&queue->users, 1) != 1) return;
  if (pg_cuda_enter(device, &before)) {
    (void)cudaStreamSynchronize(queue->stream);
    (void)cudaStreamDestroy(queue->stream);
    (void)cudaGetLastError();
    pg_cuda_leave(device, before);
  }
  pg_cuda_reports_close(device, queue->reports);
  pg_cuda_queue_unref(queue);
}

uint64_t pg_cuda_completed(const struct pg_queue *queue) {
  return queue->busy ? queue->running - 1 : queue->pushed - queue->count;
}

/* The queue of which this thread is telling a failure: who is told may ask it for something. */
static _Thread_local const struct pg_queue *telling;

bool pg_cuda_is_own(const struct pg_queue *queue) {
  return (queue->busy && pthread_equal(queue->thread, pthread_self())) ||
         pg_cuda_reports_is_judge(queue) || telling == queue;
}

int pg_cuda_observe(struct pg_queue *queue, int64_t deadline) {
  queue->observers++;
  const int status = pg_cond_wait_until(&queue->progress, &queue->lock, deadline);
  queue->observers--;
  return status;
}

void pg_cuda_note_progress(struct pg_queue *queue) {
  if (queue->observers > 0) pthread_cond_broadcast(&queue->progress);
}

/* Only a stream that the program knows can be captured: our events draw no other one in. */
uint64_t pg_cuda_capture(const struct pg_queue *queue) {
  return atomic_load(&queue->shown) ? pg_cuda_capture_of(queue->stream) : 0;
}

void pg_cuda_fail(struct pg_queue *queue, uint64_t ticket, const struct pg_failure *failure) {
  const struct pg_queue *outer = telling;
  telling = queue;
  if (queue->options.on_failure != NULL)
    queue->options.on_failure(&queue->options, ticket, failure);
  telling = outer;
  pthread_mutex_lock(&queue->lock);
  if (queue->failure.code == ACL_SUCCESS) queue->failure = *failure;
  pthread_mutex_unlock(&queue->lock);
}

void pg_cuda_fail_with(struct pg_queue *queue, uint64_t ticket, cudaError_t error) {
  struct pg_failure failure = {.code = ACL_ERROR_RT_INTERNAL_ERROR};
  snprintf(failure.text, sizeof failure.text, "CUDA says %s: %s", cudaGetErrorName(error),
           cudaGetErrorString(error));
  pg_cuda_fail(queue, ticket, &failure);
}

void pg_cuda_pause(int *looks, int64_t deadline) {
  enum { SPINS = 200, FIRST_NS = 2000, LONGEST_NS = 200000 };
  const int spins = *looks < SPINS ? 64 : 0;
  for (int i = 0; i < spins; i++) pg_relax();
  const int doublings = *looks - SPINS + 1;
  if (doublings < 8) (*looks)++;
  if (doublings <= 0) return;
  int64_t ns = doublings < 7 ? (int64_t)FIRST_NS << doublings : LONGEST_NS;
  const int64_t left = deadline == PG_FOREVER ? ns : deadline - pg_now_ns();
  if (left < ns) ns = left;
  if (ns <= 0) return;
  const struct timespec time = pg_timespec(ns);
  (void)nanosleep(&time, NULL);
}

/* The CUDA stream up to now; cudaErrorNotReady when the time is up. */
static cudaError_t wait_stream(struct pg_queue *queue, int64_t deadline) {
  const enum cudaStreamCaptureMode mode = pg_cuda_relax();
  int looks = 0;
  cudaError_t error;
  if (deadline == PG_FOREVER)
    error = cudaStreamSynchronize(queue->stream);
  else
    while ((error = cudaStreamQuery(queue->stream)) == cudaErrorNotReady && pg_now_ns() < deadline)
      pg_cuda_pause(&looks, deadline);
  pg_cuda_unrelax(mode);
  return error;
}

/* Until the CUDA stream is idle and its reports are judged; false when the time is up.  Lock held
 * on entry and on return, free in between. */
static bool settle(struct pg_queue *queue, int64_t deadline) {
  const uint64_t posted = pg_cuda_reports_posted(queue), ticket = queue->pushed;
  pthread_mutex_unlock(&queue->lock);
  const cudaError_t error = wait_stream(queue, deadline);
  if (error != cudaSuccess) (void)cudaGetLastError();
  if (error != cudaSuccess && error != cudaErrorNotReady) pg_cuda_fail_with(queue, ticket, error);
  pthread_mutex_lock(&queue->lock);
  if (error == cudaErrorNotReady) return false;
  if (error == cudaSuccess)
    pg_cuda_reports_judge(queue, posted);
  else
    pg_cuda_reports_forget(queue, posted);
  return true;
}

static bool has_report(const struct pg_step *step) {
  return step->kind == PG_STEP_KERNEL && step->u.kernel.judge != NULL;
}

/* The thread's way of putting a step onto the stream: nobody else does while it is busy.  Lock held
 * on entry and on return, free in between. */
static void issue_from_list(struct pg_queue *queue, const struct pg_step *step, uint64_t ticket) {
  struct pg_cuda_report *report = NULL;
  if (has_report(step)) {
    while (!pg_cuda_reports_have_room(queue, 1)) pg_cuda_reports_make_room(queue);
    report = pg_cuda_report_take(queue, &step->u.kernel, ticket);
  }
  pthread_mutex_unlock(&queue->lock);
  const cudaError_t error = pg_cuda_step_issue(step, report, queue->stream);
  if (error != cudaSuccess) pg_cuda_fail_with(queue, ticket, error);
  pthread_mutex_lock(&queue->lock);
  if (report != NULL && error == cudaSuccess) pg_cuda_report_post(queue);
}

/* The same for a step that is the host's. */
static void run_from_list(struct pg_queue *queue, const struct pg_step *step, uint64_t ticket) {
  struct pg_failure failure;
  pthread_mutex_unlock(&queue->lock);
  if (pg_cuda_step_run(queue, step, &failure) != ACL_SUCCESS) pg_cuda_fail(queue, ticket, &failure);
  pthread_mutex_lock(&queue->lock);
}

static struct pg_cuda_link *pop(struct pg_queue *queue) {
  struct pg_cuda_link *link = queue->first;
  queue->first = link->next;
  if (queue->first == NULL) queue->last = &queue->first;
  queue->count--;
  return link;
}

static bool is_wait(const struct pg_step *step) {
  return step->kind == PG_STEP_WAIT || step->kind == PG_STEP_WAIT_VALUE ||
         (step->kind == PG_STEP_CALL && step->u.call.waits);
}

/* The first step of the list.  Lock held on entry and on return. */
static void run_one(struct pg_queue *queue) {
  struct pg_cuda_link *link = pop(queue);
  const struct pg_step *step = &link->step;
  const uint64_t ticket = queue->running = queue->pushed - queue->count;
  queue->busy = true;
  queue->waiting = is_wait(step);
  atomic_store(&queue->stop, atomic_load(&queue->dropped));
  pthread_mutex_unlock(&queue->lock);
  CUcontext before; /* a host function may have left another device current */
  (void)pg_cuda_enter(queue->options.device, &before);
  const bool device = pg_cuda_step_is_device(step);
  pthread_mutex_lock(&queue->lock);
  if (queue->stop_on_failure || (!device && pg_cuda_step_needs_idle(step)))
    (void)settle(queue, PG_FOREVER);
  /* a step that was submitted with a discarded one is discarded too: meanwhile a synchronise may
   * have taken the failure */
  if ((queue->stop_on_failure && queue->failure.code != ACL_SUCCESS) ||
      (link->together && queue->undone == ticket - 1)) {
    queue->undone = ticket;
    pthread_mutex_unlock(&queue->lock);
    pg_cuda_step_discard(step);
    pthread_mutex_lock(&queue->lock);
  } else if (device) {
    issue_from_list(queue, step, ticket);
  } else {
    run_from_list(queue, step, ticket);
  }
  queue->busy = false;
  pg_cuda_note_progress(queue);
  free(link);
}

static void *execute(void *argument) {
  struct pg_queue *queue = argument;
  pthread_mutex_lock(&queue->lock);
  while (queue->count > 0 || !queue->closing)
    if (queue->count > 0 && !queue->held)
      run_one(queue);
    else
      (void)pthread_cond_wait(&queue->wake, &queue->lock);
  pthread_mutex_unlock(&queue->lock);
  const bool dropped = atomic_load(&queue->dropped);
  pg_cuda_queue_release(queue);
  if (dropped) {
    (void)pthread_detach(pthread_self()); /* from outside, libc may look at a thread that is gone */
    count_detached(-1);
  }
  return NULL;
}

/* Lock held. */
static bool start_thread(struct pg_queue *queue) {
  if (queue->started) return true;
  atomic_fetch_add(&queue->users, 1);
  queue->started = pg_thread_create(&queue->thread, execute, queue);
  if (!queue->started) atomic_fetch_sub(&queue->users, 1);
  return queue->started;
}

static aclError open_on_device(struct pg_queue *queue) {
  if (cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking) != cudaSuccess) {
    (void)cudaGetLastError();
    return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  }
  queue->reports = pg_cuda_reports_open(queue->options.device);
  if (queue->reports != NULL) return ACL_SUCCESS;
  (void)cudaStreamDestroy(queue->stream);
  return ACL_ERROR_BAD_ALLOC;
}

aclError pg_cuda_queue_create(const struct pg_queue_options *options, struct pg_queue **out) {
  CUcontext before;
  struct pg_queue *queue = calloc(1, sizeof *queue);
  if (queue == NULL) return ACL_ERROR_BAD_ALLOC;
  queue->options = *options;
  queue->last = &queue->first;
  atomic_init(&queue->refs, 1);
  atomic_init(&queue->users, 1);
  pthread_mutex_init(&queue->lock, NULL);
  pg_cond_init(&queue->wake);
  pg_cond_init(&queue->progress);
  aclError status = ACL_ERROR_RT_NO_STREAM_RESOURCE;
  if (pg_cuda_enter(options->device, &before)) {
    status = open_on_device(queue);
    pg_cuda_leave(options->device, before);
  }
  if (status == ACL_SUCCESS)
    *out = queue;
  else
    pg_cuda_queue_unref(queue);
  return status;
}

/* Copies of the steps, one after another; NULL without memory. */
static struct pg_cuda_link *copy_steps(const struct pg_step *steps, size_t count) {
  struct pg_cuda_link *first = NULL;
  for (size_t i = count; i-- > 0;) {
    struct pg_cuda_link *link = malloc(sizeof *link);
    if (link == NULL) break;
    link->step = steps[i];
    link->together = i > 0;
    link->next = first;
    first = link;
    if (i == 0) return first;
  }
  while (first != NULL) {
    struct pg_cuda_link *next = first->next;
    free(first);
    first = next;
  }
  return NULL;
}

/* All of them or none into the list.  Lock held. */
static aclError enqueue(struct pg_queue *queue, const struct pg_step *steps, size_t count) {
  if (pg_cuda_capture(queue) != 0) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  if (!start_thread(queue)) return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  struct pg_cuda_link *first = copy_steps(steps, count);
  if (first == NULL) return ACL_ERROR_BAD_ALLOC;
  *queue->last = first;
  while (*queue->last != NULL) queue->last = &(*queue->last)->next;
  queue->count += count;
  queue->pushed += count;
  pthread_cond_signal(&queue->wake);
  return ACL_SUCCESS;
}

/* What went wrong on the way to the stream, for after the lock. */
struct trouble {
  cudaError_t error; /* the first one */
  uint64_t ticket;
};

/* Straight onto the CUDA stream.  While that is captured a kernel has no slot: the graph may run
 * when nobody looks, and many times.  Lock held. */
static void issue_directly(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                           bool captured, struct trouble *trouble) {
  for (size_t i = 0; i < count; i++) {
    const uint64_t ticket = ++queue->pushed;
    struct pg_cuda_report *report = NULL;
    if (has_report(&steps[i]) && !captured)
      report = pg_cuda_report_take(queue, &steps[i].u.kernel, ticket);
    const cudaError_t error = pg_cuda_step_issue(&steps[i], report, queue->stream);
    if (report != NULL && error == cudaSuccess) pg_cuda_report_post(queue);
    if (error != cudaSuccess && trouble->error == cudaSuccess)
      *trouble = (struct trouble){error, ticket};
  }
}

/* Nothing waits for the thread, and nothing has to be judged first.  Lock held. */
static bool is_direct(const struct pg_queue *queue) {
  return queue->count == 0 && !queue->busy && !queue->stop_on_failure;
}

/* device: the steps can be direct, which the caller looked at without a lock of ours: it may take
 * another queue's.  Lock held; free in between where the reports are full. */
static aclError put(struct pg_queue *queue, const struct pg_step *steps, size_t count, bool device,
                    struct trouble *trouble) {
  bool reports = false;
  for (size_t i = 0; i < count; i++) reports = reports || has_report(&steps[i]);
  const bool captured = reports && pg_cuda_capture(queue) != 0;
  while (!queue->closing && !queue->held && device && is_direct(queue)) {
    if (!reports || captured || pg_cuda_reports_have_room(queue, count)) {
      issue_directly(queue, steps, count, captured, trouble);
      return ACL_SUCCESS;
    }
    if (pg_cuda_reports_is_judge(queue)) break; /* it would wait for itself */
    pg_cuda_reports_make_room(queue);
  }
  if (queue->closing || queue->held) return ACL_ERROR_RT_INVALID_HANDLE;
  return enqueue(queue, steps, count);
}

/* The steps and a mark behind them, which is a step too: all of them in one go. */
static aclError put_all(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                        struct pg_mark *behind, struct trouble *trouble) {
  struct pg_step all[PG_CUDA_MARKED_STEPS + 1];
  bool direct = true;
  for (size_t i = 0; i < count; i++) direct = direct && pg_cuda_step_is_device(&steps[i]);
  pthread_mutex_lock(&queue->lock);
  if (behind != NULL) {
    for (size_t i = 0; i < count; i++) all[i] = steps[i];
    all[count++] = (struct pg_step){.kind = PG_STEP_MARK, .u.mark = behind};
    pg_cuda_mark_number(behind, queue->pushed + count);
    steps = all;
  }
  const aclError status = put(queue, steps, count, direct, trouble);
  pthread_mutex_unlock(&queue->lock);
  return status;
}

aclError pg_cuda_submit(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                        struct pg_mark **behind) {
  const int device = queue->options.device;
  struct trouble trouble = {cudaSuccess, 0};
  CUcontext before;
  if (behind != NULL && count > PG_CUDA_MARKED_STEPS) return ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT;
  if (!pg_cuda_enter(device, &before)) return ACL_ERROR_RT_INTERNAL_ERROR;
  struct pg_mark *mark = behind == NULL ? NULL : pg_cuda_mark_new(queue);
  const bool short_of_memory = behind != NULL && mark == NULL;
  const aclError status =
      short_of_memory ? ACL_ERROR_BAD_ALLOC : put_all(queue, steps, count, mark, &trouble);
  if (mark != NULL && status != ACL_SUCCESS) {
    pg_cuda_mark_release(mark); /* the step's */
    pg_cuda_mark_release(mark);
  }
  pg_cuda_leave(device, before);
  if (status == ACL_SUCCESS && behind != NULL) *behind = mark;
  if (trouble.error != cudaSuccess) pg_cuda_fail_with(queue, trouble.ticket, trouble.error);
  return status;
}

/* Until the thread is past the ticket; false when the time is up.  Lock held. */
static bool reach(struct pg_queue *queue, uint64_t ticket, int64_t deadline) {
  while (pg_cuda_completed(queue) < ticket)
    if (pg_cuda_observe(queue, deadline) == ETIMEDOUT && pg_cuda_completed(queue) < ticket)
      return false;
  return true;
}

aclError pg_cuda_sync(struct pg_queue *queue, int64_t timeout_ns, struct pg_failure *failure) {
  const int device = queue->options.device;
  const int64_t deadline = pg_deadline(timeout_ns);
  CUcontext before;
  if (!pg_cuda_enter(device, &before)) return ACL_ERROR_RT_INTERNAL_ERROR;
  const int cancel = pg_cancel_off(); /* settle may call the program's functions */
  pthread_mutex_lock(&queue->lock);
  const bool own = pg_cuda_is_own(queue);
  struct pg_cuda_waiter here = {.ticket = queue->pushed, .next = queue->waiters};
  queue->waiters = &here; /* cppcheck-suppress autoVariables; out of the list before it ends */
  const bool reached = !own && reach(queue, here.ticket, deadline) && settle(queue, deadline);
  struct pg_cuda_waiter **link = &queue->waiters;
  while (*link != &here) link = &(*link)->next;
  *link = here.next;
  if (reached && queue->failure.code != ACL_SUCCESS) {
    *failure = queue->failure;
    queue->failure.code = ACL_SUCCESS;
  }
  pthread_mutex_unlock(&queue->lock);
  pg_cancel_restore(cancel);
  pg_cuda_leave(device, before);
  if (own) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  if (!reached) return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
  return here.lost ? ACL_ERROR_RT_STREAM_ABORT : ACL_SUCCESS;
}

/* Steps that are on the CUDA stream count as done here: only the list can wait for ever. */
enum pg_activity pg_cuda_activity(struct pg_queue *queue, uint64_t *done) {
  pthread_mutex_lock(&queue->lock);
  *done = pg_cuda_completed(queue);
  const bool listed = *done != queue->pushed, waiting = queue->busy && queue->waiting;
  pthread_mutex_unlock(&queue->lock);
  if (listed) return waiting ? PG_WAITING : PG_WORKING;
  return pg_cuda_idle(queue) ? PG_IDLE : PG_WORKING;
}

/* Asking a stream that is captured would end the capture. */
bool pg_cuda_idle(struct pg_queue *queue) {
  const int device = queue->options.device;
  CUcontext before;
  if (!pg_cuda_enter(device, &before)) return true;
  pthread_mutex_lock(&queue->lock);
  const uint64_t posted = pg_cuda_reports_posted(queue);
  bool idle = pg_cuda_completed(queue) == queue->pushed && !pg_cuda_is_own(queue) &&
              pg_cuda_capture(queue) == 0;
  if (idle) {
    const enum cudaStreamCaptureMode mode = pg_cuda_relax();
    const cudaError_t error = cudaStreamQuery(queue->stream);
    pg_cuda_unrelax(mode);
    if (error != cudaSuccess) (void)cudaGetLastError();
    idle = error != cudaErrorNotReady;
    if (error == cudaSuccess) pg_cuda_reports_judge(queue, posted);
  }
  pthread_mutex_unlock(&queue->lock);
  pg_cuda_leave(device, before);
  return idle;
}

/* Tells the threads inside sync that wait for this ticket or a later one.  Lock held. */
static void tell_waiters(struct pg_queue *queue, uint64_t lost) {
  for (struct pg_cuda_waiter *w = queue->waiters; w != NULL; w = w->next)
    w->lost = w->lost || w->ticket >= lost;
}

void pg_cuda_hold(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->held = true;
  pthread_mutex_unlock(&queue->lock);
}

/* Takes the steps that have not begun out of the list. */
void pg_cuda_discard(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  struct pg_cuda_link *link = queue->first;
  queue->first = NULL;
  queue->last = &queue->first;
  if (queue->count > 0) tell_waiters(queue, queue->pushed - queue->count + 1);
  queue->count = 0;
  pthread_mutex_unlock(&queue->lock);
  while (link != NULL) {
    struct pg_cuda_link *next = link->next;
    pg_cuda_step_discard(&link->step);
    free(link);
    link = next;
  }
  pthread_mutex_lock(&queue->lock);
  pg_cuda_note_progress(queue);
  pthread_mutex_unlock(&queue->lock);
}

/* A step of the thread's that waits looks at stop every few milliseconds. */
void pg_cuda_interrupt(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  if (queue->busy) atomic_store(&queue->stop, true);
  if (queue->busy && queue->waiting) tell_waiters(queue, queue->running);
  pthread_mutex_unlock(&queue->lock);
}

void pg_cuda_set_stop_on_failure(struct pg_queue *queue, bool stop) {
  pthread_mutex_lock(&queue->lock);
  queue->stop_on_failure = stop;
  pthread_mutex_unlock(&queue->lock);
}

bool pg_cuda_on_own_step(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  const bool own = pg_cuda_is_own(queue);
  pthread_mutex_unlock(&queue->lock);
  return own;
}

void *pg_cuda_native_stream(struct pg_queue *queue) {
  atomic_store(&queue->shown, true);
  return queue->stream;
}

/* The thread ends with its step, which nobody can stop, and then waits for the CUDA stream; it is
 * started for that if the stream is at work. */
static void close_at_once(struct pg_queue *queue) {
  count_detached(1); /* before the thread can see that it should end */
  atomic_store(&queue->dropped, true);
  pg_cuda_discard(queue);
  pg_cuda_interrupt(queue);
  pthread_mutex_lock(&queue->lock);
  const bool working = cudaStreamQuery(queue->stream) == cudaErrorNotReady;
  const bool thread = queue->started || (working && start_thread(queue));
  queue->closing = true;
  pthread_cond_signal(&queue->wake);
  pthread_mutex_unlock(&queue->lock);
  pg_cuda_discard(queue); /* what came in between */
  if (!thread) count_detached(-1);
}

static void close_after_work(struct pg_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->closing = true;
  (void)reach(queue, queue->pushed, PG_FOREVER);
  (void)settle(queue, PG_FOREVER);
  const bool thread = queue->started;
  pthread_cond_signal(&queue->wake);
  pthread_mutex_unlock(&queue->lock);
  if (thread) pthread_join(queue->thread, NULL);
}

void pg_cuda_queue_close(struct pg_queue *queue, bool drop) {
  CUcontext before;
  const bool entered = pg_cuda_enter(queue->options.device, &before);
  const int cancel = pg_cancel_off();
  if (drop)
    close_at_once(queue);
  else
    close_after_work(queue);
  pg_cancel_restore(cancel);
  if (entered) pg_cuda_leave(queue->options.device, before);
}
