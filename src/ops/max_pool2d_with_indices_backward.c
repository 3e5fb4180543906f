/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnMaxPool2dWithIndicesBackward.
 *
 *     gradInput[n, c, i] = sum of gradOutput[n, c, o] over the outputs o with indices[n, c, o] == i
 *
 * i = h * W + w, also for NHWC, whose index has no channel in it.  The index decides alone: a
 * gradient goes to any cell of its plane, in its window or not.  Sums in ascending order of o, in
 * fp32, rounded once.  Every cell is computed by one thread. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"
#include "core/dtype.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { GRAD_OUT, SELF, INDICES, GRAD_IN, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  const aclIntArray *kernel_size, *stride, *padding, *dilation;
  struct pg_sliding sliding; /* the arrays' values */
};

static aclnnStatus check_format(const struct args *a, const struct pg_view *view) {
  const aclFormat format = view->tensor->format;
  const bool first =
      format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCL;
  const bool last = format == ACL_FORMAT_NHWC && pg_soc()->max_nhwc;
  PG_CHECK_AS(a->api, first || last, ACLNN_ERR_PARAM_INVALID,
              "%s has format %s, allowed is ND, NCHW%s%s", view->name, pg_format_name(format),
              pg_soc()->max_nhwc ? ", NCL or NHWC" : " or NCL on ",
              pg_soc()->max_nhwc ? "" : aclrtGetSocName());
  return ACLNN_SUCCESS;
}

static aclnnStatus check_tensors(const struct args *a) {
  const struct pg_view *v = a->view;
  PG_TRY(pg_check_dtype(a->api, &v[SELF], pg_soc()->max_half ? PG_FLOATS : PG_FLOAT_ONLY));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_dtype(a->api, &v[INDICES], pg_soc()->max_int64 ? PG_INDEXES : PG_INT32_ONLY));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[INDICES], &v[SELF]));
  PG_TRY(check_format(a, &v[SELF]));
  PG_TRY(pg_check_rank(a->api, &v[SELF], 3, 4));
  PG_TRY(pg_check_rank(a->api, &v[GRAD_IN], 3, 4));
  PG_TRY(pg_check_rank(a->api, &v[GRAD_OUT], 3, 4));
  return pg_check_rank(a->api, &v[INDICES], 3, 4);
}

static aclnnStatus check_attributes(struct args *a) {
  struct pg_sliding *w = &a->sliding;
  PG_TRY(pg_read_pair(a->api, "kernelSize", a->kernel_size, 1, &w->kernel));
  w->stride = w->kernel;
  PG_TRY(pg_read_pair(a->api, "stride", a->stride, 0, &w->stride));
  PG_TRY(pg_read_pair(a->api, "padding", a->padding, 1, &w->padding));
  PG_TRY(pg_read_pair(a->api, "dilation", a->dilation, 1, &w->dilation));
  PG_TRY(pg_check_positive(a->api, "kernelSize", w->kernel));
  PG_TRY(pg_check_positive(a->api, "stride", w->stride));
  PG_TRY(pg_check_padding(a->api, w));
  PG_TRY(pg_check_positive(a->api, "dilation", w->dilation));
  PG_CHECK_AS(a->api, pg_soc()->max_dilation || (w->dilation.h == 1 && w->dilation.w == 1),
              ACLNN_ERR_PARAM_INVALID, "dilation is [%lld,%lld], %s takes 1 only",
              (long long)w->dilation.h, (long long)w->dilation.w, aclrtGetSocName());
  return ACLNN_SUCCESS;
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(check_tensors(a));
  PG_TRY(check_attributes(a));
  PG_TRY(pg_check_same_shape(a->api, &v[GRAD_IN], &v[SELF]));
  const bool last = v[SELF].tensor->format == ACL_FORMAT_NHWC;
  pg_view_lay_out(&v[SELF], 2, last);
  PG_CHECK_AS(a->api, v[SELF].dims[PG_C] > 0 && v[SELF].dims[PG_H] > 0 && v[SELF].dims[PG_W] > 0,
              ACLNN_ERR_PARAM_INVALID, "self is %s, its C, H and W must be positive",
              pg_view_shape(&v[SELF]));
  PG_TRY(pg_sliding_pooling(a->api, &v[SELF], &a->sliding, pool));
  PG_CHECK_AS(a->api, pool->h.out > 0 && pool->w.out > 0, ACLNN_ERR_PARAM_INVALID,
              "self is %s and kernelSize [%lld,%lld], the output would be [%lld,%lld]",
              pg_view_shape(&v[SELF]), (long long)a->sliding.kernel.h,
              (long long)a->sliding.kernel.w, (long long)pool->h.out, (long long)pool->w.out);
  PG_TRY(pg_check_pooled(a->api, &a->sliding, &v[SELF], &v[GRAD_OUT], pool));
  PG_TRY(pg_check_same_shape(a->api, &v[INDICES], &v[GRAD_OUT]));
  for (int i = 0; i < TENSORS; i++)
    if (i != SELF) pg_view_lay_out(&v[i], 2, last);
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_view_check(a->api, &v[i], i == GRAD_IN));
  return ACLNN_SUCCESS;
}

aclnnStatus aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
    const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput, uint64_t *workspaceSize,
    aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, indices, gradInput};
  struct pg_pooling pool;
  struct args a = {.api = __func__,
                   .view = {{.name = "gradOutput"},
                            {.name = "self"},
                            {.name = "indices"},
                            {.name = "gradInput"}},
                   .kernel_size = kernelSize,
                   .stride = stride,
                   .padding = padding,
                   .dilation = dilation,
                   .sliding = {.ceil_mode = ceilMode, .has_dilation = true}};
  const struct pg_required required[] = {
      {"gradOutput", gradOutput}, {"self", self},           {"indices", indices},
      {"kernelSize", kernelSize}, {"stride", stride},       {"padding", padding},
      {"dilation", dilation},     {"gradInput", gradInput}, {NULL, NULL}};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_required(a.api, required));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_max_call call = {.op = "aclnnMaxPool2dWithIndicesBackward",
                                     .grad_out = &a.view[GRAD_OUT],
                                     .index = &a.view[INDICES],
                                     .grad_in = &a.view[GRAD_IN],
                                     .pool = pool};
    status = pg_plan_max_backward(a.api, &call, workspaceSize, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnMaxPool2dWithIndicesBackward(void *workspace, uint64_t workspaceSize,
                                              aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
