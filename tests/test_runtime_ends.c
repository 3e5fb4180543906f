/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of streams, notifies, subscriptions, contexts and the library while they are in use. */
#include "blocked_call.h"
#include "core/handle.h"

enum { SOON_MS = 30, RACERS = 2 };

static aclrtStream stream;
static aclrtContext context;
static sem_t entered, gate;

static int set_up(void **state) {
  sem_init(&entered, 0, 0);
  sem_init(&gate, 0, 0);
  return set_up_device(state) != 0 || aclrtGetCurrentContext(&context) != ACL_SUCCESS ||
         aclrtCreateStream(&stream) != ACL_SUCCESS;
}

static int tear_down(void **state) {
  for (int i = 0; i < 4; i++) sem_post(&gate); /* a test that failed may have left it shut */
  const int status = tear_down_device(state);
  sem_destroy(&entered);
  sem_destroy(&gate);
  return status;
}

/* Looks until the thread sleeps, that is, waits for something. */
static void wait_asleep(atomic_int *tid) {
  const time_t limit = time(NULL) + LONG_MS / 1000;
  while (!is_asleep(atomic_load(tid)) && time(NULL) < limit) sched_yield();
}

static atomic_int stream_tid;

/* Runs in the stream until somebody opens the gate. */
static void stand(void *unused) {
  (void)unused;
  atomic_store(&stream_tid, (int)gettid());
  sem_post(&entered);
  sem_wait(&gate);
}

/* The stream is inside a wait for a notify that is gone. */
static void wait_for_a_destroyed_notify(void) {
  aclrtNotify notify;
  sem_post(&gate);
  OK_OR_SAY(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, stand, NULL));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 0));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 0)); /* and one that has not begun */
  assert_true(arrives(&entered, LONG_MS));
  wait_asleep(&stream_tid);
  OK_OR_SAY(aclrtDestroyNotify(notify));
}

static void a_stream_that_waits_for_a_destroyed_notify_can_be_aborted(void **state) {
  (void)state;
  wait_for_a_destroyed_notify();
  OK_OR_SAY(aclrtStreamAbort(stream)); /* the wait that runs ends, too */
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(stream, LONG_MS));
  OK_OR_SAY(aclrtDestroyStream(stream));
}

static void a_stream_that_waits_for_a_destroyed_notify_can_be_destroyed_by_force(void **state) {
  (void)state;
  wait_for_a_destroyed_notify();
  OK_OR_SAY(aclrtDestroyStreamForce(stream));
}

static atomic_int calls;

static void count_call(void *unused) {
  (void)unused;
  atomic_fetch_add(&calls, 1);
}

static int report_ms; /* how long each look for a report may take */

static int report(void) {
  int status;
  if (!arrives(&entered, LONG_MS)) return -1; /* subscribed by then */
  do status = aclrtProcessReport(report_ms);
  while (status == ACL_SUCCESS || status == ACL_ERROR_RT_REPORT_TIMEOUT);
  return status;
}

/* The end begins while the callback is still queued behind other work. */
static void end_with_a_blocking_callback_queued(int (*fn)(void)) {
  static struct blocked_call reporter, destroyer;
  atomic_store(&calls, 0);
  report_ms = 1;
  start_call(&reporter, report);
  OK_OR_SAY(aclrtSubscribeReport((uint64_t)reporter.thread, stream));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, stand, NULL));
  OK_OR_SAY(aclrtLaunchCallback(count_call, NULL, ACL_CALLBACK_BLOCK, stream));
  start_call(&destroyer, fn);
  wait_asleep(&destroyer.tid);
  assert_false(arrives(&reporter.left, SOON_MS));
  sem_post(&gate);
  assert_int_equal(finish_call(&destroyer), ACL_SUCCESS);
  assert_int_equal(atomic_load(&calls), 1);
  assert_int_equal(finish_call(&reporter), ACL_ERROR_RT_THREAD_SUBSCRIBE);
}

static int destroy_stream(void) { return aclrtDestroyStream(stream); }
static int reset_device(void) { return aclrtResetDevice(0); }
static int finalize(void) { return aclFinalize(); }

static void destroying_a_stream_lets_its_blocking_callback_run(void **state) {
  (void)state;
  end_with_a_blocking_callback_queued(destroy_stream);
}

static void resetting_the_device_lets_a_blocking_callback_run(void **state) {
  (void)state;
  end_with_a_blocking_callback_queued(reset_device);
}

