/* SPDX-License-Identifier: Apache-2.0 */
/* Executors: a plan behind CANN's two phases.
 *
 * Phase 1 (an operator's GetWorkspaceSize) checks the call once and builds a plan: a short list
 * of kernel steps, and for each address in their arguments where it will come from.  Once
 * published the plan does not change (but for poolgrad_use_method).  Phase 2 (pg_execute, the same
 * for all operators) copies the steps, puts the addresses of that moment in and queues them:
 * afterwards the executor, the tensors and the arrays may be destroyed, and the plan may run on
 * many streams at once.
 *
 *     operands   o0 gradOutput   o1 indices   o2 gradInput        bindings
 *     step 0     kernel args { .src = ◀── o0 + offset, .dst = ◀── workspace + 0 }
 *     step 1     kernel args { .src = ◀── workspace + 0, .dst = ◀── o2 + offset } */
#ifndef PG_EXECUTOR_H_
#define PG_EXECUTOR_H_

#include "aclnn/tensor.h"
#include "kernels/kernels.h"

struct pg_plan;

enum { PG_WORKSPACE = -1 }; /* as an operand: the memory that phase 2 brings */

/* A plan under construction; api is kept.  561101 and a sentence when memory is exhausted. */
aclnnStatus pg_plan_create(const char *api, struct pg_plan **out);
void pg_plan_destroy(struct pg_plan *plan); /* of one that was not published; NULL is fine */

struct pg_plan_operand {
  const char *name; /* what messages call it */
  struct pg_tensor *tensor;
  int64_t begin, end;  /* bytes its view spans, counted from its data address */
  size_t alignment;    /* of its data address; 0: that of its elements */
  bool written;        /* must then not overlap the other operands of its step */
  bool may_be_written; /* it may be that very view: begin where the written one begins */
};

/* Adds a tensor to the latest step, keeping a reference; returns its operand.  Several steps may be
 * bound to it. */
int pg_plan_operand(struct pg_plan *plan, const struct pg_plan_operand *operand);

/* Reserves bytes of workspace; *offset is their place in it, a multiple of 64.  161002 and a
 * sentence when the sum overflows. */
aclnnStatus pg_plan_reserve(const char *api, struct pg_plan *plan, int64_t bytes, int64_t *offset);

/* Adds a step that computes a problem, and lets every backend that has a device choose a method.
 * Addresses in its arguments are left open and bound afterwards.  judge: as in struct
 * pg_kernel_step.  Returns the bytes of workspace that the choices need, for the caller to reserve
 * and bind.  When memory for the step is exhausted pg_plan_publish says so. */
typedef aclError pg_judge_fn(const union pg_kernel_args *args, const struct pg_index_report *report,
                             struct pg_failure *why);
int64_t pg_plan_add(struct pg_plan *plan, const struct pg_problem *problem, pg_judge_fn *judge);

/* In the latest step: the pointer at args_offset will be the operand's address plus bytes. */
void pg_plan_bind(struct pg_plan *plan, size_t args_offset, int operand, int64_t bytes);

/* Ends phase 1.  If all went well so far (`status`), the plan becomes an executor and the results
 * are written; otherwise, or without memory for it, the plan is destroyed. */
aclnnStatus pg_plan_publish(const char *api, struct pg_plan *plan, aclnnStatus status,
                            uint64_t *workspace_size, aclOpExecutor **executor);

/* Phase 2 of every operator; api is its name, and its phase 1 is named so with GetWorkspaceSize
 * behind it.  161002 and no effect when another operator's phase 1 made the executor. */
aclnnStatus pg_execute(const char *api, void *workspace, uint64_t workspace_size,
                       aclOpExecutor *executor, void *stream);

#endif
