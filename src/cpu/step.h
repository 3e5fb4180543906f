/* SPDX-License-Identifier: Apache-2.0 */
/* What one step does on the CPU. */
#ifndef PG_STEP_H_
#define PG_STEP_H_

#include <stdatomic.h>

#include "runtime/backend.h"

/* Runs any step but PG_STEP_WAIT and PG_STEP_MARK, which belong to the queue.  A wait for a
 * value ends early when *dropped becomes true and pg_values_changed is called.  The step is this
 * run's own copy. */
aclError pg_step_run(struct pg_step *step, const atomic_bool *dropped, struct pg_failure *why);

/* Wakes the steps that wait for a value. */
void pg_values_changed(void);

void pg_copy_run(const struct pg_copy *copy);
void pg_fill_run(const struct pg_fill *fill);

#endif
