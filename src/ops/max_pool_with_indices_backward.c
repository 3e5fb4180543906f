/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnMaxPool2dWithIndicesBackward, aclnnMaxPool2dWithMaskBackward and
 * aclnnMaxPool3dWithArgmaxBackward.
 *
 *     gradInput[n, c, i] = sum of gradOutput[n, c, o] over the outputs o with indices[n, c, o] == i
 *
 * i = h * W + w or (d * H + h) * W + w, also for NHWC, whose index has no channel in it.  The index
 * decides alone: a gradient goes to any cell of its plane, in its window or not.  Sums in ascending
 * order of o, in fp32, rounded once.  Every cell is computed by one thread.  A mask has the indices
 * in a container of bytes (ops/mask.h). */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"
#include "aclnnop/aclnn_max_pool3d_with_argmax_backward.h"
#include "ops/mask.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { GRAD_OUT, SELF, INDICES, GRAD_IN, TENSORS };

struct args {
  const char *api, *op;
  bool mask;
  struct pg_view view[TENSORS];
  struct pg_sliding sliding;
};

/* --- two dimensions ----------------------------------------------------------------------------
 */

static aclnnStatus check_tensors_2d(const struct args *a) {
  const struct pg_view *v = a->view;
  const struct pg_soc *soc = pg_soc();
  const enum pg_dtypes indices = soc->max_int64 ? PG_INDEXES : PG_INT32_ONLY;
  const enum pg_formats formats = soc->max_nhwc ? PG_FLAT_OR_LAST : PG_FLAT_ON_PRODUCT;
  PG_TRY(pg_check_dtype(a->api, &v[SELF], a->mask || soc->max_half ? PG_FLOATS : PG_FLOAT_ONLY));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_dtype(a->api, &v[INDICES], a->mask ? PG_INT8_ONLY : indices));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[INDICES], &v[SELF]));
  PG_TRY(pg_check_format(a->api, &v[SELF], a->mask ? PG_FLAT : formats));
  PG_TRY(pg_check_rank(a->api, &v[SELF], 3, 4));
  PG_TRY(pg_check_rank(a->api, &v[GRAD_IN], 3, 4));
  PG_TRY(pg_check_rank(a->api, &v[GRAD_OUT], 3, 4));
  return pg_check_rank(a->api, &v[INDICES], 3, 4);
}

static aclnnStatus check_indices(const struct args *a, const struct pg_pooling *pool) {
  const struct pg_view *v = a->view;
  if (!a->mask) return pg_check_same_shape(a->api, &v[INDICES], &v[GRAD_OUT]);
  PG_TRY(pg_check_same_rank(a->api, &v[INDICES], &v[GRAD_OUT]));
  return pg_mask_check(a->api, &v[INDICES], pool);
}

/* To whom dilation is only 1. */
static const char *undilated(const struct args *a) {
  if (a->mask) return "a mask";
  return pg_soc()->max_dilation ? NULL : aclrtGetSocName();
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check_2d(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(check_tensors_2d(a));
  PG_TRY(pg_read_sliding(a->api, &a->sliding));
  PG_TRY(pg_check_sliding(a->api, &a->sliding, undilated(a)));
  PG_TRY(pg_check_same_shape(a->api, &v[GRAD_IN], &v[SELF]));
  const bool last = v[SELF].tensor->format == ACL_FORMAT_NHWC;
  pg_view_lay_out(&v[SELF], 2, last);
  PG_TRY(pg_check_planes_not_empty(a->api, 2, &v[SELF]));
  if (a->mask) PG_TRY(pg_check_plane(a->api, &v[SELF], false, &v[INDICES]));
  PG_TRY(pg_sliding_pooling(a->api, &v[SELF], &a->sliding, pool));
  PG_TRY(pg_check_outputs(a->api, &a->sliding, &v[SELF], pool));
  PG_TRY(pg_check_pooled(a->api, &a->sliding, &v[SELF], &v[GRAD_OUT], pool));
  PG_TRY(check_indices(a, pool));
  pg_views_lay_out(v, TENSORS, 2, last);
  return pg_views_check(a->api, v, TENSORS, 1u << GRAD_IN);
}

/* --- three dimensions --------------------------------------------------------------------------
 */

static aclnnStatus check_tensors_3d(const struct args *a) {
  const struct pg_view *v = a->view;
  PG_TRY(pg_check_dtype(a->api, &v[SELF], PG_FLOATS));
  PG_TRY(pg_check_dtype(a->api, &v[INDICES], pg_soc()->max3d_int64 ? PG_INDEXES : PG_INT32_ONLY));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_dtype(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_format(a->api, &v[SELF], PG_DEEP));
  PG_TRY(pg_check_format(a->api, &v[INDICES], PG_DEEP));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_rank(a->api, &v[i], 4, 5));
  return ACLNN_SUCCESS;
}

/* Likewise. */
static aclnnStatus check_3d(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  PG_TRY(check_tensors_3d(a));
  PG_TRY(pg_read_sliding(a->api, &a->sliding));
  PG_TRY(pg_check_sliding(a->api, &a->sliding, NULL));
  pg_view_lay_out(&v[SELF], 3, false);
  PG_TRY(pg_check_plane(a->api, &v[SELF], pg_soc()->large_volumes, &v[INDICES]));
  PG_TRY(pg_check_same_shape(a->api, &v[INDICES], &v[GRAD_OUT]));
  PG_TRY(pg_check_same_shape(a->api, &v[GRAD_IN], &v[SELF]));
  PG_TRY(pg_check_same_rank(a->api, &v[GRAD_OUT], &v[SELF]));
  pg_views_lay_out(v, TENSORS, 3, false);
  PG_TRY(pg_views_check(a->api, v, TENSORS, 1u << GRAD_IN));
  return pg_check_grad_out(a->api, &a->sliding, &v[SELF], &v[GRAD_OUT], pool);
}

