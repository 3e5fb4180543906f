/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnMaxPool2dWithIndicesBackward.
 *
 *     gradInput[n, c, i] = sum of gradOutput[n, c, o] over the outputs o with indices[n, c, o] == i
 *
 * i = h * W + w, also for NHWC, whose index has no channel in it.  The index decides alone: a
 * gradient goes to any cell of its plane, in its window or not.  Sums in ascending order of o, in
 * fp32, rounded once.  A plane, or a tile of a large one, belongs to one thread. */
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
  bool ceil_mode;
  struct pg_pair k, s, p, d; /* the arrays' values */
};

static aclnnStatus check_null(const struct args *a, const aclTensor *const handles[TENSORS]) {
  const struct {
    const char *name;
    const void *pointer;
  } required[] = {{"gradOutput", handles[GRAD_OUT]},
                  {"self", handles[SELF]},
                  {"indices", handles[INDICES]},
                  {"kernelSize", a->kernel_size},
                  {"stride", a->stride},
                  {"padding", a->padding},
                  {"dilation", a->dilation},
                  {"gradInput", handles[GRAD_IN]}};
  for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
    if (required[i].pointer == NULL)
      return pg_fail_null(a->api, ACLNN_ERR_PARAM_NULLPTR, required[i].name);
  return ACLNN_SUCCESS;
}

static aclnnStatus check_format(const struct args *a, const struct pg_view *view) {
  const aclFormat format = view->tensor->format;
  const bool first =
      format == ACL_FORMAT_ND || format == ACL_FORMAT_NCHW || format == ACL_FORMAT_NCL;
  const bool last = format == ACL_FORMAT_NHWC && pg_soc()->max_nhwc;
  PG_CHECK_AS(a->api, first || last, ACLNN_ERR_PARAM_INVALID,
              "%s has format %s, allowed is ND, NCHW, NCL%s%s", view->name, pg_format_name(format),
              pg_soc()->max_nhwc ? " or NHWC" : " on ",
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
  PG_TRY(pg_read_pair(a->api, "kernelSize", a->kernel_size, 1, &a->k));
  a->s = a->k;
  PG_TRY(pg_read_pair(a->api, "stride", a->stride, 0, &a->s));
  PG_TRY(pg_read_pair(a->api, "padding", a->padding, 1, &a->p));
  PG_TRY(pg_read_pair(a->api, "dilation", a->dilation, 1, &a->d));
  PG_CHECK_AS(a->api, a->k.h > 0 && a->k.w > 0, ACLNN_ERR_PARAM_INVALID,
              "kernelSize is [%lld,%lld], both must be positive", (long long)a->k.h,
              (long long)a->k.w);
  PG_CHECK_AS(a->api, a->s.h > 0 && a->s.w > 0, ACLNN_ERR_PARAM_INVALID,
              "stride is [%lld,%lld], both must be positive", (long long)a->s.h, (long long)a->s.w);
  PG_CHECK_AS(a->api, a->p.h >= 0 && a->p.w >= 0 && a->p.h <= a->k.h / 2 && a->p.w <= a->k.w / 2,
              ACLNN_ERR_PARAM_INVALID,
              "padding is [%lld,%lld], allowed is 0 to half of kernelSize [%lld,%lld]",
              (long long)a->p.h, (long long)a->p.w, (long long)a->k.h, (long long)a->k.w);
  PG_CHECK_AS(a->api, a->d.h > 0 && a->d.w > 0, ACLNN_ERR_PARAM_INVALID,
              "dilation is [%lld,%lld], both must be positive", (long long)a->d.h,
              (long long)a->d.w);
  PG_CHECK_AS(a->api, pg_soc()->max_dilation || (a->d.h == 1 && a->d.w == 1),
              ACLNN_ERR_PARAM_INVALID, "dilation is [%lld,%lld], %s takes 1 only",
              (long long)a->d.h, (long long)a->d.w, aclrtGetSocName());
  return ACLNN_SUCCESS;
}

static aclnnStatus check_output(const struct args *a, const struct pg_pooling *pool) {
  const struct pg_view *v = a->view, *grad = &v[GRAD_OUT];
  int64_t expected[4];
  int rank = 0;
  const bool last = v[SELF].tensor->format == ACL_FORMAT_NHWC;
  char text[PG_SHAPE_TEXT];
  if (v[SELF].tensor->rank == 4) expected[rank++] = pool->n;
  if (!last) expected[rank++] = pool->c;
  expected[rank++] = pool->h.out;
  expected[rank++] = pool->w.out;
  if (last) expected[rank++] = pool->c;
  bool same = grad->tensor->rank == rank;
  for (int i = 0; i < rank && same; i++) same = grad->tensor->dims[i] == expected[i];
  PG_CHECK_AS(a->api, same, ACLNN_ERR_PARAM_INVALID,
              "gradOutput is %s, expected %s for self %s, kernelSize [%lld,%lld], stride "
              "[%lld,%lld], padding [%lld,%lld], dilation [%lld,%lld], ceilMode %s",
              pg_view_shape(grad), pg_shape_text(rank, expected, text), pg_view_shape(&v[SELF]),
              (long long)a->k.h, (long long)a->k.w, (long long)a->s.h, (long long)a->s.w,
              (long long)a->p.h, (long long)a->p.w, (long long)a->d.h, (long long)a->d.w,
              a->ceil_mode ? "true" : "false");
  return pg_check_same_shape(a->api, &v[INDICES], grad);
}

static aclnnStatus make_pooling(const struct args *a, struct pg_pooling *pool) {
  const int64_t *in = a->view[SELF].dims;
  *pool = (struct pg_pooling){
      .n = in[PG_N],
      .c = in[PG_C],
      .d = pg_axis_unit(),
      .h = {.in = in[PG_H], .kernel = a->k.h, .stride = a->s.h, .pad = a->p.h, .dilation = a->d.h},
      .w = {.in = in[PG_W], .kernel = a->k.w, .stride = a->s.w, .pad = a->p.w, .dilation = a->d.w}};
  PG_TRY(pg_sliding_axis(a->api, &pool->h, a->ceil_mode));
  PG_TRY(pg_sliding_axis(a->api, &pool->w, a->ceil_mode));
  PG_CHECK_AS(a->api, pool->h.out > 0 && pool->w.out > 0, ACLNN_ERR_PARAM_INVALID,
              "self is %s and kernelSize [%lld,%lld], the output would be [%lld,%lld]",
              pg_view_shape(&a->view[SELF]), (long long)a->k.h, (long long)a->k.w,
              (long long)pool->h.out, (long long)pool->w.out);
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
  PG_TRY(make_pooling(a, pool));
  PG_TRY(check_output(a, pool));
  for (int i = 0; i < TENSORS; i++) pg_view_lay_out(&v[i], 2, last);
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
                   .ceil_mode = ceilMode};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(check_null(&a, handles));
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
