/* SPDX-License-Identifier: Apache-2.0 */
/* A two-phase operator for tests, which fills a tensor with one value, and a stream that can be
 * held up. */
#ifndef PG_TESTS_FILL_OPERATOR_H_
#define PG_TESTS_FILL_OPERATOR_H_

#include "expect.h"

#include <pthread.h>
#include <semaphore.h>

#include "aclnn/executor.h"
#include "aclnn/opdev/op_errno.h"

enum { CELLS = 8, SCRATCH_CELLS = 10, SCRATCH_VALUE = 0x5c };

static uint64_t cells[2][CELLS];
static aclrtStream stream;
static sem_t gate;

/* On the device that the environment names. */
static inline int set_up_here(void **state) {
  memset(cells, 0, sizeof cells);
  sem_init(&gate, 0, 0);
  return set_up_device(state) != 0 || aclrtCreateStream(&stream) != ACL_SUCCESS;
}

/* Where device memory is looked into. */
static inline int set_up(void **state) {
  setenv("POOLGRAD_DEVICES", "cpu", 1);
  return set_up_here(state);
}

static inline int tear_down(void **state) {
  for (int i = 0; i < 4; i++) sem_post(&gate); /* a test that failed may have left it shut */
  const bool left = pg_handle_count(PG_EXECUTOR) > 0 || pg_handle_count(PG_TENSOR) > 0 ||
                    pg_handle_count(PG_TENSOR_LIST) > 0;
  if (left) print_error("executors, tensors or lists are left\n");
  const int status = tear_down_device(state);
  sem_destroy(&gate);
  return status != 0 || left;
}

static inline void wait_at_gate(void *unused) {
  (void)unused;
  while (sem_wait(&gate) != 0) continue;
}

static inline void block_stream(void) {
  OK_OR_SAY(aclrtLaunchHostFunc(stream, wait_at_gate, NULL));
}

static inline void unblock_and_sync(void) {
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

static inline aclTensor *tensor_of(uint64_t *data) {
  aclTensor *tensor = aclCreateTensor((const int64_t[]){CELLS}, 1, ACL_UINT64, NULL, 0,
                                      ACL_FORMAT_ND, NULL, 0, data);
  assert_non_null(tensor);
  return tensor;
}

static inline void add_fill(struct pg_plan *plan, int operand, int64_t offset, int64_t count,
                            uint64_t value) {
  const struct pg_problem problem = {
      .kernel = PG_FILL,
      .dtype = ACL_UINT64,
      .facts = {.bytes = count * 8},
      .args.fill = {.count = count, .stride = 1, .width = 1, .value = value, .element_bytes = 8}};
  assert_int_equal(pg_plan_add(plan, &problem, NULL), 0);
  pg_plan_bind(plan, offsetof(struct pg_fill_args, dst), operand, offset);
}

/* What the fill operator is told. */
struct fill {
  aclTensor *out; /* NULL: an empty plan */
  uint64_t value;
  bool scratch; /* fill workspace as well: 8 bytes, then SCRATCH_CELLS cells */
  bool apart;   /* a step of its own for each of four cells */
};

static inline aclnnStatus plan_fill(const struct fill *f, struct pg_plan *plan) {
  struct pg_tensor *out;
  if (f->scratch) {
    int64_t offset;
    assert_int_equal(pg_plan_reserve("fill", plan, 8, &offset), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(pg_plan_reserve("fill", plan, SCRATCH_CELLS * 8, &offset), 0);
    assert_int_equal(offset, 64);
    add_fill(plan, PG_WORKSPACE, offset, SCRATCH_CELLS, SCRATCH_VALUE);
  }
  if (f->out == NULL) return ACLNN_SUCCESS;
  PG_TRY(pg_tensor_get("fill", "out", f->out, &out));
  const int operand = pg_plan_operand(
      plan,
      &(struct pg_plan_operand){.name = "out", .tensor = out, .end = CELLS * 8, .written = true});
  pg_release(&out->object);
  for (int i = 0; f->apart && i < 4; i++) add_fill(plan, operand, i * 8, 1, f->value);
  if (!f->apart) add_fill(plan, operand, 0, CELLS, f->value);
  return ACLNN_SUCCESS;
}

static inline aclnnStatus fill_phase_1(struct fill f, uint64_t *size, aclOpExecutor **executor) {
  struct pg_plan *plan;
  PG_TRY(pg_plan_create("fillGetWorkspaceSize", &plan));
  return pg_plan_publish("fillGetWorkspaceSize", plan, plan_fill(&f, plan), size, executor);
}

static inline aclnnStatus fill_phase_2(void *workspace, uint64_t size, aclOpExecutor *executor,
                                       aclrtStream on) {
  return pg_execute("fill", workspace, size, executor, on);
}

/* An executor that needs no workspace, or 192 bytes of it. */
static inline aclOpExecutor *prepare(struct fill f) {
  uint64_t size = 99;
  aclOpExecutor *executor = NULL;
  OK_OR_SAY(fill_phase_1(f, &size, &executor));
  assert_int_equal(size, f.scratch ? 192 : 0);
  assert_non_null(executor);
  return executor;
}

static inline aclOpExecutor *prepare_repeatable(struct fill f) {
  aclOpExecutor *executor = prepare(f);
  OK_OR_SAY(aclSetAclOpExecutorRepeatable(executor));
  return executor;
}

static inline void expect_cells(const uint64_t *found, uint64_t value) {
  for (int i = 0; i < CELLS; i++) assert_int_equal(found[i], value);
}

static inline void expect_spent(aclOpExecutor *executor) {
  FAILS(fill_phase_2(NULL, 0, executor, stream), ACLNN_ERR_INNER,
        " Invalid_Argument(EZ1010): fill: executor is a spent or destroyed executor",
        "aclSetAclOpExecutorRepeatable");
}

/* A second phase on a thread of its own, which has no context. */
struct run {
  pthread_t thread;
  aclOpExecutor *executor;
  aclrtStream stream;
  void *workspace;
  uint64_t size;
  int times;
  aclnnStatus status;
};

static inline void *run_here(void *argument) {
  struct run *run = argument;
  for (int i = 0; i < run->times; i++) {
    const aclnnStatus status = fill_phase_2(run->workspace, run->size, run->executor, run->stream);
    if (status != ACLNN_SUCCESS) run->status = status;
  }
  return NULL;
}

static inline void run_all(struct run *runs, int count) {
  for (int i = 0; i < count; i++)
    assert_int_equal(pthread_create(&runs[i].thread, NULL, run_here, &runs[i]), 0);
  for (int i = 0; i < count; i++) pthread_join(runs[i].thread, NULL);
}

#endif
