/* SPDX-License-Identifier: Apache-2.0 */
/* How a plan is put together. */
#include "aclnn/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"
#include "core/log.h"
#include "runtime/device.h"

static void destroy(struct pg_object *self) {
  struct pg_plan *plan = (struct pg_plan *)self;
  for (int i = 0; i < plan->operand_count; i++) pg_release(&plan->operands[i].view.tensor->object);
  if (plan->steps != &plan->own_step) free(plan->steps);
  if (plan->chosen != &plan->own_chosen) free(plan->chosen);
  if (plan->bindings != plan->own_bindings) free(plan->bindings);
  if (plan->operands != plan->own_operands) free(plan->operands);
  free(plan);
}

aclnnStatus pg_plan_create(const char *api, struct pg_plan **out) {
  struct pg_plan *plan = malloc(sizeof *plan);
  if (plan == NULL)
    return pg_fail(api, ACLNN_ERR_INNER_CREATE_EXECUTOR, "no memory for an executor");
  atomic_init(&plan->object.refs, 1);
  plan->object.destroy = destroy;
  plan->api = api;
  atomic_init(&plan->repeatable, false);
  plan->exhausted = false;
  plan->workspace_bytes = 0;
  plan->step_count = plan->binding_count = plan->operand_count = 0;
  plan->step_room = 1;
  plan->binding_room = PG_PLAN_BINDINGS;
  plan->operand_room = PG_PLAN_OPERANDS;
  plan->steps = &plan->own_step;
  plan->chosen = &plan->own_chosen;
  plan->bindings = plan->own_bindings;
  plan->operands = plan->own_operands;
  *out = plan;
  return ACLNN_SUCCESS;
}

void pg_plan_destroy(struct pg_plan *plan) {
  if (plan != NULL) pg_release(&plan->object);
}

/* Twice as much room for `items`, which are `own` as long as they lie in the plan.  NULL, and they
 * stay where they are, when there is no memory. */
static void *doubled(struct pg_plan *plan, void *items, const void *own, int room, size_t size) {
  void *larger = realloc(items == own ? NULL : items, 2 * (size_t)room * size);
  if (larger == NULL)
    plan->exhausted = true;
  else if (items == own)
    memcpy(larger, own, (size_t)room * size);
  return larger;
}

/* Without memory nothing is added, and publish will fail. */
int pg_plan_operand(struct pg_plan *plan, const struct pg_plan_operand *operand) {
  if (plan->operand_count == plan->operand_room) {
    struct pg_operand *larger = doubled(plan, plan->operands, plan->own_operands,
                                        plan->operand_room, sizeof *plan->operands);
    if (larger == NULL) return 0;
    plan->operands = larger;
    plan->operand_room *= 2;
  }
  pg_retain(&operand->tensor->object);
  plan->operands[plan->operand_count] = (struct pg_operand){
      .view = *operand,
      .alignment = operand->alignment != 0 ? operand->alignment : operand->tensor->element,
      .step = plan->step_count};
  return plan->operand_count++;
}

aclnnStatus pg_plan_reserve(const char *api, struct pg_plan *plan, int64_t bytes, int64_t *offset) {
  int64_t rounded, total;
  PG_CHECK_AS(
      api,
      pg_add(bytes, PG_PLAN_ALIGNMENT - 1, &rounded) &&
          pg_add(plan->workspace_bytes, rounded / PG_PLAN_ALIGNMENT * PG_PLAN_ALIGNMENT, &total),
      ACLNN_ERR_PARAM_INVALID, "the call needs more workspace than 64 bits can count");
  *offset = plan->workspace_bytes;
  plan->workspace_bytes = total;
  return ACLNN_SUCCESS;
}

/* Room for one more step and its choices. */
static bool make_room_for_step(struct pg_plan *plan) {
  if (plan->step_count < plan->step_room) return true;
  struct pg_step *steps =
      doubled(plan, plan->steps, &plan->own_step, plan->step_room, sizeof *plan->steps);
  if (steps == NULL) return false;
  plan->steps = steps;
  struct pg_chosen *chosen =
      doubled(plan, plan->chosen, &plan->own_chosen, plan->step_room, sizeof *plan->chosen);
  if (chosen == NULL) return false;
  plan->chosen = chosen;
  plan->step_room *= 2;
  return true;
}

