/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator with every request for a resource refused in turn, for each kind of plan: one step
 * over whole planes, three steps and workspace over cut ones, channels last, a repeated quotient,
 * zeros, nothing at all, and enough work for several threads. */
#include "fault_scenario.h"

#include <semaphore.h>

#include "aclnn/opdev/op_errno.h"
#include "core/handle.h"
#include "poolgrad.h"
#include "trial.h"

enum { THREADS = 3 }; /* for work that is worth them, however many processors there are */

struct operator_run {
  struct trial trial;
  struct trial_call call;
  void *workspace;
  aclrtStream stream;
  bool launched;
};

static bool describe(struct operator_run *r) {
  for (int i = 0; i < POOL_TENSORS; i++)
    if (!MAKE(r->call.tensor[i], trial_make_tensor(&r->trial, i))) return false;
  for (int i = 0; i < POOL_ARRAYS; i++)
    if (!(i == STRIDE_ARRAY && r->trial.problem.stride.count == STRIDE_NULL) &&
        !MAKE(r->call.array[i], trial_make_array(&r->trial, i)))
      return false;
  return true;
}

static bool plan(struct operator_run *r) {
  struct trial_call *c = &r->call;
  return TRY_BYTES(&c->workspace_size, sizeof *c - offsetof(struct trial_call, workspace_size),
                   trial_first_phase(&r->trial, c), ACLNN_ERR_INNER_CREATE_EXECUTOR) &&
         (c->workspace_size == 0 ||
          TRY_INTO(r->workspace,
                   aclrtMalloc(&r->workspace, c->workspace_size, ACL_MEM_MALLOC_HUGE_FIRST),
                   ACL_ERROR_RT_MEMORY_ALLOCATION));
}

static bool second_phase(struct operator_run *r) {
  return TRY(trial_second_phase(&r->trial, &r->call, r->workspace, r->stream),
             ACLNN_ERR_RUNTIME_ERROR);
}

/* An executor is spent by a second phase that fails, too. */
static bool launch(struct operator_run *r) {
  const bool planned = plan(r);
  r->launched = planned && second_phase(r);
  if (r->call.executor != NULL && !planned) (void)MUST(aclDestroyAclOpExecutor(r->call.executor));
  return r->launched && EXPECT(pg_handle_count(PG_EXECUTOR) == 0);
}

static void wait_at_gate(void *gate) {
  while (sem_wait(gate) != 0) continue;
}

/* The work begins inside the call that waits for it, and so do the workers that it needs. */
static bool launch_for_workers(struct operator_run *r) {
  sem_t gate;
  (void)sem_init(&gate, 0, 0);
  (void)poolgrad_set_threads(THREADS); /* ends the workers that there are */
  const bool waiting =
      TRY(aclrtLaunchHostFunc(r->stream, wait_at_gate, &gate), ACL_ERROR_BAD_ALLOC);
  bool good = waiting && launch(r);
  if (waiting) good = MUST((sem_post(&gate), aclrtSynchronizeStream(r->stream))) && good;
  (void)sem_destroy(&gate);
  return good;
}

/* A repeatable one is not. */
static bool launch_twice(struct operator_run *r) {
  bool good = plan(r) && MUST(aclSetAclOpExecutorRepeatable(r->call.executor));
  for (int i = 0; i < 2 && good; i++) {
    good = second_phase(r);
    r->launched = r->launched || good;
  }
  if (r->call.executor != NULL) (void)MUST(aclDestroyAclOpExecutor(r->call.executor));
  return good;
}

static void drop(struct operator_run *r) {
  for (int i = 0; i < POOL_TENSORS; i++) (void)MUST(aclDestroyTensor(r->call.tensor[i]));
  for (int i = 0; i < POOL_ARRAYS; i++) (void)MUST(aclDestroyIntArray(r->call.array[i]));
}

