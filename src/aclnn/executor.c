/* SPDX-License-Identifier: Apache-2.0 */
/* Phase 2, and the public functions of executors. */
#include "aclnn/plan.h"

#include <stdlib.h>
#include <string.h>

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"
#include "core/dtype.h"
#include "core/log.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

/* A stretch of memory that a run uses. */
struct stretch {
  const char *name;
  int64_t begin, end; /* bytes from its data address */
  bool written, may_be_written;
  size_t alignment;
  int step; /* stretches of one step follow each other */
};

/* What a run works with: all stretches, which are the operands and the workspace behind them if
 * there is one, and the steps. */
struct run {
  int count, operands;
  struct stretch *of;
  void **data;
  struct pg_room *rooms; /* what the runtime knows of them */
  struct pg_step *steps;
};

/* Where that lies for nearly every plan: on the stack. */
enum { FEW = PG_PLAN_OPERANDS + 1, FEW_STEPS = 4 };
struct few {
  struct stretch of[FEW];
  void *data[FEW];
  struct pg_room rooms[FEW];
  struct pg_step steps[FEW_STEPS];
};

/* Finds room for a run; what it allocated for that goes to *block.  A plan that was spent is this
 * call's alone: its own steps take the addresses. */
static bool make_room(struct run *r, const struct pg_plan *plan, bool spent, struct few *few,
                      void **block) {
  const size_t stretches = (size_t)plan->operand_count + 1;
  const size_t steps = spent ? 0 : (size_t)plan->step_count;
  *block = NULL;
  if (stretches <= FEW && steps <= FEW_STEPS) {
    *r = (struct run){.of = few->of, .data = few->data, .rooms = few->rooms, .steps = few->steps};
  } else {
    char *at = malloc(steps * sizeof *r->steps +
                      stretches * (sizeof *r->of + sizeof *r->data + sizeof *r->rooms));
    if (at == NULL) return false;
    *block = at;
    r->steps = (struct pg_step *)(void *)at;
    r->of = (struct stretch *)(void *)(r->steps + steps);
    r->rooms = (struct pg_room *)(void *)(r->of + stretches);
    r->data = (void **)(void *)(r->rooms + stretches);
  }
  if (spent) r->steps = plan->steps;
  return true;
}

static void gather(const struct pg_plan *plan, void *workspace, struct run *r) {
  r->count = r->operands = plan->operand_count;
  for (int i = 0; i < r->count; i++) {
    const struct pg_operand *o = &plan->operands[i];
    const struct pg_plan_operand *v = &o->view;
    r->of[i] = (struct stretch){v->name,           v->begin,     v->end, v->written,
                                v->may_be_written, o->alignment, o->step};
    r->data[i] = atomic_load_explicit(&v->tensor->data, memory_order_acquire);
  }
  if (plan->workspace_bytes == 0) return;
  r->of[r->count] = (struct stretch){.name = "workspace",
                                     .end = plan->workspace_bytes,
                                     .written = true,
                                     .alignment = sizeof(int64_t)};
  r->data[r->count++] = workspace;
}

/* It must be there, be aligned, and lie in its allocation as far as the runtime knows that. */
static aclnnStatus check_stretch(const char *api, const struct stretch *s, void *data,
                                 size_t room) {
  PG_CHECK_AS(api, data != NULL, ACLNN_ERR_PARAM_NULLPTR, "the data address of %s is NULL",
              s->name);
  PG_CHECK_AS(api, ((uintptr_t)data & (s->alignment - 1)) == 0, ACLNN_ERR_PARAM_INVALID,
              "the data address of %s is %p, it must be a multiple of %zu", s->name, data,
              s->alignment);
  PG_CHECK_AS(api, (size_t)s->end <= room, ACLNN_ERR_PARAM_INVALID,
              "%s reaches %lld bytes from its data address, where only %zu are allocated", s->name,
              (long long)s->end, room);
  PG_CHECK_AS(api, (uintptr_t)data <= UINTPTR_MAX - (uintptr_t)s->end, ACLNN_ERR_PARAM_INVALID,
              "%s reaches %lld bytes from its data address %p, beyond all memory", s->name,
              (long long)s->end, data);
  return ACLNN_SUCCESS;
}

