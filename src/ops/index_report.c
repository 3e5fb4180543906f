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

/* What the end of each sentence tells, of the policy that is not chosen. */
static const char *choices(enum pg_index_policy policy) {
  return policy == PG_INDEX_ERROR ? "warn goes on with a warning"
                                  : "error makes this an error, off silences it";
}

/* The failure is set; the policy says what becomes of it. */
static aclError conclude(enum pg_index_policy policy, struct pg_failure *why) {
  if (policy == PG_INDEX_ERROR) return why->code;
  fprintf(stderr, "poolgrad: %s\n", why->text);
  why->code = ACL_SUCCESS;
  return ACL_SUCCESS;
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
                 (long long)cells, where, (long long)report->value, choices(policy));
  return conclude(policy, why);
}

aclError pg_gather_judge(const union pg_kernel_args *args, const struct pg_index_report *report,
                         struct pg_failure *why) {
  const enum pg_index_policy policy = pg_index_policy();
  if (policy == PG_INDEX_OFF) return ACL_SUCCESS;
  pg_failure_set(why, ACL_ERROR_RT_AICORE_EXCEPTION,
                 "aclnnGather: %lld of %lld indices lie outside their axis of %lld elements and "
                 "gave 0, the first, number %lld of index, is %lld; POOLGRAD_INDEX_CHECK=%s",
                 (long long)report->count, (long long)args->gather.grid.count,
                 (long long)args->gather.length, (long long)report->position,
                 (long long)report->value, choices(policy));
  return conclude(policy, why);
}

static aclError judge_unpool(const char *op, const struct pg_unpool *a,
                             const struct pg_index_report *report, struct pg_failure *why) {
  const enum pg_index_policy policy = pg_index_policy();
  const int64_t indices = a->planes * a->outputs;
  if (policy == PG_INDEX_OFF) return ACL_SUCCESS;
  pg_failure_set(why, ACL_ERROR_RT_AICORE_EXCEPTION,
                 "%s: %lld of %lld indices lie outside their plane of %lld cells and were dropped, "
                 "the first, number %lld of plane %lld, is %lld; POOLGRAD_INDEX_CHECK=%s",
                 op, (long long)report->count, (long long)indices, (long long)a->cells,
                 (long long)(report->position % a->outputs),
                 (long long)(report->position / a->outputs), (long long)report->value,
                 choices(policy));
  return conclude(policy, why);
}

aclError pg_unpool2d_judge(const union pg_kernel_args *args, const struct pg_index_report *report,
                           struct pg_failure *why) {
  return judge_unpool("aclnnMaxUnpool2d", &args->unpool, report, why);
}

aclError pg_unpool3d_judge(const union pg_kernel_args *args, const struct pg_index_report *report,
                           struct pg_failure *why) {
  return judge_unpool("aclnnMaxUnpool3d", &args->unpool, report, why);
}
