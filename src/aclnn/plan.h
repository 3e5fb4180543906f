/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a plan; for the files behind executor.h alone. */
#ifndef PG_PLAN_H_
#define PG_PLAN_H_

#include "aclnn/executor.h"
#include "runtime/backend.h"

enum {
  PG_PLAN_ALIGNMENT = 64, /* of what is reserved in the workspace */
  /* What lies in the plan itself; plans with more of them allocate it. */
  PG_PLAN_OPERANDS = 6,
  PG_PLAN_BINDINGS = 8
};

/* An address that phase 2 knows; until then the offset from it lies in its place. */
struct pg_binding {
  int step, operand;
  size_t args_offset;
};

/* What the first phase has found stays as it was: aclInitTensor may make the tensor another one
 * before the second. */
struct pg_operand {
  struct pg_plan_operand view;
  size_t alignment; /* of its data address, bytes */
  int step;         /* how many steps the plan had when it was added */
};

/* What the backends chose for a step, by the numbers of pg_backend_at, and the bytes of workspace
 * that are there for it. */
struct pg_chosen {
  struct pg_choice of[PG_BACKENDS_MAX];
  int64_t workspace_bytes;
};

/* Most plans are one step with few operands, which lie inside: what malloc keeps ready for a thread
 * is small.  Nothing inside is set before it is used. */
struct pg_plan {
  struct pg_object object;
  const char *api; /* the first phase that made it */
  atomic_bool repeatable;
  bool exhausted; /* something found no memory */
  int step_count, binding_count, operand_count;
  int step_room, binding_room, operand_room;
  int64_t workspace_bytes;
  struct pg_step *steps;
  struct pg_chosen *chosen;
  struct pg_binding *bindings;
  struct pg_operand *operands;
  struct pg_binding own_bindings[PG_PLAN_BINDINGS];
  struct pg_operand own_operands[PG_PLAN_OPERANDS];
  struct pg_chosen own_chosen;
  struct pg_step own_step;
};

static inline int64_t pg_plan_round_up(int64_t bytes) {
  return (bytes + PG_PLAN_ALIGNMENT - 1) / PG_PLAN_ALIGNMENT * PG_PLAN_ALIGNMENT;
}

/* The plan behind a handle with a reference for the caller: 561103 for NULL, 561000 for what is no
 * live executor, both with a sentence. */
aclnnStatus pg_plan_get(const char *api, aclOpExecutor *executor, struct pg_plan **out);

/* The choice of a backend for a step. */
struct pg_choice pg_plan_choice(const struct pg_plan *plan, int step, int backend);

#endif
