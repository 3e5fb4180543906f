/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnGather: out[i, j, ...] = self[i, index[i, j, ...], ...], where the index stands in the place
 * of axis dim. */
#include <stddef.h>

#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_gather.h"
#include "core/checked.h"
#include "ops/index_report.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { SELF, INDEX, OUT, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  int64_t dim;
  int axis;
};

static aclnnStatus check_dim(struct args *a) {
  const int rank = a->view[SELF].tensor->rank, axes = rank == 0 ? 1 : rank;
  PG_CHECK_AS(a->api, a->dim >= -axes && a->dim < axes, ACLNN_ERR_PARAM_INVALID,
              "dim is %lld, self is %s, allowed is %d to %d", (long long)a->dim,
              pg_view_shape(&a->view[SELF]), -axes, axes - 1);
  a->axis = (int)(a->dim < 0 ? a->dim + axes : a->dim);
  return ACLNN_SUCCESS;
}

static aclnnStatus check_shapes(const struct args *a) {
  const struct pg_view *self = &a->view[SELF], *index = &a->view[INDEX];
  const struct pg_shape shape = pg_shape_of(index);
  PG_TRY(pg_check_same_rank(a->api, index, self));
  for (int i = 0; i < shape.rank; i++)
    PG_CHECK_AS(a->api, i == a->axis || shape.dims[i] <= self->tensor->dims[i],
                ACLNN_ERR_PARAM_INVALID,
                "index is %s and self %s, index must not be longer on axis %d",
                pg_view_shape(index), pg_view_shape(self), i);
  return pg_check_shape(a->api, &a->view[OUT], &shape, "index's shape");
}

static aclnnStatus check(struct args *a) {
  struct pg_view *v = a->view;
  PG_TRY(pg_check_type(a->api, "self", v[SELF].tensor->dtype, PG_ANY));
  PG_TRY(pg_check_type(a->api, "index", v[INDEX].tensor->dtype, PG_INDEX_TYPES));
  PG_TRY(pg_check_same_dtype(a->api, &v[OUT], &v[SELF]));
  for (int i = 0; i < TENSORS; i++) PG_TRY(pg_check_axes(a->api, &v[i]));
  PG_TRY(check_dim(a));
  PG_TRY(check_shapes(a));
  return pg_views_check(a->api, v, TENSORS, 1u << OUT);
}

static struct pg_problem problem_of(const struct args *a) {
  const struct pg_view *v = a->view;
  const struct pg_tensor *self = v[SELF].tensor;
  struct pg_shape shape = pg_shape_of(&v[OUT]);
  struct pg_problem problem = {.kernel = PG_GATHER, .dtype = self->dtype};
  struct pg_gather *g = &problem.args.gather;
  int64_t *strides[] = {g->out.strides, g->in.strides, g->index.strides};
  g->out.dtype = g->in.dtype = self->dtype;
  g->index.dtype = v[INDEX].tensor->dtype;
  pg_strides_over(&v[OUT], &shape, g->out.strides);
  pg_strides_over(&v[INDEX], &shape, g->index.strides);
  for (int i = 0; i < shape.rank; i++)
    g->in.strides[i] = i == a->axis || shape.dims[i] == 1 || self->empty ? 0 : self->strides[i];
  g->length = self->rank == 0 ? 1 : self->dims[a->axis];
  g->axis_stride = g->length > 1 ? self->strides[a->axis] : 0;
  pg_lay_grid(&g->grid, &shape, strides, TENSORS);
  problem.facts.bytes =
      pg_mul_or_most(g->grid.count, (int64_t)(2 * self->element + v[INDEX].tensor->element));
  return problem;
}

static void bind(struct pg_plan *plan, size_t view_at, const struct pg_view *view, bool written) {
  pg_plan_bind(plan, view_at + offsetof(struct pg_tensor_view, address),
               pg_view_operand(plan, view, written), view->begin);
}

/* Every index is outside an empty self, which is never read and may have no address: kernels get
 * that of the indices in its place. */
static aclnnStatus publish(const struct args *a, uint64_t *workspace_size,
                           aclOpExecutor **executor) {
  struct pg_plan *plan;
  PG_TRY(pg_plan_create(a->api, &plan));
  if (!a->view[OUT].tensor->empty) {
    const struct pg_problem problem = problem_of(a);
    (void)pg_plan_add(plan, &problem, pg_gather_judge); /* gathering needs no workspace */
    bind(plan, offsetof(struct pg_gather, in), &a->view[a->view[SELF].tensor->empty ? INDEX : SELF],
         false);
    bind(plan, offsetof(struct pg_gather, index), &a->view[INDEX], false);
    bind(plan, offsetof(struct pg_gather, out), &a->view[OUT], true);
  }
  return pg_plan_publish(a->api, plan, ACLNN_SUCCESS, workspace_size, executor);
}

aclnnStatus aclnnGatherGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index,
                                        aclTensor *out, uint64_t *workspaceSize,
                                        aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, index, out};
  struct args a = {
      .api = __func__, .view = {{.name = "self"}, {.name = "index"}, {.name = "out"}}, .dim = dim};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_views_acquire(a.api, a.view, handles, TENSORS));
  aclnnStatus status = check(&a);
  if (status == ACLNN_SUCCESS) status = publish(&a, workspaceSize, executor);
  pg_views_release(a.view, TENSORS);
  return status;
}
PG_SECOND_PHASE(aclnnGather)
