/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAdaptiveAvgPool2dBackward and aclnnAdaptiveAvgPool3dBackward.
 *
 *     out[n, c, d, h, w] = sum of gradOutput[n, c, od, oh, ow] / (D(od) * H(oh) * W(ow))
 *
 * over the outputs whose adaptive windows hold the cell; D, H, W are the windows' lengths.  Sums
 * are taken along W, then H, then D, in fp32 (DOUBLE in fp64), and rounded once.  Every cell is
 * computed by one thread. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_avg_pool2d_backward.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d_backward.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { GRAD_OUT, SELF, OUT, TENSORS };

struct args {
  const char *api;
  int spatial; /* 2 or 3 */
  struct pg_view view[TENSORS];
};

/* Every way the caller can be wrong, in the order of the documents, which differ in it. */
static aclnnStatus check_2d(struct args *a) {
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
  return pg_check_format(a->api, &v[GRAD_OUT], PG_PLANAR);
}

static aclnnStatus check_shapes_3d(const struct args *a) {
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

static aclnnStatus check_types_3d(const struct args *a) {
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

static aclnnStatus check_3d(struct args *a) {
  PG_TRY(check_shapes_3d(a));
  PG_TRY(check_types_3d(a));
  pg_views_lay_out(a->view, TENSORS, 3, false);
  return ACLNN_SUCCESS;
}

static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(a->spatial == 2 ? check_2d(a) : check_3d(a));
  PG_TRY(pg_views_check(a->api, v, TENSORS, 1u << OUT));
  return pg_adaptive_pooling(a->api, &v[SELF], &v[GRAD_OUT], pool);
}

static aclnnStatus prepare(struct args a, const aclTensor *const handles[TENSORS],
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_pooling pool;
  a.view[GRAD_OUT].name = "gradOutput";
  a.view[SELF].name = "self";
  a.view[OUT].name = "out";
  PG_TRY(pg_check_results(a.api, workspace_size, executor));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_avg_call call = {
        .grad_out = &a.view[GRAD_OUT], .grad_in = &a.view[OUT], .pool = pool};
    status = pg_plan_avg_backward(a.api, &call, workspace_size, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
                                                           const aclTensor *self, aclTensor *out,
                                                           uint64_t *workspaceSize,
                                                           aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, out};
  const struct args a = {.api = __func__, .spatial = 2};
  return prepare(a, handles, workspaceSize, executor);
}

aclnnStatus aclnnAdaptiveAvgPool2dBackward(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, const aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(const aclTensor *gradOutput,
                                                           const aclTensor *self, aclTensor *out,
                                                           uint64_t *workspaceSize,
                                                           aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, out};
  const struct args a = {.api = __func__, .spatial = 3};
  return prepare(a, handles, workspaceSize, executor);
}

aclnnStatus aclnnAdaptiveAvgPool3dBackward(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