/* What is written must not overlap anything else: only now are the addresses final. */
static aclnnStatus check_apart(const char *api, const struct run *r, int w, int i) {
  const struct stretch *a = &r->of[w], *b = &r->of[i];
  const uintptr_t at = (uintptr_t)r->data[w] + (uintptr_t)a->begin;
  const uintptr_t other = (uintptr_t)r->data[i] + (uintptr_t)b->begin;
  const bool apart =
      at >= other + (uintptr_t)(b->end - b->begin) || other >= at + (uintptr_t)(a->end - a->begin);
  const bool is_same = at == other && (a->may_be_written || b->may_be_written);
  PG_CHECK_AS(api, apart || is_same, ACLNN_ERR_PARAM_INVALID,
              "the memory of %s overlaps that of %s", a->name, b->name);
  return ACLNN_SUCCESS;
}

/* Steps run one after another, so it is enough that those of each step are apart, and the workspace
 * from all of them. */
static aclnnStatus check_overlaps(const char *api, const struct run *r) {
  const bool has_workspace = r->count > r->operands;
  for (int first = 0, next; first < r->operands; first = next) {
    for (next = first; next < r->operands && r->of[next].step == r->of[first].step;) next++;
    for (int w = first; w < next; w++) {
      if (!r->of[w].written) continue;
      for (int i = first; i < next; i++)
        if (i != w) PG_TRY(check_apart(api, r, w, i));
      if (has_workspace) PG_TRY(check_apart(api, r, w, r->operands));
    }
  }
  for (int i = 0; i < r->operands && has_workspace; i++)
    PG_TRY(check_apart(api, r, r->operands, i));
  return ACLNN_SUCCESS;
}

static aclnnStatus check_memory(const char *api, struct run *r) {
  pg_memory_rooms(r->count, (const void *const *)r->data, r->rooms);
  for (int i = 0; i < r->count; i++)
    PG_TRY(check_stretch(api, &r->of[i], r->data[i], r->rooms[i].bytes));
  return check_overlaps(api, r);
}

/* Puts the addresses of this moment into the steps. */
static void bind(const struct pg_plan *plan, const struct run *r, void *workspace) {
  for (int i = 0; i < plan->binding_count; i++) {
    const struct pg_binding *b = &plan->bindings[i];
    char *at = (char *)&r->steps[b->step].u.kernel.task.problem.args + b->args_offset;
    char *address = b->operand == PG_WORKSPACE ? workspace : r->data[b->operand];
    intptr_t offset;
    memcpy(&offset, at, sizeof offset);
    if (offset != 0) address += offset; /* without a workspace its address may be NULL */
    memcpy(at, &address, sizeof address);
  }
}

/* A kernel on one backend cannot touch another's device memory, nor one off the host memory that
 * was not made known to it. */
static aclnnStatus check_reach(const char *api, const struct run *r,
                               const struct pg_stream *stream) {
  for (int i = 0; i < r->count; i++) {
    const struct pg_room *room = &r->rooms[i];
    const bool other = room->kind != PG_MEMORY_UNKNOWN && room->backend != stream->backend;
    PG_CHECK_AS(api, !other || (room->kind != PG_MEMORY_DEVICE && stream->backend->on_host),
                ACLNN_ERR_PARAM_INVALID,
                "%s lies in memory of device %d (%s), out of reach of the stream's device %d (%s)",
                r->of[i].name, room->device_id, room->backend->name, stream->context->device_id,
                stream->backend->name);
  }
  return ACLNN_SUCCESS;
}

/* In strict mode the data is the device's own. */
static aclnnStatus check_strict(const char *api, const struct run *r,
                                const struct pg_stream *stream) {
  for (int i = 0; i < r->count && pg_is_strict(); i++)
    if (r->of[i].end > 0)
      PG_TRY(pg_strict_check_data(api, r->of[i].name, r->data[i], stream->context->device_id));
  return ACLNN_SUCCESS;
}

/* What the backend of the stream chose for each step.  A backend that had no device when the
 * executor was made chooses now, and may need more workspace than the first phase asked for. */
static aclnnStatus take_choices(const char *api, const struct pg_plan *plan,
                                const struct pg_backend *backend, struct pg_step *steps) {
  int at = 0;
  while (pg_backend_at(at) != backend) at++;
  for (int i = 0; i < plan->step_count; i++) {
    struct pg_choice *choice = &steps[i].u.kernel.task.choice;
    *choice = pg_plan_choice(plan, i, at);
    PG_CHECK_AS(api, choice->workspace_bytes <= plan->chosen[i].workspace_bytes,
                ACLNN_ERR_PARAM_INVALID,
                "executor was made when no device was of the kind of the stream's (%s), the first "
                "phase must be called again",
                backend->name);
  }
  return ACLNN_SUCCESS;
}

