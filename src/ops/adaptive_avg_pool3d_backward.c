/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAdaptiveAvgPool3dBackward.
 *
 *     out[n, c, d, h, w] = sum of gradOutput[n, c, od, oh, ow] / (D(od) * H(oh) * W(ow))
 *
 * over the outputs whose adaptive windows hold the cell; D, H, W are the windows' lengths.  Sums
 * are taken along W, then H, then D, in fp32 (DOUBLE in fp64), and rounded once.  Every cell is
 * computed by one thread. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { GRAD_OUT, SELF, OUT, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
};

static aclnnStatus check_shapes(const struct args *a) {
  const struct pg_view *v = a->view;
  const struct pg_tensor *self = v[SELF].tensor, *grad = v[GRAD_OUT].tensor, *out = v[OUT].tensor;
  PG_TRY(pg_check_rank(a->api, &v[SELF], 4, 5));
  PG_TRY(pg_check_same_rank(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_rank(a->api, &v[OUT], &v[SELF]));
  for (int i = 0; i < self->rank; i++) {
    const int64_t least = i == 0 && pg_soc()->avg3d_backward_empty_batch ? 0 : 1;
    PG_CHECK_AS(a->api, self->dims[i] >= least, ACLNN_ERR_PARAM_INVALID,
                "self is %s, axis %d must be at least %lld", pg_view_shape(&v[SELF]), i,
                (long long)least);
    PG_CHECK_AS(a->api, self->dims[i] == out->dims[i], ACLNN_ERR_PARAM_INVALID,
                "out is %s, expected self's shape %s", pg_view_shape(&v[OUT]),
                pg_view_shape(&v[SELF]));
  }
  for (int i = 0; i < self->rank - 3; i++)
    PG_CHECK_AS(a->api, self->dims[i] == grad->dims[i], ACLNN_ERR_PARAM_INVALID,
                "gradOutput is %s, its N and C must be those of self %s",
                pg_view_shape(&v[GRAD_OUT]), pg_view_shape(&v[SELF]));
  for (int i = self->rank - 3; i < self->rank; i++)
    PG_CHECK_AS(a->api, grad->dims[i] > 0, ACLNN_ERR_PARAM_INVALID,
                "gradOutput is %s, its D, H and W must be positive", pg_view_shape(&v[GRAD_OUT]));
  return ACLNN_SUCCESS;
}

/* DOUBLE is there for the global average alone. */
static bool is_global(const struct pg_tensor *grad) {
  const int64_t *last = grad->dims + grad->rank - 3;
  return last[0] == 1 && last[1] == 1 && last[2] == 1;
}

static aclnnStatus check_types(const struct args *a) {
  const struct pg_view *v = a->view;
  const enum pg_dtypes allowed = is_global(v[GRAD_OUT].tensor) ? PG_FLOATS_AND_DOUBLE : PG_FLOATS;
  PG_TRY(pg_check_dtype(a->api, &v[GRAD_OUT], allowed));
  PG_TRY(pg_check_dtype(a->api, &v[SELF], allowed));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[OUT], &v[SELF]));
  return pg_check_format(a->api, &v[GRAD_OUT], PG_PLANAR);
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(check_shapes(a));
  PG_TRY(check_types(a));
  pg_views_lay_out(v, TENSORS, 3, false);
  PG_TRY(pg_views_check(a->api, v, TENSORS, 1u << OUT));
  return pg_adaptive_pooling(a->api, &v[SELF], &v[GRAD_OUT], pool);
}

aclnnStatus aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
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

aclnnStatus aclnnAdaptiveAvgPool3dBackward(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
