/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnEqual: have two tensors one shape, and the same number in each place?  The places are
 * compared first, which leaves a BOOL for each in the workspace; then all of these must be set. */
#include <stddef.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_equal.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { SELF, OTHER, OUT, TENSORS };

static aclnnStatus check(const char *api, struct pg_view *v) {
  PG_TRY(pg_check_type(api, v[SELF].name, v[SELF].tensor->dtype, PG_ANY));
  PG_TRY(pg_check_same_dtype(api, &v[OTHER], &v[SELF]));
  PG_TRY(pg_check_type(api, v[OUT].name, v[OUT].tensor->dtype, PG_TYPE(ACL_BOOL)));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_axes(api, &v[i]));
  const struct pg_shape out = pg_shape_of(&v[OUT]);
  PG_CHECK_AS(api, pg_positions(&out) == 1, ACLNN_ERR_PARAM_INVALID,
              "out is %s, it must have one element", pg_view_shape(&v[OUT]));
  return pg_views_check(api, v, TENSORS, 1u << OUT);
}

static bool have_one_shape(const struct pg_view *a, const struct pg_view *b) {
  const int rank = a->tensor->rank;
  return b->tensor->rank == rank &&
         memcmp(a->tensor->dims, b->tensor->dims, (size_t)rank * sizeof a->tensor->dims[0]) == 0;
}

static aclnnStatus plan_answer(const char *api, struct pg_plan *plan, const struct pg_view *out,
                               bool answer) {
  return pg_plan_fill(api, plan, out, (union pg_number){.integer = answer});
}

/* Are all of the BOOLs set that lie in the workspace? */
static aclnnStatus plan_all(const char *api, struct pg_plan *plan, int64_t compared_at,
                            int64_t count, const struct pg_view *out) {
  const size_t address = offsetof(struct pg_tensor_view, address);
  const struct pg_shape outer = {.rank = 0}, inner = {.rank = 1, .dims = {count}};
  struct pg_problem problem = {.kernel = PG_REDUCE, .dtype = ACL_BOOL, .facts.bytes = count};
  struct pg_reduce *r = &problem.args.reduce;
  int64_t *inner_strides[] = {r->inner_strides}, at;
  r->function = PG_REDUCE_ALL;
  r->class_of = PG_CLASS_INT;
  r->divisor = 1;
  r->in.dtype = r->out.dtype = ACL_BOOL;
  r->inner_strides[0] = 1;
  pg_lay_grid(&r->grid, &outer, NULL, 0);
  pg_lay_grid(&r->inner, &inner, inner_strides, 1);
  const int64_t workspace = pg_plan_add(plan, &problem, NULL);
  pg_plan_bind(plan, offsetof(struct pg_reduce, in) + address, PG_WORKSPACE, compared_at);
  pg_plan_bind(plan, offsetof(struct pg_reduce, out) + address, pg_view_operand(plan, out, true),
               out->begin);
  PG_TRY(pg_plan_reserve(api, plan, workspace, &at));
  pg_plan_bind(plan, offsetof(struct pg_reduce, partial), PG_WORKSPACE, at);
  return ACLNN_SUCCESS;
}

static aclnnStatus plan_equal(const char *api, struct pg_plan *plan, const struct pg_view *v) {
  const struct pg_shape shape = pg_shape_of(&v[SELF]);
  const struct pg_map_call compare = {
      .in = {&v[SELF], &v[OTHER]},
      .args = {.function = PG_MAP_EQ, .class_of = pg_class_of(v[SELF].tensor->dtype)}};
  int64_t at;
  if (!have_one_shape(&v[SELF], &v[OTHER])) return plan_answer(api, plan, &v[OUT], false);
  if (v[SELF].tensor->empty) return plan_answer(api, plan, &v[OUT], true);
  PG_TRY(pg_plan_map_out(api, plan, &compare, &shape, ACL_BOOL, &at));
  return plan_all(api, plan, at, pg_positions(&shape), &v[OUT]);
}

static aclnnStatus publish(const char *api, struct pg_view *v, uint64_t *workspace_size,
                           aclOpExecutor **executor) {
  struct pg_plan *plan;
  PG_TRY(check(api, v));
  PG_TRY(pg_plan_create(api, &plan));
  return pg_plan_publish(api, plan, plan_equal(api, plan, v), workspace_size, executor);
}

aclnnStatus aclnnEqualGetWorkspaceSize(const aclTensor *self, const aclTensor *other,
                                       aclTensor *out, uint64_t *workspaceSize,
                                       aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, other, out};
  struct pg_view views[TENSORS] = {{.name = "self"}, {.name = "other"}, {.name = "out"}};
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_views_acquire(__func__, views, handles, TENSORS));
  const aclnnStatus status = publish(__func__, views, workspaceSize, executor);
  pg_views_release(views, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnEqual)
