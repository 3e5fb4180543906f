/* SPDX-License-Identifier: Apache-2.0 */
/* Events: points in streams, waited for, timed and told about when a wait fails. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "expect.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* aclrtQueryEvent and others */

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_device)

static aclrtStream one, two;
static aclrtEvent event;
static sem_t gate;
static atomic_int clock_hand; /* what the host functions below move and read */
static int seen;

static int set_up(void **state) {
  atomic_store(&clock_hand, 0);
  seen = -1;
  (void)sem_init(&gate, 0, 0);
  return set_up_device(state) != 0 || aclrtCreateStream(&one) != 0 ||
         aclrtCreateStream(&two) != 0 || aclrtCreateEvent(&event) != 0;
}

static void wait_at_gate(void *unused) {
  (void)unused;
  while (sem_wait(&gate) != 0) continue;
  atomic_fetch_add(&clock_hand, 1);
}

static void look(void *unused) {
  (void)unused;
  seen = atomic_load(&clock_hand);
}

/* Shuts stream one and records the event behind the gate. */
static void record_behind_the_gate(void) {
  OK_OR_SAY(aclrtLaunchHostFunc(one, wait_at_gate, NULL));
  OK_OR_SAY(aclrtRecordEvent(event, one));
}

static void open_gate(void) { (void)sem_post(&gate); }

static aclrtEventStatus old_status(aclrtEvent which) {
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  OK_OR_SAY(aclrtQueryEvent(which, &status));
  return status;
}

static aclrtEventRecordedStatus status_of(aclrtEvent which) {
  aclrtEventRecordedStatus status = (aclrtEventRecordedStatus)9;
  OK_OR_SAY(aclrtQueryEventStatus(which, &status));
  return status;
}

static aclrtEventWaitStatus waits_for(aclrtEvent which) {
  aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_RESERVED;
  OK_OR_SAY(aclrtQueryEventWaitStatus(which, &status));
  return status;
}

static aclrtStreamStatus stream_status(aclrtStream which) {
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  OK_OR_SAY(aclrtStreamQuery(which, &status));
  return status;
}

static void flags_are_checked(void **state) {
  (void)state;
  enum { SYNC = 1, PROGRESS = 2, TIME = 8, DEVICE = 0x10, EXTERNAL = 0x20, IPC = 0x40 };
  static const struct {
    uint32_t flag;
    aclError code;
  } rows[] = {{SYNC, 0},
              {PROGRESS, 0},
              {TIME | SYNC | PROGRESS, 0},
              {EXTERNAL, 0},
              {DEVICE, 0},
              {0, 107000},
              {0x4, 107000},
              {0x80, 107000},
              {0x80000000 | SYNC, 107000},
              {EXTERNAL | DEVICE, 107000},
              {EXTERNAL | SYNC, 107000},
              {DEVICE | TIME, 107000},
              {IPC, 207000}};
  aclrtEvent made;
  for (size_t i = 0; i < LENGTH(rows); i++) {
    const aclError plain = aclrtCreateEventWithFlag(&made, rows[i].flag);
    const aclError ex = aclrtCreateEventExWithFlag(&made, rows[i].flag);
    if (plain != rows[i].code || ex != rows[i].code)
      fail_msg("0x%x gave %d, %d", rows[i].flag, plain, ex);
  }
  FAILS(aclrtCreateEventWithFlag(&made, 0), 107000, "aclrtCreateEventWithFlag", "flag is 0x0");
  FAILS(aclrtCreateEvent(NULL), 100000, "aclrtCreateEvent: event is NULL");
  FAILS(aclrtCreateEventWithFlag(NULL, 1), 100000, "aclrtCreateEventWithFlag", "event is NULL");
  FAILS(aclrtCreateEventExWithFlag(NULL, 1), 100000, "aclrtCreateEventExWithFlag", "is NULL");
}

