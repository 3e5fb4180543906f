/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: how they are made, asked, waited for, made to fail and ended. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "expect.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* aclrtMemcpyAsyncWithCondition */

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_device)

static aclrtStream stream;
static aclrtEvent event;
static aclrtNotify notify;
static uint64_t *words; /* device memory */
static atomic_int calls;

static int set_up(void **state) {
  void *memory = NULL;
  if (set_up_device(state) != 0 || aclrtCreateStream(&stream) != 0) return 1;
  if (aclrtCreateEvent(&event) != 0 || aclrtCreateNotify(&notify, 0) != 0) return 1;
  if (aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_NORMAL_ONLY) != 0) return 1;
  words = memory;
  atomic_store(&calls, 0);
  return 0;
}

static void count_call(void *unused) {
  (void)unused;
  atomic_fetch_add(&calls, 1);
}

struct gate {
  sem_t entered, open, left;
};

static struct gate *new_gate(void) {
  static struct gate gate;
  (void)sem_init(&gate.entered, 0, 0);
  (void)sem_init(&gate.open, 0, 0);
  (void)sem_init(&gate.left, 0, 0);
  return &gate;
}

static void pass(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0) continue;
}

static void stand_at(void *argument) {
  struct gate *gate = argument;
  (void)sem_post(&gate->entered);
  pass(&gate->open);
  (void)sem_post(&gate->left);
}

static aclrtStreamStatus status_of(aclrtStream which) {
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  OK_OR_SAY(aclrtStreamQuery(which, &status));
  return status;
}

/* Every function that takes a stream, with arguments that are otherwise good. */
static int32_t id_;
static uint32_t number_;
static aclrtStreamStatus status_;
static aclrtStreamAttrValue value_;
#define CALLS(X)                                                                           \
  X(aclrtDestroyStream, s)                                                                 \
  X(aclrtDestroyStreamForce, s)                                                            \
  X(aclrtSynchronizeStream, s)                                                             \
  X(aclrtSynchronizeStreamWithTimeout, s, 1000)                                            \
  X(aclrtStreamQuery, s, &status_)                                                         \
  X(aclrtStreamGetId, s, &id_)                                                             \
  X(aclrtStreamGetPriority, s, &number_)                                                   \
  X(aclrtStreamGetFlags, s, &number_)                                                      \
  X(aclrtSetStreamFailureMode, s, ACL_CONTINUE_ON_FAILURE)                                 \
  X(aclrtSetStreamAttribute, s, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value_)                  \
  X(aclrtGetStreamAttribute, s, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value_)                  \
  X(aclrtSetStreamOverflowSwitch, s, 0)                                                    \
  X(aclrtGetStreamOverflowSwitch, s, &number_)                                             \
  X(aclrtStreamAbort, s)                                                                   \
  X(aclrtGetStreamResLimit, s, ACL_RT_DEV_RES_CUBE_CORE, &number_)                         \
  X(aclrtSetStreamResLimit, s, ACL_RT_DEV_RES_CUBE_CORE, 1)                                \
  X(aclrtResetStreamResLimit, s)                                                           \
  X(aclrtUseStreamResInCurrentThread, s)                                                   \
  X(aclrtUnuseStreamResInCurrentThread, s)                                                 \
  X(aclrtStreamWaitEvent, s, event)                                                        \
  X(aclrtStreamWaitEventWithTimeout, s, event, 1)                                          \
  X(aclrtStreamWaitEventWithFlag, s, event, 1, 0)                                          \
  X(aclrtRecordEvent, event, s)                                                            \
  X(aclrtRecordEventWithFlag, event, s, 0)                                                 \
  X(aclrtResetEvent, event, s)                                                             \
  X(aclrtRecordNotify, notify, s)                                                          \
  X(aclrtWaitAndResetNotify, notify, s, 1000)                                              \
  X(aclrtLaunchHostFunc, s, count_call, NULL)                                              \
  X(aclrtSubscribeReport, (uint64_t)pthread_self(), s)                                     \
  X(aclrtLaunchCallback, count_call, NULL, ACL_CALLBACK_NO_BLOCK, s)                       \
  X(aclrtUnSubscribeReport, (uint64_t)pthread_self(), s)                                   \
  X(aclrtMemcpyAsync, words, 8, words + 1, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, s)              \
  X(aclrtMemcpyAsyncWithCondition, words, 8, words + 1, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, s) \
  X(aclrtMemcpy2dAsync, words, 8, words + 1, 8, 8, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, s)      \
  X(aclrtMemsetAsync, words, 8, 0, 8, s)                                                   \
  X(aclrtMemsetD32Async, words, 8, 0, 2, s)                                                \
  X(aclrtValueWrite, words, 0, 0, s)                                                       \
  X(aclrtValueWait, words, 0, ACL_STREAM_WAIT_VALUE_GEQ, s)

