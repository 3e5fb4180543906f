/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from a stream into the host, and notifies between streams. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "expect.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_device)

static const aclrtCallbackBlockType block = ACL_CALLBACK_BLOCK, no_block = ACL_CALLBACK_NO_BLOCK;
static aclrtStream one, two;
static aclrtNotify notify;
static sem_t gate;
static int order[8], calls; /* one thread at a time writes them */

static int set_up(void **state) {
  (void)sem_init(&gate, 0, 0);
  calls = 0;
  return set_up_device(state) != 0 || aclrtCreateStream(&one) != 0 ||
         aclrtCreateStream(&two) != 0 || aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT) != 0;
}

static uint64_t self(void) { return (uint64_t)pthread_self(); }

static void note(void *number) { order[calls++] = (int)(intptr_t)number; }
static void *number(int value) { return (void *)(intptr_t)value; }

static void wait_at_gate(void *unused) {
  (void)unused;
  while (sem_wait(&gate) != 0) continue;
}

static void post(void *semaphore) { (void)sem_post(semaphore); }

static void pass(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0) continue;
}

static void expect_order(const int *expected, int count) {
  assert_int_equal(calls, count);
  for (int i = 0; i < count; i++) assert_int_equal(order[i], expected[i]);
}

static void a_stream_has_one_subscriber(void **state) {
  (void)state;
  OK_OR_SAY(aclrtSubscribeReport(self(), one));
  FAILS(aclrtSubscribeReport(self(), one), 107011, "aclrtSubscribeReport", "already");
  FAILS(aclrtSubscribeReport(self() + 1, one), 107011, "aclrtSubscribeReport", "already");
  OK_OR_SAY(aclrtSubscribeReport(self(), two)); /* a thread may have several streams */
  FAILS(aclrtUnSubscribeReport(self() + 1, one), 107012, "aclrtUnSubscribeReport", "threadId is",
        "not the thread");
  OK_OR_SAY(aclrtUnSubscribeReport(self(), one));
  FAILS(aclrtUnSubscribeReport(self(), one), 107015, "aclrtUnSubscribeReport", "no subscribed");
  OK_OR_SAY(aclrtSubscribeReport(self() + 1, one));
}

static void launching_needs_a_function_and_a_subscriber(void **state) {
  (void)state;
  FAILS(aclrtLaunchCallback(note, NULL, block, one), 107015, "aclrtLaunchCallback",
        "aclrtSubscribeReport");
  OK_OR_SAY(aclrtSubscribeReport(self(), one));
  FAILS(aclrtLaunchCallback(NULL, NULL, block, one), 100000, "aclrtLaunchCallback", "fn is NULL");
  FAILS(aclrtLaunchCallback(note, NULL, (aclrtCallbackBlockType)2, one), 100000,
        "aclrtLaunchCallback", "blockType is 2");
  FAILS(aclrtLaunchHostFunc(one, NULL, NULL), 100000, "aclrtLaunchHostFunc", "fn is NULL");
}

static void processing_is_for_subscribers_and_takes_limited_time(void **state) {
  (void)state;
  FAILS(aclrtProcessReport(0), 100000, "aclrtProcessReport", "0 ms");
  FAILS(aclrtProcessReport(-2), 100000, "aclrtProcessReport", "-2 ms");
  FAILS(aclrtProcessReport(1), 107012, "aclrtProcessReport", "aclrtSubscribeReport");
  OK_OR_SAY(aclrtSubscribeReport(self() + 1, one));
  FAILS(aclrtProcessReport(1), 107012, "aclrtProcessReport");
  OK_OR_SAY(aclrtSubscribeReport(self(), two));
  FAILS(aclrtProcessReport(10), 507012, "aclrtProcessReport", "10 ms");
  OK_OR_SAY(aclrtUnSubscribeReport(self(), two));
  FAILS(aclrtProcessReport(1), 107012, "aclrtProcessReport");
}

/* Processes until so many callbacks have run. */
static void process(int wanted) {
  while (calls < wanted) OK_OR_SAY(aclrtProcessReport(60000));
}

static void callbacks_run_in_order_on_the_subscriber(void **state) {
  (void)state;
  static const int expected[] = {1, 2, 3, 4};
  OK_OR_SAY(aclrtSubscribeReport(self(), one));
  for (int i = 1; i <= 4; i++)
    OK_OR_SAY(aclrtLaunchCallback(note, number(i), i % 2 == 0 ? block : no_block, one));
  process(4);
  OK_OR_SAY(aclrtSynchronizeStream(one));
  expect_order(expected, 4);
  FAILS(aclrtProcessReport(1), 507012, "aclrtProcessReport");
}

static void a_blocking_callback_holds_its_stream(void **state) {
  (void)state;
  OK_OR_SAY(aclrtSubscribeReport(self(), one));
  OK_OR_SAY(aclrtLaunchCallback(note, number(1), block, one));
  FAILS(aclrtSynchronizeStreamWithTimeout(one, 20), 507046, "20 ms");
  process(1);
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(one, 60000));
}