/* Every function that takes an event, with arguments that are otherwise good. */
static aclrtEventStatus old_;
static aclrtEventRecordedStatus recorded_;
static aclrtEventWaitStatus waited_;
static uint64_t time_;
static uint32_t id_;
static float ms_;
#define CALLS(X)                                \
  X(aclrtDestroyEvent, e)                       \
  X(aclrtRecordEvent, e, one)                   \
  X(aclrtRecordEventWithFlag, e, one, 0)        \
  X(aclrtResetEvent, e, one)                    \
  X(aclrtQueryEvent, e, &old_)                  \
  X(aclrtQueryEventStatus, e, &recorded_)       \
  X(aclrtQueryEventWaitStatus, e, &waited_)     \
  X(aclrtSynchronizeEvent, e)                   \
  X(aclrtSynchronizeEventWithTimeout, e, 1)     \
  X(aclrtStreamWaitEvent, one, e)               \
  X(aclrtStreamWaitEventWithTimeout, one, e, 1) \
  X(aclrtStreamWaitEventWithFlag, one, e, 1, 0) \
  X(aclrtEventElapsedTime, &ms_, e, event)      \
  X(aclrtEventElapsedTime, &ms_, event, e)      \
  X(aclrtEventGetTimestamp, e, &time_)          \
  X(aclrtGetEventId, e, &id_)

/* One function with all the calls, told which to make: names repeat, so they cannot name it. */
static aclError call(int which, const char **name, aclrtEvent e) {
  int at = 0;
#define ONE_CALL(function, ...) \
  if (at++ == which) return *name = #function, function(__VA_ARGS__);
  CALLS(ONE_CALL)
  return -1;
}

static void wrong_handles_are_refused_everywhere(void **state) {
  (void)state;
  aclrtEvent stale;
  OK_OR_SAY(aclrtCreateEvent(&stale));
  OK_OR_SAY(aclrtDestroyEvent(stale));
  OK_OR_SAY(aclrtRecordEvent(event, one));
  OK_OR_SAY(aclrtSynchronizeEvent(event));
  void *const wrong[] = {stale, one, &stale, (void *)1, (void *)-1};
  const char *name = NULL;
  int which = 0;
  for (aclError status; (status = call(which, &name, NULL)) != -1; which++) {
    if (status != 100000) fail_msg("%s gave %d for NULL", name, status);
    for (size_t i = 0; i < LENGTH(wrong); i++)
      FAILS(call(which, &name, wrong[i]), 107017, name, "a live event is required");
  }
  assert_int_equal(which, 16);
  FAILS(aclrtDestroyEvent(stale), 107017, "aclrtDestroyEvent", "a destroyed event");
}

static void results_and_flags_are_checked(void **state) {
  (void)state;
  FAILS(aclrtQueryEvent(event, NULL), 100000, "aclrtQueryEvent", "status is NULL");
  FAILS(aclrtQueryEventStatus(event, NULL), 100000, "aclrtQueryEventStatus", "status is NULL");
  FAILS(aclrtQueryEventWaitStatus(event, NULL), 100000, "aclrtQueryEventWaitStatus", "is NULL");
  FAILS(aclrtEventElapsedTime(NULL, event, event), 100000, "aclrtEventElapsedTime", "ms is NULL");
  FAILS(aclrtEventGetTimestamp(event, NULL), 100000, "aclrtEventGetTimestamp", "is NULL");
  FAILS(aclrtGetEventId(event, NULL), 100000, "aclrtGetEventId", "eventId is NULL");
  FAILS(aclrtGetEventAvailNum(NULL), 100000, "aclrtGetEventAvailNum", "eventCount is NULL");
  OK_OR_SAY(aclrtRecordEventWithFlag(event, one, ACL_EVENT_RECORD_EXTERNAL));
  FAILS(aclrtRecordEventWithFlag(event, one, 2), 100000, "aclrtRecordEventWithFlag", "flag is 2");
  OK_OR_SAY(aclrtStreamWaitEventWithFlag(two, event, 0, ACL_EVENT_WAIT_EXTERNAL));
  FAILS(aclrtStreamWaitEventWithFlag(two, event, 0, 2), 100000, "WithFlag", "flag is 2");
  FAILS(aclrtStreamWaitEventWithTimeout(two, event, -1), 107000, "WithTimeout", "-1 s");
}

