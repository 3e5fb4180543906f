/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/mark_cuda.h"

#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"

/*                 the queue gets there         CUDA's stream does
 *     PENDING ──┬──────────────────▶ ISSUED ──────────────────▶ DONE
 *               ├──────────────────▶ CAPTURED: part of a graph, nothing to wait for outside it
 *               └──────────────────▶ DROPPED: never reached */
enum state { PENDING, ISSUED, DONE, CAPTURED, DROPPED };

struct pg_mark {
  atomic_int refs;
  struct pg_queue *queue; /* holds a reference */
  uint64_t ticket;
  int device;
  atomic_int state; /* enum state */
  cudaEvent_t event;
  uint64_t capture;        /* CAPTURED: pg_cuda_capture then */
  _Atomic int64_t time_ns; /* 0: not asked for yet */
  struct pg_mark *next;    /* of the spare ones */
};

enum { LOOK_NS = 5000000, DEVICES_MAX = 64 }; /* a stopped step may go unseen for so long */

/* Marks with their events, for the next record on the device. */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the lists */
static struct pg_mark *spare[DEVICES_MAX];

static struct pg_mark *take_spare(int device) {
  pthread_mutex_lock(&spare_lock);
  struct pg_mark *mark = spare[device];
  if (mark != NULL) spare[device] = mark->next;
  pthread_mutex_unlock(&spare_lock);
  return mark;
}

static struct pg_mark *make(int device) {
  struct pg_mark *mark = calloc(1, sizeof *mark);
  if (mark == NULL) return NULL;
  mark->device = device;
  if (cudaEventCreate(&mark->event) == cudaSuccess) return mark;
  (void)cudaGetLastError();
  free(mark);
  return NULL;
}

struct pg_mark *pg_cuda_mark_new(struct pg_queue *queue) {
  const int device = queue->options.device;
  struct pg_mark *mark = take_spare(device);
  if (mark == NULL) mark = make(device);
  if (mark == NULL) return NULL;
  atomic_init(&mark->refs, 2);
  atomic_init(&mark->state, PENDING);
  atomic_init(&mark->time_ns, 0);
  atomic_fetch_add(&queue->refs, 1);
  mark->queue = queue;
  return mark;
}

void pg_cuda_mark_number(struct pg_mark *mark, uint64_t ticket) { mark->ticket = ticket; }

void pg_cuda_mark_retain(struct pg_mark *mark) { atomic_fetch_add(&mark->refs, 1); }

/* The event may still be on its way: recording it again changes nothing for who waits for it. */
void pg_cuda_mark_release(struct pg_mark *mark) {
  if (atomic_fetch_sub(&mark->refs, 1) != 1) return;
  pg_cuda_queue_unref(mark->queue);
  pthread_mutex_lock(&spare_lock);
  mark->next = spare[mark->device];
  spare[mark->device] = mark;
  pthread_mutex_unlock(&spare_lock);
}

cudaError_t pg_cuda_mark_issue(struct pg_mark *mark, cudaStream_t stream) {
  mark->capture = pg_cuda_capture(mark->queue);
  const cudaError_t error = cudaEventRecord(mark->event, stream);
  const enum state state = error != cudaSuccess ? DROPPED : mark->capture != 0 ? CAPTURED : ISSUED;
  atomic_store(&mark->state, (int)state);
  return error;
}

void pg_cuda_mark_drop(struct pg_mark *mark) { atomic_store(&mark->state, DROPPED); }

bool pg_cuda_mark_is_issued(const struct pg_mark *mark) {
  return atomic_load(&mark->state) != PENDING;
}

cudaError_t pg_cuda_mark_wait_on(const struct pg_mark *mark, cudaStream_t stream) {
  const int state = atomic_load(&mark->state);
  const bool inside = state == CAPTURED && pg_cuda_capture_of(stream) == mark->capture;
  if (state != ISSUED && !inside) return cudaSuccess;
  return cudaStreamWaitEvent(stream, mark->event, 0);
}

/* A failed device will not get there either: what waits must go on. */
static bool look(struct pg_mark *mark) {
  CUcontext before;
  if (!pg_cuda_enter(mark->device, &before)) return true;
  const enum cudaStreamCaptureMode mode = pg_cuda_relax();
  const cudaError_t error = cudaEventQuery(mark->event);
  pg_cuda_unrelax(mode);
  pg_cuda_leave(mark->device, before);
  if (error == cudaErrorNotReady) return false;
  atomic_store(&mark->state, DONE);
  return true;
}