/* Right when it was launched, else as before. */
static bool look(struct operator_run *r) {
  struct trial *t = &r->trial;
  struct guarded *grad_in = &t->memory[GRAD_IN];
  int64_t offset;
  if (r->launched) {
    const bool right = trial_fetch(t) && trial_compare(t);
    if (!right) print_error("%s\n", t->why);
    return EXPECT(right);
  }
  return EXPECT(guarded_fetch(grad_in) == ACL_SUCCESS) &&
         EXPECT(!guarded_differs(grad_in, false, &offset));
}

static bool run_trial(const char *line, bool (*launcher)(struct operator_run *)) {
  struct operator_run r = {.launched = false};
  struct trial_devices devices = {.count = 1};
  struct problem p;
  char why[PROBLEM_TEXT];
  if (!EXPECT(problem_parse(line, &p, why)) || !EXPECT(trial_open(&r.trial, &p, &devices)))
    return false;
  bool good = TRY_INTO(r.stream, aclrtCreateStream(&r.stream), ACL_ERROR_BAD_ALLOC) &&
              describe(&r) && launcher(&r);
  drop(&r);
  if (r.stream != NULL) good = MUST(aclrtSynchronizeStream(r.stream)) && good;
  good = look(&r) && good;
  if (r.stream != NULL) good = MUST(aclrtDestroyStream(r.stream)) && good;
  if (r.workspace != NULL) good = MUST(aclrtFree(r.workspace)) && good;
  trial_close(&r.trial);
  return good;
}

static bool run_line(const void *line) { return run_trial(line, launch); }
static bool run_line_with_workers(const void *line) { return run_trial(line, launch_for_workers); }
static bool run_line_twice(const void *line) { return run_trial(line, launch_twice); }

#define LINES(function, ...) \
  { .name = __VA_ARGS__, .run = function, .data = __VA_ARGS__ }

static const struct scenario scenarios[] = {
    LINES(run_line, "max_pool2d f32 i32 in=2x3x7x5 kernel=2"),
    LINES(run_line, "max_pool2d f32 i64 in=1x2x131x130 kernel=3 stride=2 pad=1 index=stray"),
    LINES(run_line, "max_pool2d bf16 i32 in=1x16x9x9 kernel=2 stride=1 nhwc"),
    LINES(run_line, "max_pool2d f16 i64 in=0x3x7x5 kernel=2"),
    LINES(run_line, "avg_pool2d f32 in=2x3x7x5 kernel=3x2 stride=2x1 pad=1"),
    LINES(run_line, "avg_pool2d f32 in=1x1x3x300 kernel=3 stride=null"),
    LINES(run_line, "avg_pool2d f16 in=1x80x4x4 kernel=4 include_pad"),
    LINES(run_line_with_workers, "avg_pool2d f32 in=2x16x128x128 kernel=2"),
    LINES(run_line, "adaptive_max_pool2d f32 i32 in=2x3x7x5 out=3x2"),
    LINES(run_line, "adaptive_max_pool2d f32 i64 in=2x200x200 out=70x70 late"),
    LINES(run_line, "adaptive_max_pool2d f32 i32 in=2x3x4x4 out=0x0"),
    LINES(run_line, "adaptive_max_pool3d bf16 i64 in=2x3x4x7x5 out=3x3x2"),
    LINES(run_line, "adaptive_max_pool3d f32 i32 in=1x1x20x30x40 out=10x15x20"),
    LINES(run_line, "adaptive_avg_pool3d f32 in=2x3x4x7x5 out=3x3x2 grad_in=gap"),
    LINES(run_line, "adaptive_avg_pool3d f64 in=16x8x2x3x4 out=1x1x1"),
    LINES(run_line,
          "adaptive_avg_pool3d f16 in=1x16x4x4x4 out=2x2x2 grad_out=permuted "
          "grad_in=permuted"),
    LINES(run_line_twice, "max_pool2d f32 i64 in=1x1x131x130 kernel=3 stride=2 pad=1"),
    LINES(run_line_twice, "adaptive_avg_pool3d f32 in=2x3x4x7x5 out=3x3x2"),
};

int main(int count, char **arguments) {
  setenv("POOLGRAD_DEVICES", "cpu", 1);
  return scenarios_run(scenarios, sizeof scenarios / sizeof scenarios[0],
                       count > 1 ? arguments[1] : NULL);
}
