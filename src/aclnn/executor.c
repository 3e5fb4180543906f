/* SPDX-License-Identifier: Apache-2.0 */
#include "aclnn/executor.h"

#include <assert.h>
#include <string.h>

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"
#include "core/alloc.h"
#include "core/checked.h"
#include "core/dtype.h"
#include "core/log.h"
#include "runtime/memory.h"
#include "runtime/stream.h"

enum { STEPS_MAX = 4, BINDINGS_MAX = 16, OPERANDS_MAX = 8, ALIGNMENT = 64 };

struct binding {
  int step, operand;
  size_t args_offset;
  int64_t bytes;
};

struct pg_plan {
  struct pg_object object;
  atomic_bool repeatable;
  int64_t workspace_bytes;
  int step_count, binding_count, operand_count;
  struct pg_plan_operand operands[OPERANDS_MAX];
  struct binding bindings[BINDINGS_MAX];
  struct pg_step steps[STEPS_MAX];
};

static void destroy(struct pg_object *self) {
  struct pg_plan *plan = (struct pg_plan *)self;
  for (int i = 0; i < plan->operand_count; i++) pg_release(&plan->operands[i].tensor->object);
  pg_free(plan);
}

aclnnStatus pg_plan_create(const char *api, struct pg_plan **out) {
  struct pg_plan *plan = pg_alloc(sizeof *plan);
  if (plan == NULL)
    return pg_fail(api, ACLNN_ERR_INNER_CREATE_EXECUTOR, "no memory for an executor");
  atomic_init(&plan->object.refs, 1);
  plan->object.destroy = destroy;
  atomic_init(&plan->repeatable, false);
  plan->workspace_bytes = 0;
  plan->step_count = plan->binding_count = plan->operand_count = 0;
  *out = plan;
  return ACLNN_SUCCESS;
}

void pg_plan_destroy(struct pg_plan *plan) {
  if (plan != NULL) pg_release(&plan->object);
}

int pg_plan_operand(struct pg_plan *plan, const struct pg_plan_operand *operand) {
  assert(plan->operand_count < OPERANDS_MAX);
  pg_retain(&operand->tensor->object);
  plan->operands[plan->operand_count] = *operand;
  return plan->operand_count++;
}

aclnnStatus pg_plan_reserve(const char *api, struct pg_plan *plan, int64_t bytes, int64_t *offset) {
  int64_t rounded, total;
  PG_CHECK_AS(api,
              pg_add(bytes, ALIGNMENT - 1, &rounded) &&
                  pg_add(plan->workspace_bytes, rounded / ALIGNMENT * ALIGNMENT, &total),
              ACLNN_ERR_PARAM_INVALID, "the call needs more workspace than 64 bits can count");
  *offset = plan->workspace_bytes;
  plan->workspace_bytes = total;
  return ACLNN_SUCCESS;
}

void pg_plan_add(struct pg_plan *plan, const struct pg_plan_kernel *kernel) {
  assert(plan->step_count < STEPS_MAX && kernel->args_bytes <= sizeof(union pg_kernel_args));
  struct pg_step *step = &plan->steps[plan->step_count++];
  step->kind = PG_STEP_KERNEL;
  step->bytes = kernel->bytes;
  step->u.kernel.id = kernel->id;
  step->u.kernel.dtype = kernel->dtype;
  step->u.kernel.items = kernel->items;
  step->u.kernel.judge = kernel->judge;
  memcpy(&step->u.kernel.args, kernel->args, kernel->args_bytes);
}

void pg_plan_bind(struct pg_plan *plan, size_t args_offset, int operand, int64_t bytes) {
  assert(plan->binding_count < BINDINGS_MAX && plan->step_count > 0);
  plan->bindings[plan->binding_count++] =
      (struct binding){plan->step_count - 1, operand, args_offset, bytes};
}

