/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAvgPool2d and aclnnAvgPool3d.
 *
 *     out[n, c, o] = (sum of the cells in the window of o) / divisor(o)
 *
 * The divisor is divisorOverride, or the cells of the window cut to input and padding
 * (countIncludePad) or to the input.  Cells are added in fp32 in the order that kernels.h states,
 * divided once and rounded once. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_avgpool3d.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { SELF, OUT, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  struct pg_sliding sliding;
  int8_t cube_math_type; /* in two dimensions */
  bool count_include_pad;
  int64_t divisor;
};

static aclnnStatus check_tensors(const struct args *a) {
  const struct pg_view *v = a->view;
  const int spatial = a->sliding.spatial;
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_dtype(a->api, &v[i], PG_FLOATS));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[OUT], &v[SELF]));
  if (spatial == 2) PG_TRY(pg_check_format_of_rank(a->api, &v[SELF]));
  if (spatial == 3) PG_TRY(pg_check_format(a->api, &v[SELF], PG_PLANAR));
  PG_TRY(pg_check_rank(a->api, &v[SELF], spatial + 1, spatial + 2));
  PG_TRY(pg_check_same_rank(a->api, &v[OUT], &v[SELF]));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_not_negative(a->api, &v[i]));
  return ACLNN_SUCCESS;
}

/* The kernel of AvgPool3d is not longer than what there is along its axis. */
static aclnnStatus check_kernel(const struct args *a) {
  const struct pg_sliding *s = &a->sliding;
  const int64_t *in = a->view[SELF].dims;
  const int64_t room = pg_soc()->avg3d_long_kernel ? 2 : 0; /* paddings that count as input */
  PG_CHECK_AS(a->api,
              s->kernel.d - room * s->padding.d <= in[PG_D] &&
                  s->kernel.h - room * s->padding.h <= in[PG_H] &&
                  s->kernel.w - room * s->padding.w <= in[PG_W],
              ACLNN_ERR_PARAM_INVALID, "kernelSize is %s, longer than self %s%s%s",
              pg_sizes_text(3, s->kernel), pg_view_shape(&a->view[SELF]),
              room == 2 ? " with its padding on both sides" : " on ",
              room == 2 ? "" : aclrtGetSocName());
  return ACLNN_SUCCESS;
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  const int spatial = a->sliding.spatial;
  PG_TRY(check_tensors(a));
  PG_TRY(pg_read_sliding(a->api, &a->sliding));
  PG_TRY(pg_check_sliding(a->api, &a->sliding, NULL));
  if (spatial == 2) PG_TRY(pg_check_math_type(a->api, a->cube_math_type, v[SELF].tensor->dtype));
  pg_views_lay_out(v, TENSORS, spatial, false);
  if (spatial == 3) PG_TRY(check_kernel(a));
  PG_TRY(pg_sliding_pooling(a->api, &v[SELF], &a->sliding, pool));
  PG_TRY(pg_check_pooled(a->api, &a->sliding, &v[SELF], &v[OUT], pool));
  if (!pg_tensor_is_empty(v[OUT].tensor)) PG_TRY(pg_check_windows(a->api, &v[SELF], pool));
  return pg_views_check(a->api, v, TENSORS, 1u << OUT);
}

static aclnnStatus prepare(struct args *a, const aclTensor *const handles[TENSORS],
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_pooling pool;
  const struct pg_required required[] = {{"self", handles[SELF]},
                                         {a->sliding.names.kernel, a->sliding.arrays.kernel},
                                         {a->sliding.names.stride, a->sliding.arrays.stride},
                                         {a->sliding.names.padding, a->sliding.arrays.padding},
                                         {"out", handles[OUT]},
                                         {NULL, NULL}};
  a->view[SELF].name = "self";
  a->view[OUT].name = "out";
  PG_TRY(pg_check_results(a->api, workspace_size, executor));
  PG_TRY(pg_check_required(a->api, required));
  PG_TRY(pg_views_acquire(a->api, a->view, handles, TENSORS));
  aclnnStatus status = check(a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_avg_forward_call call = {.in = &a->view[SELF],
                                             .out = &a->view[OUT],
                                             .pool = pool,
                                             .divisor = a->divisor,
                                             .count_include_pad = a->count_include_pad};
    status = pg_plan_avg_forward(a->api, &call, workspace_size, executor);
  }
  pg_views_release(a->view, TENSORS);
  return status;
}

aclnnStatus aclnnAvgPool2dGetWorkspaceSize(const aclTensor *self, const aclIntArray *kernelSize,
                                           const aclIntArray *strides, const aclIntArray *paddings,
                                           const bool ceilMode, const bool countIncludePad,
                                           const int64_t divisorOverride, const int8_t cubeMathType,
                                           aclTensor *out, uint64_t *workspaceSize,
                                           aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out};
  struct args a = {.api = __func__,
                   .sliding = pg_sliding_begin(2, ceilMode, false),
                   .cube_math_type = cubeMathType,
                   .count_include_pad = countIncludePad,
                   .divisor = divisorOverride};
  a.sliding.names.stride = "strides";
  a.sliding.names.padding = "paddings";
  pg_sliding_arrays(&a.sliding, kernelSize, strides, paddings, NULL);
  return prepare(&a, handles, workspaceSize, executor);
}

aclnnStatus aclnnAvgPool2d(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                           aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAvgPool3dGetWorkspaceSize(const aclTensor *self, const aclIntArray *kernelSize,
                                           const aclIntArray *stride, const aclIntArray *padding,
                                           bool ceilMode, bool countIncludePad,
                                           int64_t divisorOverride, aclTensor *out,
                                           uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out};
  struct args a = {.api = __func__,
                   .sliding = pg_sliding_begin(3, ceilMode, false),
                   .count_include_pad = countIncludePad,
                   .divisor = divisorOverride};
  pg_sliding_arrays(&a.sliding, kernelSize, stride, padding, NULL);
  return prepare(&a, handles, workspaceSize, executor);
}

aclnnStatus aclnnAvgPool3d(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                           aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