#define DEFINE_CALL(name, ...) \
  static aclError call_##name(aclrtStream s) { return name(__VA_ARGS__); }
#define LIST_CALL(name, ...) {#name, call_##name},

CALLS(DEFINE_CALL)

static const struct {
  const char *name;
  aclError (*call)(aclrtStream stream);
} table[] = {CALLS(LIST_CALL)};

static void wrong_handles_are_refused_everywhere(void **state) {
  (void)state;
  aclrtStream stale;
  OK_OR_SAY(aclrtCreateStream(&stale));
  OK_OR_SAY(aclrtDestroyStream(stale));
  void *const wrong[] = {stale, event, notify, words, &stale, (void *)1, (void *)-1};
  for (size_t i = 0; i < LENGTH(table); i++) {
    FAILS(table[i].call(stale), 107017, table[i].name, "stream is a destroyed stream");
    for (size_t j = 0; j < LENGTH(wrong); j++)
      FAILS(table[i].call(wrong[j]), 107017, table[i].name, "a live stream is required");
  }
}

static void streams_of_another_context_are_refused_everywhere(void **state) {
  (void)state;
  aclrtContext context;
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  for (size_t i = 0; i < LENGTH(table); i++)
    FAILS(table[i].call(stream), 107003, table[i].name, "another context");
}

static void *call_all_without_context(void *argument) {
  aclError(*codes)[2] = argument;
  for (size_t i = 0; i < LENGTH(table); i++) {
    codes[i][0] = table[i].call(NULL);
    codes[i][1] = table[i].call(stream);
  }
  return NULL;
}

static void streams_need_a_context_everywhere(void **state) {
  (void)state;
  aclError codes[LENGTH(table)][2];
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, call_all_without_context, codes), 0);
  (void)pthread_join(thread, NULL);
  for (size_t i = 0; i < LENGTH(table); i++) {
    const bool destroys = strncmp(table[i].name, "aclrtDestroy", 12) == 0;
    if (codes[i][0] != (destroys ? 100000 : 107002) || codes[i][1] != 107002)
      fail_msg("%s gave %d, %d", table[i].name, codes[i][0], codes[i][1]);
  }
}

static void null_is_the_default_stream_except_to_destroy(void **state) {
  (void)state;
  for (size_t i = 2; i < LENGTH(table); i++) /* behind the two that destroy */
    if (table[i].call(NULL) != 0) fail_msg("%s: %s", table[i].name, aclGetRecentErrMsg());
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  assert_int_equal(atomic_load(&calls), 1);
  FAILS(aclrtDestroyStream(NULL), 100000, "aclrtDestroyStream", "stream is NULL");
  FAILS(aclrtDestroyStreamForce(NULL), 100000, "aclrtDestroyStreamForce", "stream is NULL");
}

static void results_must_have_a_place(void **state) {
  (void)state;
  const aclrtStreamConfigHandle handle = {.priority = 0};
  FAILS(aclrtCreateStream(NULL), 100000, "aclrtCreateStream", "stream is NULL");
  FAILS(aclrtCreateStreamV2(NULL, &handle), 100000, "aclrtCreateStreamV2", "stream is NULL");
  FAILS(aclrtCreateStreamV2(&stream, NULL), 100000, "aclrtCreateStreamV2", "handle is NULL");
  FAILS(aclrtStreamQuery(stream, NULL), 100000, "aclrtStreamQuery", "status is NULL");
  FAILS(aclrtStreamGetId(stream, NULL), 100000, "aclrtStreamGetId", "streamId is NULL");
  FAILS(aclrtStreamGetFlags(stream, NULL), 100000, "aclrtStreamGetFlags", "flags is NULL");
  FAILS(aclrtGetStreamAvailableNum(NULL), 100000, "aclrtGetStreamAvailableNum", "NULL");
  FAILS(aclrtLaunchHostFunc(stream, NULL, NULL), 100000, "aclrtLaunchHostFunc", "fn is NULL");
}