static void an_event_never_recorded_holds_nobody(void **state) {
  (void)state;
  float ms;
  uint64_t us;
  assert_int_equal(old_status(event), ACL_EVENT_STATUS_COMPLETE);
  assert_int_equal(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  assert_int_equal(waits_for(event), ACL_EVENT_WAIT_STATUS_COMPLETE);
  OK_OR_SAY(aclrtSynchronizeEvent(event));
  OK_OR_SAY(aclrtSynchronizeEventWithTimeout(event, 1));
  OK_OR_SAY(aclrtStreamWaitEvent(one, event));
  OK_OR_SAY(aclrtSynchronizeStream(one));
  FAILS(aclrtEventElapsedTime(&ms, event, event), 507000, "aclrtEventElapsedTime", "startEvent");
  FAILS(aclrtEventGetTimestamp(event, &us), 507000, "aclrtEventGetTimestamp", "never recorded");
}

static void an_ex_event_counts_as_complete_at_first(void **state) {
  (void)state;
  aclrtEvent ex;
  aclrtEventStatus status;
  OK_OR_SAY(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC));
  assert_int_equal(status_of(ex), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  FAILS(aclrtQueryEvent(ex, &status), 207000, "aclrtQueryEvent", "aclrtQueryEventStatus");
  FAILS(aclrtResetEvent(ex, one), 207000, "aclrtResetEvent", "aclrtCreateEventExWithFlag");
  OK_OR_SAY(aclrtLaunchHostFunc(one, wait_at_gate, NULL));
  OK_OR_SAY(aclrtRecordEvent(ex, one));
  assert_int_equal(status_of(ex), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  open_gate();
  OK_OR_SAY(aclrtSynchronizeEvent(ex));
}

static void an_event_not_reached_yet_has_no_time(void **state) {
  (void)state;
  aclrtEvent reached;
  float ms;
  uint64_t us;
  OK_OR_SAY(aclrtCreateEvent(&reached));
  OK_OR_SAY(aclrtRecordEvent(reached, two));
  OK_OR_SAY(aclrtSynchronizeEvent(reached));
  record_behind_the_gate();
  assert_int_equal(old_status(event), ACL_EVENT_STATUS_NOT_READY);
  assert_int_equal(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  FAILS(aclrtEventElapsedTime(&ms, reached, event), 107006, "endEvent", "not been reached");
  FAILS(aclrtEventElapsedTime(&ms, event, reached), 107006, "startEvent", "not been reached");
  FAILS(aclrtEventGetTimestamp(event, &us), 107006, "aclrtEventGetTimestamp", "not been reached");
  open_gate();
  OK_OR_SAY(aclrtSynchronizeEvent(event));
  OK_OR_SAY(aclrtEventElapsedTime(&ms, reached, event));
  assert_true(ms > 0);
}

static void only_time_line_events_keep_time(void **state) {
  (void)state;
  aclrtEvent plain;
  uint64_t us;
  OK_OR_SAY(aclrtCreateEventWithFlag(&plain, ACL_EVENT_SYNC));
  OK_OR_SAY(aclrtRecordEvent(plain, one));
  OK_OR_SAY(aclrtSynchronizeEvent(plain));
  FAILS(aclrtEventGetTimestamp(plain, &us), 107006, "aclrtEventGetTimestamp", "TIME_LINE");
}

static void spend_two_ms(void *unused) {
  (void)unused;
  struct timespec from, now;
  (void)clock_gettime(CLOCK_MONOTONIC, &from);
  do (void)clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 2000000);
}

static void elapsed_time_is_that_of_the_work_between(void **state) {
  (void)state;
  aclrtEvent end;
  uint64_t first = 0, second = 0;
  float ms = 0;
  OK_OR_SAY(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE));
  OK_OR_SAY(aclrtRecordEvent(event, one));
  OK_OR_SAY(aclrtLaunchHostFunc(one, spend_two_ms, NULL));
  OK_OR_SAY(aclrtRecordEvent(end, one));
  OK_OR_SAY(aclrtSynchronizeStream(one));
  OK_OR_SAY(aclrtEventElapsedTime(&ms, event, end));
  assert_true(ms >= 1.99F && ms < 60000.0F);
  OK_OR_SAY(aclrtEventElapsedTime(&ms, end, event));
  assert_true(ms <= -1.99F);
  OK_OR_SAY(aclrtEventGetTimestamp(event, &first));
  OK_OR_SAY(aclrtEventGetTimestamp(end, &second));
  assert_true(second >= first + 1999);
}

static void waiting_may_take_limited_time(void **state) {
  (void)state;
  FAILS(aclrtSynchronizeEventWithTimeout(event, 0), 107000, "WithTimeout", "0 ms");
  FAILS(aclrtSynchronizeEventWithTimeout(event, -2), 107000, "WithTimeout", "-2 ms");
  record_behind_the_gate();
  FAILS(aclrtSynchronizeEventWithTimeout(event, 20), 507047, "WithTimeout", "20 ms");
  open_gate();
  OK_OR_SAY(aclrtSynchronizeEventWithTimeout(event, -1));
}

static void a_stream_waits_for_the_point_as_it_was(void **state) {
  (void)state;
  aclrtStream three;
  OK_OR_SAY(aclrtCreateStream(&three));
  record_behind_the_gate();
  OK_OR_SAY(aclrtStreamWaitEvent(two, event));
  OK_OR_SAY(aclrtLaunchHostFunc(two, look, NULL));
  assert_int_equal(waits_for(event), ACL_EVENT_WAIT_STATUS_NOT_READY);
  OK_OR_SAY(aclrtRecordEvent(event, three)); /* moves the event, not the wait */
  OK_OR_SAY(aclrtSynchronizeEvent(event));
  assert_int_equal(status_of(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  assert_int_equal(stream_status(two), ACL_STREAM_STATUS_NOT_READY);
  assert_int_equal(waits_for(event), ACL_EVENT_WAIT_STATUS_NOT_READY);
  OK_OR_SAY(aclrtDestroyEvent(event)); /* nor does this end it */
  assert_int_equal(stream_status(two), ACL_STREAM_STATUS_NOT_READY);
  open_gate();
  OK_OR_SAY(aclrtSynchronizeStream(two));
  assert_int_equal(seen, 1);
}

static void a_reset_event_is_as_never_recorded(void **state) {
  (void)state;
  aclrtEvent sync;
  uint64_t us;
  OK_OR_SAY(aclrtCreateEventWithFlag(&sync, ACL_EVENT_SYNC));
  OK_OR_SAY(aclrtLaunchHostFunc(one, wait_at_gate, NULL));
  OK_OR_SAY(aclrtRecordEvent(sync, one));
  OK_OR_SAY(aclrtStreamWaitEvent(two, sync));
  OK_OR_SAY(aclrtLaunchHostFunc(two, look, NULL));
  OK_OR_SAY(aclrtResetEvent(sync, two));
  assert_int_equal(stream_status(two), ACL_STREAM_STATUS_NOT_READY); /* the wait stays */
  open_gate();
  OK_OR_SAY(aclrtSynchronizeStream(two));
  assert_int_equal(seen, 1);
  assert_int_equal(waits_for(sync), ACL_EVENT_WAIT_STATUS_COMPLETE);
  assert_int_equal(status_of(sync), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  FAILS(aclrtEventGetTimestamp(sync, &us), 507000, "aclrtEventGetTimestamp", "never recorded");
}

static atomic_uint told[5];

static void listen(aclrtExceptionInfo *info) {
  atomic_store(&told[0], aclrtGetErrorCodeFromExceptionInfo(info));
  atomic_store(&told[1], aclrtGetStreamIdFromExceptionInfo(info));
  atomic_store(&told[2], aclrtGetDeviceIdFromExceptionInfo(info));
  atomic_store(&told[3], aclrtGetThreadIdFromExceptionInfo(info));
  atomic_fetch_add(&told[4], 1);
}

static void a_wait_that_runs_out_of_time_fails_its_stream(void **state) {
  (void)state;
  aclrtStream three;
  int32_t id = -1;
  OK_OR_SAY(aclrtCreateStream(&three));
  record_behind_the_gate();
  OK_OR_SAY(aclrtSetOpWaitTimeout(1));
  OK_OR_SAY(aclrtStreamWaitEvent(two, event)); /* the three waits run at once */
  OK_OR_SAY(aclrtSetOpWaitTimeout(0));
  OK_OR_SAY(aclrtStreamWaitEventWithTimeout(three, event, 1));
  OK_OR_SAY(aclrtStreamWaitEventWithFlag(NULL, event, 1, ACL_EVENT_WAIT_DEFAULT));
  FAILS(aclrtSynchronizeStream(two), 107019, "aclrtSynchronizeStream", "1000 ms");
  FAILS(aclrtSynchronizeStream(three), 107019, "aclrtSynchronizeStream", "1000 ms");
  FAILS(aclrtSynchronizeStream(NULL), 107019, "aclrtSynchronizeStream", "1000 ms");
  OK_OR_SAY(aclrtExceptionInfoCallbackRegister(listen));
  OK_OR_SAY(aclrtStreamWaitEventWithTimeout(two, event, 1));
  assert_int_equal(aclrtSynchronizeStream(two), 107019);
  OK_OR_SAY(aclrtExceptionInfoCallbackUnregister(listen));
  OK_OR_SAY(aclrtStreamGetId(two, &id));
  assert_int_equal(atomic_load(&told[4]), 1);
  assert_int_equal(atomic_load(&told[0]), 107019);
  assert_int_equal(atomic_load(&told[1]), id);
  assert_int_equal(atomic_load(&told[2]), 0);
  assert_int_not_equal(atomic_load(&told[3]), UINT32_MAX);
  open_gate();
  OK_OR_SAY(aclrtSynchronizeStream(one));
}

static void listeners_come_and_go(void **state) {
  (void)state;
  aclrtNotify notify;
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  atomic_store(&told[4], 0);
  FAILS(aclrtExceptionInfoCallbackRegister(NULL), 107000, "CallbackRegister", "NULL");
  FAILS(aclrtExceptionInfoCallbackUnregister(NULL), 107000, "CallbackUnregister", "NULL");
  FAILS(aclrtExceptionInfoCallbackUnregister(listen), 107000, "CallbackUnregister", "not");
  OK_OR_SAY(aclrtSetExceptionInfoCallback(listen));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, one, 1));
  assert_int_equal(aclrtSynchronizeStream(one), 107019);
  OK_OR_SAY(aclrtSetExceptionInfoCallback(NULL));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, one, 1));
  assert_int_equal(aclrtSynchronizeStream(one), 107019);
  assert_int_equal(atomic_load(&told[4]), 1);
  assert_int_equal(aclrtGetTaskIdFromExceptionInfo(NULL), UINT32_MAX);
  assert_int_equal(aclrtGetErrorCodeFromExceptionInfo(NULL), UINT32_MAX);
}

