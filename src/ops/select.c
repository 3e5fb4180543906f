/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnMaskedSelect: the elements whose mask is set, one behind the other.  How many there are is
 * known when the stream has passed: then out's view becomes [count], if out still lives. */
#include <stddef.h>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_masked_select.h"
#include "core/checked.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { SELF, MASK, OUT, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  aclTensor *owner;
  struct pg_shape shape; /* of self and mask together */
};

/* The executor and the tensor may be gone by now: a handle finds that out. */
static aclError tell_count(const union pg_kernel_args *args, const struct pg_index_report *report,
                           struct pg_failure *why) {
  struct pg_tensor *out = pg_acquire(args->select.owner, PG_TENSOR);
  (void)why;
  if (out != NULL) {
    pg_tensor_set_length(out, report->value);
    pg_release(&out->object);
  }
  return ACL_SUCCESS;
}

static aclnnStatus check_out(const struct args *a) {
  const struct pg_view *out = &a->view[OUT];
  const struct pg_tensor *t = out->tensor;
  const int64_t count = pg_positions(&a->shape);
  PG_CHECK_AS(a->api, t->rank == 1 && (t->dims[0] < 2 || t->strides[0] == 1),
              ACLNN_ERR_PARAM_INVALID, "%s is %s, it must have one axis without gaps", out->name,
              pg_view_shape(out));
  PG_CHECK_AS(a->api, t->dims[0] >= count && count < INT64_MAX, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, it must have room for all %lld elements of self and mask", out->name,
              pg_view_shape(out), (long long)count);
  return ACLNN_SUCCESS;
}

static aclnnStatus check(struct args *a) {
  struct pg_view *v = a->view;
  PG_TRY(pg_check_type(a->api, "self", v[SELF].tensor->dtype, PG_ANY));
  PG_TRY(pg_check_type(a->api, "mask", v[MASK].tensor->dtype, PG_MASK_TYPES));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_axes(a->api, &v[i]));
  PG_TRY(pg_broadcast(a->api, &v[SELF], &v[MASK], &a->shape));
  PG_TRY(check_out(a));
  return pg_views_check(a->api, v, TENSORS, 1u << OUT);
}

static struct pg_problem problem_of(const struct args *a) {
  const struct pg_view *v = a->view;
  struct pg_problem problem = {.kernel = PG_SELECT, .dtype = v[SELF].tensor->dtype};
  struct pg_select *s = &problem.args.select;
  int64_t *strides[] = {s->in.strides, s->mask.strides};
  s->in.dtype = v[SELF].tensor->dtype;
  s->mask.dtype = v[MASK].tensor->dtype;
  s->owner = a->owner;
  pg_strides_over(&v[SELF], &a->shape, s->in.strides);
  pg_strides_over(&v[MASK], &a->shape, s->mask.strides);
  pg_lay_grid(&s->grid, &a->shape, strides, 2);
  problem.facts.bytes = pg_mul_or_most(s->grid.count, (int64_t)(2 * v[SELF].tensor->element + 1));
  return problem;
}

static aclnnStatus plan_select(const struct args *a, struct pg_plan *plan) {
  const struct pg_view *v = a->view;
  const size_t in = offsetof(struct pg_select, in), mask = offsetof(struct pg_select, mask);
  const size_t address = offsetof(struct pg_tensor_view, address);
  const struct pg_problem problem = problem_of(a);
  const int64_t workspace = pg_plan_add(plan, &problem, tell_count);
  int64_t at;
  pg_plan_bind(plan, in + address, pg_view_operand(plan, &v[SELF], false), v[SELF].begin);
  pg_plan_bind(plan, mask + address, pg_view_operand(plan, &v[MASK], false), v[MASK].begin);
  pg_plan_bind(plan, offsetof(struct pg_select, out), pg_view_operand(plan, &v[OUT], true),
               v[OUT].begin);
  PG_TRY(pg_plan_reserve(a->api, plan, workspace, &at));
  pg_plan_bind(plan, offsetof(struct pg_select, counts), PG_WORKSPACE, at);
  return ACLNN_SUCCESS;
}

/* Of nothing, nothing is selected, which is known at once. */
static aclnnStatus publish(const struct args *a, uint64_t *workspace_size,
                           aclOpExecutor **executor) {
  struct pg_plan *plan;
  aclnnStatus status = ACLNN_SUCCESS;
  PG_TRY(pg_plan_create(a->api, &plan));
  const bool is_empty = pg_positions(&a->shape) == 0;
  if (!is_empty) status = plan_select(a, plan);
  status = pg_plan_publish(a->api, plan, status, workspace_size, executor);
  if (status == ACLNN_SUCCESS && is_empty) pg_tensor_set_length(a->view[OUT].tensor, 0);
  return status;
}

aclnnStatus aclnnMaskedSelectGetWorkspaceSize(const aclTensor *self, const aclTensor *mask,
                                              aclTensor *out, uint64_t *workspaceSize,
                                              aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, mask, out};
  struct args a = {
      .api = __func__, .view = {{.name = "self"}, {.name = "mask"}, {.name = "out"}}, .owner = out};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a);
  if (status == ACLNN_SUCCESS) status = publish(&a, workspaceSize, executor);
  pg_views_release(a.view, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnMaskedSelect)
