/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAvgPool2dBackward.
 *
 *     gradInput[n, c, h, w] = sum of gradOutput[n, c, oh, ow] / divisor(oh, ow)
 *
 * over the outputs whose windows hold the cell.  The divisor is divisorOverride, or the cells of
 * the window cut to input and padding (countIncludePad) or to the input.  Sums are taken along W,
 * then H, in fp32, and rounded once.  Every cell is computed by one thread. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "core/dtype.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { GRAD_OUT, SELF, GRAD_IN, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  const aclIntArray *kernel_size, *stride, *padding;
  struct pg_sliding sliding; /* the arrays' values */
  int8_t cube_math_type;
};

static aclnnStatus check_format(const struct args *a, const struct pg_view *view, bool batched) {
  const aclFormat format = view->tensor->format;
  PG_CHECK_AS(a->api, format == ACL_FORMAT_NCHW || (format == ACL_FORMAT_NCL && !batched),
              ACLNN_ERR_PARAM_INVALID, "%s has format %s, allowed is NCHW%s", view->name,
              pg_format_name(format), batched ? " for 4 axes" : " or NCL");
  return ACLNN_SUCCESS;
}

static aclnnStatus check_tensors(const struct args *a) {
  const struct pg_view *v = a->view;
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_dtype(a->api, &v[i], PG_FLOATS));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_OUT], &v[GRAD_IN]));
  PG_TRY(pg_check_same_dtype(a->api, &v[SELF], &v[GRAD_IN]));
  const bool batched = v[GRAD_OUT].tensor->rank == 4;
  for (int i = 0; i < TENSORS; i++) PG_TRY(check_format(a, &v[i], batched && i != SELF));
  PG_TRY(pg_check_rank(a->api, &v[GRAD_OUT], 3, 4));
  PG_TRY(pg_check_same_rank(a->api, &v[GRAD_IN], &v[GRAD_OUT]));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_not_negative(a->api, &v[i]));
  return ACLNN_SUCCESS;
}

static aclnnStatus check_windows(struct args *a) {
  struct pg_sliding *w = &a->sliding;
  PG_TRY(pg_read_sizes(a->api, "kernelSize", a->kernel_size, 2, 1, &w->kernel));
  PG_TRY(pg_check_positive(a->api, "kernelSize", 2, w->kernel));
  w->stride = w->kernel;
  PG_TRY(pg_read_sizes(a->api, "stride", a->stride, 2, 0, &w->stride));
  PG_TRY(pg_check_positive(a->api, "stride", 2, w->stride));
  PG_TRY(pg_read_sizes(a->api, "padding", a->padding, 2, 1, &w->padding));
  return pg_check_padding(a->api, w);
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(check_tensors(a));
  PG_TRY(check_windows(a));
  PG_TRY(pg_check_math_type(a->api, a->cube_math_type, v[SELF].tensor->dtype));
  PG_TRY(pg_check_same_shape(a->api, &v[SELF], &v[GRAD_IN]));
  pg_views_lay_out(v, TENSORS, 2, false);
  PG_TRY(pg_views_check(a->api, v, TENSORS, 1u << GRAD_IN));
  return pg_check_grad_out(a->api, &a->sliding, &v[SELF], &v[GRAD_OUT], pool);
}

aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *kernelSize,
    const aclIntArray *stride, const aclIntArray *padding, bool ceilMode, bool countIncludePad,
    int64_t divisorOverride, int8_t cubeMathType, aclTensor *gradInput, uint64_t *workspaceSize,
    aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, gradInput};
  struct pg_pooling pool;
  struct args a = {.api = __func__,
                   .view = {{.name = "gradOutput"}, {.name = "self"}, {.name = "gradInput"}},
                   .kernel_size = kernelSize,
                   .stride = stride,
                   .padding = padding,
                   .sliding = pg_sliding_begin(2, ceilMode, false),
                   .cube_math_type = cubeMathType};
  const struct pg_required required[] = {{"gradOutput", gradOutput}, {"self", self},
                                         {"kernelSize", kernelSize}, {"padding", padding},
                                         {"gradInput", gradInput},   {NULL, NULL}};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_required(a.api, required));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_avg_call call = {.grad_out = &a.view[GRAD_OUT],
                                     .grad_in = &a.view[GRAD_IN],
                                     .pool = pool,
                                     .divisor = divisorOverride,
                                     .count_include_pad = countIncludePad};
    status = pg_plan_avg_backward(a.api, &call, workspaceSize, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnAvgPool2dBackward(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