/* A dropped one counts as done when the step that was running is. */
static bool is_passed(struct pg_mark *mark) {
  pthread_mutex_lock(&mark->queue->lock);
  const bool passed = pg_cuda_completed(mark->queue) >= mark->ticket;
  pthread_mutex_unlock(&mark->queue->lock);
  return passed;
}

bool pg_cuda_mark_done(struct pg_mark *mark) {
  switch (atomic_load(&mark->state)) {
    case PENDING:
      return false;
    case ISSUED:
      return look(mark);
    case DROPPED:
      return is_passed(mark);
    default:
      return true;
  }
}

bool pg_cuda_mark_discarded(struct pg_mark *mark) { return atomic_load(&mark->state) == DROPPED; }

/* Until the queue has got to the mark. */
static bool await_issue(struct pg_mark *mark, int64_t deadline, const atomic_bool *stop) {
  struct pg_queue *queue = mark->queue;
  bool late = false;
  pthread_mutex_lock(&queue->lock);
  while ((atomic_load(&mark->state) == PENDING || pg_cuda_completed(queue) < mark->ticket) &&
         !late && !(stop != NULL && atomic_load(stop))) {
    const int64_t now = pg_now_ns();
    late = deadline != PG_FOREVER && now >= deadline;
    const int64_t soon = now + LOOK_NS;
    if (!late)
      (void)pg_cuda_observe(queue, deadline == PG_FOREVER || deadline > soon ? soon : deadline);
  }
  pthread_mutex_unlock(&queue->lock);
  return !late;
}

static bool await_event(struct pg_mark *mark, int64_t deadline, const atomic_bool *stop) {
  int looks = 0;
  while (!pg_cuda_mark_done(mark) && !(stop != NULL && atomic_load(stop))) {
    if (deadline != PG_FOREVER && pg_now_ns() >= deadline) return false;
    pg_cuda_pause(&looks, deadline);
  }
  return true;
}

bool pg_cuda_mark_await(struct pg_mark *mark, bool done, int64_t deadline,
                        const atomic_bool *stop) {
  if (atomic_load(&mark->state) == PENDING && !await_issue(mark, deadline, stop)) return false;
  return !done || await_event(mark, deadline, stop);
}

/* Without a time limit CUDA itself waits, which is quickest. */
static void await_for_ever(struct pg_mark *mark) {
  CUcontext before;
  (void)pg_cuda_mark_await(mark, false, PG_FOREVER, NULL);
  if (atomic_load(&mark->state) == ISSUED && pg_cuda_enter(mark->device, &before)) {
    const enum cudaStreamCaptureMode mode = pg_cuda_relax();
    (void)cudaEventSynchronize(mark->event);
    pg_cuda_unrelax(mode);
    pg_cuda_leave(mark->device, before);
  }
  (void)pg_cuda_mark_await(mark, true, PG_FOREVER, NULL);
}

aclError pg_cuda_mark_sync(struct pg_mark *mark, int64_t timeout_ns) {
  struct pg_queue *queue = mark->queue;
  if (pg_cuda_mark_done(mark)) return ACL_SUCCESS;
  pthread_mutex_lock(&queue->lock);
  const bool never = pg_cuda_is_own(queue) && pg_cuda_completed(queue) < mark->ticket;
  pthread_mutex_unlock(&queue->lock);
  if (never) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  if (timeout_ns != PG_FOREVER)
    return pg_cuda_mark_await(mark, true, pg_deadline(timeout_ns), NULL)
               ? ACL_SUCCESS
               : ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;
  await_for_ever(mark);
  return ACL_SUCCESS;
}

int64_t pg_cuda_mark_time_ns(struct pg_mark *mark) {
  CUcontext before;
  int64_t time = atomic_load(&mark->time_ns);
  if (time != 0 || !pg_cuda_mark_done(mark) || atomic_load(&mark->state) != DONE) return time;
  if (!pg_cuda_enter(mark->device, &before)) return 0;
  time = pg_cuda_event_time(mark->device, mark->event);
  pg_cuda_leave(mark->device, before);
  atomic_store(&mark->time_ns, time);
  return time;
}
