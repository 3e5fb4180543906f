/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool_plan.h"

#include <stddef.h>

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"
#include "ops/index_report.h"

/* Inputs with stride 0 can ask for any amount of work on hardly any memory, which would keep a
 * stream busy for days.  So many outputs are always done, and so many more for each byte of memory.
 */
#define OUTPUTS_FREE (INT64_C(1) << 30)
enum { OUTPUTS_PER_BYTE = 64 };

static bool is_empty(const struct pg_view *view) { return pg_tensor_is_empty(view->tensor); }

static int64_t element_bytes(const struct pg_view *view) {
  return (int64_t)aclDataTypeSize(view->tensor->dtype);
}

/* What 64 bits cannot hold (inputs with stride 0 get there) counts as the most they can. */
static int64_t element_count(const struct pg_view *view) {
  int64_t count = 1;
  if (is_empty(view)) return 0;
  for (int i = 0; i < PG_AXES; i++)
    if (!pg_mul(count, view->dims[i], &count)) return INT64_MAX;
  return count;
}

/* The memory that the views span must be in proportion to the outputs. */
static aclnnStatus check_work(const char *api, const struct pg_view *grad_out,
                              const struct pg_view *const *views, int count) {
  const int64_t outputs = element_count(grad_out);
  int64_t bytes = 0;
  for (int i = 0; i < count; i++)
    if (!pg_add(bytes, views[i]->end - views[i]->begin, &bytes)) bytes = INT64_MAX;
  PG_CHECK_AS(api, outputs <= OUTPUTS_FREE || outputs / OUTPUTS_PER_BYTE <= bytes,
              ACLNN_ERR_PARAM_INVALID,
              "gradOutput is %s, but all tensors together span %lld bytes of memory, for which at "
              "most %lld elements of gradOutput are allowed",
              pg_view_shape(grad_out), (long long)bytes,
              (long long)(bytes < OUTPUTS_FREE / OUTPUTS_PER_BYTE ? OUTPUTS_FREE
                                                                  : bytes * OUTPUTS_PER_BYTE));
  return ACLNN_SUCCESS;
}

/* Binds the pointer at args_offset of the step to where the view begins. */
static void bind(struct pg_plan *plan, size_t args_offset, const struct pg_view *view,
                 bool written) {
  pg_plan_bind(plan, args_offset, pg_view_operand(plan, view, written), view->begin);
}

/* An empty gradOutput has no windows to spread, which leaves zeros; its address stays unread. */
static void plan_avg(struct pg_plan *plan, const struct pg_avg_call *call) {
  struct pg_problem problem = {.kernel = PG_AVG_BACKWARD,
                               .dtype = call->grad_in->tensor->dtype,
                               .args.avg_backward = {.in_strides = call->grad_in->strides,
                                                     .out_strides = call->grad_out->strides,
                                                     .pool = call->pool,
                                                     .divisor = call->divisor,
                                                     .count_include_pad = call->count_include_pad}};
  problem.facts = pg_facts_of(&(struct pg_subject){.pool = &call->pool,
                                                   .in = &call->grad_in->strides,
                                                   .out = &call->grad_out->strides,
                                                   .in_bytes = element_bytes(call->grad_in),
                                                   .out_bytes = element_bytes(call->grad_out),
                                                   .divisor = call->divisor});
  (void)pg_plan_add(plan, &problem, NULL); /* averages need no workspace */
  if (!is_empty(call->grad_out))
    bind(plan, offsetof(struct pg_avg_backward, grad_out), call->grad_out, false);
  bind(plan, offsetof(struct pg_avg_backward, grad_in), call->grad_in, true);
}

static aclnnStatus plan_max(const char *api, struct pg_plan *plan, const struct pg_max_call *call) {
  struct pg_problem problem = {
      .kernel = PG_MAX_BACKWARD,
      .dtype = call->grad_in->tensor->dtype,
      .args.max_backward = {.out_strides = call->grad_out->strides,
                            .index_strides = call->index->strides,
                            .in_strides = call->grad_in->strides,
                            .pool = call->pool,
                            .op = call->op,
                            .has_depth = call->has_depth,
                            .index_bytes = (int32_t)element_bytes(call->index)}};
  problem.facts = pg_facts_of(&(struct pg_subject){.pool = &call->pool,
                                                   .in = &call->grad_in->strides,
                                                   .out = &call->grad_out->strides,
                                                   .index = &call->index->strides,
                                                   .in_bytes = element_bytes(call->grad_in),
                                                   .out_bytes = element_bytes(call->grad_out),
                                                   .index_bytes = element_bytes(call->index)});
  const int64_t workspace = pg_plan_add(plan, &problem, pg_index_judge);
  bind(plan, offsetof(struct pg_max_backward, grad_out), call->grad_out, false);
  bind(plan, offsetof(struct pg_max_backward, index), call->index, false);
  bind(plan, offsetof(struct pg_max_backward, grad_in), call->grad_in, true);
  /* The address of the workspace is bound even if the chosen methods need none, because
   * poolgrad_use_method may choose one that does. */
  int64_t at;
  PG_TRY(pg_plan_reserve(api, plan, workspace, &at));
  pg_plan_bind(plan, offsetof(struct pg_max_backward, flags), PG_WORKSPACE, at);
  return ACLNN_SUCCESS;
}

static aclnnStatus publish(const char *api, struct pg_plan *plan, aclnnStatus status,
                           uint64_t *workspace_size, aclOpExecutor **executor) {
  if (status == ACLNN_SUCCESS) status = pg_plan_publish(api, plan, workspace_size, executor);
  if (status != ACLNN_SUCCESS) pg_plan_destroy(plan);
  return status;
}

aclnnStatus pg_plan_max_backward(const char *api, const struct pg_max_call *call,
                                 uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *const views[] = {call->grad_out, call->index, call->grad_in};
  struct pg_plan *plan;
  aclnnStatus status = ACLNN_SUCCESS;
  PG_TRY(check_work(api, call->grad_out, views, 3));
  PG_TRY(pg_plan_create(api, &plan));
  if (!is_empty(call->grad_in) && is_empty(call->grad_out)) {
    const struct pg_avg_call zeros = {
        .grad_out = call->grad_out, .grad_in = call->grad_in, .pool = call->pool};
    plan_avg(plan, &zeros);
  } else if (!is_empty(call->grad_in)) {
    status = plan_max(api, plan, call);
  }
  return publish(api, plan, status, workspace_size, executor);
}

aclnnStatus pg_plan_avg_backward(const char *api, const struct pg_avg_call *call,
                                 uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *const views[] = {call->grad_out, call->grad_in};
  struct pg_plan *plan;
  PG_TRY(check_work(api, call->grad_out, views, 2));
  PG_TRY(pg_plan_create(api, &plan));
  if (!is_empty(call->grad_in)) plan_avg(plan, call);
  return publish(api, plan, ACLNN_SUCCESS, workspace_size, executor);
}
