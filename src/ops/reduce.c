/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that reduce a tensor along some of its axes to a sum, a mean, an extremum or a truth:
 * aclnnReduceSum, aclnnMean, aclnnAll, aclnnAny, aclnnMax, aclnnMin, aclnnMaxDim, aclnnMinDim. */
#include <math.h>
#include <stddef.h>

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_all.h"
#include "aclnnop/aclnn_any.h"
#include "aclnnop/aclnn_max.h"
#include "aclnnop/aclnn_max_dim.h"
#include "aclnnop/aclnn_mean.h"
#include "aclnnop/aclnn_min.h"
#include "aclnnop/aclnn_min_dim.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "core/checked.h"
#include "core/dtype.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

enum { SELF, OUT, INDICES, TENSORS };

struct args {
  const char *api;
  struct pg_view view[TENSORS];
  int views; /* 2, or 3 with indices */
  enum pg_reduce_function function;
  bool is_mean, keeps_axes, is_reduced[PG_GRID_AXES];
  bool takes_all;       /* axes are not asked for: out is one element, whatever axes it has */
  aclDataType computed; /* what elements are converted to first */
  const char *dims_name;
  struct pg_shape outer, inner; /* of the outputs; of what each is made of */
};

/* --- Axes --- */

/* The axis that dim means: negative ones count from the end.  A tensor without axes has one of
 * length 1. */
static aclnnStatus read_axis(const struct args *a, int64_t dim, int *axis) {
  const int rank = a->view[SELF].tensor->rank, axes = rank == 0 ? 1 : rank;
  PG_CHECK_AS(a->api, dim >= -axes && dim < axes, ACLNN_ERR_PARAM_INVALID,
              "%s has axis %lld, self is %s, allowed is %d to %d", a->dims_name, (long long)dim,
              pg_view_shape(&a->view[SELF]), -axes, axes - 1);
  *axis = (int)(dim < 0 ? dim + axes : dim);
  return ACLNN_SUCCESS;
}

static aclnnStatus mark_axes(struct args *a, const int64_t *dims, uint64_t count) {
  for (int i = 0; i < PG_GRID_AXES; i++) a->is_reduced[i] = count == 0;
  for (uint64_t i = 0; i < count; i++) {
    int axis;
    PG_TRY(read_axis(a, dims[i], &axis));
    PG_CHECK_AS(a->api, !a->is_reduced[axis], ACLNN_ERR_PARAM_INVALID, "%s has axis %d twice",
                a->dims_name, axis);
    a->is_reduced[axis] = true;
  }
  return ACLNN_SUCCESS;
}

