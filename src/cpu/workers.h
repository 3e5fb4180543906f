/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: the one set of threads that all streams' kernels spread over.
 *
 * The caller always takes part, so `count` threads means count - 1 workers.  Workers start when
 * first needed, spin for a short while after a job (the next one is often near), then sleep. */
#ifndef PG_WORKERS_H_
#define PG_WORKERS_H_

#include <stdbool.h>

#include "acl/acl_base.h"
#include "cpu/scratch.h"

/* Reads POOLGRAD_THREADS; a sentence for what is not a positive number. */
aclError pg_workers_configure(const char *api);

/* Threads a job may have, the caller included. */
int pg_workers_count(void);

/* Is one of them looking out for work?  Waking one that sleeps can take longer than a small job. */
bool pg_workers_are_awake(void);

/* Runs fn over [0, items) on at most `threads` threads and returns when all of it is done.
 * Several callers at once share the workers.  The caller computes in `scratch`, whose stop also
 * makes the workers leave the rest undone. */
void pg_workers_run(pg_items_fn *fn, const void *args, int64_t items, int threads,
                    struct pg_scratch *scratch);

/* Ends the worker threads; the next run starts them again. */
void pg_workers_stop(void);

#endif
