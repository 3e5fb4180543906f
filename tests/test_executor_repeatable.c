/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that run many times: new addresses, lists, threads, and their end. */
#include "fill_operator.h"

typedef aclnnStatus address_setter(aclOpExecutor *, size_t, aclTensor *, void *);
typedef aclnnStatus list_address_setter(aclOpExecutor *, size_t, size_t, aclTensorList *, void *);
static address_setter *const setters[] = {aclSetInputTensorAddr, aclSetOutputTensorAddr,
                                          aclSetTensorAddr};
static list_address_setter *const list_setters[] = {
    aclSetDynamicInputTensorAddr, aclSetDynamicOutputTensorAddr, aclSetDynamicTensorAddr};

static void run_and_sync(aclOpExecutor *executor) {
  OK_OR_SAY(fill_phase_2(NULL, 0, executor, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

static void a_repeatable_executor_runs_many_times(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare_repeatable((struct fill){.out = out, .value = 5});
  for (int i = 0; i < 100; i++) {
    memset(cells, 0, sizeof cells);
    run_and_sync(executor);
    expect_cells(cells[0], 5);
  }
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_failed_run_does_not_spend_a_repeatable_executor(void **state) {
  (void)state;
  uint64_t workspace[24];
  aclOpExecutor *executor = prepare_repeatable((struct fill){.scratch = true});
  FAILS(fill_phase_2(NULL, 192, executor, stream), ACLNN_ERR_PARAM_NULLPTR, "workspace");
  FAILS(fill_phase_2(workspace, 8, executor, stream), ACLNN_ERR_PARAM_INVALID, "192");
  FAILS(fill_phase_2(workspace, 192, executor, (aclrtStream)1), ACLNN_ERR_RUNTIME_ERROR, "stream");
  OK_OR_SAY(fill_phase_2(workspace, 192, executor, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(workspace[8], SCRATCH_VALUE);
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
}

static void a_new_address_counts_from_the_next_run_on(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare_repeatable((struct fill){.out = out, .value = 5});
  for (size_t i = 0; i < 3; i++) {
    memset(cells, 0, sizeof cells);
    OK_OR_SAY(setters[i](executor, 77, out, cells[0]));
    block_stream();
    OK_OR_SAY(fill_phase_2(NULL, 0, executor, stream));
    OK_OR_SAY(setters[i](executor, 0, out, cells[1]));
    unblock_and_sync();
    expect_cells(cells[0], 5);
    expect_cells(cells[1], 0);
    run_and_sync(executor);
    expect_cells(cells[1], 5);
  }
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  OK_OR_SAY(aclDestroyTensor(out));
}

static void addresses_need_an_executor_and_a_tensor(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]), *gone = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare_repeatable((struct fill){.out = out});
  OK_OR_SAY(aclDestroyTensor(gone));
  for (size_t i = 0; i < 3; i++) {
    FAILS(setters[i](NULL, 0, out, cells[1]), ACLNN_ERR_INNER_NULLPTR, "executor");
    FAILS(setters[i](executor, 0, NULL, cells[1]), ACLNN_ERR_INNER_NULLPTR, "tensor");
    FAILS(setters[i]((void *)out, 0, out, cells[1]), ACLNN_ERR_INNER, "executor", "a tensor");
    FAILS(setters[i](executor, 0, gone, cells[1]), ACLNN_ERR_PARAM_INVALID, "destroyed tensor");
  }
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  OK_OR_SAY(aclDestroyTensor(out));
}

static void an_address_taken_away_is_missed_at_the_next_run(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare_repeatable((struct fill){.out = out, .value = 5});
  OK_OR_SAY(aclSetOutputTensorAddr(executor, 0, out, NULL));
  FAILS(fill_phase_2(NULL, 0, executor, stream), ACLNN_ERR_PARAM_NULLPTR, "out");
  OK_OR_SAY(aclSetRawTensorAddr(out, cells[1]));
  run_and_sync(executor);
  expect_cells(cells[1], 5);
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_member_of_a_list_gets_a_new_address(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclTensorList *list = aclCreateTensorList((const aclTensor *const[]){NULL, out}, 2);
  aclOpExecutor *executor = prepare_repeatable((struct fill){.out = out, .value = 5});
  for (size_t i = 0; i < 3; i++) {
    memset(cells, 0, sizeof cells);
    OK_OR_SAY(list_setters[i](executor, 9, 1, list, cells[1]));
    run_and_sync(executor);
    expect_cells(cells[0], 0);
    expect_cells(cells[1], 5);
    OK_OR_SAY(aclSetRawTensorAddr(out, cells[0]));
  }
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  OK_OR_SAY(aclDestroyTensorList(list));
}

static void lists_are_checked(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclTensorList *list = aclCreateTensorList((const aclTensor *const[]){NULL, out}, 2);
  aclOpExecutor *executor = prepare_repeatable((struct fill){.out = out});
  for (size_t i = 0; i < 3; i++) {
    FAILS(list_setters[i](NULL, 0, 1, list, cells[1]), ACLNN_ERR_INNER_NULLPTR, "executor");
    FAILS(list_setters[i](executor, 0, 1, NULL, cells[1]), ACLNN_ERR_INNER_NULLPTR, "tensors");
    FAILS(list_setters[i](executor, 0, 2, list, cells[1]), ACLNN_ERR_PARAM_INVALID, "2");
    FAILS(list_setters[i](executor, 0, SIZE_MAX, list, cells[1]), ACLNN_ERR_PARAM_INVALID,
          "relativeIndex");
    FAILS(list_setters[i](executor, 0, 0, list, cells[1]), ACLNN_ERR_INNER_NULLPTR, "tensor");
    FAILS(list_setters[i](executor, 0, 0, (void *)out, cells[1]), ACLNN_ERR_PARAM_INVALID,
          "a tensor");
  }
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  OK_OR_SAY(aclDestroyTensorList(list));
}

static void an_executor_can_be_destroyed_once(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclOpExecutor *executor = prepare((struct fill){.out = out});
  OK_OR_SAY(aclDestroyAclOpExecutor(executor)); /* never run */
  FAILS(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER, "destroyed executor");
  FAILS(fill_phase_2(NULL, 0, executor, stream), ACLNN_ERR_INNER, "destroyed executor");
  FAILS(aclSetAclOpExecutorRepeatable(executor), ACLNN_ERR_INNER, "destroyed executor");
  executor = prepare_repeatable((struct fill){.out = out});
  run_and_sync(executor);
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
  FAILS(fill_phase_2(NULL, 0, executor, stream), ACLNN_ERR_INNER, "destroyed executor");
  OK_OR_SAY(aclDestroyTensor(out));
}

static void null_and_unknown_executors_are_refused(void **state) {
  (void)state;
  FAILS(aclDestroyAclOpExecutor(NULL), ACLNN_ERR_INNER_NULLPTR, "aclDestroyAclOpExecutor");
  FAILS(aclDestroyAclOpExecutor((void *)cells), ACLNN_ERR_INNER, "not a handle");
  FAILS(aclSetAclOpExecutorRepeatable(NULL), ACLNN_ERR_INNER_NULLPTR, "executor");
  FAILS(aclSetAclOpExecutorRepeatable((void *)cells), ACLNN_ERR_INNER, "not a handle");
}

static void four_threads_may_run_one_executor(void **state) {
  (void)state;
  struct run runs[4];
  uint64_t workspaces[4][24] = {{0}};
  aclOpExecutor *executor = prepare_repeatable((struct fill){.scratch = true});
  for (int i = 0; i < 4; i++) {
    runs[i] =
        (struct run){.executor = executor, .workspace = workspaces[i], .size = 192, .times = 500};
    OK_OR_SAY(aclrtCreateStream(&runs[i].stream));
  }
  run_all(runs, 4);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(runs[i].status, ACLNN_SUCCESS);
    OK_OR_SAY(aclrtSynchronizeStream(runs[i].stream));
    assert_int_equal(workspaces[i][8], SCRATCH_VALUE);
    assert_int_equal(workspaces[i][7 + SCRATCH_CELLS], SCRATCH_VALUE);
  }
  OK_OR_SAY(aclDestroyAclOpExecutor(executor));
}

/* Queued between runs by each thread: the four steps of a run have all been done, or none. */
static int torn;
static void look(void *unused) {
  (void)unused;
  for (int i = 1; i < 4; i++) torn += cells[0][i] != cells[0][0];
}

struct mixer {
  pthread_t thread;
  aclOpExecutor *executor;
  aclrtContext context;
  int failures;
};

static void *run_and_look(void *argument) {
  struct mixer *mixer = argument;
  mixer->failures = aclrtSetCurrentContext(mixer->context) != ACL_SUCCESS;
  for (int i = 0; i < 30000; i++) {
    mixer->failures += fill_phase_2(NULL, 0, mixer->executor, stream) != ACLNN_SUCCESS;
    mixer->failures += aclrtLaunchHostFunc(stream, look, NULL) != ACL_SUCCESS;
    if (i % 500 == 0) mixer->failures += aclrtSynchronizeStream(stream) != ACL_SUCCESS;
  }
  return NULL;
}

static void nothing_comes_between_the_steps_of_a_run(void **state) {
  (void)state;
  struct mixer mixers[2];
  aclTensor *out = tensor_of(cells[0]);
  torn = 0;
  for (uint64_t i = 0; i < 2; i++) {
    const struct fill fill = {.out = out, .value = i + 1, .apart = true};
    mixers[i] = (struct mixer){.executor = prepare_repeatable(fill)};
    OK_OR_SAY(aclrtGetCurrentContext(&mixers[i].context));
  }
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&mixers[i].thread, NULL, run_and_look, &mixers[i]), 0);
  for (int i = 0; i < 2; i++) pthread_join(mixers[i].thread, NULL);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(torn, 0);
  BETWEEN(cells[0][0], 1, 2);
  for (int i = 0; i < 2; i++) assert_int_equal(mixers[i].failures, 0);
  for (int i = 0; i < 2; i++) OK_OR_SAY(aclDestroyAclOpExecutor(mixers[i].executor));
  OK_OR_SAY(aclDestroyTensor(out));
}

static void a_dump_checks_its_arguments_and_writes_nothing(void **state) {
  (void)state;
  aclTensor *out = tensor_of(cells[0]);
  aclTensor *tensors[] = {out, out};
  OK_OR_SAY(aclDumpOpTensors("Fill", "fill_1", tensors, 1, 1, stream));
  OK_OR_SAY(aclDumpOpTensors("Fill", "fill_1", NULL, 0, 0, stream));
  FAILS(aclDumpOpTensors(NULL, "fill_1", tensors, 1, 1, stream), ACLNN_ERR_PARAM_NULLPTR, "opType");
  FAILS(aclDumpOpTensors("Fill", NULL, tensors, 1, 1, stream), ACLNN_ERR_PARAM_NULLPTR, "opName");
  FAILS(aclDumpOpTensors("Fill", "fill_1", NULL, 1, 0, stream), ACLNN_ERR_PARAM_NULLPTR, "tensors");
  OK_OR_SAY(aclDestroyTensor(out));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_repeatable_executor_runs_many_times, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_failed_run_does_not_spend_a_repeatable_executor, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_new_address_counts_from_the_next_run_on, set_up, tear_down),
      cmocka_unit_test_setup_teardown(addresses_need_an_executor_and_a_tensor, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_address_taken_away_is_missed_at_the_next_run, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_member_of_a_list_gets_a_new_address, set_up, tear_down),
      cmocka_unit_test_setup_teardown(lists_are_checked, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_executor_can_be_destroyed_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(null_and_unknown_executors_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(four_threads_may_run_one_executor, set_up, tear_down),
      cmocka_unit_test_setup_teardown(nothing_comes_between_the_steps_of_a_run, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_dump_checks_its_arguments_and_writes_nothing, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
