/* SPDX-License-Identifier: Apache-2.0 */
/* Executors: the two phases, run once. */
#include "fill_operator.h"

#include <sched.h>

#include "faults.h"

static void the_second_phase_returns_before_the_work_is_done(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  block_stream();
  OK_OR_SAY(fill_phase_2(NULL, 0, prepare((struct fill){.out = out, .value = 7}), stream));
  expect_cells(cells[0], 0);
  unblock_and_sync();
  expect_cells(cells[0], 7);
  OK_OR_SAY(aclDestroyTensor(out));
}

static void success_spends_an_executor(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare((struct fill){.out = out, .value = 7});
  OK_OR_SAY(fill_phase_2(NULL, 0, executor, stream));
  expect_spent(executor);
  FAILS(aclSetAclOpExecutorRepeatable(executor), ACLNN_ERR_INNER, "spent");
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_null_executor_is_refused(void **state) {
  (void)state;
  FAILS(fill_phase_2(NULL, 0, NULL, stream), ACLNN_ERR_PARAM_NULLPTR, "fill:", "executor");
}

static void something_else_is_no_executor(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  FAILS(fill_phase_2(NULL, 0, (void *)out, stream), ACLNN_ERR_INNER, "a tensor");
  FAILS(fill_phase_2(NULL, 0, (void *)cells, stream), ACLNN_ERR_INNER, "not a handle");
  OK_OR_SAY(aclDestroyTensor(out));
}

static void another_operator_leaves_the_executor_alone(void **state) {
  (void)state;
  static const char *const others[] = {"fil", "fillGet", "fillGetWorkspaceSize", "full", ""};
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *once = prepare((struct fill){.out = out, .value = 7});
  aclOpExecutor *often = prepare_repeatable((struct fill){.out = out, .value = 8});
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    FAILS(pg_execute(others[i], NULL, 0, once, stream), ACLNN_ERR_PARAM_INVALID, others[i],
          "comes from fillGetWorkspaceSize");
    FAILS(pg_execute(others[i], NULL, 0, often, stream), ACLNN_ERR_PARAM_INVALID, others[i],
          "comes from fillGetWorkspaceSize");
  }
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  expect_cells(cells[0], 0);
  OK_OR_SAY(fill_phase_2(NULL, 0, often, stream));
  OK_OR_SAY(fill_phase_2(NULL, 0, once, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  expect_cells(cells[0], 7);
  OK_OR_SAY(aclDestroyAclOpExecutor(often));
  OK_OR_SAY(aclDestroyTensor(out));
}

/* The plan writes 8 bytes at a time, whatever the tensor says afterwards. */
static void a_tensor_that_becomes_another_does_not_change_the_plan(void **state) {
  (void)state;
  const int64_t one = 1;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare_repeatable((struct fill){.out = out, .value = 7});
  OK_OR_SAY(aclInitTensor(out, &one, 1, ACL_UINT8, NULL, 0, ACL_FORMAT_ND, NULL, 0,
                          (char *)cells[0] + 4));
  FAILS(fill_phase_2(NULL, 0, executor, stream), ACLNN_ERR_PARAM_INVALID, "multiple of 8");
  OK_OR_SAY(aclInitTensor(out, &one, 1, ACL_STRING, NULL, 0, ACL_FORMAT_ND, NULL, 0, cells[1]));
  OK_OR_SAY(fill_phase_2(NULL, 0, executor, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  expect_cells(cells[0], 0);
  expect_cells(cells[1], 7);
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_missing_workspace_is_refused_and_spends_the_executor(void **state) {
  (void)state;
  aclOpExecutor *executor = prepare((struct fill){.scratch = true});
  FAILS(fill_phase_2(NULL, 192, executor, stream), ACLNN_ERR_PARAM_NULLPTR, "workspace", "192");
  expect_spent(executor);
  executor = prepare((struct fill){.scratch = false});
  FAILS(fill_phase_2(NULL, 1, executor, stream), ACLNN_ERR_PARAM_NULLPTR, "workspace");
  expect_spent(executor);
}

static void a_workspace_too_small_is_refused_and_spends_the_executor(void **state) {
  (void)state;
  aclOpExecutor *executor = prepare((struct fill){.scratch = true});
  FAILS(fill_phase_2(cells, 191, executor, stream), ACLNN_ERR_PARAM_INVALID, "191", "192");
  expect_spent(executor);
  executor = prepare((struct fill){.scratch = true});
  FAILS(fill_phase_2(NULL, 0, executor, stream), ACLNN_ERR_PARAM_INVALID, "192");
  expect_spent(executor);
}

static void the_workspace_is_used_at_its_offset(void **state) {
  (void)state;
  uint64_t workspace[32] = {0};
  OK_OR_SAY(
      fill_phase_2(workspace, sizeof workspace, prepare((struct fill){.scratch = true}), stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  for (int i = 0; i < 32; i++)
    assert_int_equal(workspace[i], i >= 8 && i < 8 + SCRATCH_CELLS ? SCRATCH_VALUE : 0);
}

static void an_empty_plan_runs(void **state) {
  (void)state;
  aclOpExecutor *executor = prepare((struct fill){.out = NULL});
  OK_OR_SAY(fill_phase_2(NULL, 0, executor, stream));
  expect_spent(executor);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

static void everything_may_go_after_the_second_phase(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare_repeatable((struct fill){.out = out, .value = 9});
  block_stream();
  OK_OR_SAY(fill_phase_2(NULL, 0, executor, stream));
  OK_OR_SAY(aclSetRawTensorAddr(out, cells[1])); /* too late for this run */
  OK_OR_SAY(aclDestroyTensor(out));
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  unblock_and_sync();
  expect_cells(cells[0], 9);
  expect_cells(cells[1], 0);
}

static void a_tensor_may_go_between_the_phases(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare((struct fill){.out = out, .value = 3});
  OK_OR_SAY(aclDestroyTensor(out));
  OK_OR_SAY(fill_phase_2(NULL, 0, executor, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  expect_cells(cells[0], 3);
}

static void a_missing_data_address_is_refused_by_name(void **state) {
  (void)state;
  aclTensor *out = tensor_of(NULL);
  aclOpExecutor *executor = prepare((struct fill){.out = out});
  FAILS(fill_phase_2(NULL, 0, executor, stream), ACLNN_ERR_PARAM_NULLPTR, "address", "out");
  expect_spent(executor);
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_destroyed_stream_is_refused(void **state) {
  (void)state;
  aclrtStream gone;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare((struct fill){.out = out, .value = 1});
  OK_OR_SAY(aclrtCreateStream(&gone));
  OK_OR_SAY(aclrtDestroyStream(gone));
  FAILS(fill_phase_2(NULL, 0, executor, gone), ACLNN_ERR_RUNTIME_ERROR, "EZ9903", "stream is a",
        "destroyed stream");
  expect_spent(executor);
  expect_cells(cells[0], 0);
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_null_stream_is_the_default_stream(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  OK_OR_SAY(fill_phase_2(NULL, 0, prepare((struct fill){.out = out, .value = 4}), NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  expect_cells(cells[0], 4);
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_first_phase_that_fails_writes_nothing(void **state) {
  (void)state;
  enum { MANY = 16384 };
  static aclOpExecutor *executors[MANY];
  uint64_t size = 99, unused;
  aclOpExecutor *executor = (aclOpExecutor *)(void *)cells;
  int taken = 0;
  (void)aclGetRecentErrMsg();
  do faults_arm(1, FAULT_ONCE); /* until the next handle needs memory for its slot */
  while (fill_phase_1((struct fill){.out = NULL}, &unused, &executors[taken]) == ACLNN_SUCCESS &&
         ++taken < MANY);
  for (int n = 0; n < 2; n++) {
    faults_arm(n, FAULT_ONCE);
    FAILS(fill_phase_1((struct fill){.out = NULL}, &size, &executor),
          ACLNN_ERR_INNER_CREATE_EXECUTOR, "fillGetWorkspaceSize", "no memory");
  }
  faults_disarm();
  assert_int_equal(size, 99);
  assert_ptr_equal(executor, cells);
  while (taken > 0) OK_OR_SAY(aclDestroyAclOpExecutor(executors[--taken]));
}

static void a_later_step_without_memory_fails_the_first_phase(void **state) {
  (void)state;
  uint64_t size = 99;
  aclOpExecutor *executor = (aclOpExecutor *)(void *)cells;
  aclTensor *out = tensor_of(cells[0]);
  (void)aclGetRecentErrMsg();
  faults_arm(1, FAULT_ONCE); /* the plan has memory, its second step has not */
  FAILS(fill_phase_1((struct fill){.out = out, .apart = true}, &size, &executor),
        ACLNN_ERR_INNER_CREATE_EXECUTOR, "fillGetWorkspaceSize", "no memory");
  faults_disarm();
  assert_int_equal(size, 99);
  assert_ptr_equal(executor, cells);
  OK_OR_SAY(aclDestroyTensor(out));
}

static void many_calls_may_be_queued_before_one_wait(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  block_stream();
  for (uint64_t i = 1; i <= 1000; i++)
    OK_OR_SAY(fill_phase_2(NULL, 0, prepare((struct fill){.out = out, .value = i}), stream));
  expect_cells(cells[0], 0);
  unblock_and_sync();
  expect_cells(cells[0], 1000);
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_thread_without_a_context_may_run_on_a_named_stream(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  struct run run = {
      .executor = prepare((struct fill){.out = out, .value = 6}), .stream = stream, .times = 1};
  run_all(&run, 1);
  assert_int_equal(run.status, ACLNN_SUCCESS);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  expect_cells(cells[0], 6);
  run = (struct run){.executor = prepare((struct fill){.out = out}), .times = 1};
  run_all(&run, 1);
  assert_int_equal(run.status, ACLNN_ERR_RUNTIME_ERROR);
  OK_OR_SAY(aclDestroyTensor(out));
}

/* Two threads meet before each executor and both try to run it. */
enum { RACES = 3000 };
static aclOpExecutor *prizes[RACES];
static atomic_int arrived;

static void meet(int race) {
  atomic_fetch_add(&arrived, 1);
  for (int looks = 0; atomic_load(&arrived) < 2 * (race + 1); looks++)
    if (looks > 1000) sched_yield();
}

static void *race(void *wins) {
  for (int i = 0; i < RACES; i++) {
    meet(i);
    *(int *)wins += fill_phase_2(NULL, 0, prizes[i], stream) == ACLNN_SUCCESS;
  }
  return NULL;
}

static void of_two_threads_only_one_can_spend_an_executor(void **state) {
  (void)state;
  pthread_t rival;
  int wins = 0, rivals_wins = 0;
  atomic_store(&arrived, 0);
  for (int i = 0; i < RACES; i++) prizes[i] = prepare((struct fill){.out = NULL});
  assert_int_equal(pthread_create(&rival, NULL, race, &rivals_wins), 0);
  (void)race(&wins);
  pthread_join(rival, NULL);
  (void)aclGetRecentErrMsg();
  assert_int_equal(wins + rivals_wins, RACES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_second_phase_returns_before_the_work_is_done, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(success_spends_an_executor, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_null_executor_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(something_else_is_no_executor, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_missing_workspace_is_refused_and_spends_the_executor,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_workspace_too_small_is_refused_and_spends_the_executor,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(another_operator_leaves_the_executor_alone, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_tensor_that_becomes_another_does_not_change_the_plan,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_workspace_is_used_at_its_offset, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_empty_plan_runs, set_up, tear_down),
      cmocka_unit_test_setup_teardown(everything_may_go_after_the_second_phase, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_tensor_may_go_between_the_phases, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_missing_data_address_is_refused_by_name, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_destroyed_stream_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_null_stream_is_the_default_stream, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_first_phase_that_fails_writes_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_later_step_without_memory_fails_the_first_phase, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(many_calls_may_be_queued_before_one_wait, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_thread_without_a_context_may_run_on_a_named_stream, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(of_two_threads_only_one_can_spend_an_executor, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
