/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnAdaptiveMaxPool2d and aclnnAdaptiveMaxPool3d.
 *
 *     outputOut[n, c, o] = the greatest cell in the adaptive window of o
 *     indicesOut[n, c, o] = its flat position in the plane (n, c)
 *
 * The position is h * W + w, for NHWC too, or (d * H + h) * W + w.  Of equal cells the first one
 * counts; a NaN counts more than any number, and of several the last one. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_adaptive_max_pool2d.h"
#include "aclnnop/aclnn_adaptive_max_pool3d.h"
#include "core/log.h"
#include "ops/pool_check.h"
#include "ops/pool_plan.h"

enum { SELF, OUT, INDICES, TENSORS, WRITTEN = 1 << OUT | 1 << INDICES };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  const aclIntArray *output_size;
};

typedef aclnnStatus checks(struct args *a, struct pg_pooling *pool);

/* --- two dimensions ----------------------------------------------------------------------------
 */

/* What the vendor's host code leaves to the kernel behind it fails with another code. */
static aclnnStatus late(aclnnStatus status) {
  return status == ACLNN_SUCCESS ? status : pg_recode(ACLNN_ERR_INNER_NULLPTR);
}

static aclnnStatus check_formats_2d(const struct args *a) {
  const struct pg_view *v = a->view;
  const bool is_double = v[SELF].tensor->dtype == ACL_DOUBLE;
  PG_TRY(pg_check_format(a->api, &v[SELF], is_double ? PG_NCHW_OR_NHWC : PG_PLANAR_OR_NHWC));
  PG_TRY(pg_check_same_format(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_same_format(a->api, &v[INDICES], &v[SELF]));
  return pg_check_same_rank(a->api, &v[OUT], &v[SELF]);
}

static aclnnStatus check_types_2d(const struct args *a) {
  const struct pg_view *v = a->view;
  PG_TRY(pg_check_dtype(a->api, &v[SELF], PG_FLOATS_AND_DOUBLE));
  PG_TRY(pg_check_dtype(a->api, &v[OUT], PG_FLOATS_AND_DOUBLE));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  return pg_check_dtype(a->api, &v[INDICES], PG_INT64_ONLY);
}

/* Every way the caller can be wrong, in the order of the documents.  An empty batch is enough to
 * know that there is nothing to do, whatever the outputs are. */
static aclnnStatus check_2d(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  struct pg_sizes sizes = {1, 1, 1};
  PG_TRY(check_types_2d(a));
  PG_TRY(pg_check_rank(a->api, &v[SELF], 3, 4));
  PG_TRY(pg_check_same_shape(a->api, &v[INDICES], &v[OUT]));
  PG_TRY(pg_check_lengths(a->api, &v[SELF], 0));
  PG_TRY(pg_read_sizes(a->api, "outputSize", a->output_size, 2, 2, &sizes));
  PG_TRY(pg_check_positive(a->api, "outputSize", 2, sizes));
  if (pg_tensor_is_empty(v[SELF].tensor)) {
    *pool = (struct pg_pooling){0};
    if (!pg_tensor_is_empty(v[OUT].tensor))
      pg_log(ACL_WARNING, "%s: self is %s, nothing is written to outputOut %s and indicesOut",
             a->api, pg_view_shape(&v[SELF]), pg_view_shape(&v[OUT]));
    return ACLNN_SUCCESS;
  }
  PG_TRY(late(check_formats_2d(a)));
  pg_views_lay_out(v, TENSORS, 2, v[SELF].tensor->format == ACL_FORMAT_NHWC);
  PG_TRY(pg_check_adaptive_out(a->api, ACLNN_ERR_INNER_NULLPTR, 2, &v[OUT], &v[SELF], sizes));
  PG_TRY(pg_check_plane(a->api, &v[SELF], pg_soc()->large_planes, &v[INDICES]));
  PG_TRY(pg_views_check(a->api, v, TENSORS, WRITTEN));
  return pg_adaptive_pooling(a->api, &v[SELF], &v[OUT], pool);
}

/* --- three dimensions --------------------------------------------------------------------------
 */

static aclnnStatus check_tensors_3d(const struct args *a) {
  const struct pg_view *v = a->view;
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_rank(a->api, &v[i], 4, 5));
  PG_TRY(pg_check_dtype(a->api, &v[SELF], PG_FLOATS));
  PG_TRY(pg_check_dtype(a->api, &v[OUT], PG_FLOATS));
  PG_TRY(pg_check_dtype(a->api, &v[INDICES], pg_soc()->max3d_int64 ? PG_INDEXES : PG_INT32_ONLY));
  PG_TRY(
      pg_check_format(a->api, &v[SELF], pg_soc()->adaptive_max3d_nd ? PG_DEEP : PG_NCHW_OR_NCDHW));
  PG_TRY(pg_check_same_format(a->api, &v[OUT], &v[SELF]));
  return pg_check_format(a->api, &v[INDICES], PG_PLANAR);
}