static void living_events_are_counted_and_numbered(void **state) {
  (void)state;
  uint32_t before = 0, after = 0, id = 0, other = 0;
  aclrtEvent made;
  OK_OR_SAY(aclrtGetEventAvailNum(&before));
  OK_OR_SAY(aclrtCreateEvent(&made));
  OK_OR_SAY(aclrtGetEventAvailNum(&after));
  assert_int_equal(after, before - 1);
  OK_OR_SAY(aclrtGetEventId(event, &id));
  OK_OR_SAY(aclrtGetEventId(made, &other));
  assert_int_not_equal(id, other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(flags_are_checked),
      TEST(wrong_handles_are_refused_everywhere),
      TEST(results_and_flags_are_checked),
      TEST(an_event_never_recorded_holds_nobody),
      TEST(an_ex_event_counts_as_complete_at_first),
      TEST(an_event_not_reached_yet_has_no_time),
      TEST(only_time_line_events_keep_time),
      TEST(elapsed_time_is_that_of_the_work_between),
      TEST(waiting_may_take_limited_time),
      TEST(a_stream_waits_for_the_point_as_it_was),
      TEST(a_reset_event_is_as_never_recorded),
      TEST(a_wait_that_runs_out_of_time_fails_its_stream),
      TEST(listeners_come_and_go),
      TEST(living_events_are_counted_and_numbered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