static aclnnStatus read_dims(struct args *a, const aclIntArray *handle) {
  struct pg_array *array = pg_acquire(handle, PG_INT_ARRAY);
  PG_CHECK_AS(a->api, array != NULL, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, a live aclIntArray is required", a->dims_name, pg_handle_what(handle));
  const aclnnStatus status = mark_axes(a, pg_ints(array), array->size);
  pg_release(&array->object);
  return status;
}

/* The shape of the outputs, as the caller sees it. */
static struct pg_shape result_shape(const struct args *a) {
  const struct pg_tensor *self = a->view[SELF].tensor;
  struct pg_shape shape = {.rank = 0};
  for (int i = 0; i < self->rank; i++)
    if (!a->is_reduced[i])
      shape.dims[shape.rank++] = self->dims[i];
    else if (a->keeps_axes)
      shape.dims[shape.rank++] = 1;
  return shape;
}

static void split_shape(struct args *a) {
  const struct pg_tensor *self = a->view[SELF].tensor;
  a->outer.rank = a->inner.rank = 0;
  for (int i = 0; i < self->rank; i++) {
    struct pg_shape *shape = a->is_reduced[i] ? &a->inner : &a->outer;
    shape->dims[shape->rank++] = self->dims[i];
  }
}

/* --- Checks --- */

static aclnnStatus check_axes(const struct args *a) {
  for (int i = 0; i < a->views; i++) PG_TRY(pg_check_axes(a->api, &a->view[i]));
  return ACLNN_SUCCESS;
}

static aclnnStatus check_one_element(const struct args *a) {
  const struct pg_shape out = pg_shape_of(&a->view[OUT]);
  PG_CHECK_AS(a->api, pg_positions(&out) == 1, ACLNN_ERR_PARAM_INVALID,
              "out is %s, it must have one element", pg_view_shape(&a->view[OUT]));
  return ACLNN_SUCCESS;
}

static aclnnStatus check_shapes(struct args *a) {
  const struct pg_shape expected = result_shape(a);
  if (a->takes_all) PG_TRY(check_one_element(a));
  for (int i = OUT; i < a->views && !a->takes_all; i++)
    PG_TRY(pg_check_shape(a->api, &a->view[i], &expected, "self's shape without what is reduced,"));
  split_shape(a);
  return ACLNN_SUCCESS;
}

/* Extrema of nothing are no numbers. */
static aclnnStatus check_extremum(const struct args *a) {
  const bool is_extremum = a->function == PG_REDUCE_MAX || a->function == PG_REDUCE_MIN;
  PG_CHECK_AS(a->api, !is_extremum || pg_positions(&a->inner) > 0 || pg_positions(&a->outer) == 0,
              ACLNN_ERR_PARAM_INVALID, "self is %s, an empty axis has no extremum",
              pg_view_shape(&a->view[SELF]));
  return ACLNN_SUCCESS;
}

static aclnnStatus check_views(struct args *a) {
  const struct pg_view *const views[] = {&a->view[SELF], &a->view[OUT]};
  PG_TRY(check_shapes(a));
  PG_TRY(check_extremum(a));
  PG_TRY(pg_views_check(a->api, a->view, a->views, 1u << OUT | 1u << INDICES));
  return pg_check_work(a->api, &a->view[SELF], views, 2);
}

/* --- The plan --- */

static void bind(struct pg_plan *plan, size_t view_at, const struct pg_view *view, bool written) {
  pg_plan_bind(plan, view_at + offsetof(struct pg_tensor_view, address),
               pg_view_operand(plan, view, written), view->begin);
}

/* Strides of the outputs: out's own axes are those of the outer shape, with those of length 1 for
 * reduced axes among them. */
static void lay_result(const struct args *a, const struct pg_view *view,
                       int64_t strides[PG_GRID_AXES]) {
  const struct pg_tensor *self = a->view[SELF].tensor, *t = view->tensor;
  int at = 0, from = 0;
  for (int i = 0; i < self->rank; i++) {
    if (!a->is_reduced[i])
      strides[at++] = t->strides[from++];
    else if (a->keeps_axes)
      from++;
  }
}

static void lay_self(const struct args *a, struct pg_reduce *r) {
  const struct pg_tensor *self = a->view[SELF].tensor;
  int outer = 0, inner = 0;
  for (int i = 0; i < self->rank; i++)
    if (a->is_reduced[i])
      r->inner_strides[inner++] = self->strides[i];
    else
      r->in.strides[outer++] = self->strides[i];
}

static struct pg_problem problem_of(const struct args *a) {
  struct pg_problem problem = {.kernel = PG_REDUCE, .dtype = a->view[SELF].tensor->dtype};
  struct pg_reduce *r = &problem.args.reduce;
  int64_t *outer[] = {r->out.strides, r->in.strides, r->index.strides},
          *inner[] = {r->inner_strides};
  r->function = a->function;
  r->class_of = pg_class_of(a->computed);
  r->divisor = a->is_mean ? pg_positions(&a->inner) : 1;
  r->in.dtype = a->view[SELF].tensor->dtype;
  r->out.dtype = a->view[OUT].tensor->dtype;
  lay_self(a, r);
  lay_result(a, &a->view[OUT], r->out.strides);
  if (a->views > INDICES) {
    r->index.dtype = a->view[INDICES].tensor->dtype;
    lay_result(a, &a->view[INDICES], r->index.strides);
  }
  pg_lay_grid(&r->grid, &a->outer, outer, 3);
  pg_lay_grid(&r->inner, &a->inner, inner, 1);
  problem.facts.bytes = pg_mul_or_most(pg_mul_or_most(r->grid.count, r->inner.count),
                                       (int64_t)a->view[SELF].tensor->element);
  return problem;
}

static aclnnStatus plan_reduce(const struct args *a, struct pg_plan *plan) {
  const struct pg_problem problem = problem_of(a);
  const int64_t workspace = pg_plan_add(plan, &problem, NULL);
  int64_t at;
  bind(plan, offsetof(struct pg_reduce, in), &a->view[SELF], false);
  bind(plan, offsetof(struct pg_reduce, out), &a->view[OUT], true);
  if (a->views > INDICES) bind(plan, offsetof(struct pg_reduce, index), &a->view[INDICES], true);
  PG_TRY(pg_plan_reserve(a->api, plan, workspace, &at));
  pg_plan_bind(plan, offsetof(struct pg_reduce, partial), PG_WORKSPACE, at);
  return ACLNN_SUCCESS;
}

/* Of no elements: the sum is 0, the mean NaN, all are set and none is any. */
static aclnnStatus plan_nothing(const struct args *a, struct pg_plan *plan) {
  const struct pg_scalar_value value = {.dtype = ACL_DOUBLE,
                                        .real = a->is_mean                     ? (double)NAN
                                                : a->function == PG_REDUCE_ALL ? 1
                                                                               : 0,
                                        .integer = a->function == PG_REDUCE_ALL};
  return pg_plan_fill(a->api, plan, &a->view[OUT],
                      pg_number_of(&value, a->view[OUT].tensor->dtype));
}

static aclnnStatus publish(const struct args *a, uint64_t *workspace_size,
                           aclOpExecutor **executor) {
  struct pg_plan *plan;
  aclnnStatus status = ACLNN_SUCCESS;
  PG_TRY(pg_plan_create(a->api, &plan));
  if (!a->view[OUT].tensor->empty)
    status = pg_positions(&a->inner) > 0 ? plan_reduce(a, plan) : plan_nothing(a, plan);
  return pg_plan_publish(a->api, plan, status, workspace_size, executor);
}

/* --- Sums and truths: dims is an array --- */

static aclnnStatus check_sum(struct args *a, unsigned computed, unsigned results,
                             const aclIntArray *dims) {
  const struct pg_view *v = a->view;
  PG_TRY(pg_check_type(a->api, "self", v[SELF].tensor->dtype, PG_ANY));
  PG_TRY(pg_check_type(a->api, "dtype", a->computed, computed));
  PG_TRY(pg_check_type(a->api, "out", v[OUT].tensor->dtype, results));
  PG_TRY(pg_check_result_type(a->api, &v[OUT], a->computed));
  PG_TRY(check_axes(a));
  PG_TRY(read_dims(a, dims));
  return check_views(a);
}

/* dtype: NULL for a truth, which is computed with what self is.  A sum of BOOLs that is a BOOL
 * itself is a truth too: is any set? */
static aclnnStatus reduce_dims(struct args *a, const aclTensor *self, const aclIntArray *dims,
                               const aclDataType *dtype, aclTensor *out, uint64_t *workspace_size,
                               aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out};
  const struct pg_required required[] = {
      {"self", self}, {a->dims_name, dims}, {"out", out}, {NULL, NULL}};
  a->view[SELF].name = "self";
  a->view[OUT].name = "out";
  a->views = 2;
  PG_TRY(pg_check_results(a->api, workspace_size, executor));
  PG_TRY(pg_check_required(a->api, required));
  PG_TRY(pg_views_acquire(a->api, a->view, handles, 2));
  a->computed = dtype != NULL ? *dtype : ACL_BOOL;
  aclnnStatus status =
      check_sum(a, a->is_mean ? PG_REALS : PG_ANY, dtype != NULL ? PG_ANY : PG_MASK_TYPES, dims);
  if (a->computed == ACL_BOOL && a->function == PG_REDUCE_SUM) a->function = PG_REDUCE_ANY;
  if (a->computed == ACL_BOOL) a->computed = a->view[SELF].tensor->dtype;
  if (status == ACLNN_SUCCESS) status = publish(a, workspace_size, executor);
  pg_views_release(a->view, 2);
  return status;
}

