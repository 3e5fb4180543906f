/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnMaxPool2dWithIndices, aclnnMaxPool2dWithMask and aclnnMaxPool3dWithArgmax.
 *
 *     out[n, c, o] = the greatest cell in the window of o
 *     indices[n, c, o] = its flat position in the plane (n, c)
 *
 * The position is h * W + w or (d * H + h) * W + w, with channels last too.  Of equal cells the
 * first one counts; a NaN counts more than any number, and of several the last one.  A mask has the
 * same indices in a container of bytes (ops/mask.h). */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_max_pool2d_with_indices.h"
#include "aclnnop/aclnn_max_pool3d_with_argmax.h"
#include "ops/mask.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { SELF, OUT, INDICES, TENSORS, WRITTEN = 1 << OUT | 1 << INDICES };

struct args {
  const char *api;
  bool mask;
  struct pg_view view[TENSORS];
  struct pg_sliding sliding;
};

static enum pg_dtypes index_types(const struct args *a) {
  if (a->mask) return PG_INT8_ONLY;
  return a->sliding.spatial == 2 || pg_soc()->max3d_int64 ? PG_INDEXES : PG_INT32_ONLY;
}

static enum pg_formats formats(const struct args *a) {
  if (a->mask) return PG_FLAT;
  if (a->sliding.spatial == 2) return pg_soc()->max_nhwc ? PG_FLAT_OR_LAST : PG_FLAT_ON_PRODUCT;
  return pg_soc()->max_nhwc ? PG_DEEP_OR_LAST : PG_DEEP_ON_PRODUCT;
}

static aclnnStatus check_tensors(const struct args *a) {
  const struct pg_view *v = a->view;
  const int spatial = a->sliding.spatial;
  PG_TRY(pg_check_dtype(a->api, &v[SELF], PG_FLOATS));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_dtype(a->api, &v[INDICES], index_types(a)));
  PG_TRY(pg_check_same_format(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[INDICES], &v[SELF]));
  PG_TRY(pg_check_format(a->api, &v[SELF], formats(a)));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_rank(a->api, &v[i], spatial + 1, spatial + 2));
  return ACLNN_SUCCESS;
}

/* To whom dilation is only 1. */
static const char *undilated(const struct args *a) {
  if (a->mask) return "a mask";
  return pg_soc()->max_dilation ? NULL : aclrtGetSocName();
}

/* Four bytes must count the cells, or eight where those are allowed. */
static aclnnStatus check_plane(const struct args *a) {
  const bool large = a->sliding.spatial == 2 ? !a->mask : pg_soc()->large_volumes;
  return pg_check_plane(a->api, &a->view[SELF], large, &a->view[INDICES]);
}

static aclnnStatus check_indices(const struct args *a, const struct pg_pooling *pool) {
  const struct pg_view *v = a->view;
  if (!a->mask) return pg_check_same_shape(a->api, &v[INDICES], &v[OUT]);
  PG_TRY(pg_check_same_rank(a->api, &v[INDICES], &v[OUT]));
  return pg_mask_check(a->api, &v[INDICES], pool);
}

/* Every way the caller can be wrong, in the order of the documents. */
static aclnnStatus check(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  const int spatial = a->sliding.spatial;
  const aclFormat format = v[SELF].tensor->format;
  const bool last = format == ACL_FORMAT_NHWC || format == ACL_FORMAT_NDHWC;
  PG_TRY(check_tensors(a));
  PG_TRY(pg_read_sliding(a->api, &a->sliding));
  PG_TRY(pg_check_sliding(a->api, &a->sliding, undilated(a)));
  pg_view_lay_out(&v[SELF], spatial, last);
  PG_TRY(pg_check_planes_not_empty(a->api, spatial, &v[SELF]));
  PG_TRY(check_plane(a));
  PG_TRY(pg_sliding_pooling(a->api, &v[SELF], &a->sliding, pool));
  PG_TRY(pg_check_outputs(a->api, &a->sliding, &v[SELF], pool));
  PG_TRY(pg_check_pooled(a->api, &a->sliding, &v[SELF], &v[OUT], pool));
  PG_TRY(check_indices(a, pool));
  PG_TRY(pg_check_windows(a->api, &v[SELF], pool));
  pg_views_lay_out(v, TENSORS, spatial, last);
  return pg_views_check(a->api, v, TENSORS, WRITTEN);
}