/* The choices of all backends that have a device; notes the workspace that the greediest needs. The
 * others are only asked if somebody wants to know (pg_plan_choice). */
static void choose(const struct pg_plan *plan, const struct pg_problem *problem,
                   struct pg_chosen *chosen) {
  const struct pg_backend *backend;
  chosen->workspace_bytes = 0;
  for (int i = 0; (backend = pg_backend_at(i)) != NULL; i++) {
    struct pg_choice *choice = &chosen->of[i];
    choice->name = NULL;
    choice->workspace_bytes = 0;
    if (!pg_backend_has_devices(i)) continue;
    const bool found = backend->choose(problem, 0, choice);
    assert(found); /* the last method of a list fits every problem */
    (void)found;
    if (choice->workspace_bytes > chosen->workspace_bytes)
      chosen->workspace_bytes = choice->workspace_bytes;
    pg_log(ACL_INFO, "%s: on %s by method %s", plan->api, backend->name, choice->name);
  }
}

struct pg_choice pg_plan_choice(const struct pg_plan *plan, int step, int backend) {
  struct pg_choice choice = plan->chosen[step].of[backend];
  if (choice.name == NULL)
    (void)pg_backend_at(backend)->choose(&plan->steps[step].u.kernel.task.problem, 0, &choice);
  return choice;
}

int64_t pg_plan_add(struct pg_plan *plan, const struct pg_problem *problem, pg_judge_fn *judge) {
  if (plan->exhausted || !make_room_for_step(plan)) return 0;
  struct pg_step *step = &plan->steps[plan->step_count];
  struct pg_chosen *chosen = &plan->chosen[plan->step_count++];
  step->kind = PG_STEP_KERNEL;
  step->u.kernel.judge = judge;
  step->u.kernel.task.problem = *problem;
  step->bytes = problem->facts.bytes;
  choose(plan, problem, chosen);
  return chosen->workspace_bytes;
}

/* Room for one more binding. */
static bool make_room_for_binding(struct pg_plan *plan) {
  if (plan->binding_count < plan->binding_room) return true;
  struct pg_binding *larger =
      doubled(plan, plan->bindings, plan->own_bindings, plan->binding_room, sizeof *plan->bindings);
  if (larger == NULL) return false;
  plan->bindings = larger;
  plan->binding_room *= 2;
  return true;
}

void pg_plan_bind(struct pg_plan *plan, size_t args_offset, int operand, int64_t bytes) {
  if (plan->exhausted || !make_room_for_binding(plan)) return;
  assert(plan->step_count > 0);
  const int step = plan->step_count - 1;
  const intptr_t offset = (intptr_t)bytes;
  memcpy((char *)&plan->steps[step].u.kernel.task.problem.args + args_offset, &offset,
         sizeof offset);
  plan->bindings[plan->binding_count++] = (struct pg_binding){step, operand, args_offset};
}

static aclnnStatus open_executor(const char *api, struct pg_plan *plan, uint64_t *workspace_size,
                                 aclOpExecutor **executor) {
  aclOpExecutor *handle = plan->exhausted ? NULL : pg_handle_open(PG_EXECUTOR, &plan->object);
  if (handle == NULL)
    return pg_fail(api, ACLNN_ERR_INNER_CREATE_EXECUTOR, "no memory for an executor");
  *workspace_size = (uint64_t)plan->workspace_bytes;
  *executor = handle;
  return ACLNN_SUCCESS;
}

aclnnStatus pg_plan_publish(const char *api, struct pg_plan *plan, aclnnStatus status,
                            uint64_t *workspace_size, aclOpExecutor **executor) {
  if (status == ACLNN_SUCCESS) status = open_executor(api, plan, workspace_size, executor);
  if (status != ACLNN_SUCCESS) pg_plan_destroy(plan);
  return status;
}

aclnnStatus pg_plan_get(const char *api, aclOpExecutor *executor, struct pg_plan **out) {
  if (executor == NULL) return pg_fail_null(api, ACLNN_ERR_INNER_NULLPTR, "executor");
  *out = pg_acquire(executor, PG_EXECUTOR);
  if (*out != NULL) return ACLNN_SUCCESS;
  return pg_fail(api, ACLNN_ERR_INNER, "executor is %s, a live one is required",
                 pg_handle_what(executor));
}
