/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnInplaceCopy, aclnnCast and aclnnNpuFormatCast: a tensor becomes another one, converted and
 * broadcast. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "core/dtype.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { TO, FROM, TENSORS };

static aclnnStatus check_broadcast(const char *api, const struct pg_view *from,
                                   const struct pg_view *to) {
  const struct pg_shape own = pg_shape_of(to);
  struct pg_shape both;
  PG_TRY(pg_broadcast(api, from, to, &both));
  return pg_check_shape(api, to, &both,
                        pg_positions(&both) == pg_positions(&own)
                            ? "the shape of both,"
                            : "the shape that it and src have together,");
}

static aclnnStatus check(const char *api, struct pg_view *v) {
  for (int i = 0; i < TENSORS; i++)
    PG_TRY(pg_check_type(api, v[i].name, v[i].tensor->dtype, PG_ANY));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_axes(api, &v[i]));
  PG_TRY(check_broadcast(api, &v[FROM], &v[TO]));
  return pg_views_check(api, v, TENSORS, 1u << TO);
}

static aclnnStatus publish(const char *api, const struct pg_view *v, uint64_t *workspace_size,
                           aclOpExecutor **executor) {
  const struct pg_map_call call = {
      .out = &v[TO],
      .in = {&v[FROM]},
      .args = {.function = PG_MAP_COPY, .class_of = pg_class_of(v[FROM].tensor->dtype)}};
  return pg_publish_map(api, &call, workspace_size, executor);
}

aclnnStatus aclnnInplaceCopyGetWorkspaceSize(aclTensor *selfRef, const aclTensor *src,
                                             uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {selfRef, src};
  struct pg_view views[TENSORS] = {{.name = "selfRef"}, {.name = "src"}};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_views_acquire(__func__, views, handles, TENSORS));
  aclnnStatus status = check(__func__, views);
  if (status == ACLNN_SUCCESS) status = publish(__func__, views, workspaceSize, executor);
  pg_views_release(views, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnInplaceCopy)

/* --- Types --- */

static aclnnStatus check_conversion(const char *api, struct pg_view *v, aclDataType dtype) {
  PG_TRY(pg_check_type(api, "dtype", dtype, PG_ANY));
  PG_CHECK_AS(api, v[TO].tensor->dtype == dtype, ACLNN_ERR_PARAM_INVALID,
              "out is %s, dtype says %s", pg_dtype_name(v[TO].tensor->dtype), pg_dtype_name(dtype));
  PG_TRY(pg_check_same_shape(api, &v[TO], &v[FROM]));
  return check(api, v);
}

aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor *self, const aclDataType dtype,
                                      aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor) {
  const aclTensor *const handles[] = {out, self};
  const struct pg_required required[] = {{"self", self}, {"out", out}, {NULL, NULL}};
  struct pg_view views[TENSORS] = {{.name = "out"}, {.name = "self"}};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_check_required(__func__, required));
  PG_TRY(pg_views_acquire(__func__, views, handles, TENSORS));
  aclnnStatus status = check_conversion(__func__, views, dtype);
  if (status == ACLNN_SUCCESS) status = publish(__func__, views, workspaceSize, executor);
  pg_views_release(views, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnCast)

/* --- Formats --- */

static aclnnStatus check_cast(const char *api, struct pg_view *v) {
  PG_TRY(pg_check_same_dtype(api, &v[TO], &v[FROM]));
  PG_TRY(pg_check_same_shape(api, &v[TO], &v[FROM]));
  return check(api, v);
}

aclnnStatus aclnnNpuFormatCastGetWorkspaceSize(const aclTensor *srcTensor, aclTensor *dstTensor,
                                               uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {dstTensor, srcTensor};
  const struct pg_required required[] = {
      {"srcTensor", srcTensor}, {"dstTensor", dstTensor}, {NULL, NULL}};
  struct pg_view views[TENSORS] = {{.name = "dstTensor"}, {.name = "srcTensor"}};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_check_required(__func__, required));
  PG_TRY(pg_views_acquire(__func__, views, handles, TENSORS));
  aclnnStatus status = check_cast(__func__, views);
  if (status == ACLNN_SUCCESS) status = publish(__func__, views, workspaceSize, executor);
  pg_views_release(views, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnNpuFormatCast)

/* There are no private formats here: a tensor stays as it is.  Callers make a tensor of what is
 * answered and cast into it, which copies. */
aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor *srcTensor,
                                                     const int dstFormat, int additionalDtype,
                                                     int64_t **dstShape, uint64_t *dstShapeSize,
                                                     int *actualFormat) {
  const struct pg_required required[] = {{"srcTensor", srcTensor},
                                         {"dstShape", dstShape},
                                         {"dstShapeSize", dstShapeSize},
                                         {"actualFormat", actualFormat},
                                         {NULL, NULL}};
  struct pg_tensor *tensor;
  (void)additionalDtype;
  PG_TRY(pg_check_required(__func__, required));
  PG_TRY(pg_tensor_get(__func__, "srcTensor", srcTensor, &tensor));
  const aclFormat own = tensor->format;
  const aclnnStatus status =
      pg_tensor_copy_out(__func__, tensor->dims, tensor->rank, dstShape, dstShapeSize);
  pg_release(&tensor->object);
  if (status == ACLNN_SUCCESS)
    *actualFormat = pg_is_plain((aclFormat)dstFormat) ? dstFormat
                    : pg_is_plain(own)                ? own
                                                      : ACL_FORMAT_ND;
  return status;
}