static void a_stream_remembers_how_it_was_made(void **state) {
  (void)state;
  aclrtStream made;
  uint32_t priority = 9, flags = 9;
  OK_OR_SAY(aclrtCreateStreamWithConfig(&made, 3, ACL_STREAM_FAST_SYNC));
  OK_OR_SAY(aclrtStreamGetPriority(made, &priority));
  OK_OR_SAY(aclrtStreamGetFlags(made, &flags));
  assert_int_equal(priority, 3);
  assert_int_equal(flags, ACL_STREAM_FAST_SYNC);
  OK_OR_SAY(aclrtCreateStreamWithConfig(&made, 99, 0x40000000)); /* unknown bits are no error */
}

static void a_configuration_handle_carries_wishes(void **state) {
  (void)state;
  const size_t flag = ACL_STREAM_FAST_LAUNCH;
  const uint32_t priority = 5;
  uint32_t found = 9;
  aclrtStream made;
  aclrtStreamConfigHandle *handle = aclrtCreateStreamConfigHandle();
  assert_non_null(handle);
  OK_OR_SAY(aclrtSetStreamConfigOpt(handle, ACL_RT_STREAM_FLAG, &flag, sizeof flag));
  OK_OR_SAY(aclrtSetStreamConfigOpt(handle, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority));
  OK_OR_SAY(aclrtSetStreamConfigOpt(handle, ACL_RT_STREAM_WORK_SIZE, &flag, sizeof flag));
  OK_OR_SAY(aclrtSetStreamConfigOpt(handle, ACL_RT_STREAM_WORK_ADDR_PTR, &words, sizeof words));
  assert_ptr_equal(handle->workptr, words);
  assert_int_equal(handle->workSize, flag);
  OK_OR_SAY(aclrtCreateStreamV2(&made, handle));
  OK_OR_SAY(aclrtDestroyStreamConfigHandle(handle));
  OK_OR_SAY(aclrtStreamGetPriority(made, &found));
  assert_int_equal(found, priority);
  OK_OR_SAY(aclrtStreamGetFlags(made, &found));
  assert_int_equal(found, flag);
}

static void wrong_wishes_are_refused(void **state) {
  (void)state;
  aclrtStreamConfigHandle *handle = aclrtCreateStreamConfigHandle();
  for (int attr = ACL_RT_STREAM_WORK_ADDR_PTR; attr <= ACL_RT_STREAM_PRIORITY; attr++)
    FAILS(aclrtSetStreamConfigOpt(handle, (aclrtStreamConfigAttr)attr, &words, 3), 100000,
          "aclrtSetStreamConfigOpt", "valueSize is 3");
  FAILS(aclrtSetStreamConfigOpt(handle, (aclrtStreamConfigAttr)4, &words, 8), 100000, "attr is 4");
  FAILS(aclrtSetStreamConfigOpt(NULL, ACL_RT_STREAM_FLAG, &words, 8), 100000, "handle is NULL");
  FAILS(aclrtDestroyStreamConfigHandle(NULL), 100000, "aclrtDestroyStreamConfigHandle", "NULL");
  OK_OR_SAY(aclrtDestroyStreamConfigHandle(handle));
  FAILS(aclrtDestroyStreamConfigHandle(handle), 107017, "aclrtDestroyStreamConfigHandle");
}

/* The last address is not even readable. */
static void only_a_live_configuration_is_one(void **state) {
  (void)state;
  aclrtStream made = &words;
  aclrtStreamConfigHandle own = {.priority = 1}, *gone = aclrtCreateStreamConfigHandle();
  assert_non_null(gone);
  OK_OR_SAY(aclrtDestroyStreamConfigHandle(gone));
  aclrtStreamConfigHandle *const wrong[] = {gone, &own, (aclrtStreamConfigHandle *)(uintptr_t)64};
  const size_t flag = ACL_STREAM_FAST_SYNC;
  for (size_t i = 0; i < LENGTH(wrong); i++) {
    FAILS(aclrtSetStreamConfigOpt(wrong[i], ACL_RT_STREAM_FLAG, &flag, sizeof flag), 107017,
          "aclrtSetStreamConfigOpt", "not a live configuration");
    FAILS(aclrtCreateStreamV2(&made, wrong[i]), 107017, "aclrtCreateStreamV2",
          "not a live configuration");
    FAILS(aclrtDestroyStreamConfigHandle(wrong[i]), 107017, "not a live configuration");
  }
  assert_ptr_equal(made, &words);
  assert_int_equal(own.flag, 0);
}