/* --- all of them -------------------------------------------------------------------------------
 */

static aclnnStatus plan(const struct args *a, const struct pg_pooling *pool,
                        uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *v = a->view;
  struct pg_max_call call = {.op = a->op,
                             .has_depth = a->sliding.spatial == 3,
                             .grad_out = &v[GRAD_OUT],
                             .index = &v[INDICES],
                             .grad_in = &v[GRAD_IN],
                             .pool = *pool};
  if (!a->mask) return pg_plan_max_backward(a->api, &call, workspace_size, executor);
  if (!pg_mask_has_indices(pool)) { /* every gradient goes to the only cell of its window */
    const struct pg_avg_call lone = {.grad_out = &v[GRAD_OUT],
                                     .grad_in = &v[GRAD_IN],
                                     .unread = &v[INDICES],
                                     .pool = *pool,
                                     .divisor = 1};
    return pg_plan_avg_backward(a->api, &lone, workspace_size, executor);
  }
  const struct pg_view packed = pg_mask_indices(&v[INDICES], pool);
  call.index = &packed;
  call.index_bytes = 4;
  return pg_plan_max_backward(a->api, &call, workspace_size, executor);
}

static aclnnStatus prepare(struct args *a, const aclTensor *const handles[TENSORS],
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  static const char *const names[TENSORS] = {"gradOutput", "self", "indices", "gradInput"};
  struct pg_pooling pool;
  const struct pg_required required[] = {{"gradOutput", handles[GRAD_OUT]},
                                         {"self", handles[SELF]},
                                         {"indices", handles[INDICES]},
                                         {"kernelSize", a->sliding.arrays.kernel},
                                         {"stride", a->sliding.arrays.stride},
                                         {"padding", a->sliding.arrays.padding},
                                         {"dilation", a->sliding.arrays.dilation},
                                         {"gradInput", handles[GRAD_IN]},
                                         {NULL, NULL}};
  for (int i = 0; i < TENSORS; i++) a->view[i].name = names[i];
  PG_TRY(pg_check_required(a->api, required));
  PG_TRY(pg_views_acquire(a->api, a->view, handles, TENSORS));
  aclnnStatus status = a->sliding.spatial == 2 ? check_2d(a, &pool) : check_3d(a, &pool);
  if (status == ACLNN_SUCCESS) status = plan(a, &pool, workspace_size, executor);
  pg_views_release(a->view, TENSORS);
  return status;
}

aclnnStatus aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
    const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput, uint64_t *workspaceSize,
    aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, indices, gradInput};
  struct args a = {.api = __func__,
                   .op = "aclnnMaxPool2dWithIndicesBackward",
                   .sliding = pg_sliding_begin(2, ceilMode, true)};
  pg_sliding_arrays(&a.sliding, kernelSize, stride, padding, dilation);
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  return prepare(&a, handles, workspaceSize, executor);
}

aclnnStatus aclnnMaxPool2dWithIndicesBackward(void *workspace, uint64_t workspaceSize,
                                              aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

/* A kernelSize of a wrong length is refused as if it were not there, as the vendor's code does. */
static aclnnStatus check_kernel_count(const char *api, const aclIntArray *kernel_size) {
  struct pg_values values;
  PG_TRY(pg_read_values(api, "kernelSize", kernel_size, &values));
  PG_CHECK_AS(api, values.count == 1 || values.count == 2, ACLNN_ERR_PARAM_NULLPTR,
              "kernelSize has %llu values, allowed is 1 to 2", (unsigned long long)values.count);
  return ACLNN_SUCCESS;
}

aclnnStatus aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
    const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput, uint64_t *workspaceSize,
    aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, indices, gradInput};
  const struct pg_required first[] = {
      {"kernelSize", kernelSize}, {"self", self}, {"gradOutput", gradOutput}, {NULL, NULL}};
  struct args a = {.api = __func__,
                   .op = "aclnnMaxPool2dWithMaskBackward",
                   .mask = true,
                   .sliding = pg_sliding_begin(2, ceilMode, true)};
  pg_sliding_arrays(&a.sliding, kernelSize, stride, padding, dilation);
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_masks(a.api, "aclnnMaxPool2dWithIndicesBackward"));
  PG_TRY(pg_check_required(a.api, first));
  PG_TRY(check_kernel_count(a.api, kernelSize));
  return prepare(&a, handles, workspaceSize, executor);
}

aclnnStatus aclnnMaxPool2dWithMaskBackward(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMaxPool3dWithArgmaxBackwardGetWorkspaceSize(
    const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices,
    const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
    const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput, uint64_t *workspaceSize,
    aclOpExecutor **executor) {
  const aclTensor *const handles[] = {gradOutput, self, indices, gradInput};
  struct args a = {.api = __func__,
                   .op = "aclnnMaxPool3dWithArgmaxBackward",
                   .sliding = pg_sliding_begin(3, ceilMode, true)};
  pg_sliding_arrays(&a.sliding, kernelSize, stride, padding, dilation);
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  return prepare(&a, handles, workspaceSize, executor);
}

aclnnStatus aclnnMaxPool3dWithArgmaxBackward(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