static void another_callback_does_not(void **state) {
  (void)state;
  OK_OR_SAY(aclrtSubscribeReport(self(), one));
  OK_OR_SAY(aclrtLaunchCallback(note, number(1), no_block, one));
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(one, 60000));
  assert_int_equal(calls, 0);
  process(1);
}

static void unsubscribing_lets_the_stream_go_on(void **state) {
  (void)state;
  OK_OR_SAY(aclrtSubscribeReport(self(), one));
  OK_OR_SAY(aclrtLaunchCallback(note, number(1), block, one));
  OK_OR_SAY(aclrtLaunchCallback(note, number(2), block, one));
  FAILS(aclrtSynchronizeStreamWithTimeout(one, 20), 507046, "20 ms");
  OK_OR_SAY(aclrtUnSubscribeReport(self(), one));
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(one, 60000));
  assert_int_equal(calls, 0);
}

static void force_ends_a_stream_whose_callback_nobody_runs(void **state) {
  (void)state;
  OK_OR_SAY(aclrtSubscribeReport(self(), one));
  OK_OR_SAY(aclrtLaunchCallback(note, number(1), block, one));
  FAILS(aclrtSynchronizeStreamWithTimeout(one, 20), 507046, "20 ms");
  OK_OR_SAY(aclrtDestroyStreamForce(one));
  FAILS(aclrtProcessReport(1), 107012, "aclrtProcessReport");
  assert_int_equal(calls, 0);
}

static void *process_for_ever(void *argument) {
  aclError *codes = argument;
  (void)aclrtSetDevice(0);
  codes[0] = aclrtSubscribeReport(self(), one);
  (void)sem_post(&gate);
  do codes[1] = aclrtProcessReport(-1);
  while (codes[1] == 0);
  (void)aclrtResetDevice(0);
  return NULL;
}

static void a_thread_processes_until_it_is_unsubscribed(void **state) {
  (void)state;
  static const int expected[] = {1, 2};
  aclError codes[2] = {-1, -1};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, process_for_ever, codes), 0);
  pass(&gate);
  OK_OR_SAY(aclrtLaunchCallback(note, number(1), block, one));
  OK_OR_SAY(aclrtLaunchCallback(note, number(2), block, one));
  OK_OR_SAY(aclrtSynchronizeStream(one));
  expect_order(expected, 2);
  OK_OR_SAY(aclrtUnSubscribeReport((uint64_t)thread, one));
  (void)pthread_join(thread, NULL);
  assert_int_equal(codes[0], 0);
  assert_int_equal(codes[1], 107012);
}

static void remember_thread(void *thread) { *(pthread_t *)thread = pthread_self(); }

static void host_functions_run_in_order_on_the_streams_thread(void **state) {
  (void)state;
  static const int expected[] = {1, 2, 3};
  pthread_t first = pthread_self(), second = pthread_self();
  OK_OR_SAY(aclrtLaunchHostFunc(one, remember_thread, &first));
  for (int i = 1; i <= 3; i++) OK_OR_SAY(aclrtLaunchHostFunc(one, note, number(i)));
  OK_OR_SAY(aclrtSynchronizeStream(one)); /* lends no thread to host functions */
  OK_OR_SAY(aclrtLaunchHostFunc(one, remember_thread, &second));
  OK_OR_SAY(aclrtSynchronizeStream(one));
  assert_false(pthread_equal(first, pthread_self()));
  assert_true(pthread_equal(first, second));
  expect_order(expected, 3);
}

static void a_host_function_holds_its_stream(void **state) {
  (void)state;
  OK_OR_SAY(aclrtLaunchHostFunc(one, wait_at_gate, NULL));
  OK_OR_SAY(aclrtLaunchHostFunc(one, note, number(1)));
  FAILS(aclrtSynchronizeStreamWithTimeout(one, 20), 507046, "20 ms");
  OK_OR_SAY(aclrtLaunchHostFunc(two, post, &gate)); /* the other stream is free */
  OK_OR_SAY(aclrtSynchronizeStream(one));
  assert_int_equal(calls, 1);
}

static void a_notify_holds_the_waiting_stream(void **state) {
  (void)state;
  static const int expected[] = {1, 2};
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, two, 0));
  OK_OR_SAY(aclrtLaunchHostFunc(two, note, number(2)));
  FAILS(aclrtSynchronizeStreamWithTimeout(two, 20), 507046, "20 ms");
  OK_OR_SAY(aclrtLaunchHostFunc(one, note, number(1)));
  OK_OR_SAY(aclrtRecordNotify(notify, one));
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(two, 60000));
  expect_order(expected, 2);
}