/* Likewise. */
static aclnnStatus check_3d(struct args *a, struct pg_pooling *pool) {
  struct pg_view *v = a->view;
  const struct pg_soc *soc = pg_soc();
  PG_TRY(check_tensors_3d(a));
  PG_TRY(pg_check_same_rank(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_same_shape(a->api, &v[INDICES], &v[OUT]));
  pg_views_lay_out(v, TENSORS, 3, false);
  struct pg_sizes sizes = {v[SELF].dims[PG_D], v[SELF].dims[PG_H], v[SELF].dims[PG_W]};
  PG_TRY(pg_read_sizes(a->api, "outputSize", a->output_size, 3, soc->adaptive_max3d_nd ? 0 : 3,
                       &sizes));
  PG_TRY(pg_check_adaptive_out(a->api, ACLNN_ERR_PARAM_INVALID, 3, &v[OUT], &v[SELF], sizes));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  PG_TRY(pg_check_lengths(a->api, &v[SELF], 0));
  PG_TRY(pg_check_plane(a->api, &v[SELF], soc->large_planes, &v[INDICES]));
  PG_TRY(pg_check_positive(a->api, "outputSize", 3, sizes));
  PG_TRY(pg_views_check(a->api, v, TENSORS, WRITTEN));
  return pg_adaptive_pooling(a->api, &v[SELF], &v[OUT], pool);
}

/* --- both --------------------------------------------------------------------------------------
 */

static aclnnStatus prepare(struct args a, const aclTensor *const handles[TENSORS], checks *check,
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_pooling pool;
  const struct pg_required required[] = {{"self", handles[SELF]},
                                         {"outputSize", a.output_size},
                                         {"outputOut", handles[OUT]},
                                         {"indicesOut", handles[INDICES]},
                                         {NULL, NULL}};
  a.view[SELF].name = "self";
  a.view[OUT].name = "outputOut";
  a.view[INDICES].name = "indicesOut";
  PG_TRY(pg_check_results(a.api, workspace_size, executor));
  PG_TRY(pg_check_required(a.api, required));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a, &pool);
  if (status == ACLNN_SUCCESS) {
    const struct pg_max_forward_call call = {
        .in = &a.view[SELF], .out = &a.view[OUT], .index = &a.view[INDICES], .pool = pool};
    status = pg_plan_max_forward(a.api, &call, workspace_size, executor);
  }
  pg_views_release(a.view, TENSORS);
  return status;
}

aclnnStatus aclnnAdaptiveMaxPool2dGetWorkspaceSize(const aclTensor *self,
                                                   const aclIntArray *outputSize,
                                                   aclTensor *outputOut, aclTensor *indicesOut,
                                                   uint64_t *workspaceSize,
                                                   aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, outputOut, indicesOut};
  const struct args a = {.api = __func__, .output_size = outputSize};
  return prepare(a, handles, check_2d, workspaceSize, executor);
}

aclnnStatus aclnnAdaptiveMaxPool2d(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnAdaptiveMaxPool3dGetWorkspaceSize(const aclTensor *self,
                                                   const aclIntArray *outputSize,
                                                   aclTensor *outputOut, aclTensor *indicesOut,
                                                   uint64_t *workspaceSize,
                                                   aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, outputOut, indicesOut};
  const struct args a = {.api = __func__, .output_size = outputSize};
  return prepare(a, handles, check_3d, workspaceSize, executor);
}

aclnnStatus aclnnAdaptiveMaxPool3d(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream) {
  return pg_execute(__func__, workspace, workspaceSize, executor, stream);
}