aclnnStatus pg_plan_publish(const char *api, struct pg_plan *plan, uint64_t *workspace_size,
                            aclOpExecutor **executor) {
  aclOpExecutor *handle = pg_handle_open(PG_EXECUTOR, &plan->object);
  if (handle == NULL)
    return pg_fail(api, ACLNN_ERR_INNER_CREATE_EXECUTOR, "no memory for an executor");
  *workspace_size = (uint64_t)plan->workspace_bytes;
  *executor = handle;
  return ACLNN_SUCCESS;
}

/* A stretch of memory that a run uses. */
struct stretch {
  const char *name;
  char *data;
  int64_t begin, end; /* bytes from data */
  bool written;
  size_t alignment;
};

/* It must be there, be aligned, and lie in its allocation as far as the runtime knows that. */
static aclnnStatus check_stretch(const char *api, const struct stretch *s) {
  size_t room;
  PG_CHECK_AS(api, s->data != NULL, ACLNN_ERR_PARAM_NULLPTR, "the data address of %s is NULL",
              s->name);
  PG_CHECK_AS(api, (uintptr_t)s->data % s->alignment == 0, ACLNN_ERR_PARAM_INVALID,
              "the data address of %s is %p, it must be a multiple of %zu", s->name,
              (void *)s->data, s->alignment);
  PG_CHECK_AS(api, pg_memory_holds(s->data, (size_t)s->end, &room), ACLNN_ERR_PARAM_INVALID,
              "%s reaches %lld bytes from its data address, where only %zu are allocated", s->name,
              (long long)s->end, room);
  return ACLNN_SUCCESS;
}

/* What is written must not overlap anything else: only now are the addresses final. */
static aclnnStatus check_apart(const char *api, const struct stretch *w, const struct stretch *s) {
  PG_CHECK_AS(api, w->data + w->begin >= s->data + s->end || s->data + s->begin >= w->data + w->end,
              ACLNN_ERR_PARAM_INVALID, "the memory of %s overlaps that of %s", w->name, s->name);
  return ACLNN_SUCCESS;
}

/* The memory of this run: the operands, and the workspace behind them if there is one. */
static aclnnStatus gather(const char *api, const struct pg_plan *plan, void *workspace,
                          struct stretch all[OPERANDS_MAX + 1]) {
  int count = plan->operand_count;
  for (int i = 0; i < count; i++) {
    const struct pg_plan_operand *o = &plan->operands[i];
    all[i] = (struct stretch){.name = o->name,
                              .data = atomic_load(&o->tensor->data),
                              .begin = o->begin,
                              .end = o->end,
                              .written = o->written,
                              .alignment = aclDataTypeSize(o->tensor->dtype)};
  }
  if (plan->workspace_bytes > 0)
    all[count++] = (struct stretch){.name = "workspace",
                                    .data = workspace,
                                    .end = plan->workspace_bytes,
                                    .written = true,
                                    .alignment = sizeof(int64_t)};
  for (int i = 0; i < count; i++) PG_TRY(check_stretch(api, &all[i]));
  for (int w = 0; w < count; w++)
    for (int i = 0; i < count && all[w].written; i++)
      if (i != w) PG_TRY(check_apart(api, &all[w], &all[i]));
  return ACLNN_SUCCESS;
}

/* The steps with the addresses of this moment. */
static aclnnStatus bind(const char *api, const struct pg_plan *plan, void *workspace,
                        struct pg_step steps[STEPS_MAX]) {
  struct stretch all[OPERANDS_MAX + 1];
  PG_TRY(gather(api, plan, workspace, all));
  memcpy(steps, plan->steps, (size_t)plan->step_count * sizeof *steps);
  for (int i = 0; i < plan->binding_count; i++) {
    const struct binding *b = &plan->bindings[i];
    const int at = b->operand == PG_WORKSPACE ? plan->operand_count : b->operand;
    char *address = all[at].data + b->bytes;
    memcpy((char *)&steps[b->step].u.kernel.args + b->args_offset, &address, sizeof address);
  }
  return ACLNN_SUCCESS;
}