static aclnnStatus submit(const char *api, const struct pg_plan *plan, const struct run *r,
                          aclrtStream handle) {
  struct pg_stream *stream;
  aclError status = pg_stream_resolve_any(api, handle, &stream);
  if (status == ACL_SUCCESS) {
    aclnnStatus fit = check_reach(api, r, stream);
    if (fit == ACLNN_SUCCESS) fit = check_strict(api, r, stream);
    if (fit == ACLNN_SUCCESS) fit = take_choices(api, plan, stream->backend, r->steps);
    if (fit != ACLNN_SUCCESS) {
      pg_stream_release(stream);
      return fit;
    }
    if (plan->step_count > 0)
      status = pg_stream_submit(api, stream, r->steps, (size_t)plan->step_count, NULL);
    if (plan->step_count > 0 && status == ACL_SUCCESS && pg_is_strict())
      pg_strict_use(api, stream, r->count, r->data);
    pg_stream_release(stream);
  }
  return status == ACL_SUCCESS ? ACLNN_SUCCESS : pg_recode(ACLNN_ERR_RUNTIME_ERROR);
}

static aclnnStatus execute(const char *api, const struct pg_plan *plan, bool spent, void *workspace,
                           uint64_t workspace_size, aclrtStream stream) {
  struct run run;
  struct few few;
  void *block;
  if (workspace_size > 0 && workspace == NULL)
    return pg_fail(api, ACLNN_ERR_PARAM_NULLPTR, "workspace is NULL while workspaceSize is %llu",
                   (unsigned long long)workspace_size);
  if (workspace_size < (uint64_t)plan->workspace_bytes)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                   "workspaceSize is %llu, the first phase asked for %lld",
                   (unsigned long long)workspace_size, (long long)plan->workspace_bytes);
  if (!make_room(&run, plan, spent, &few, &block))
    return pg_fail_titled(ACL_ERROR_BAD_ALLOC, api, ACLNN_ERR_INNER,
                          "no memory for a run of %d steps", plan->step_count);
  gather(plan, workspace, &run);
  aclnnStatus status = check_memory(api, &run);
  if (status == ACLNN_SUCCESS) {
    if (!spent) memcpy(run.steps, plan->steps, (size_t)plan->step_count * sizeof *run.steps);
    bind(plan, &run, workspace);
    status = submit(api, plan, &run, stream);
  }
  free(block);
  return status;
}

/* Phase 1 is named as phase 2 with this behind it. */
static bool is_own(const struct pg_plan *plan, const char *api) {
  const size_t length = strlen(api);
  return strncmp(plan->api, api, length) == 0 &&
         strcmp(plan->api + length, "GetWorkspaceSize") == 0;
}

/* An executor that is not repeatable is spent by its operator's second phase, whatever comes of it:
 * its handle is closed before anything else, so of two threads only one can run it.  Another
 * operator's second phase leaves it as it is. */
aclnnStatus pg_execute(const char *api, void *workspace, uint64_t workspace_size,
                       aclOpExecutor *executor, void *stream) {
  if (executor == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, "executor");
  struct pg_plan *plan = pg_acquire(executor, PG_EXECUTOR);
  if (plan != NULL && !is_own(plan, api)) {
    pg_fail_with(api, ACLNN_ERR_PARAM_INVALID, "executor comes from %s, it must come from %s%s",
                 plan->api, api, "GetWorkspaceSize");
    pg_release(&plan->object);
    return ACLNN_ERR_PARAM_INVALID;
  }
  const bool spent = plan != NULL && !atomic_load(&plan->repeatable);
  if (spent) {
    pg_release(&plan->object);
    plan = pg_handle_close(executor, PG_EXECUTOR);
  }
  if (plan == NULL)
    return pg_fail(api, ACLNN_ERR_INNER,
                   "executor is %s, a live one is required; a second phase spends its executor "
                   "unless aclSetAclOpExecutorRepeatable came before",
                   pg_handle_what(executor));
  const aclnnStatus status = execute(api, plan, spent, workspace, workspace_size, stream);
  pg_release(&plan->object);
  return status;
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) {
  struct pg_plan *plan;
  PG_TRY(pg_plan_get(__func__, executor, &plan));
  atomic_store(&plan->repeatable, true);
  pg_release(&plan->object);
  return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor) {
  PG_CHECK_PTR(executor, ACLNN_ERR_INNER_NULLPTR);
  struct pg_plan *plan = pg_handle_close(executor, PG_EXECUTOR);
  PG_CHECK(plan != NULL, ACLNN_ERR_INNER, "executor is %s, a live one is required",
           pg_handle_what(executor));
  pg_release(&plan->object);
  return ACLNN_SUCCESS;
}

