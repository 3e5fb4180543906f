/* SPDX-License-Identifier: Apache-2.0 */
/* What one step does on the CPU. */
#ifndef PG_STEP_H_
#define PG_STEP_H_

#include "cpu/scratch.h"
#include "runtime/backend.h"

/* Runs any step but PG_STEP_WAIT and PG_STEP_MARK, which the queue itself runs.  The step is a copy
 * that may be changed; a kernel computes in the scratch memory.  Once *scratch->stop is true, a
 * kernel, copy or fill leaves the rest undone, and a wait for a value ends as soon as
 * pg_values_changed is called. */
aclError pg_step_run(struct pg_step *step, struct pg_scratch *scratch, struct pg_failure *why);

/* Wakes the steps that wait for a value. */
void pg_values_changed(void);

void pg_copy_run(const struct pg_copy *copy, const atomic_bool *stop);
void pg_fill_run(const struct pg_fill *fill, const atomic_bool *stop);

#endif
