/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnMaxUnpool2d and aclnnMaxUnpool3d: out = 0, then out[n, c, indices[n, c, i]] = self[n, c, i].
 *
 * The kernel takes tensors without gaps; others are copied to the workspace, or from there. */
#include <stddef.h>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_max_unpool2d.h"
#include "aclnnop/aclnn_max_unpool3d.h"
#include "core/checked.h"
#include "ops/index_report.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { SELF, INDICES, OUT, TENSORS };

struct args {
  const char *api;
  int spatial;
  struct pg_view view[TENSORS];
  const aclIntArray *output_size, *stride, *padding; /* the last two: of three dimensions alone */
};

/* --- Checks --- */

/* Exactly one value for each spatial axis. */
static aclnnStatus read_sizes(const struct args *a, const char *name, const aclIntArray *handle,
                              struct pg_sizes *sizes) {
  *sizes = (struct pg_sizes){1, 1, 1};
  return pg_read_sizes(a->api, name, handle, a->spatial, a->spatial, sizes);
}

static aclnnStatus check_attributes(const struct args *a, struct pg_sizes *out) {
  struct pg_sizes stride, padding;
  PG_TRY(read_sizes(a, "outputSize", a->output_size, out));
  PG_TRY(pg_check_positive(a->api, "outputSize", a->spatial, *out));
  if (a->spatial == 2) return ACLNN_SUCCESS;
  PG_TRY(read_sizes(a, "stride", a->stride, &stride));
  PG_TRY(pg_check_positive(a->api, "stride", a->spatial, stride));
  return read_sizes(a, "padding", a->padding, &padding);
}

static aclnnStatus check(struct args *a) {
  struct pg_view *v = a->view;
  struct pg_sizes out;
  PG_TRY(pg_check_type(a->api, v[SELF].name, v[SELF].tensor->dtype, PG_NUMBERS));
  PG_TRY(pg_check_type(a->api, v[INDICES].name, v[INDICES].tensor->dtype, PG_INDEX_TYPES));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_format(a->api, &v[i], PG_PLANAR));
  PG_TRY(pg_check_rank(a->api, &v[SELF], a->spatial + 1, a->spatial + 2));
  PG_TRY(pg_check_same_shape(a->api, &v[INDICES], &v[SELF]));
  PG_TRY(pg_check_same_rank(a->api, &v[OUT], &v[SELF]));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_not_negative(a->api, &v[i]));
  PG_TRY(check_attributes(a, &out));
  pg_views_lay_out(v, TENSORS, a->spatial, false);
  PG_TRY(
      pg_check_adaptive_out(a->api, ACLNN_ERR_PARAM_INVALID, a->spatial, &v[OUT], &v[SELF], out));
  return pg_views_check(a->api, v, TENSORS, 1u << OUT);
}

/* --- The plan --- */

static struct pg_problem problem_of(const struct args *a) {
  const struct pg_view *self = &a->view[SELF], *out = &a->view[OUT];
  const int64_t *from = self->dims, *to = out->dims;
  struct pg_problem problem = {.kernel = PG_UNPOOL, .dtype = self->tensor->dtype};
  struct pg_unpool *u = &problem.args.unpool;
  u->dtype = self->tensor->dtype;
  u->index_dtype = a->view[INDICES].tensor->dtype;
  u->planes = to[PG_N] * to[PG_C];
  u->cells = to[PG_D] * to[PG_H] * to[PG_W];
  u->outputs = from[PG_D] * from[PG_H] * from[PG_W];
  /* Inputs with stride 0 may have any number of outputs; out's cells have memory. */
  const int64_t read = pg_mul_or_most(
      u->outputs, (int64_t)(self->tensor->element + a->view[INDICES].tensor->element));
  int64_t bytes;
  if (!pg_add(read, u->cells * (int64_t)self->tensor->element, &bytes)) bytes = INT64_MAX;
  problem.facts.bytes = pg_mul_or_most(u->planes, bytes);
  return problem;
}

/* Binds what lies in the tensor itself, or in its copy in the workspace. */
static void bind(struct pg_plan *plan, size_t args_offset, const struct pg_view *view, bool written,
                 int64_t copied_to) {
  if (copied_to >= 0)
    pg_plan_bind(plan, args_offset, PG_WORKSPACE, copied_to);
  else
    pg_plan_bind(plan, args_offset, pg_view_operand(plan, view, written), view->begin);
}

