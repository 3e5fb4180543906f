/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: CUDA events, once the queue has got there. */
#ifndef PG_CUDA_MARK_H_
#define PG_CUDA_MARK_H_

#include "cuda/queue_cuda.h"

/* pg_backend's functions; see runtime/backend.h. */
void pg_cuda_mark_retain(struct pg_mark *mark);
void pg_cuda_mark_release(struct pg_mark *mark);
bool pg_cuda_mark_done(struct pg_mark *mark);
bool pg_cuda_mark_discarded(struct pg_mark *mark);
aclError pg_cuda_mark_sync(struct pg_mark *mark, int64_t timeout_ns);
int64_t pg_cuda_mark_time_ns(struct pg_mark *mark);

/* A mark of the queue with two references, for the caller and for the step; NULL without memory. */
struct pg_mark *pg_cuda_mark_new(struct pg_queue *queue);
void pg_cuda_mark_number(struct pg_mark *mark, uint64_t ticket);

/* The queue has got to it, or never will. */
cudaError_t pg_cuda_mark_issue(struct pg_mark *mark, cudaStream_t stream);
void pg_cuda_mark_drop(struct pg_mark *mark);

/* Can a CUDA stream wait for it by itself?  Not before it is issued. */
bool pg_cuda_mark_is_issued(const struct pg_mark *mark);
cudaError_t pg_cuda_mark_wait_on(const struct pg_mark *mark, cudaStream_t stream);

/* Waits until it is issued (done: until it is done), *stop becomes true or the time is up; the
 * last makes it false. */
bool pg_cuda_mark_await(struct pg_mark *mark, bool done, int64_t deadline, const atomic_bool *stop);

#endif
