/* SPDX-License-Identifier: Apache-2.0 */
#include "aclnn/executor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aclnn/array.h"
#include "aclnn/opdev/op_errno.h"
#include "core/checked.h"
#include "core/dtype.h"
#include "core/log.h"
#include "poolgrad.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

enum { STEPS_MAX = 4, BINDINGS_MAX = 16, OPERANDS_MAX = 6, ALIGNMENT = 64 };

/* An address that phase 2 knows; until then the offset from it lies in its place. */
struct binding {
  uint8_t step;
  int8_t operand;
  uint16_t args_offset;
};

/* What the first phase has found stays as it was: aclInitTensor may make the tensor another one
 * before the second. */
struct operand {
  struct pg_plan_operand view;
  size_t alignment; /* of its data address, bytes */
};

/* Most plans are one step, which lies inside: what malloc keeps ready for a thread is small. */
struct pg_plan {
  struct pg_object object;
  const char *api; /* the first phase that made it */
  atomic_bool repeatable;
  bool exhausted; /* a step found no memory */
  int step_count, binding_count, operand_count;
  int64_t workspace_bytes;
  struct pg_step *steps;                                /* the first, or STEPS_MAX of their own */
  struct pg_choice choices[STEPS_MAX][PG_BACKENDS_MAX]; /* by the numbers of pg_backend_at */
  struct binding bindings[BINDINGS_MAX];
  struct operand operands[OPERANDS_MAX];
  struct pg_step first;
};

static void destroy(struct pg_object *self) {
  struct pg_plan *plan = (struct pg_plan *)self;
  for (int i = 0; i < plan->operand_count; i++) pg_release(&plan->operands[i].view.tensor->object);
  if (plan->steps != &plan->first) free(plan->steps);
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
  plan->steps = &plan->first;
  *out = plan;
  return ACLNN_SUCCESS;
}

void pg_plan_destroy(struct pg_plan *plan) {
  if (plan != NULL) pg_release(&plan->object);
}

