/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: the one set of threads that computes the kernels of all streams.
 *
 * The caller always takes part, so `count` threads means count - 1 workers.  Workers are started
 * when they are first needed.  After a job they spin for a short while, because often the next one
 * comes soon, and then sleep. */
#ifndef PG_WORKERS_H_
#define PG_WORKERS_H_

#include <stdbool.h>

#include "acl/acl_base.h"
#include "cpu/scratch.h"

/* Reads POOLGRAD_THREADS; fails if it is not a positive number. */
aclError pg_workers_configure(const char *api);

/* The threads that a job may have, with the caller. */
int pg_workers_count(void);

/* Runs fn over [0, items) on at most `threads` threads and returns when all of it is done.
 * Workers that sleep are woken at once if `wake` is set, else only when the job turns out to be
 * long enough, because being woken can take longer than a small job.  Several callers at once share
 * the workers.  The caller computes in `scratch`; if its stop is set, the workers too leave the
 * rest undone. */
void pg_workers_run(pg_items_fn *fn, const void *args, int64_t items, int threads, bool wake,
                    struct pg_scratch *scratch);

/* Ends the worker threads; the next run starts them again. */
void pg_workers_stop(void);

#endif
