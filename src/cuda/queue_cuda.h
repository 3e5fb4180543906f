/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's queue: a CUDA stream, and a host thread for what a CUDA stream cannot do. */
#ifndef PG_CUDA_QUEUE_H_
#define PG_CUDA_QUEUE_H_

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/device_cuda.h"
#include "runtime/backend.h"

struct pg_cuda_link; /* a step in a queue's list */
struct pg_cuda_reports;

struct pg_queue {
  struct pg_queue_options options;
  atomic_int refs;     /* the users together, marks */
  atomic_int users;    /* owner, thread: the last one gives back what is CUDA's */
  atomic_bool dropped; /* destroyed by force */
  atomic_bool stop;    /* the thread's step should give up waiting; raised with the lock held */
  atomic_bool shown;   /* the program has been given the CUDA stream */
  cudaStream_t stream;
  pthread_t thread; /* once started */

  pthread_mutex_t lock;           /* guards everything below, and the order of work on the stream */
  pthread_cond_t wake;            /* the thread waits here; woken by push and close */
  pthread_cond_t progress;        /* observers wait here; woken by the thread, discard and judges */
  struct pg_cuda_link *first;     /* the list: steps that wait for the thread */
  struct pg_cuda_link **last;     /* where the next one is hung */
  uint64_t count;                 /* steps in the list */
  uint64_t pushed;                /* ticket of the newest step, direct ones included */
  uint64_t running;               /* ticket of the thread's step */
  uint64_t undone;                /* the newest one of the list that was discarded for a failure */
  bool busy;                      /* the thread is at a step */
  bool waiting;                   /* which waits for something outside this queue */
  struct pg_cuda_waiter *waiters; /* threads inside sync, on their stacks */
  bool started, closing, held, stop_on_failure;
  unsigned observers;
  struct pg_failure failure;       /* the first one not yet handed out */
  struct pg_cuda_reports *reports; /* what kernels found, still to be judged */
};

/* These are pg_backend's functions of the same names; see runtime/backend.h. */
aclError pg_cuda_queue_create(const struct pg_queue_options *options, struct pg_queue **out);
void pg_cuda_queue_close(struct pg_queue *queue, bool drop);
void pg_cuda_queue_release(struct pg_queue *queue);
aclError pg_cuda_submit(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                        struct pg_mark **behind);
aclError pg_cuda_sync(struct pg_queue *queue, int64_t timeout_ns, struct pg_failure *failure);
bool pg_cuda_idle(struct pg_queue *queue);
enum pg_activity pg_cuda_activity(struct pg_queue *queue, uint64_t *done);
void pg_cuda_hold(struct pg_queue *queue);
void pg_cuda_discard(struct pg_queue *queue);
void pg_cuda_interrupt(struct pg_queue *queue);
void pg_cuda_set_stop_on_failure(struct pg_queue *queue, bool stop);
bool pg_cuda_on_own_step(struct pg_queue *queue);
void *pg_cuda_native_stream(struct pg_queue *queue);

/* Returns when the threads of dropped queues have ended. */
void pg_cuda_queues_wait_gone(void);

/* For marks and reports.  The first four with the lock held; observe lets go of it meanwhile. */
uint64_t pg_cuda_completed(const struct pg_queue *queue); /* the last ticket the thread is past */
bool pg_cuda_is_own(const struct pg_queue *queue); /* is the caller inside one of its steps? */
int pg_cuda_observe(struct pg_queue *queue, int64_t deadline);
void pg_cuda_note_progress(struct pg_queue *queue);
void pg_cuda_queue_unref(struct pg_queue *queue);
uint64_t pg_cuda_capture(const struct pg_queue *queue); /* pg_cuda_capture_of its stream */

/* Tells on_failure and keeps the first failure for sync.  Lock not held. */
void pg_cuda_fail(struct pg_queue *queue, uint64_t ticket, const struct pg_failure *failure);
void pg_cuda_fail_with(struct pg_queue *queue, uint64_t ticket, cudaError_t error);

/* Between two looks of a wait that has a time limit: short first, then longer; never past the
 * deadline.  *looks starts as 0. */
void pg_cuda_pause(int *looks, int64_t deadline);

#endif