static void attributes_are_kept(void **state) {
  (void)state;
  aclrtStreamAttrValue in = {.reserve = {0}}, out;
  uint32_t overflow = 9;
  for (int attr = ACL_STREAM_ATTR_FAILURE_MODE; attr <= ACL_STREAM_ATTR_PRIORITY; attr++) {
    in.failureMode = 1;
    OK_OR_SAY(aclrtSetStreamAttribute(stream, (aclrtStreamAttr)attr, &in));
    memset(&out, 0xff, sizeof out);
    OK_OR_SAY(aclrtGetStreamAttribute(stream, (aclrtStreamAttr)attr, &out));
    assert_int_equal(out.userCustomTag, 1);
    FAILS(aclrtSetStreamAttribute(stream, (aclrtStreamAttr)attr, NULL), 100000, "value is NULL");
  }
  FAILS(aclrtSetStreamAttribute(stream, (aclrtStreamAttr)6, &in), 100000, "stmAttrType is 6");
  in.failureMode = 2;
  FAILS(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &in), 107000,
        "value->failureMode is 2");
  FAILS(aclrtSetStreamFailureMode(stream, 2), 107000, "aclrtSetStreamFailureMode: mode is 2");
  OK_OR_SAY(aclrtGetStreamOverflowSwitch(stream, &overflow));
  assert_int_equal(overflow, 1); /* the same thing by two names */
  FAILS(aclrtSetStreamOverflowSwitch(stream, 2), 107000, "aclrtSetStreamOverflowSwitch: flag is 2");
}

static void living_streams_are_counted_and_numbered(void **state) {
  (void)state;
  enum { MADE = 20 };
  aclrtStream made[MADE];
  int32_t id[MADE];
  uint32_t before = 0, after = 0;
  OK_OR_SAY(aclrtGetStreamAvailableNum(&before));
  for (int i = 0; i < MADE; i++) {
    OK_OR_SAY(aclrtCreateStream(&made[i]));
    OK_OR_SAY(aclrtStreamGetId(made[i], &id[i]));
    for (int j = 0; j < i; j++) assert_int_not_equal(id[i], id[j]);
  }
  OK_OR_SAY(aclrtGetStreamAvailableNum(&after));
  assert_int_equal(after, before - MADE);
  for (int i = 0; i < MADE; i++) OK_OR_SAY(aclrtDestroyStream(made[i]));
  OK_OR_SAY(aclrtGetStreamAvailableNum(&after));
  assert_int_equal(after, before);
}

static void waiting_may_take_limited_time(void **state) {
  (void)state;
  struct gate *gate = new_gate();
  aclrtStream apart;
  FAILS(aclrtSynchronizeStreamWithTimeout(stream, 0), 107000, "WithTimeout", "0 ms");
  FAILS(aclrtSynchronizeStreamWithTimeout(stream, -2), 107000, "WithTimeout", "-2 ms");
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(stream, 1));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, stand_at, gate));
  FAILS(aclrtSynchronizeStreamWithTimeout(stream, 20), 507046, "WithTimeout", "20 ms");
  assert_int_equal(status_of(stream), ACL_STREAM_STATUS_NOT_READY);
  OK_OR_SAY(aclrtSynchronizeStream(NULL)); /* other streams do not wait */
  OK_OR_SAY(aclrtCreateStreamWithConfig(&apart, 0, ACL_STREAM_PERSISTENT));
  OK_OR_SAY(aclrtRecordEvent(event, stream));
  OK_OR_SAY(aclrtStreamWaitEvent(apart, event));
  OK_OR_SAY(aclrtSynchronizeStream(apart)); /* never waited for */
  (void)sem_post(&gate->open);
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(stream, -1));
  assert_int_equal(status_of(stream), ACL_STREAM_STATUS_COMPLETE);
}