aclnnStatus aclnnReduceSumGetWorkspaceSize(const aclTensor *self, const aclIntArray *dims,
                                           bool keepDims, aclDataType dtype, aclTensor *out,
                                           uint64_t *workspaceSize, aclOpExecutor **executor) {
  struct args a = {
      .api = __func__, .function = PG_REDUCE_SUM, .keeps_axes = keepDims, .dims_name = "dims"};
  return reduce_dims(&a, self, dims, &dtype, out, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnReduceSum)

aclnnStatus aclnnMeanGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim,
                                      aclDataType dtype, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor) {
  struct args a = {.api = __func__,
                   .function = PG_REDUCE_SUM,
                   .is_mean = true,
                   .keeps_axes = keepDim,
                   .dims_name = "dim"};
  return reduce_dims(&a, self, dim, &dtype, out, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnMean)

aclnnStatus aclnnAllGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim,
                                     aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor) {
  struct args a = {
      .api = __func__, .function = PG_REDUCE_ALL, .keeps_axes = keepDim, .dims_name = "dim"};
  return reduce_dims(&a, self, dim, NULL, out, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnAll)

aclnnStatus aclnnAnyGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim,
                                     aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor) {
  struct args a = {
      .api = __func__, .function = PG_REDUCE_ANY, .keeps_axes = keepDim, .dims_name = "dim"};
  return reduce_dims(&a, self, dim, NULL, out, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnAny)

/* --- Extrema: over everything, or along one axis with positions --- */

static aclnnStatus check_types(struct args *a) {
  const struct pg_view *v = a->view;
  PG_TRY(pg_check_type(a->api, "self", v[SELF].tensor->dtype, PG_ANY));
  a->computed = v[SELF].tensor->dtype;
  PG_TRY(pg_check_result_type(a->api, &v[OUT], a->computed));
  if (a->views > INDICES)
    PG_TRY(pg_check_type(a->api, "indices", v[INDICES].tensor->dtype, PG_INDEX_TYPES));
  return check_axes(a);
}

static aclnnStatus check_all(struct args *a) {
  PG_TRY(check_types(a));
  PG_TRY(mark_axes(a, NULL, 0));
  return check_views(a);
}

static aclnnStatus check_along(struct args *a, int64_t dim) {
  PG_TRY(check_types(a));
  PG_TRY(mark_axes(a, &dim, 1));
  return check_views(a);
}

static aclnnStatus extremum(const char *api, enum pg_reduce_function function,
                            const aclTensor *self, aclTensor *out, uint64_t *workspace_size,
                            aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out};
  struct args a = {.api = api,
                   .view = {{.name = "self"}, {.name = "out"}},
                   .views = 2,
                   .function = function,
                   .takes_all = true};
  PG_TRY(pg_check_results(api, workspace_size, executor));
  PG_TRY(pg_views_acquire(api, a.view, handles, 2));
  aclnnStatus status = check_all(&a);
  if (status == ACLNN_SUCCESS) status = publish(&a, workspace_size, executor);
  pg_views_release(a.view, 2);
  return status;
}