static void a_notify_is_taken_once(void **state) {
  (void)state;
  OK_OR_SAY(aclrtRecordNotify(notify, one));
  OK_OR_SAY(aclrtRecordNotify(notify, one)); /* a flag, not a count */
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, one, 60000));
  OK_OR_SAY(aclrtSynchronizeStream(one));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, one, 10));
  FAILS(aclrtSynchronizeStream(one), 107019, "aclrtSynchronizeStream", "10 ms");
}

static void one_of_two_waiting_streams_takes_a_notify(void **state) {
  (void)state;
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, one, 200));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, two, 200));
  OK_OR_SAY(aclrtRecordNotify(notify, NULL));
  const aclError first = aclrtSynchronizeStream(one), second = aclrtSynchronizeStream(two);
  assert_true((first == 0 && second == 107019) || (first == 107019 && second == 0));
}

static void notifies_are_numbered_and_checked(void **state) {
  (void)state;
  aclrtNotify made;
  uint32_t id = 0, other = 0;
  OK_OR_SAY(aclrtCreateNotify(&made, ACL_NOTIFY_DEVICE_USE_ONLY));
  OK_OR_SAY(aclrtGetNotifyId(notify, &id));
  OK_OR_SAY(aclrtGetNotifyId(made, &other));
  assert_int_not_equal(id, other);
  FAILS(aclrtCreateNotify(NULL, 0), 100000, "aclrtCreateNotify", "notify is NULL");
  FAILS(aclrtCreateNotify(&made, 2), 107000, "aclrtCreateNotify", "flag is 2");
  FAILS(aclrtGetNotifyId(notify, NULL), 100000, "aclrtGetNotifyId", "notifyId is NULL");
  FAILS(aclrtDestroyNotify(NULL), 100000, "aclrtDestroyNotify", "NULL");
  FAILS(aclrtRecordNotify(NULL, one), 100000, "aclrtRecordNotify", "NULL");
  FAILS(aclrtWaitAndResetNotify(NULL, one, 1), 100000, "aclrtWaitAndResetNotify", "NULL");
  FAILS(aclrtGetNotifyId(NULL, &id), 100000, "aclrtGetNotifyId", "NULL");
  OK_OR_SAY(aclrtDestroyNotify(made));
  void *const wrong[] = {made, one, &made, (void *)1, (void *)-1};
  for (size_t i = 0; i < LENGTH(wrong); i++) {
    FAILS(aclrtDestroyNotify(wrong[i]), 107017, "aclrtDestroyNotify", "a live notify");
    FAILS(aclrtRecordNotify(wrong[i], one), 107017, "aclrtRecordNotify", "a live notify");
    FAILS(aclrtWaitAndResetNotify(wrong[i], one, 1), 107017, "aclrtWaitAndResetNotify");
    FAILS(aclrtGetNotifyId(wrong[i], &id), 107017, "aclrtGetNotifyId", "a live notify");
  }
  FAILS(aclrtDestroyNotify(made), 107017, "aclrtDestroyNotify", "a destroyed notify");
}

static void *create_notify(void *status) {
  aclrtNotify made;
  *(aclError *)status = aclrtCreateNotify(&made, 0);
  return NULL;
}

static void a_notify_needs_a_context(void **state) {
  (void)state;
  aclError status = -1;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, create_notify, &status), 0);
  (void)pthread_join(thread, NULL);
  assert_int_equal(status, 107002);
}

static void a_destroyed_notify_keeps_its_promises(void **state) {
  (void)state;
  OK_OR_SAY(aclrtLaunchHostFunc(one, wait_at_gate, NULL));
  OK_OR_SAY(aclrtRecordNotify(notify, one));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, two, 0));
  OK_OR_SAY(aclrtLaunchHostFunc(two, note, number(1)));
  OK_OR_SAY(aclrtDestroyNotify(notify));
  FAILS(aclrtSynchronizeStreamWithTimeout(two, 20), 507046, "20 ms");
  post(&gate);
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(two, 60000));
  assert_int_equal(calls, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_stream_has_one_subscriber),
      TEST(launching_needs_a_function_and_a_subscriber),
      TEST(processing_is_for_subscribers_and_takes_limited_time),
      TEST(callbacks_run_in_order_on_the_subscriber),
      TEST(a_blocking_callback_holds_its_stream),
      TEST(another_callback_does_not),
      TEST(unsubscribing_lets_the_stream_go_on),
      TEST(force_ends_a_stream_whose_callback_nobody_runs),
      TEST(a_thread_processes_until_it_is_unsubscribed),
      TEST(host_functions_run_in_order_on_the_streams_thread),
      TEST(a_host_function_holds_its_stream),
      TEST(a_notify_holds_the_waiting_stream),
      TEST(a_notify_is_taken_once),
      TEST(one_of_two_waiting_streams_takes_a_notify),
      TEST(notifies_are_numbered_and_checked),
      TEST(a_notify_needs_a_context),
      TEST(a_destroyed_notify_keeps_its_promises),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