static aclnnStatus plan(const struct args *a, const struct pg_pooling *pool,
                        uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *mask = &a->view[INDICES];
  struct pg_view packed;
  struct pg_max_forward_call call = {
      .in = &a->view[SELF], .out = &a->view[OUT], .index = mask, .pool = *pool};
  if (a->mask) {
    packed = pg_mask_indices(mask, pool);
    const bool used = pg_mask_has_indices(pool);
    const int64_t bytes =
        used && !mask->tensor->empty ? pool->n * pool->c * pool->h.out * pool->w.out * 4 : 0;
    call.index = used ? &packed : NULL;
    call.container = &packed;
    call.index_bytes = 4;
    call.zeros = mask->begin + bytes;
    call.zero_bytes = mask->end - call.zeros;
  }
  return pg_plan_max_forward(a->api, &call, workspace_size, executor);
}

static aclnnStatus prepare(struct args *a, const aclTensor *const handles[TENSORS],
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_pooling pool;
  const struct pg_required required[] = {{"self", handles[SELF]},
                                         {"kernelSize", a->sliding.arrays.kernel},
                                         {"stride", a->sliding.arrays.stride},
                                         {"padding", a->sliding.arrays.padding},
                                         {"dilation", a->sliding.arrays.dilation},
                                         {"out", handles[OUT]},
                                         {"indices", handles[INDICES]},
                                         {NULL, NULL}};
  a->view[SELF].name = "self";
  a->view[OUT].name = "out";
  a->view[INDICES].name = "indices";
  PG_TRY(pg_check_required(a->api, required));
  PG_TRY(pg_views_acquire(a->api, a->view, handles, TENSORS));
  aclnnStatus status = check(a, &pool);
  if (status == ACLNN_SUCCESS) status = plan(a, &pool, workspace_size, executor);
  pg_views_release(a->view, TENSORS);
  return status;
}

aclnnStatus aclnnMaxPool2dWithIndicesGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
    const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out,
    aclTensor *indices, uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out, indices};
  struct args a = {.api = __func__, .sliding = pg_sliding_begin(2, ceilMode, true)};
  pg_sliding_arrays(&a.sliding, kernelSize, stride, padding, dilation);
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  return prepare(&a, handles, workspaceSize, executor);
}

aclnnStatus aclnnMaxPool2dWithIndices(void *workspace, uint64_t workspaceSize,
                                      aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMaxPool2dWithMaskGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
    const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out,
    aclTensor *indices, uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out, indices};
  const struct pg_required first[] = {
      {"kernelSize", kernelSize}, {"self", self}, {"out", out}, {NULL, NULL}};
  struct args a = {.api = __func__, .mask = true, .sliding = pg_sliding_begin(2, ceilMode, true)};
  pg_sliding_arrays(&a.sliding, kernelSize, stride, padding, dilation);
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_required(a.api, first));
  PG_TRY(pg_check_masks(a.api, "aclnnMaxPool2dWithIndices"));
  return prepare(&a, handles, workspaceSize, executor);
}

aclnnStatus aclnnMaxPool2dWithMask(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMaxPool3dWithArgmaxGetWorkspaceSize(
    const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
    const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *out,
    aclTensor *indices, uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out, indices};
  struct args a = {.api = __func__, .sliding = pg_sliding_begin(3, ceilMode, true)};
  pg_sliding_arrays(&a.sliding, kernelSize, stride, padding, dilation);
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  return prepare(&a, handles, workspaceSize, executor);
}

aclnnStatus aclnnMaxPool3dWithArgmax(void *workspace, uint64_t workspaceSize,
                                     aclOpExecutor *executor, aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