int pg_plan_operand(struct pg_plan *plan, const struct pg_plan_operand *operand) {
  assert(plan->operand_count < OPERANDS_MAX);
  pg_retain(&operand->tensor->object);
  plan->operands[plan->operand_count] = (struct operand){
      *operand, operand->alignment != 0 ? operand->alignment : operand->tensor->element};
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

/* Place for one more step.  Without memory the first is overwritten, and publish will fail. */
static struct pg_step *next_step(struct pg_plan *plan) {
  if (plan->step_count == 1 && !plan->exhausted) {
    struct pg_step *steps = malloc(STEPS_MAX * sizeof *steps);
    plan->exhausted = steps == NULL;
    if (steps != NULL) {
      steps[0] = plan->first;
      plan->steps = steps;
    }
  }
  if (plan->exhausted) return &plan->first;
  assert(plan->step_count < STEPS_MAX);
  return &plan->steps[plan->step_count++];
}

/* The choices of all backends that have a device; returns the workspace that the greediest needs.
 * The others are only asked if somebody wants to know (choice_of). */
static int64_t choose(const struct pg_plan *plan, const struct pg_problem *problem,
                      struct pg_choice *choices) {
  int64_t bytes = 0;
  const struct pg_backend *backend;
  for (int i = 0; (backend = pg_backend_at(i)) != NULL; i++) {
    choices[i].name = NULL;
    choices[i].workspace_bytes = 0;
    if (!pg_backend_has_devices(i)) continue;
    const bool found = backend->choose(problem, 0, &choices[i]);
    assert(found); /* the last method of a list fits every problem */
    (void)found;
    if (choices[i].workspace_bytes > bytes) bytes = choices[i].workspace_bytes;
    pg_log(ACL_INFO, "%s: on %s by method %s", plan->api, backend->name, choices[i].name);
  }
  return bytes;
}

/* The choice of a backend for a step. */
static struct pg_choice choice_of(const struct pg_plan *plan, int step, int backend) {
  struct pg_choice choice = plan->choices[step][backend];
  if (choice.name == NULL)
    (void)pg_backend_at(backend)->choose(&plan->steps[step].u.kernel.task.problem, 0, &choice);
  return choice;
}

int64_t pg_plan_add(struct pg_plan *plan, const struct pg_problem *problem, pg_judge_fn *judge) {
  struct pg_step *step = next_step(plan);
  step->kind = PG_STEP_KERNEL;
  step->u.kernel.judge = judge;
  step->u.kernel.task.problem = *problem;
  step->bytes = problem->facts.bytes;
  return choose(plan, problem, plan->choices[plan->step_count - 1]);
}

void pg_plan_bind(struct pg_plan *plan, size_t args_offset, int operand, int64_t bytes) {
  assert(plan->binding_count < BINDINGS_MAX && plan->step_count > 0);
  const int step = plan->step_count - 1;
  const intptr_t offset = (intptr_t)bytes;
  memcpy((char *)&plan->steps[step].u.kernel.task.problem.args + args_offset, &offset,
         sizeof offset);
  plan->bindings[plan->binding_count++] =
      (struct binding){(uint8_t)step, (int8_t)operand, (uint16_t)args_offset};
}

aclnnStatus pg_plan_publish(const char *api, struct pg_plan *plan, uint64_t *workspace_size,
                            aclOpExecutor **executor) {
  aclOpExecutor *handle = plan->exhausted ? NULL : pg_handle_open(PG_EXECUTOR, &plan->object);
  if (handle == NULL)
    return pg_fail(api, ACLNN_ERR_INNER_CREATE_EXECUTOR, "no memory for an executor");
  *workspace_size = (uint64_t)plan->workspace_bytes;
  *executor = handle;
  return ACLNN_SUCCESS;
}

/* A stretch of memory that a run uses. */
struct stretch {
  const char *name;
  int64_t begin, end; /* bytes from its data address */
  bool written;
  size_t alignment;
};

/* All of them: the operands, and the workspace behind them if there is one. */
struct memory {
  int count;
  struct stretch of[OPERANDS_MAX + 1];
  void *data[OPERANDS_MAX + 1];
  struct pg_room rooms[OPERANDS_MAX + 1]; /* what the runtime knows of them */
};

static void gather(const struct pg_plan *plan, void *workspace, struct memory *m) {
  m->count = plan->operand_count;
  for (int i = 0; i < m->count; i++) {
    const struct pg_plan_operand *o = &plan->operands[i].view;
    m->of[i] = (struct stretch){o->name, o->begin, o->end, o->written, plan->operands[i].alignment};
    m->data[i] = atomic_load_explicit(&o->tensor->data, memory_order_acquire);
  }
  if (plan->workspace_bytes == 0) return;
  m->of[m->count] = (struct stretch){.name = "workspace",
                                     .end = plan->workspace_bytes,
                                     .written = true,
                                     .alignment = sizeof(int64_t)};
  m->data[m->count++] = workspace;
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
static aclnnStatus check_apart(const char *api, const struct memory *m, int w, int i) {
  const struct stretch *a = &m->of[w], *b = &m->of[i];
  const uintptr_t at = (uintptr_t)m->data[w], other = (uintptr_t)m->data[i];
  PG_CHECK_AS(api,
              at + (uintptr_t)a->begin >= other + (uintptr_t)b->end ||
                  other + (uintptr_t)b->begin >= at + (uintptr_t)a->end,
              ACLNN_ERR_PARAM_INVALID, "the memory of %s overlaps that of %s", a->name, b->name);
  return ACLNN_SUCCESS;
}

static aclnnStatus check_memory(const char *api, struct memory *m) {
  pg_memory_rooms(m->count, (const void *const *)m->data, m->rooms);
  for (int i = 0; i < m->count; i++)
    PG_TRY(check_stretch(api, &m->of[i], m->data[i], m->rooms[i].bytes));
  for (int w = 0; w < m->count; w++)
    for (int i = 0; i < m->count && m->of[w].written; i++)
      if (i != w) PG_TRY(check_apart(api, m, w, i));
  return ACLNN_SUCCESS;
}

/* Puts the addresses of this moment into the steps. */
static void bind(const struct pg_plan *plan, const struct memory *m, void *workspace,
                 struct pg_step *steps) {
  for (int i = 0; i < plan->binding_count; i++) {
    const struct binding *b = &plan->bindings[i];
    char *at = (char *)&steps[b->step].u.kernel.task.problem.args + b->args_offset;
    char *address = b->operand == PG_WORKSPACE ? workspace : m->data[b->operand];
    intptr_t offset;
    memcpy(&offset, at, sizeof offset);
    if (offset != 0) address += offset; /* without a workspace its address may be NULL */
    memcpy(at, &address, sizeof address);
  }
}

/* A kernel on one backend cannot touch another's device memory, nor one off the host memory that
 * was not made known to it. */
static aclnnStatus check_reach(const char *api, const struct memory *m,
                               const struct pg_stream *stream) {
  for (int i = 0; i < m->count; i++) {
    const struct pg_room *room = &m->rooms[i];
    const bool other = room->kind != PG_MEMORY_UNKNOWN && room->backend != stream->backend;
    PG_CHECK_AS(api, !other || (room->kind != PG_MEMORY_DEVICE && stream->backend->on_host),
                ACLNN_ERR_PARAM_INVALID,
                "%s lies in memory of device %d (%s), out of reach of the stream's device %d (%s)",
                m->of[i].name, room->device_id, room->backend->name, stream->context->device_id,
                stream->backend->name);
  }
  return ACLNN_SUCCESS;
}

/* In strict mode the data is the device's own. */
static aclnnStatus check_strict(const char *api, const struct memory *m,
                                const struct pg_stream *stream) {
  for (int i = 0; i < m->count && pg_is_strict(); i++)
    if (m->of[i].end > 0)
      PG_TRY(pg_strict_check_data(api, m->of[i].name, m->data[i], stream->context->device_id));
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
    *choice = choice_of(plan, i, at);
    PG_CHECK_AS(api, choice->workspace_bytes <= plan->workspace_bytes, ACLNN_ERR_PARAM_INVALID,
                "executor was made when no device was of the kind of the stream's (%s), the first "
                "phase must be called again",
                backend->name);
  }
  return ACLNN_SUCCESS;
}

static aclnnStatus submit(const char *api, const struct pg_plan *plan, const struct memory *memory,
                          struct pg_step *steps, aclrtStream handle) {
  struct pg_stream *stream;
  aclError status = pg_stream_resolve_any(api, handle, &stream);
  if (status == ACL_SUCCESS) {
    aclnnStatus fit = check_reach(api, memory, stream);
    if (fit == ACLNN_SUCCESS) fit = check_strict(api, memory, stream);
    if (fit == ACLNN_SUCCESS) fit = take_choices(api, plan, stream->backend, steps);
    if (fit != ACLNN_SUCCESS) {
      pg_stream_release(stream);
      return fit;
    }
    if (plan->step_count > 0)
      status = pg_stream_submit(api, stream, steps, (size_t)plan->step_count, NULL);
    if (plan->step_count > 0 && status == ACL_SUCCESS && pg_is_strict())
      pg_strict_use(api, stream, memory->count, memory->data);
    pg_stream_release(stream);
  }
  return status == ACL_SUCCESS ? ACLNN_SUCCESS : pg_recode(ACLNN_ERR_RUNTIME_ERROR);
}

/* A plan that was spent is this call's alone: its own steps take the addresses. */
static aclnnStatus execute(const char *api, struct pg_plan *plan, bool spent, void *workspace,
                           uint64_t workspace_size, aclrtStream stream) {
  struct memory memory;
  struct pg_step copies[STEPS_MAX], *steps = spent ? plan->steps : copies;
  if (workspace_size > 0 && workspace == NULL)
    return pg_fail(api, ACLNN_ERR_PARAM_NULLPTR, "workspace is NULL while workspaceSize is %llu",
                   (unsigned long long)workspace_size);
  if (workspace_size < (uint64_t)plan->workspace_bytes)
    return pg_fail(api, ACLNN_ERR_PARAM_INVALID,
                   "workspaceSize is %llu, the first phase asked for %lld",
                   (unsigned long long)workspace_size, (long long)plan->workspace_bytes);
  gather(plan, workspace, &memory);
  PG_TRY(check_memory(api, &memory));
  if (!spent) memcpy(copies, plan->steps, (size_t)plan->step_count * sizeof *copies);
  bind(plan, &memory, workspace, steps);
  return submit(api, plan, &memory, steps, stream);
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

/* --- Methods --- */

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
  if (at < 0 || get_plan(__func__, executor, &plan) != ACLNN_SUCCESS) return NULL;
  const bool found = i >= 0 && choose_one(plan, at, i, &choice);
  pg_release(&plan->object);
  return found ? choice.name : NULL;
}

const char *poolgrad_method_used(void *executor, const char *backend) {
  struct pg_plan *plan;
  const int at = find_backend(__func__, backend);
  if (at < 0 || get_plan(__func__, executor, &plan) != ACLNN_SUCCESS) return NULL;
  const char *name = plan->step_count > 0 ? choice_of(plan, 0, at).name : NULL;
  pg_release(&plan->object);
  return name;
}

/* The workspace is as large as the greediest backend needs it. */
static void use_choice(struct pg_plan *plan, int backend, const struct pg_choice *choice) {
  int64_t bytes = 0;
  for (int i = 1; i < plan->step_count; i++) /* or they would need a part of the workspace */
    assert(plan->steps[i].u.kernel.task.problem.kernel == PG_FILL);
  plan->choices[0][backend] = *choice;
  for (int i = 0; pg_backend_at(i) != NULL; i++)
    if (plan->choices[0][i].workspace_bytes > bytes) bytes = plan->choices[0][i].workspace_bytes;
  plan->workspace_bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int poolgrad_use_method(void *executor, const char *backend, const char *method,
                        uint64_t *workspaceSize) {
  struct pg_plan *plan;
  struct pg_choice choice;
  PG_CHECK_PTR(method, ACLNN_ERR_PARAM_NULLPTR);
  PG_CHECK_PTR(workspaceSize, ACLNN_ERR_PARAM_NULLPTR);
  const int at = find_backend(__func__, backend);
  if (at < 0) return ACLNN_ERR_PARAM_INVALID;
  PG_TRY(get_plan(__func__, executor, &plan));
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
