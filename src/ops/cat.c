/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnCat and aclnnStack: the tensors of a list, one behind the other along an axis of out, which
 * they have themselves (cat) or not (stack).  Each is one step of a plan, which copies it to its
 * part of out. */
#include <stdio.h>

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_stack.h"
#include "ops/map_plan.h"
#include "ops/pool_check.h"

struct args {
  const char *api;
  bool stacks;
  struct pg_list *tensors;
  struct pg_view out;
  int64_t dim;
  int axis;
  int64_t filled; /* along that axis, so far */
};

/* Programs begin a list with such a tensor where they do not know the shape yet. */
static bool is_passed_over(const struct args *a, const struct pg_view *in) {
  return !a->stacks && in->tensor->rank == 1 && in->tensor->dims[0] == 0;
}

static int64_t length_of(const struct args *a, const struct pg_view *in) {
  return a->stacks ? 1 : in->tensor->dims[a->axis];
}

/* --- Checks --- */

static aclnnStatus check_out(struct args *a) {
  const int rank = a->out.tensor->rank;
  PG_TRY(pg_check_type(a->api, "out", a->out.tensor->dtype, PG_ANY));
  PG_TRY(pg_check_axes(a->api, &a->out));
  PG_CHECK_AS(a->api, rank > 0, ACLNN_ERR_PARAM_INVALID,
              "out is [], it must have an axis to put tensors one behind the other");
  PG_CHECK_AS(a->api, a->dim >= -rank && a->dim < rank, ACLNN_ERR_PARAM_INVALID,
              "dim is %lld, out is %s, allowed is %d to %d", (long long)a->dim,
              pg_view_shape(&a->out), -rank, rank - 1);
  a->axis = (int)(a->dim < 0 ? a->dim + rank : a->dim);
  return pg_view_check(a->api, &a->out, true);
}

static aclnnStatus check_cat_shape(const struct args *a, const struct pg_view *in) {
  const struct pg_tensor *out = a->out.tensor;
  PG_TRY(pg_check_same_rank(a->api, in, &a->out));
  for (int i = 0; i < out->rank; i++)
    PG_CHECK_AS(a->api, i == a->axis || in->tensor->dims[i] == out->dims[i],
                ACLNN_ERR_PARAM_INVALID, "%s is %s and out %s, only axis %d may differ", in->name,
                pg_view_shape(in), pg_view_shape(&a->out), a->axis);
  return ACLNN_SUCCESS;
}

static aclnnStatus check_stack_shape(const struct args *a, const struct pg_view *in) {
  const struct pg_tensor *out = a->out.tensor;
  struct pg_shape expected = {.rank = 0};
  char whose[48];
  for (int i = 0; i < out->rank; i++)
    if (i != a->axis) expected.dims[expected.rank++] = out->dims[i];
  snprintf(whose, sizeof whose, "out's shape without axis %d,", a->axis);
  return pg_check_shape(a->api, in, &expected, whose);
}

/* The part of out that a tensor is copied to, as out's type, begins at `filled`. */
static aclnnStatus check_in(const struct args *a, struct pg_view *in) {
  PG_TRY(pg_check_type(a->api, in->name, in->tensor->dtype, PG_ANY));
  PG_TRY(pg_check_result_type(a->api, &a->out, in->tensor->dtype));
  PG_TRY(pg_check_axes(a->api, in));
  PG_TRY(pg_view_check(a->api, in, false));
  if (is_passed_over(a, in)) return ACLNN_SUCCESS;
  PG_TRY(a->stacks ? check_stack_shape(a, in) : check_cat_shape(a, in));
  const int64_t left = a->out.tensor->dims[a->axis] - a->filled;
  PG_CHECK_AS(a->api, length_of(a, in) <= left, ACLNN_ERR_PARAM_INVALID,
              "%s is %s, but %lld of out's %s along axis %d are left for it", in->name,
              pg_view_shape(in), (long long)left, pg_view_shape(&a->out), a->axis);
  return ACLNN_SUCCESS;
}

static aclnnStatus check_filled(const struct args *a) {
  const int64_t length = a->out.tensor->dims[a->axis];
  PG_CHECK_AS(a->api, a->filled == length, ACLNN_ERR_PARAM_INVALID,
              "out is %s, the tensors have %lld along axis %d together", pg_view_shape(&a->out),
              (long long)a->filled, a->axis);
  return ACLNN_SUCCESS;
}

/* --- The plan --- */

/* In sentences of this phase a tensor has its number. */
static aclnnStatus plan_tensor(struct args *a, struct pg_plan *plan, uint64_t at,
                               struct pg_view *in) {
  char numbered[32];
  snprintf(numbered, sizeof numbered, "tensors[%llu]", (unsigned long long)at);
  in->name = numbered;
  const aclnnStatus status = check_in(a, in);
  in->name = "tensors"; /* the plan keeps this one */
  if (status != ACLNN_SUCCESS || is_passed_over(a, in)) return status;
  if (!in->tensor->empty) pg_plan_copy_into(plan, &a->out, a->axis, a->filled, in);
  a->filled += length_of(a, in);
  return ACLNN_SUCCESS;
}

static aclnnStatus plan_tensors(struct args *a, struct pg_plan *plan) {
  for (uint64_t at = 0; at < a->tensors->size; at++) {
    struct pg_view in = {.name = "tensors"};
    const aclTensor *const handle = a->tensors->elements[at];
    PG_TRY(pg_views_acquire(a->api, &in, &handle, 1));
    const aclnnStatus status = plan_tensor(a, plan, at, &in);
    pg_views_release(&in, 1);
    if (status != ACLNN_SUCCESS) return status;
  }
  return check_filled(a);
}

static aclnnStatus publish(struct args *a, uint64_t *workspace_size, aclOpExecutor **executor) {
  struct pg_plan *plan;
  PG_TRY(check_out(a));
  PG_TRY(pg_plan_create(a->api, &plan));
  return pg_plan_publish(a->api, plan, plan_tensors(a, plan), workspace_size, executor);
}

static aclnnStatus publish_list(struct args *a, const aclTensorList *handle,
                                uint64_t *workspace_size, aclOpExecutor **executor) {
  a->tensors = pg_acquire(handle, PG_TENSOR_LIST);
  PG_CHECK_AS(a->api, a->tensors != NULL, ACLNN_ERR_PARAM_INVALID,
              "tensors is %s, a live aclTensorList is required", pg_handle_what(handle));
  const aclnnStatus status = publish(a, workspace_size, executor);
  pg_release(&a->tensors->object);
  return status;
}

static aclnnStatus first_phase(struct args *a, const aclTensorList *tensors, const aclTensor *out,
                               uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_required required[] = {{"tensors", tensors}, {"out", out}, {NULL, NULL}};
  PG_TRY(pg_check_results(a->api, workspace_size, executor));
  PG_TRY(pg_check_required(a->api, required));
  PG_TRY(pg_views_acquire(a->api, &a->out, &out, 1));
  const aclnnStatus status = publish_list(a, tensors, workspace_size, executor);
  pg_views_release(&a->out, 1);
  return status;
}

aclnnStatus aclnnCatGetWorkspaceSize(const aclTensorList *tensors, int64_t dim, aclTensor *out,
                                     uint64_t *workspaceSize, aclOpExecutor **executor) {
  struct args a = {.api = __func__, .out = {.name = "out"}, .dim = dim};
  return first_phase(&a, tensors, out, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnCat)

aclnnStatus aclnnStackGetWorkspaceSize(const aclTensorList *tensors, int64_t dim, aclTensor *out,
                                       uint64_t *workspaceSize, aclOpExecutor **executor) {
  struct args a = {.api = __func__, .stacks = true, .out = {.name = "out"}, .dim = dim};
  return first_phase(&a, tensors, out, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnStack)
