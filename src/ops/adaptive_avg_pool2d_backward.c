/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAdaptiveAvgPool2dBackward.
 *
 *     out[n, c, h, w] = sum of gradOutput[n, c, oh, ow] / (H(oh) * W(ow))
 *
 * over the outputs whose adaptive windows hold the cell; H and W are the windows' lengths.  Sums
 * are taken along W, then H, in fp32, and rounded once.  Every cell is computed by one thread. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_avg_pool2d_backward.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { GRAD_OUT, SELF, OUT, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
};

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(pg_check_same_rank(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_not_negative(a->api, &v[GRAD_OUT]));
  PG_TRY(pg_check_not_negative(a->api, &v[SELF]));
  PG_TRY(pg_check_rank(a->api, &v[OUT], 3, 4));
  PG_TRY(pg_check_same_shape(a->api, &v[OUT], &v[SELF]));
  pg_views_lay_out(v, TENSORS, 2, false);
  PG_TRY(pg_check_same_planes(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_dtype(a->api, &v[GRAD_OUT], PG_FLOATS));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_format(a->api, &v[GRAD_OUT], PG_PLANAR));
  PG_TRY(pg_views_check(a->api, v, TENSORS, 1u << OUT));
  return pg_adaptive_pooling(a->api, &v[SELF], &v[GRAD_OUT], pool);
}

aclnnStatus aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
                                                           const aclTensor *self, aclTensor *out,
                                                           uint64_t *workspaceSize,
                                                           aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, out};
  struct pg_pooling pool;
  struct args a = {.api = __func__,
                   .view = {{.name = "gradOutput"}, {.name = "self"}, {.name = "out"}}};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_avg_call call = {
        .grad_out = &a.view[GRAD_OUT], .grad_in = &a.view[OUT], .pool = pool};
    status = pg_plan_avg_backward(a.api, &call, workspaceSize, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnAdaptiveAvgPool2dBackward(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, const aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