static aclnnStatus plan_unpool(const struct args *a, struct pg_plan *plan) {
  const struct pg_view *v = a->view;
  const struct pg_problem problem = problem_of(a);
  const struct pg_unpool *u = &problem.args.unpool;
  int64_t copied_to[TENSORS] = {-1, -1, -1}, at;
  for (int i = SELF; i <= INDICES; i++)
    if (!pg_is_contiguous(&v[i])) PG_TRY(pg_plan_copy_out(a->api, plan, &v[i], &copied_to[i]));
  if (!pg_is_contiguous(&v[OUT]))
    PG_TRY(pg_plan_reserve(a->api, plan,
                           pg_mul_or_most(u->planes * u->cells, (int64_t)v[OUT].tensor->element),
                           &copied_to[OUT]));
  const int64_t workspace =
      pg_plan_add(plan, &problem, a->spatial == 2 ? pg_unpool2d_judge : pg_unpool3d_judge);
  bind(plan, offsetof(struct pg_unpool, in), &v[SELF], false, copied_to[SELF]);
  bind(plan, offsetof(struct pg_unpool, index), &v[INDICES], false, copied_to[INDICES]);
  bind(plan, offsetof(struct pg_unpool, out), &v[OUT], true, copied_to[OUT]);
  PG_TRY(pg_plan_reserve(a->api, plan, workspace, &at));
  pg_plan_bind(plan, offsetof(struct pg_unpool, winners), PG_WORKSPACE, at);
  if (copied_to[OUT] >= 0) pg_plan_copy_back(plan, &v[OUT], v[OUT].tensor->dtype, copied_to[OUT]);
  return ACLNN_SUCCESS;
}

/* Without a value to put anywhere, zeros are left. */
static aclnnStatus plan_zeros(const struct args *a, struct pg_plan *plan) {
  const struct pg_scalar_value zero = {.dtype = ACL_INT64};
  return pg_plan_fill(a->api, plan, &a->view[OUT], pg_number_of(&zero, a->view[OUT].tensor->dtype));
}

static aclnnStatus publish(const struct args *a, uint64_t *workspace_size,
                           aclOpExecutor **executor) {
  struct pg_plan *plan;
  aclnnStatus status = ACLNN_SUCCESS;
  PG_TRY(pg_plan_create(a->api, &plan));
  if (!a->view[OUT].tensor->empty)
    status = a->view[SELF].tensor->empty ? plan_zeros(a, plan) : plan_unpool(a, plan);
  return pg_plan_publish(a->api, plan, status, workspace_size, executor);
}

static aclnnStatus first_phase(struct args *a, const aclTensor *const *handles,
                               uint64_t *workspace_size, aclOpExecutor **executor) {
  PG_TRY(pg_views_acquire(a->api, a->view, handles, TENSORS));
  aclnnStatus status = check(a);
  if (status == ACLNN_SUCCESS) status = publish(a, workspace_size, executor);
  pg_views_release(a->view, TENSORS);
  return status;
}

aclnnStatus aclnnMaxUnpool2dGetWorkspaceSize(const aclTensor *self, const aclTensor *indices,
                                             const aclIntArray *outputSize, aclTensor *out,
                                             uint64_t *workspaceSize, aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, indices, out};
  const struct pg_required required[] = {
      {"self", self}, {"indices", indices}, {"outputSize", outputSize}, {"out", out}, {NULL, NULL}};
  struct args a = {.api = __func__,
                   .spatial = 2,
                   .view = {{.name = "self"}, {.name = "indices"}, {.name = "out"}},
                   .output_size = outputSize};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_required(a.api, required));
  return first_phase(&a, handles, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnMaxUnpool2d)

aclnnStatus aclnnMaxUnpool3dGetWorkspaceSize(const aclTensor *self, const aclTensor *indices,
                                             const aclIntArray *outputSize,
                                             const aclIntArray *stride, const aclIntArray *padding,
                                             aclTensor *outRef, uint64_t *workspaceSize,
                                             aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, indices, outRef};
  const struct pg_required required[] = {
      {"self", self},     {"indices", indices}, {"outputSize", outputSize},
      {"stride", stride}, {"padding", padding}, {"outRef", outRef},
      {NULL, NULL}};
  struct args a = {.api = __func__,
                   .spatial = 3,
                   .view = {{.name = "self"}, {.name = "indices"}, {.name = "outRef"}},
                   .output_size = outputSize,
                   .stride = stride,
                   .padding = padding};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_required(a.api, required));
  return first_phase(&a, handles, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnMaxUnpool3d)
