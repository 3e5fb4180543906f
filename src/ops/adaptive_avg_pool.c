/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAdaptiveAvgPool2d and aclnnAdaptiveAvgPool3d.
 *
 *     out[n, c, od, oh, ow] = (sum of the cells in the window) / (D(od) * H(oh) * W(ow))
 *
 * over adaptive windows of lengths D, H and W.  Cells are added in fp32 in the order that
 * kernels.h states, divided once and rounded once. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_avg_pool2d.h"
#include "aclnnop/aclnn_adaptive_avg_pool3d.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { SELF, OUT, TENSORS };

struct args {
  const char *api;
  int spatial; /* 2 or 3 */
  struct pg_view view[TENSORS];
  const aclIntArray *output_size;
};

static aclnnStatus check_formats(const struct args *a) {
  const struct pg_view *v = a->view;
  PG_TRY(pg_check_same_format(a->api, &v[OUT], &v[SELF]));
  if (a->spatial == 2) return pg_check_format_of_rank(a->api, &v[SELF]);
  PG_TRY(
      pg_check_format(a->api, &v[SELF], pg_soc()->avg3d_any_planar ? PG_PLANAR : PG_PLANAR_NAMED));
  return pg_check_rank(a->api, &v[SELF], 4, 5);
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  struct pg_sizes sizes = {1, 1, 1};
  PG_TRY(pg_check_dtype(a->api, &v[SELF], PG_FLOATS));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  PG_TRY(check_formats(a));
  PG_TRY(pg_check_same_rank(a->api, &v[OUT], &v[SELF]));
  const bool may_be_empty = a->spatial == 2 || pg_soc()->avg3d_empty_batch;
  PG_TRY(pg_check_lengths(a->api, &v[SELF], may_be_empty ? 0 : 1));
  PG_TRY(pg_read_sizes(a->api, "outputSize", a->output_size, a->spatial, a->spatial, &sizes));
  PG_TRY(pg_check_positive(a->api, "outputSize", a->spatial, sizes));
  pg_views_lay_out(v, TENSORS, a->spatial, false);
  PG_TRY(
      pg_check_adaptive_out(a->api, ACLNN_ERR_PARAM_INVALID, a->spatial, &v[OUT], &v[SELF], sizes));
  PG_TRY(pg_views_check(a->api, v, TENSORS, 1u << OUT));
  return pg_adaptive_pooling(a->api, &v[SELF], &v[OUT], pool);
}

static aclnnStatus prepare(struct args a, const aclTensor *const handles[TENSORS],
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_pooling pool;
  const struct pg_required required[] = {
      {"self", handles[SELF]}, {"outputSize", a.output_size}, {"out", handles[OUT]}, {NULL, NULL}};
  a.view[SELF].name = "self";
  a.view[OUT].name = "out";
  PG_TRY(pg_check_results(a.api, workspace_size, executor));
  PG_TRY(pg_check_required(a.api, required));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_avg_forward_call call = {
        .in = &a.view[SELF], .out = &a.view[OUT], .pool = pool};
    status = pg_plan_avg_forward(a.api, &call, workspace_size, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnAdaptiveAvgPool2dGetWorkspaceSize(const aclTensor *self,
                                                   const aclIntArray *outputSize, aclTensor *out,
                                                   uint64_t *workspaceSize,
                                                   aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out};
  const struct args a = {.api = __func__, .spatial = 2, .output_size = outputSize};
  return prepare(a, handles, workspaceSize, executor);
}

aclnnStatus aclnnAdaptiveAvgPool2d(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   const aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAdaptiveAvgPool3dGetWorkspaceSize(const aclTensor *self,
                                                   const aclIntArray *outputSize, aclTensor *out,
                                                   uint64_t *workspaceSize,
                                                   aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out};
  const struct args a = {.api = __func__, .spatial = 3, .output_size = outputSize};
  return prepare(a, handles, workspaceSize, executor);
}

aclnnStatus aclnnAdaptiveAvgPool3d(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