static void finalizing_lets_a_blocking_callback_run(void **state) {
  (void)state;
  end_with_a_blocking_callback_queued(finalize);
  OK_OR_SAY(aclInit(NULL));
}

/* Two streams are subscribed, and the thread is inside aclrtProcessReport. */
static void subscribe_two(struct blocked_call *reporter, aclrtStream *other) {
  OK_OR_SAY(aclrtCreateStream(other));
  report_ms = -1;
  start_call(reporter, report);
  OK_OR_SAY(aclrtSubscribeReport((uint64_t)reporter->thread, stream));
  OK_OR_SAY(aclrtSubscribeReport((uint64_t)reporter->thread, *other));
  sem_post(&entered);
  int value = 1;
  while (sem_getvalue(&entered, &value) == 0 && value > 0) sched_yield();
  wait_asleep(&reporter->tid);
}

static void processing_reports_ends_when_the_last_stream_is_unsubscribed(void **state) {
  (void)state;
  static struct blocked_call reporter;
  aclrtStream other;
  subscribe_two(&reporter, &other);
  OK_OR_SAY(aclrtUnSubscribeReport((uint64_t)reporter.thread, stream));
  assert_false(arrives(&reporter.left, SOON_MS));
  OK_OR_SAY(aclrtUnSubscribeReport((uint64_t)reporter.thread, other));
  assert_int_equal(finish_call(&reporter), ACL_ERROR_RT_THREAD_SUBSCRIBE);
}

static void processing_reports_ends_when_the_last_stream_is_destroyed(void **state) {
  (void)state;
  static struct blocked_call reporter;
  aclrtStream other;
  subscribe_two(&reporter, &other);
  OK_OR_SAY(aclrtDestroyStream(stream));
  assert_false(arrives(&reporter.left, SOON_MS));
  OK_OR_SAY(aclrtDestroyStreamForce(other));
  assert_int_equal(finish_call(&reporter), ACL_ERROR_RT_THREAD_SUBSCRIBE);
}

static atomic_bool stop;
static atomic_int attempts;
static _Atomic(aclrtContext) offered;

/* Makes streams in whatever context is offered; refusals are what a context that ends gives. */
static int make_streams(void) {
  while (!atomic_load(&stop)) {
    aclrtStream unused;
    aclrtContext in = atomic_load(&offered);
    if (in != NULL && aclrtSetCurrentContext(in) == ACL_SUCCESS) {
      atomic_fetch_add(&attempts, 1);
      (void)aclrtCreateStream(&unused);
    }
    sched_yield();
  }
  return ACL_SUCCESS;
}

static bool racers_make_streams;

/* Begins again whenever others have ended what it had. */
static int use_device(void) {
  int status = ACL_SUCCESS;
  aclrtStream mine = NULL;
  while (!atomic_load(&stop) && status == ACL_SUCCESS) {
    status = aclrtSetDevice(0);
    if (racers_make_streams && !pg_is_live(mine, PG_STREAM)) (void)aclrtCreateStream(&mine);
    sched_yield();
  }
  return status;
}

static struct blocked_call racers[RACERS];

static void begin_race(int (*fn)(void)) {
  atomic_store(&stop, false);
  atomic_store(&offered, NULL);
  for (int i = 0; i < RACERS; i++) start_call(&racers[i], fn);
}

static void finish_race(void) {
  atomic_store(&stop, true);
  for (int i = 0; i < RACERS; i++) assert_int_equal(finish_call(&racers[i]), ACL_SUCCESS);
}

/* Ends contexts the moment somebody begins to make a stream in them. */
static void end_under_makers(int (*fn)(void)) {
  const int rounds = on_cuda() ? 50 : 1000; /* a driver takes its time */
  begin_race(make_streams);
  OK_OR_SAY(fn()); /* the fixture's use */
  for (int round = 0; round < rounds; round++) {
    aclrtContext fresh;
    OK_OR_SAY(aclrtSetDevice(0));
    OK_OR_SAY(aclrtGetCurrentContext(&fresh));
    const int before = atomic_load(&attempts);
    atomic_store(&offered, fresh);
    while (atomic_load(&attempts) == before) sched_yield();
    OK_OR_SAY(fn());
  }
  finish_race();
  assert_int_equal(pg_handle_count(PG_STREAM), 0);
}

static int finalize_and_init(void) {
  const int status = aclFinalize();
  return status == ACL_SUCCESS ? aclInit(NULL) : status;
}

static void no_stream_survives_a_reset_that_races_with_its_making(void **state) {
  (void)state;
  end_under_makers(reset_device);
}

