/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnInplaceFillScalar, aclnnInplaceOne, aclnnInplaceZero and aclnnInplaceMaskedFillScalar. */
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_fill_scalar.h"
#include "aclnnop/aclnn_masked_fill_scalar.h"
#include "aclnnop/aclnn_one.h"
#include "aclnnop/aclnn_zero.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { SELF, MASK, TENSORS };

static aclnnStatus check_self(const char *api, struct pg_view *self) {
  PG_TRY(pg_check_type(api, self->name, self->tensor->dtype, PG_ANY));
  return pg_check_axes(api, self);
}

static aclnnStatus plan_fill(const char *api, struct pg_view *self,
                             const struct pg_scalar_value *value, uint64_t *workspace_size,
                             aclOpExecutor **executor) {
  struct pg_plan *plan;
  PG_TRY(check_self(api, self));
  PG_TRY(pg_view_check(api, self, true));
  PG_TRY(pg_plan_create(api, &plan));
  const union pg_number number = pg_number_of(value, self->tensor->dtype);
  return pg_plan_publish(api, plan, pg_plan_fill(api, plan, self, number), workspace_size,
                         executor);
}

static aclnnStatus fill(const char *api, const aclTensor *handle,
                        const struct pg_scalar_value *value, uint64_t *workspace_size,
                        aclOpExecutor **executor) {
  struct pg_view self = {.name = "selfRef"};
  PG_TRY(pg_views_acquire(api, &self, &handle, 1));
  const aclnnStatus status = plan_fill(api, &self, value, workspace_size, executor);
  pg_views_release(&self, 1);
  return status;
}

aclnnStatus aclnnInplaceFillScalarGetWorkspaceSize(aclTensor *selfRef, const aclScalar *value,
                                                   uint64_t *workspaceSize,
                                                   aclOpExecutor **executor) {
  const struct pg_required required[] = {{"selfRef", selfRef}, {"value", value}, {NULL, NULL}};
  struct pg_scalar_value number;
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_check_required(__func__, required));
  PG_TRY(pg_read_scalar(__func__, "value", value, &number));
  return fill(__func__, selfRef, &number, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnInplaceFillScalar)

aclnnStatus aclnnInplaceOneGetWorkspaceSize(aclTensor *selfRef, uint64_t *workspaceSize,
                                            aclOpExecutor **executor) {
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  return fill(__func__, selfRef, &PG_SCALAR_ONE, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnInplaceOne)

aclnnStatus aclnnInplaceZeroGetWorkspaceSize(aclTensor *selfRef, uint64_t *workspaceSize,
                                             aclOpExecutor **executor) {
  const struct pg_scalar_value zero = {.dtype = ACL_INT64};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  return fill(__func__, selfRef, &zero, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnInplaceZero)

/* --- Where a mask is set --- */

static aclnnStatus check_masked(const char *api, struct pg_view *v) {
  struct pg_shape both;
  PG_TRY(check_self(api, &v[SELF]));
  PG_TRY(pg_check_type(api, v[MASK].name, v[MASK].tensor->dtype, PG_MASK_TYPES));
  PG_TRY(pg_check_axes(api, &v[MASK]));
  PG_TRY(pg_broadcast(api, &v[SELF], &v[MASK], &both));
  PG_TRY(pg_check_shape(api, &v[SELF], &both, "the shape that it and mask have together,"));
  return pg_views_check(api, v, TENSORS, 1u << SELF);
}

static aclnnStatus fill_masked(const char *api, struct pg_view *v, const aclScalar *value,
                               uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_scalar_value number;
  PG_TRY(pg_read_scalar(api, "value", value, &number));
  PG_TRY(check_masked(api, v));
  const aclDataType dtype = v[SELF].tensor->dtype;
  const struct pg_map_call call = {.out = &v[SELF],
                                   .in = {&v[SELF], &v[MASK]},
                                   .args = {.function = PG_MAP_SET_WHERE,
                                            .class_of = pg_class_of(dtype),
                                            .s = pg_number_of(&number, dtype)}};
  return pg_publish_map(api, &call, workspace_size, executor);
}

aclnnStatus aclnnInplaceMaskedFillScalarGetWorkspaceSize(aclTensor *selfRef, const aclTensor *mask,
                                                         const aclScalar *value,
                                                         uint64_t *workspaceSize,
                                                         aclOpExecutor **executor) {
  const aclTensor *const handles[] = {selfRef, mask};
  const struct pg_required required[] = {
      {"selfRef", selfRef}, {"mask", mask}, {"value", value}, {NULL, NULL}};
  struct pg_view views[TENSORS] = {{.name = "selfRef"}, {.name = "mask"}};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_check_required(__func__, required));
  PG_TRY(pg_views_acquire(__func__, views, handles, TENSORS));
  const aclnnStatus status = fill_masked(__func__, views, value, workspaceSize, executor);
  pg_views_release(views, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnInplaceMaskedFillScalar)
