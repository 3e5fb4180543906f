/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that do the same to all tensors of a list, which is one step of a plan for each:
 *
 *     aclnnForeachAddListV2     out[i] = x1[i] + alpha * x2[i]
 *     aclnnForeachMulScalarV2   out[i] = x[i] * scalar */
#include <stdio.h>

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_foreach_add_list_v2.h"
#include "aclnnop/aclnn_foreach_mul_scalar_v2.h"
#include "ops/elementwise.h"
#include "ops/pool_check.h"

enum { LISTS_MOST = 3 };

struct args {
  const char *api;
  struct pg_elementwise row;
  struct pg_scalar_value scalar, alpha;
  int lists; /* out is the last one */
  const char *name[LISTS_MOST];
  struct pg_list *list[LISTS_MOST];
};

/* In sentences of this phase a tensor has its number. */
static aclnnStatus plan_views(const struct args *a, struct pg_plan *plan, uint64_t at,
                              struct pg_view *v) {
  char numbered[LISTS_MOST][32];
  struct pg_elementwise_call call = {.row = a->row,
                                     .self = &v[0],
                                     .other = a->lists > 2 ? &v[1] : NULL,
                                     .out = &v[a->lists - 1],
                                     .scalar_name = "scalar",
                                     .scalar = a->scalar,
                                     .alpha = a->alpha};
  for (int i = 0; i < a->lists; i++) {
    snprintf(numbered[i], sizeof numbered[i], "%s[%llu]", a->name[i], (unsigned long long)at);
    v[i].name = numbered[i];
  }
  const aclnnStatus status = pg_check_elementwise(a->api, &call);
  for (int i = 0; i < a->lists; i++) v[i].name = a->name[i]; /* the plan keeps these */
  return status == ACLNN_SUCCESS ? pg_plan_elementwise(a->api, plan, &call) : status;
}

static aclnnStatus plan_tensors(const struct args *a, struct pg_plan *plan) {
  for (uint64_t at = 0; at < a->list[0]->size; at++) {
    struct pg_view views[LISTS_MOST] = {{.name = a->name[0]}};
    const aclTensor *handles[LISTS_MOST];
    for (int i = 0; i < a->lists; i++) {
      views[i].name = a->name[i];
      handles[i] = a->list[i]->elements[at];
    }
    PG_TRY(pg_views_acquire(a->api, views, handles, a->lists));
    const aclnnStatus status = plan_views(a, plan, at, views);
    pg_views_release(views, a->lists);
    if (status != ACLNN_SUCCESS) return status;
  }
  return ACLNN_SUCCESS;
}

static aclnnStatus publish(const struct args *a, uint64_t *workspace_size,
                           aclOpExecutor **executor) {
  struct pg_plan *plan;
  for (int i = 1; i < a->lists; i++)
    PG_CHECK_AS(a->api, a->list[i]->size == a->list[0]->size, ACLNN_ERR_PARAM_INVALID,
                "%s has %llu tensors, expected %s's %llu", a->name[i],
                (unsigned long long)a->list[i]->size, a->name[0],
                (unsigned long long)a->list[0]->size);
  PG_TRY(pg_plan_create(a->api, &plan));
  return pg_plan_publish(a->api, plan, plan_tensors(a, plan), workspace_size, executor);
}

static void release(const struct args *a) {
  for (int i = 0; i < a->lists; i++)
    if (a->list[i] != NULL) pg_release(&a->list[i]->object);
}

/* With all lists held, or none. */
static aclnnStatus acquire(struct args *a, const aclTensorList *const *handles) {
  for (int i = 0; i < a->lists; i++) {
    a->list[i] = pg_acquire(handles[i], PG_TENSOR_LIST);
    if (a->list[i] != NULL) continue;
    release(a);
    return pg_fail(a->api, ACLNN_ERR_PARAM_INVALID, "%s is %s, a live aclTensorList is required",
                   a->name[i], pg_handle_what(handles[i]));
  }
  return ACLNN_SUCCESS;
}

static aclnnStatus first_phase(struct args *a, const aclTensorList *const *handles,
                               uint64_t *workspace_size, aclOpExecutor **executor) {
  PG_TRY(acquire(a, handles));
  const aclnnStatus status = publish(a, workspace_size, executor);
  release(a);
  return status;
}

aclnnStatus aclnnForeachAddListV2GetWorkspaceSize(const aclTensorList *x1, const aclTensorList *x2,
                                                  const aclScalar *alpha, const aclTensorList *out,
                                                  uint64_t *workspaceSize,
                                                  aclOpExecutor **executor) {
  const aclTensorList *const handles[] = {x1, x2, out};
  const struct pg_required required[] = {
      {"x1", x1}, {"x2", x2}, {"alpha", alpha}, {"out", out}, {NULL, NULL}};
  struct pg_scalar_value number;
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_check_required(__func__, required));
  PG_TRY(pg_read_scalar(__func__, "alpha", alpha, &number));
  struct args a = {.api = __func__,
                   .row = {PG_MAP_ADD, PG_ANY, PG_PROMOTED, PG_WITH_OTHER | PG_WITH_ALPHA, false},
                   .scalar = PG_SCALAR_ONE,
                   .alpha = number,
                   .lists = 3,
                   .name = {"x1", "x2", "out"}};
  return first_phase(&a, handles, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnForeachAddListV2)

aclnnStatus aclnnForeachMulScalarV2GetWorkspaceSize(const aclTensorList *x, const aclScalar *scalar,
                                                    const aclTensorList *out,
                                                    uint64_t *workspaceSize,
                                                    aclOpExecutor **executor) {
  const aclTensorList *const handles[] = {x, out};
  const struct pg_required required[] = {{"x", x}, {"scalar", scalar}, {"out", out}, {NULL, NULL}};
  struct pg_scalar_value number;
  PG_TRY(pg_check_results(__func__, workspaceSize, executor));
  PG_TRY(pg_check_required(__func__, required));
  PG_TRY(pg_read_scalar(__func__, "scalar", scalar, &number));
  struct args a = {.api = __func__,
                   .row = {PG_MAP_MUL_VALUE, PG_ANY, PG_PROMOTED, PG_WITH_SCALAR, false},
                   .scalar = number,
                   .alpha = PG_SCALAR_ONE,
                   .lists = 2,
                   .name = {"x", "out"}};
  return first_phase(&a, handles, workspaceSize, executor);
}
PG_SECOND_PHASE(aclnnForeachMulScalarV2)