static void no_stream_survives_a_finalize_that_races_with_its_making(void **state) {
  (void)state;
  end_under_makers(finalize_and_init);
}

static void finalize_under_users(bool make_streams_too) {
  const int rounds = on_cuda() ? 20 : 100;
  racers_make_streams = make_streams_too;
  begin_race(use_device);
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < 4; i++) OK_OR_SAY(aclrtCreateStream(&stream)); /* a longer end */
    OK_OR_SAY(finalize_and_init());
    OK_OR_SAY(aclrtSetDevice(0));
    OK_OR_SAY(aclrtSynchronizeDevice());
  }
  finish_race();
}

static void setting_the_device_after_a_racing_finalize_gives_a_context(void **state) {
  (void)state;
  finalize_under_users(false);
}

static void finalize_ends_while_others_create_streams_anew(void **state) {
  (void)state;
  finalize_under_users(true);
}

static aclrtEvent event;
static int inside_status;
static char inside_text[256];

/* Runs in the stream. */
static void call_inside(void *argument) {
  int (*const *fn)(void) = argument;
  inside_status = aclrtSetCurrentContext(context);
  if (inside_status == ACL_SUCCESS) inside_status = (*fn)();
  const char *text = aclGetRecentErrMsg();
  snprintf(inside_text, sizeof inside_text, "%s", text == NULL ? "" : text);
}

static void expect_refused_inside(int (*fn)(void), const char *word) {
  OK_OR_SAY(aclrtLaunchHostFunc(stream, call_inside, &fn));
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(stream, LONG_MS));
  assert_int_equal(inside_status, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  assert_non_null(strstr(inside_text, word));
}

static int record_and_synchronise(void) {
  const int status = aclrtRecordEvent(event, stream);
  return status == ACL_SUCCESS ? aclrtSynchronizeEvent(event) : status;
}

static int destroy_context(void) { return aclrtDestroyContext(context); }

static void a_host_function_cannot_wait_for_an_event_behind_it(void **state) {
  (void)state;
  OK_OR_SAY(aclrtCreateEvent(&event));
  expect_refused_inside(record_and_synchronise, "aclrtSynchronizeEvent");
}

static void a_host_function_cannot_end_what_it_runs_in(void **state) {
  (void)state;
  expect_refused_inside(destroy_stream, "aclrtDestroyStream");
  expect_refused_inside(reset_device, "aclrtResetDevice");
  expect_refused_inside(finalize, "aclFinalize");
  OK_OR_SAY(aclrtCreateContext(&context, 0));
  OK_OR_SAY(aclrtCreateStream(&stream));
  expect_refused_inside(destroy_context, "aclrtDestroyContext");
}

/* The stream's work finds the library already on its way out, held up by that very work. */
static void stand_and_finalize(void *unused) {
  stand(unused);
  inside_status = aclFinalize();
}

static void a_host_function_cannot_finalize_while_another_thread_does(void **state) {
  (void)state;
  static struct blocked_call finalizer;
  OK_OR_SAY(aclrtLaunchHostFunc(stream, stand_and_finalize, NULL));
  assert_true(arrives(&entered, LONG_MS));
  start_call(&finalizer, finalize);
  wait_asleep(&finalizer.tid);
  sem_post(&gate);
  assert_int_equal(finish_call(&finalizer), ACL_SUCCESS);
  assert_int_equal(inside_status, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  OK_OR_SAY(aclInit(NULL));
}

#define END(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      END(a_stream_that_waits_for_a_destroyed_notify_can_be_aborted),
      END(a_stream_that_waits_for_a_destroyed_notify_can_be_destroyed_by_force),
      END(destroying_a_stream_lets_its_blocking_callback_run),
      END(resetting_the_device_lets_a_blocking_callback_run),
      END(finalizing_lets_a_blocking_callback_run),
      END(processing_reports_ends_when_the_last_stream_is_unsubscribed),
      END(processing_reports_ends_when_the_last_stream_is_destroyed),
      END(no_stream_survives_a_reset_that_races_with_its_making),
      END(no_stream_survives_a_finalize_that_races_with_its_making),
      END(setting_the_device_after_a_racing_finalize_gives_a_context),
      END(finalize_ends_while_others_create_streams_anew),
      END(a_host_function_cannot_wait_for_an_event_behind_it),
      END(a_host_function_cannot_end_what_it_runs_in),
      END(a_host_function_cannot_finalize_while_another_thread_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