/* The plan reads its tensors' addresses when it runs, so an address set in the tensor is set for
 * the executor; the index adds nothing, as for CANN's composite operators. */
static aclnnStatus set_address(const char *api, aclOpExecutor *executor, const aclTensor *handle,
                               void *addr) {
  struct pg_plan *plan;
  struct pg_tensor *tensor;
  PG_TRY(pg_plan_get(api, executor, &plan));
  pg_release(&plan->object);
  if (handle == NULL) return pg_fail_null(api, ACLNN_ERR_INNER_NULLPTR, "tensor");
  PG_TRY(pg_tensor_get(api, "tensor", handle, &tensor));
  atomic_store(&tensor->data, addr);
  pg_release(&tensor->object);
  return ACLNN_SUCCESS;
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                  void *addr) {
  (void)index;
  return set_address(__func__, executor, tensor, addr);
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                   void *addr) {
  (void)index;
  return set_address(__func__, executor, tensor, addr);
}

aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                             void *addr) {
  (void)index;
  return set_address(__func__, executor, tensor, addr);
}

static aclnnStatus set_list_address(const char *api, aclOpExecutor *executor, size_t index,
                                    const aclTensorList *handle, void *addr) {
  struct pg_plan *plan;
  PG_TRY(pg_plan_get(api, executor, &plan));
  pg_release(&plan->object);
  if (handle == NULL) return pg_fail_null(api, ACLNN_ERR_INNER_NULLPTR, "tensors");
  struct pg_list *list = pg_acquire(handle, PG_TENSOR_LIST);
  if (list == NULL)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "tensors is %s, a live aclTensorList is required",
                   pg_handle_what(handle));
  const uint64_t size = list->size;
  const aclTensor *tensor = index < size ? list->elements[index] : NULL;
  pg_release(&list->object);
  if (index >= size)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID, "relativeIndex is %zu, the list has %llu tensors",
                   index, (unsigned long long)size);
  return set_address(api, executor, tensor, addr);
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                         const size_t relativeIndex, aclTensorList *tensors,
                                         void *addr) {
  (void)irIndex;
  return set_list_address(__func__, executor, relativeIndex, tensors, addr);
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                          const size_t relativeIndex, aclTensorList *tensors,
                                          void *addr) {
  (void)irIndex;
  return set_list_address(__func__, executor, relativeIndex, tensors, addr);
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                    const size_t relativeIndex, aclTensorList *tensors,
                                    void *addr) {
  (void)irIndex;
  return set_list_address(__func__, executor, relativeIndex, tensors, addr);
}

/* There is no dump server here: the tensors are described in the log. */
aclnnStatus aclDumpOpTensors(const char *opType, const char *opName, aclTensor **tensors,
                             size_t inputTensorNum, size_t outputTensorNum, aclrtStream stream) {
  struct pg_stream *found;
  size_t count;
  PG_CHECK_PTR(opType, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK_PTR(opName, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK(tensors != NULL || (inputTensorNum == 0 && outputTensorNum == 0),
           ACLNN_ERR_PARAM_NULLPTR, "tensors is NULL while the counts are %zu and %zu",
           inputTensorNum, outputTensorNum);
  PG_CHECK(pg_add_size(inputTensorNum, outputTensorNum, &count), ACLNN_ERR_PARAM_INVALID,
           "the counts are %zu and %zu, too many to add", inputTensorNum, outputTensorNum);
  if (pg_stream_resolve_any(__func__, stream, &found) != ACL_SUCCESS)
    return pg_recode(ACLNN_ERR_RUNTIME_ERROR);
  pg_stream_release(found);
  for (size_t i = 0; i < count; i++) {
    struct pg_tensor *t;
    PG_TRY(pg_tensor_get(__func__, "an element of tensors", tensors[i], &t));
    pg_log(ACL_INFO, "%s %s %s %zu: %s, %d dims, %s, data %p", opType, opName,
           i < inputTensorNum ? "input" : "output", i, pg_dtype_name(t->dtype), t->rank,
           pg_format_name(t->format), atomic_load(&t->data));
    pg_release(&t->object);
  }
  return ACLNN_SUCCESS;
}
