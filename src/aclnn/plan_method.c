/* SPDX-License-Identifier: Apache-2.0 */
/* Which methods a plan could use, and using another one: poolgrad_method and its relatives. */
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "aclnn/plan.h"
#include "poolgrad.h"

/* The number of a backend, or -1 and a sentence. */
static int find_backend(const char *api, const char *name) {
  for (int i = 0; name != NULL && pg_backend_at(i) != NULL; i++)
    if (strcmp(pg_backend_at(i)->name, name) == 0) return i;
  (void)pg_fail(api, ACLNN_ERR_PARAM_INVALID, "backend is %s, here are: %s%s%s",
                name == NULL ? "NULL" : name, pg_backend_at(0)->name,
                pg_several_backends() ? ", " : "",
                pg_several_backends() ? pg_backend_at(1)->name : "");
  return -1;
}

/* The i-th choice of a backend for the first step of a plan.  Others, if there are any, write
 * zeros: filling has one method. */
static bool choose_one(const struct pg_plan *plan, int backend, int i, struct pg_choice *choice) {
  return plan->step_count > 0 &&
         pg_backend_at(backend)->choose(&plan->steps[0].u.kernel.task.problem, i, choice);
}

const char *poolgrad_method(void *executor, const char *backend, int i) {
  struct pg_plan *plan;
  struct pg_choice choice;
  const int at = find_backend(__func__, backend);
  if (at < 0 || pg_plan_get(__func__, executor, &plan) != ACLNN_SUCCESS) return NULL;
  const bool found = i >= 0 && choose_one(plan, at, i, &choice);
  pg_release(&plan->object);
  return found ? choice.name : NULL;
}

const char *poolgrad_method_used(void *executor, const char *backend) {
  struct pg_plan *plan;
  const int at = find_backend(__func__, backend);
  if (at < 0 || pg_plan_get(__func__, executor, &plan) != ACLNN_SUCCESS) return NULL;
  const char *name = plan->step_count > 0 ? pg_plan_choice(plan, 0, at).name : NULL;
  pg_release(&plan->object);
  return name;
}

/* Is all workspace that of the first step, so that it can become larger?  Steps that fill need
 * none. */
static bool is_one_choice(const struct pg_plan *plan) {
  for (int i = 1; i < plan->step_count; i++)
    if (plan->steps[i].u.kernel.task.problem.kernel != PG_FILL) return false;
  return plan->step_count > 0 &&
         plan->workspace_bytes == pg_plan_round_up(plan->chosen[0].workspace_bytes);
}

/* The workspace is as large as the greediest backend needs it. */
static void use_choice(struct pg_plan *plan, int backend, const struct pg_choice *choice) {
  struct pg_chosen *chosen = &plan->chosen[0];
  int64_t bytes = 0;
  chosen->of[backend] = *choice;
  for (int i = 0; pg_backend_at(i) != NULL; i++)
    if (chosen->of[i].workspace_bytes > bytes) bytes = chosen->of[i].workspace_bytes;
  chosen->workspace_bytes = bytes;
  plan->workspace_bytes = pg_plan_round_up(bytes);
}

int poolgrad_use_method(void *executor, const char *backend, const char *method,
                        uint64_t *workspaceSize) {
  struct pg_plan *plan;
  struct pg_choice choice;
  PG_CHECK_PTR(method, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK_PTR(workspaceSize, ACLNN_ERR_PARAM_NULLPTR);
  const int at = find_backend(__func__, backend);
  if (at < 0) return ACLNN_ERR_PARAM_INVALID;
  PG_TRY(pg_plan_get(__func__, executor, &plan));
  if (plan->step_count > 0 && !is_one_choice(plan)) {
    pg_release(&plan->object);
    return pg_fail(__func__, ACLNN_ERR_PARAM_INVALID,
                   "executor has several steps, each with a method of its own, which stay as they "
                   "are");
  }
  bool found = false;
  for (int i = 0; !found && choose_one(plan, at, i, &choice); i++)
    found = strcmp(choice.name, method) == 0;
  if (found) {
    use_choice(plan, at, &choice);
    *workspaceSize = (uint64_t)plan->workspace_bytes;
  }
  pg_release(&plan->object);
  return found ? ACLNN_SUCCESS
               : pg_fail(__func__, ACLNN_ERR_PARAM_INVALID,
                         "method is '%s', which %s does not have or which does not fit this call",
                         method, backend);
}