static void a_failure_is_told_once_and_work_goes_on(void **state) {
  (void)state;
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 1));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 2)); /* only the first failure is told */
  OK_OR_SAY(aclrtLaunchHostFunc(stream, count_call, NULL));
  FAILS(aclrtSynchronizeStream(stream), 107019, "aclrtSynchronizeStream", "1 ms");
  assert_int_equal(atomic_load(&calls), 1);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

static void a_stream_told_to_stop_drops_work_until_its_failure_is_told(void **state) {
  (void)state;
  OK_OR_SAY(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 1));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, count_call, NULL));
  FAILS(aclrtSynchronizeStreamWithTimeout(stream, 60000), 107019, "WithTimeout", "1 ms");
  assert_int_equal(atomic_load(&calls), 0);
  OK_OR_SAY(aclrtLaunchHostFunc(stream, count_call, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(atomic_load(&calls), 1);
}

static void abort_drops_what_has_not_begun(void **state) {
  (void)state;
  struct gate *gate = new_gate();
  OK_OR_SAY(aclrtLaunchHostFunc(stream, stand_at, gate));
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclrtLaunchHostFunc(stream, count_call, NULL));
  pass(&gate->entered);
  OK_OR_SAY(aclrtStreamAbort(stream));
  assert_int_equal(status_of(stream), ACL_STREAM_STATUS_NOT_READY);
  (void)sem_post(&gate->open);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(atomic_load(&calls), 0);
  OK_OR_SAY(aclrtLaunchHostFunc(stream, count_call, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(atomic_load(&calls), 1);
}

static aclError inner[4];

static void wait_for_itself(void *context) {
  (void)aclrtSetCurrentContext(context);
  inner[0] = aclrtSynchronizeStream(stream);
  inner[1] = aclrtSynchronizeStreamWithTimeout(stream, 1);
  inner[2] = aclrtDestroyStream(stream);
  inner[3] = aclrtSynchronizeDevice();
}

static void work_cannot_wait_for_its_own_end(void **state) {
  (void)state;
  aclrtContext context;
  OK_OR_SAY(aclrtGetCurrentContext(&context));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, wait_for_itself, context));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  for (size_t i = 0; i < LENGTH(inner); i++) assert_int_equal(inner[i], 207000);
}

/* Ends only after somebody has begun to destroy the stream. */
static void count_when_stale(void *unused) {
  while (aclrtStreamGetId(stream, &id_) != 107017) sched_yield();
  count_call(unused);
}

static void destroying_waits_for_the_work(void **state) {
  (void)state;
  OK_OR_SAY(aclrtLaunchHostFunc(stream, count_when_stale, NULL));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, count_call, NULL));
  OK_OR_SAY(aclrtDestroyStream(stream));
  assert_int_equal(atomic_load(&calls), 2);
}

static void force_drops_the_rest_and_does_not_wait(void **state) {
  (void)state;
  struct gate *gate = new_gate();
  OK_OR_SAY(aclrtLaunchHostFunc(stream, stand_at, gate));
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclrtLaunchHostFunc(stream, count_call, NULL));
  pass(&gate->entered);
  OK_OR_SAY(aclrtDestroyStreamForce(stream)); /* the gate is shut still */
  FAILS(aclrtSynchronizeStream(stream), 107017, "aclrtSynchronizeStream", "destroyed stream");
  (void)sem_post(&gate->open);
  pass(&gate->left);
  OK_OR_SAY(aclrtSynchronizeDevice());
  assert_int_equal(atomic_load(&calls), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(wrong_handles_are_refused_everywhere),
      TEST(streams_of_another_context_are_refused_everywhere),
      TEST(streams_need_a_context_everywhere),
      TEST(null_is_the_default_stream_except_to_destroy),
      TEST(results_must_have_a_place),
      TEST(a_stream_remembers_how_it_was_made),
      TEST(a_configuration_handle_carries_wishes),
      TEST(only_a_live_configuration_is_one),
      TEST(wrong_wishes_are_refused),
      TEST(attributes_are_kept),
      TEST(living_streams_are_counted_and_numbered),
      TEST(waiting_may_take_limited_time),
      TEST(a_failure_is_told_once_and_work_goes_on),
      TEST(a_stream_told_to_stop_drops_work_until_its_failure_is_told),
      TEST(abort_drops_what_has_not_begun),
      TEST(work_cannot_wait_for_its_own_end),
      TEST(destroying_waits_for_the_work),
      TEST(force_drops_the_rest_and_does_not_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
