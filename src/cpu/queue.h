/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's queue: an ordered list of steps with an executor thread of its own. */
#ifndef PG_QUEUE_H_
#define PG_QUEUE_H_

#include "runtime/backend.h"

/* These are pg_backend's functions of the same names; see runtime/backend.h. */
aclError pg_queue_create(const struct pg_queue_options *options, struct pg_queue **out);
void pg_queue_close(struct pg_queue *queue, bool drop);
void pg_queue_release(struct pg_queue *queue);
aclError pg_queue_submit(struct pg_queue *queue, const struct pg_step *steps, size_t count,
                         struct pg_mark **behind);
aclError pg_queue_sync(struct pg_queue *queue, int64_t timeout_ns, struct pg_failure *failure);
bool pg_queue_idle(struct pg_queue *queue);
enum pg_activity pg_queue_activity(struct pg_queue *queue, uint64_t *done);
void pg_queue_discard(struct pg_queue *queue);
void pg_queue_interrupt(struct pg_queue *queue);
void pg_queue_hold(struct pg_queue *queue);
void pg_queue_set_stop_on_failure(struct pg_queue *queue, bool stop);
bool pg_queue_on_own_step(struct pg_queue *queue);

void pg_mark_retain(struct pg_mark *mark);
void pg_mark_release(struct pg_mark *mark);
bool pg_mark_done(struct pg_mark *mark);
bool pg_mark_discarded(struct pg_mark *mark);
aclError pg_mark_sync(struct pg_mark *mark, int64_t timeout_ns);
int64_t pg_mark_time_ns(struct pg_mark *mark);

/* Returns when the executor threads of dropped queues have ended. */
void pg_queues_wait_gone(void);

#endif
