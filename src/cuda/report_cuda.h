/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels found wrong with their data, judged when they are known to be over.
 *
 * A queue has a ring of reports in memory that both sides see.  A kernel that may have something to
 * report gets the next slot; who finds the CUDA stream past some slots judges them, in order. */
#ifndef PG_CUDA_REPORT_H_
#define PG_CUDA_REPORT_H_

#include "cuda/method_cuda.h"
#include "cuda/queue_cuda.h"

/* A ring with nothing in it, a used one if there is; the device is current.  NULL without memory.
 * A ring that is closed has no kernel left that could write to it. */
struct pg_cuda_reports *pg_cuda_reports_open(int device);
void pg_cuda_reports_close(int device, struct pg_cuda_reports *reports);

/* All of these with the queue's lock held.  Room for count more?  make_room waits for the oldest
 * ones, letting go of the lock. */
bool pg_cuda_reports_have_room(const struct pg_queue *queue, size_t count);
void pg_cuda_reports_make_room(struct pg_queue *queue);

/* The next slot, empty; it counts once its kernel is on the stream and it is posted. */
struct pg_cuda_report *pg_cuda_report_take(struct pg_queue *queue,
                                           const struct pg_kernel_step *step, uint64_t ticket);
void pg_cuda_report_post(struct pg_queue *queue);
uint64_t pg_cuda_reports_posted(const struct pg_queue *queue);

/* Judges those up to the number `posted` was, whose kernels are over; lets go of the lock where one
 * has something in it.  forget: the device failed, what is in them means nothing. */
void pg_cuda_reports_judge(struct pg_queue *queue, uint64_t up_to);
void pg_cuda_reports_forget(struct pg_queue *queue, uint64_t up_to);

/* Is the caller inside one of the queue's judgements? */
bool pg_cuda_reports_is_judge(const struct pg_queue *queue);

#endif