static aclnnStatus submit(const char *api, const struct pg_plan *plan, void *workspace,
                          aclrtStream handle) {
  struct pg_step steps[STEPS_MAX];
  struct pg_stream *stream;
  PG_TRY(bind(api, plan, workspace, steps));
  aclError status = pg_stream_resolve_any(api, handle, &stream);
  if (status == ACL_SUCCESS) {
    if (plan->step_count > 0)
      status = pg_stream_submit(api, stream, steps, (size_t)plan->step_count);
    pg_stream_release(stream);
  }
  return status == ACL_SUCCESS ? ACLNN_SUCCESS : pg_recode(ACLNN_ERR_RUNTIME_ERROR);
}

static aclnnStatus execute(const char *api, const struct pg_plan *plan, void *workspace,
                           uint64_t workspace_size, aclrtStream stream) {
  if (workspace_size > 0 && workspace == NULL)
    return pg_fail(api, ACLNN_ERR_PARAM_NULLPTR, "workspace is NULL while workspaceSize is %llu",
                   (unsigned long long)workspace_size);
  if (workspace_size < (uint64_t)plan->workspace_bytes)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                   "workspaceSize is %llu, the first phase asked for %lld",
                   (unsigned long long)workspace_size, (long long)plan->workspace_bytes);
  return submit(api, plan, workspace, stream);
}

/* An executor that is not repeatable is spent by this call, whatever comes of it: its handle is
 * closed before anything else, so of two threads only one can run it. */
aclnnStatus pg_execute(const char *api, void *workspace, uint64_t workspace_size,
                       aclOpExecutor *executor, void *stream) {
  if (executor == NULL) return pg_fail_null(api, ACLNN_ERR_PARAM_NULLPTR, "executor");
  struct pg_plan *plan = pg_acquire(executor, PG_EXECUTOR);
  if (plan != NULL && !atomic_load(&plan->repeatable)) {
    pg_release(&plan->object);
    plan = pg_handle_close(executor, PG_EXECUTOR);
  }
  if (plan == NULL)
    return pg_fail(api, ACLNN_ERR_INNER, "executor is %s, a live one is required",
                   pg_handle_what(executor));
  const aclnnStatus status = execute(api, plan, workspace, workspace_size, stream);
  pg_release(&plan->object);
  return status;
}

static aclnnStatus get_plan(const char *api, aclOpExecutor *executor, struct pg_plan **out) {
  if (executor == NULL) return pg_fail_null(api, ACLNN_ERR_INNER_NULLPTR, "executor");
  *out = pg_acquire(executor, PG_EXECUTOR);
  if (*out != NULL) return ACLNN_SUCCESS;
  return pg_fail(api, ACLNN_ERR_INNER, "executor is %s, a live one is required",
                 pg_handle_what(executor));
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) {
  struct pg_plan *plan;
  PG_TRY(get_plan(__func__, executor, &plan));
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
  PG_TRY(get_plan(api, executor, &plan));
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
  PG_TRY(get_plan(api, executor, &plan));
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
  PG_CHECK_PTR(opType, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK_PTR(opName, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK(tensors != NULL || (inputTensorNum == 0 && outputTensorNum == 0),
           ACLNN_ERR_PARAM_NULLPTR, "tensors is NULL while the counts are %zu and %zu",
           inputTensorNum, outputTensorNum);
  PG_CHECK(inputTensorNum + outputTensorNum >= inputTensorNum, ACLNN_ERR_PARAM_INVALID,
           "the counts are %zu and %zu, too many to add", inputTensorNum, outputTensorNum);
  if (pg_stream_resolve_any(__func__, stream, &found) != ACL_SUCCESS)
    return pg_recode(ACLNN_ERR_RUNTIME_ERROR);
  pg_stream_release(found);
  for (size_t i = 0; i < inputTensorNum + outputTensorNum; i++) {
    struct pg_tensor *t;
    PG_TRY(pg_tensor_get(__func__, "an element of tensors", tensors[i], &t));
    pg_log(ACL_INFO, "%s %s %s %zu: %s, %d dims, %s, data %p", opType, opName,
           i < inputTensorNum ? "input" : "output", i, pg_dtype_name(t->dtype), t->rank,
           pg_format_name(t->format), atomic_load(&t->data));
    pg_release(&t->object);
  }
  return ACLNN_SUCCESS;
}
