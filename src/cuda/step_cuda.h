/* SPDX-License-Identifier: Apache-2.0 */
/* What one step is for CUDA: work for its stream, or for the queue's host thread. */
#ifndef PG_CUDA_STEP_H_
#define PG_CUDA_STEP_H_

#include "cuda/method_cuda.h"
#include "cuda/queue_cuda.h"

/* Can it go onto the CUDA stream as things are?  A wait may, once its mark is issued. */
bool pg_cuda_step_is_device(const struct pg_step *step);

/* Must the CUDA stream be idle before the thread runs it? */
bool pg_cuda_step_needs_idle(const struct pg_step *step);

/* Puts it onto the stream and lets go of what it owns. */
cudaError_t pg_cuda_step_issue(const struct pg_step *step, struct pg_cuda_report *report,
                               cudaStream_t stream);

/* Runs one that is not the device's, on the queue's thread. */
aclError pg_cuda_step_run(struct pg_queue *queue, const struct pg_step *step,
                          struct pg_failure *why);

/* One that will not run still lets go of what it owns. */
void pg_cuda_step_discard(const struct pg_step *step);

/* Also for what is done at once. */
cudaError_t pg_cuda_issue_copy(const struct pg_copy *copy, cudaStream_t stream);
cudaError_t pg_cuda_issue_fill(const struct pg_fill *fill, cudaStream_t stream);
void pg_cuda_fill_on_host(const struct pg_fill *fill);

#endif
