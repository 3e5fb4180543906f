/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAvgPool3dBackward.
 *
 *     output[n, c, d, h, w] = sum of gradOutput[n, c, od, oh, ow] / divisor(od, oh, ow)
 *
 * over the outputs whose windows hold the cell.  The divisor is divisorOverride, or the cells of
 * the window cut to input and padding (countIncludePad) or to the input.  Sums are taken along W,
 * then H, then D, in fp32, and rounded once.  Every cell is computed by one thread. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_avgpool3d_backward.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { GRAD_OUT, SELF, OUTPUT, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  struct pg_sliding sliding;
};

static aclnnStatus check_tensors(struct args *a) {
  const struct pg_view *v = a->view;
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_dtype(a->api, &v[i], PG_FLOATS));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_OUT], &v[OUTPUT]));
  PG_TRY(pg_check_same_dtype(a->api, &v[SELF], &v[OUTPUT]));
  PG_TRY(pg_check_rank(a->api, &v[GRAD_OUT], 4, 5));
  PG_TRY(pg_check_same_rank(a->api, &v[SELF], &v[GRAD_OUT]));
  PG_TRY(pg_check_same_shape(a->api, &v[OUTPUT], &v[SELF]));
  PG_TRY(pg_read_sliding(a->api, &a->sliding));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_OUT], &v[OUTPUT]));
  PG_TRY(pg_check_format(a->api, &v[OUTPUT], PG_PLANAR));
  PG_TRY(pg_check_format(a->api, &v[SELF], PG_PLANAR));
  return pg_check_not_negative(a->api, &v[SELF]);
}

/* Every way the caller can be wrong, in the order of the documents.  An empty gradOutput has no
 * windows, and nobody asks what they would be. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(check_tensors(a));
  pg_views_lay_out(v, TENSORS, 3, false);
  if (pg_tensor_is_empty(v[GRAD_OUT].tensor)) {
    PG_TRY(pg_check_same_planes(a->api, &v[GRAD_OUT], &v[SELF]));
    PG_TRY(pg_views_check(a->api, v, TENSORS, 1u << OUTPUT));
    return pg_adaptive_pooling(a->api, &v[SELF], &v[GRAD_OUT], pool);
  }
  PG_TRY(pg_check_sliding(a->api, &a->sliding, NULL));
  PG_TRY(pg_sliding_pooling(a->api, &v[SELF], &a->sliding, pool));
  PG_TRY(pg_check_pooled(a->api, &a->sliding, &v[SELF], &v[GRAD_OUT], pool));
  return pg_views_check(a->api, v, TENSORS, 1u << OUTPUT);
}

aclnnStatus aclnnAvgPool3dBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *kernelSize,
    const aclIntArray *stride, const aclIntArray *padding, bool ceilMode, bool countIncludePad,
    int64_t divisorOverride, aclTensor *output, uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, output};
  struct pg_pooling pool;
  struct args a = {.api = __func__,
                   .view = {{.name = "gradOutput"}, {.name = "self"}, {.name = "output"}},
                   .sliding = pg_sliding_begin(3, ceilMode, false)};
  const struct pg_required required[] = {{"gradOutput", gradOutput},
                                         {"self", self},
                                         {"kernelSize", kernelSize},
                                         {"stride", stride},
                                         {"padding", padding},
                                         {"output", output},
                                         {NULL, NULL}};
  pg_sliding_arrays(&a.sliding, kernelSize, stride, padding, NULL);
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_required(a.api, required));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_avg_call call = {.grad_out = &a.view[GRAD_OUT],
                                     .grad_in = &a.view[OUTPUT],
                                     .pool = pool,
                                     .divisor = divisorOverride,
                                     .count_include_pad = countIncludePad};
    status = pg_plan_avg_backward(a.api, &call, workspaceSize, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnAvgPool3dBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   const aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