/* struct args without its checked part, and the tensors. */
static aclnnStatus extremum_along(struct args *a, const aclTensor *self, int64_t dim,
                                  aclTensor *out, aclTensor *indices, uint64_t *workspace_size,
                                  aclOpExecutor **executor) {
  const aclTensor *const handles[] = {self, out, indices};
  a->view[SELF].name = "self";
  a->view[OUT].name = "out";
  a->view[INDICES].name = "indices";
  a->views = TENSORS;
  a->dims_name = "dim";
  PG_TRY(pg_check_results(a->api, workspace_size, executor));
  PG_TRY(pg_views_acquire(a->api, a->view, handles, TENSORS));
  aclnnStatus status = check_along(a, dim);
  if (status == ACLNN_SUCCESS) status = publish(a, workspace_size, executor);
  pg_views_release(a->view, TENSORS);
  return status;
}

#define EXTREMUM(name, reduction)                                                                \
  aclnnStatus aclnn##name##GetWorkspaceSize(const aclTensor *self, aclTensor *out,               \
                                            uint64_t *workspaceSize, aclOpExecutor **executor) { \
    return extremum(__func__, reduction, self, out, workspaceSize, executor);                    \
  }                                                                                              \
  PG_SECOND_PHASE(aclnn##name)                                                                   \
  aclnnStatus aclnn##name##DimGetWorkspaceSize(                                                  \
      const aclTensor *self, int64_t dim, bool keepDim, aclTensor *out, aclTensor *indices,      \
      uint64_t *workspaceSize, aclOpExecutor **executor) {                                       \
    struct args a = {.api = __func__, .function = (reduction), .keeps_axes = keepDim};           \
    return extremum_along(&a, self, dim, out, indices, workspaceSize, executor);                 \
  }                                                                                              \
  PG_SECOND_PHASE(aclnn##name##Dim)

EXTREMUM(Max, PG_REDUCE_MAX)
EXTREMUM(Min, PG_REDUCE_MIN)
