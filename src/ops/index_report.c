/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/index_report.h"

#include <stdio.h>

#include "core/index_policy.h"

/* "n=0 c=3 oh=1 ow=2", with od where there is a depth. */
static void place(const struct pg_max_backward *a, int64_t position, char text[160]) {
  const struct pg_pooling *p = &a->pool;
  const int64_t ow = position % p->w.out, row = position / p->w.out;
  const int64_t oh = row % p->h.out, slice = row / p->h.out;
  const int64_t od = slice % p->d.out, plane = slice / p->d.out;
  const long long n = plane / p->c, c = plane % p->c;
  if (a->has_depth)
    snprintf(text, 160, "n=%lld c=%lld od=%lld oh=%lld ow=%lld", n, c, (long long)od, (long long)oh,
             (long long)ow);
  else
    snprintf(text, 160, "n=%lld c=%lld oh=%lld ow=%lld", n, c, (long long)oh, (long long)ow);
}

aclError pg_index_judge(const union pg_kernel_args *args, const struct pg_index_report *report,
                        struct pg_failure *why) {
  const struct pg_pooling *p = &args->max_backward.pool;
  const enum pg_index_policy policy = pg_index_policy();
  const int64_t outputs = p->n * p->c * p->d.out * p->h.out * p->w.out;
  const int64_t cells = p->d.in * p->h.in * p->w.in;
  char where[160];
  if (policy == PG_INDEX_OFF) return ACL_SUCCESS;
  place(&args->max_backward, report->position, where);
  pg_failure_set(why, ACL_ERROR_RT_AICORE_EXCEPTION,
                 "%s: %lld of %lld indices lie outside their plane of %lld cells and were dropped, "
                 "the first at %s is %lld; POOLGRAD_INDEX_CHECK=%s",
                 args->max_backward.op, (long long)report->count, (long long)outputs,
                 (long long)cells, where, (long long)report->value,
                 policy == PG_INDEX_ERROR ? "warn goes on with a warning"
                                          : "error makes this an error, off silences it");
  if (policy == PG_INDEX_ERROR) return why->code;
  fprintf(stderr, "poolgrad: %s\n", why->text);
  why->code = ACL_SUCCESS;
  return ACL_SUCCESS;
}
