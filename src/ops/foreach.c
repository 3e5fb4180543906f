/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnForeachAddListV2: out[i] = x1[i] + alpha * x2[i] for all tensors of three lists, which is
 * one step of a plan for each of them. */
#include <stdio.h>

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_foreach_add_list_v2.h"
#include "ops/elementwise.h"
#include "ops/pool_check.h"

enum { X1, X2, OUT, LISTS };
static const char *const names[LISTS] = {"x1", "x2", "out"};

struct args {
  const char *api;
  struct pg_list *list[LISTS];
  struct pg_scalar_value alpha;
};

/* In sentences of this phase a tensor has its number. */
static aclnnStatus plan_views(const struct args *a, struct pg_plan *plan, uint64_t at,
                              struct pg_view *v) {
  char numbered[LISTS][32];
  struct pg_elementwise_call call = {
      .row = {PG_MAP_ADD, PG_ANY, PG_PROMOTED, PG_WITH_OTHER | PG_WITH_ALPHA, false},
      .self = &v[X1],
      .other = &v[X2],
      .out = &v[OUT],
      .scalar = PG_SCALAR_ONE,
      .alpha = a->alpha};
  for (int i = 0; i < LISTS; i++) {
    snprintf(numbered[i], sizeof numbered[i], "%s[%llu]", names[i], (unsigned long long)at);
    v[i].name = numbered[i];
  }
  const aclnnStatus status = pg_check_elementwise(a->api, &call);
  for (int i = 0; i < LISTS; i++) v[i].name = names[i]; /* the plan keeps these */
  return status == ACLNN_SUCCESS ? pg_plan_elementwise(a->api, plan, &call) : status;
}

static aclnnStatus plan_tensors(const struct args *a, struct pg_plan *plan) {
  for (uint64_t at = 0; at < a->list[OUT]->size; at++) {
    struct pg_view views[LISTS] = {{.name = names[X1]}, {.name = names[X2]}, {.name = names[OUT]}};
    const aclTensor *const handles[] = {a->list[X1]->elements[at], a->list[X2]->elements[at],
                                        a->list[OUT]->elements[at]};
    PG_TRY(pg_views_acquire(a->api, views, handles, LISTS));
    const aclnnStatus status = plan_views(a, plan, at, views);
    pg_views_release(views, LISTS);
    if (status != ACLNN_SUCCESS) return status;
  }
  return ACLNN_SUCCESS;
}

static aclnnStatus publish(const struct args *a, uint64_t *workspace_size,
                           aclOpExecutor **executor) {
  struct pg_plan *plan;
  for (int i = X2; i < LISTS; i++)
    PG_CHECK_AS(a->api, a->list[i]->size == a->list[X1]->size, ACLNN_ERR_PARAM_INVALID,
                "%s has %llu tensors, expected x1's %llu", names[i],
                (unsigned long long)a->list[i]->size, (unsigned long long)a->list[X1]->size);
  PG_TRY(pg_plan_create(a->api, &plan));
  return pg_plan_publish(a->api, plan, plan_tensors(a, plan), workspace_size, executor);
}

static void release(const struct args *a) {
  for (int i = 0; i < LISTS; i++)
    if (a->list[i] != NULL) pg_release(&a->list[i]->object);
}

/* With all lists held, or none. */
static aclnnStatus acquire(struct args *a, const aclTensorList *const *handles) {
  for (int i = 0; i < LISTS; i++) {
    a->list[i] = pg_acquire(handles[i], PG_TENSOR_LIST);
    if (a->list[i] != NULL) continue;
    release(a);
    return pg_fail(a->api, ACLNN_ERR_PARAM_INVALID, "%s is %s, a live aclTensorList is required",
                   names[i], pg_handle_what(handles[i]));
  }
  return ACLNN_SUCCESS;
}

aclnnStatus aclnnForeachAddListV2GetWorkspaceSize(const aclTensorList *x1, const aclTensorList *x2,
                                                  const aclScalar *alpha, const aclTensorList *out,
                                                  uint64_t *workspaceSize,
                                                  aclOpExecutor **executor) {
  const aclTensorList *const handles[] = {x1, x2, out};
  const struct pg_required required[] = {
      {"x1", x1}, {"x2", x2}, {"alpha", alpha}, {"out", out}, {NULL, NULL}};
  struct args a = {.api = __func__};
  PG_TRY(pg_check_results(a.api, workspaceSize, executor));
  PG_TRY(pg_check_required(a.api, required));
  PG_TRY(pg_read_scalar(a.api, "alpha", alpha, &a.alpha));
  PG_TRY(acquire(&a, handles));
  const aclnnStatus status = publish(&a, workspaceSize, executor);
  release(&a);
  return status;
}
PG_SECOND_PHASE(aclnnForeachAddListV2)
