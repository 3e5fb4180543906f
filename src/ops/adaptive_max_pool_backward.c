/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAdaptiveMaxPool2dBackward and aclnnAdaptiveMaxPool3dBackward.
 *
 *     gradInput[n, c, i] = sum of gradOutput[n, c, o] over the outputs o with indices[n, c, o] == i
 *
 * i is the flat position in the plane (n, c): h * W + w, or (d * H + h) * W + w.  Windows may
 * overlap, so one cell can receive many gradients; they are added in ascending order of o, in
 * fp32, and rounded once.  Every cell is computed by one thread. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_max_pool2d_backward.h"
#include "aclnnop/aclnn_adaptive_max_pool3d_backward.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { GRAD_OUT, SELF, INDICES, GRAD_IN, TENSORS };

struct args {
  const char *api;
  int spatial; /* 2 or 3 */
  struct pg_view view[TENSORS];
};

static aclnnStatus check_types(const struct args *a) {
  const struct pg_view *v = a->view;
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_dtype(a->api, &v[SELF], PG_FLOATS));
  const bool narrow = a->spatial == 3 && !pg_soc()->max3d_int64;
  return pg_check_dtype(a->api, &v[INDICES], narrow ? PG_INT32_ONLY : PG_INDEXES);
}

static aclnnStatus check_shapes(const struct args *a) {
  const struct pg_view *v = a->view;
  PG_TRY(pg_check_same_rank(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_rank(a->api, &v[INDICES], &v[SELF]));
  PG_TRY(pg_check_same_rank(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_same_shape(a->api, &v[INDICES], &v[GRAD_OUT]));
  PG_TRY(pg_check_same_shape(a->api, &v[GRAD_IN], &v[SELF]));
  for (int i = 0; i < TENSORS; i++)
    if (i != SELF) PG_TRY(pg_check_same_format(a->api, &v[i], &v[SELF]));
  PG_TRY(pg_check_format(a->api, &v[SELF], PG_PLANAR));
  return pg_check_rank(a->api, &v[SELF], a->spatial + 1, a->spatial + 2);
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(check_types(a));
  PG_TRY(check_shapes(a));
  pg_views_lay_out(v, TENSORS, a->spatial, false);
  PG_TRY(pg_views_check(a->api, v, TENSORS, 1u << GRAD_IN));
  PG_TRY(pg_check_plane(a->api, &v[SELF], pg_soc()->large_planes, &v[INDICES]));
  PG_TRY(pg_check_same_planes(a->api, &v[GRAD_OUT], &v[SELF]));
  return pg_adaptive_pooling(a->api, &v[SELF], &v[GRAD_OUT], pool);
}

static aclnnStatus prepare(const char *api, int spatial, const aclTensor *const handles[TENSORS],
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_pooling pool;
  struct args a = {
      .api = api,
      .spatial = spatial,
      .view = {
          {.name = "gradOutput"}, {.name = "self"}, {.name = "indices"}, {.name = "gradInput"}}};
  PG_TRY(pg_check_results(api, workspace_size, executor));
  PG_TRY(pg_views_acquire(api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_max_call call = {
        .op = spatial == 2 ? "aclnnAdaptiveMaxPool2dBackward" : "aclnnAdaptiveMaxPool3dBackward",
        .has_depth = spatial == 3,
        .grad_out = &a.view[GRAD_OUT],
        .index = &a.view[INDICES],
        .grad_in = &a.view[GRAD_IN],
        .pool = pool};
    status = pg_plan_max_backward(api, &call, workspace_size, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, indices, gradInput};
  return prepare(__func__, 2, handles, workspaceSize, executor);
}

aclnnStatus aclnnAdaptiveMaxPool2dBackward(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAdaptiveMaxPool3dBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, indices, gradInput};
  return prepare(__func__, 3, handles, workspaceSize, executor);
}

aclnnStatus aclnnAdaptiveMaxPool3dBackward(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
