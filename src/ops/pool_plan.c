/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool_plan.h"

#include <stddef.h>

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"
#include "ops/index_report.h"

enum { ZERO_BLOCK = 65536 /* bytes of zeros that one item writes */ };

static bool is_empty(const struct pg_view *view) { return pg_tensor_is_empty(view->tensor); }

static int64_t element_bytes(const struct pg_view *view) {
  return (int64_t)aclDataTypeSize(view->tensor->dtype);
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
  if (call->unread != NULL) (void)pg_view_operand(plan, call->unread, false);
}

static int32_t index_bytes_of(const struct pg_view *index, int32_t given) {
  return given != 0 ? given : (int32_t)element_bytes(index);
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
                            .index_bytes = index_bytes_of(call->index, call->index_bytes)}};
  problem.facts =
      pg_facts_of(&(struct pg_subject){.pool = &call->pool,
                                       .in = &call->grad_in->strides,
                                       .out = &call->grad_out->strides,
                                       .index = &call->index->strides,
                                       .in_bytes = element_bytes(call->grad_in),
                                       .out_bytes = element_bytes(call->grad_out),
                                       .index_bytes = problem.args.max_backward.index_bytes});
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

aclnnStatus pg_plan_max_backward(const char *api, const struct pg_max_call *call,
                                 uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *const views[] = {call->grad_out, call->index, call->grad_in};
  struct pg_plan *plan;
  aclnnStatus status = ACLNN_SUCCESS;
  PG_TRY(pg_check_work(api, call->grad_out, views, 3));
  PG_TRY(pg_plan_create(api, &plan));
  if (!is_empty(call->grad_in) && is_empty(call->grad_out)) {
    const struct pg_avg_call zeros = {
        .grad_out = call->grad_out, .grad_in = call->grad_in, .pool = call->pool};
    plan_avg(plan, &zeros);
  } else if (!is_empty(call->grad_in)) {
    status = plan_max(api, plan, call);
  }
  return pg_plan_publish(api, plan, status, workspace_size, executor);
}

aclnnStatus pg_plan_avg_backward(const char *api, const struct pg_avg_call *call,
                                 uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *const views[] = {call->grad_out, call->grad_in};
  struct pg_plan *plan;
  PG_TRY(pg_check_work(api, call->grad_out, views, 2));
  PG_TRY(pg_plan_create(api, &plan));
  if (!is_empty(call->grad_in)) plan_avg(plan, call);
  return pg_plan_publish(api, plan, ACLNN_SUCCESS, workspace_size, executor);
}

/* Adds a step that writes count * width zeros, of one byte each, to the operand. */
static void plan_zeros(struct pg_plan *plan, int operand, int64_t at, int64_t count,
                       int64_t width) {
  struct pg_problem problem = {
      .kernel = PG_FILL,
      .args.fill = {.count = count, .stride = width, .width = width, .element_bytes = 1}};
  problem.facts.bytes = count * width;
  (void)pg_plan_add(plan, &problem, NULL);
  pg_plan_bind(plan, offsetof(struct pg_fill_args, dst), operand, at);
}

static void plan_max_forward(struct pg_plan *plan, const struct pg_max_forward_call *call) {
  const struct pg_view *index = call->index;
  struct pg_problem problem = {
      .kernel = PG_MAX_FORWARD,
      .dtype = call->in->tensor->dtype,
      .args.max_forward = {
          .in_strides = call->in->strides, .out_strides = call->out->strides, .pool = call->pool}};
  struct pg_max_forward *args = &problem.args.max_forward;
  if (index != NULL) {
    args->index_strides = index->strides;
    args->index_bytes = index_bytes_of(index, call->index_bytes);
  }
  problem.facts = pg_facts_of(&(struct pg_subject){.pool = &call->pool,
                                                   .in = &call->in->strides,
                                                   .out = &call->out->strides,
                                                   .index = index != NULL ? &index->strides : NULL,
                                                   .in_bytes = element_bytes(call->in),
                                                   .out_bytes = element_bytes(call->out),
                                                   .index_bytes = args->index_bytes});
  (void)pg_plan_add(plan, &problem, NULL); /* forward methods need no workspace */
  bind(plan, offsetof(struct pg_max_forward, in), call->in, false);
  bind(plan, offsetof(struct pg_max_forward, out), call->out, true);
  if (index == NULL && call->container == NULL) return;
  const int operand = pg_view_operand(plan, index != NULL ? index : call->container, true);
  if (index != NULL)
    pg_plan_bind(plan, offsetof(struct pg_max_forward, index), operand, index->begin);
  const int64_t blocks = call->zero_bytes / ZERO_BLOCK, rest = call->zero_bytes % ZERO_BLOCK;
  if (blocks > 0) plan_zeros(plan, operand, call->zeros, blocks, ZERO_BLOCK);
  if (rest > 0) plan_zeros(plan, operand, call->zeros + blocks * ZERO_BLOCK, 1, rest);
}

aclnnStatus pg_plan_max_forward(const char *api, const struct pg_max_forward_call *call,
                                uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *const views[] = {call->in, call->out, call->index};
  struct pg_plan *plan;
  PG_TRY(pg_check_work(api, call->in, views, call->index != NULL ? 3 : 2));
  PG_TRY(pg_plan_create(api, &plan));
  if (!is_empty(call->in) && !is_empty(call->out)) plan_max_forward(plan, call);
  return pg_plan_publish(api, plan, ACLNN_SUCCESS, workspace_size, executor);
}

static void plan_avg_forward(struct pg_plan *plan, const struct pg_avg_forward_call *call) {
  struct pg_problem problem = {.kernel = PG_AVG_FORWARD,
                               .dtype = call->in->tensor->dtype,
                               .args.avg_forward = {.in_strides = call->in->strides,
                                                    .out_strides = call->out->strides,
                                                    .pool = call->pool,
                                                    .divisor = call->divisor,
                                                    .count_include_pad = call->count_include_pad}};
  problem.facts = pg_facts_of(&(struct pg_subject){.pool = &call->pool,
                                                   .in = &call->in->strides,
                                                   .out = &call->out->strides,
                                                   .in_bytes = element_bytes(call->in),
                                                   .out_bytes = element_bytes(call->out),
                                                   .divisor = call->divisor});
  (void)pg_plan_add(plan, &problem, NULL);
  bind(plan, offsetof(struct pg_avg_forward, in), call->in, false);
  bind(plan, offsetof(struct pg_avg_forward, out), call->out, true);
}

aclnnStatus pg_plan_avg_forward(const char *api, const struct pg_avg_forward_call *call,
                                uint64_t *workspace_size, aclOpExecutor **executor) {
  const struct pg_view *const views[] = {call->in, call->out};
  struct pg_plan *plan;
  PG_TRY(pg_check_work(api, call->in, views, 2));
  PG_TRY(pg_plan_create(api, &plan));
  if (!is_empty(call->in) && !is_empty(call->out)) plan_avg_forward(plan, call);
  return pg_plan_publish(api, plan, ACLNN_SUCCESS, workspace_size, executor);
}
