/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream owes its callers when work is aborted, fails, waits or runs out of time. */
#include <signal.h>

#include "blocked_call.h"
#include "fill_operator.h"
#include "poolgrad.h"
#include "runtime/memory.h"

enum { SOON_MS = 30, BYTES = 1 << 20, HUGE_PAGE = 2 << 20 };

static sem_t entered;
static atomic_bool finished;

static int set_up_race(void **state) {
  sem_init(&entered, 0, 0);
  atomic_store(&finished, false);
  return set_up_here(state);
}

static int tear_down_race(void **state) {
  const int status = tear_down(state);
  sem_destroy(&entered);
  return status;
}

static void stand(void *unused) {
  sem_post(&entered);
  wait_at_gate(unused);
  atomic_store(&finished, true);
}

static void hold(aclrtStream on) {
  OK_OR_SAY(aclrtLaunchHostFunc(on, stand, NULL));
  assert_true(arrives(&entered, LONG_MS));
}

static void add_one(void *argument) { (*(int *)argument)++; }

static void expect_blocked(struct blocked_call *call) {
  assert_false(arrives(&call->left, SOON_MS));
}

static int synchronise(void) { return aclrtSynchronizeStream(stream); }

static void a_thread_that_synchronised_before_an_abort_waits_for_the_running_step(void **state) {
  (void)state;
  static struct blocked_call waiter;
  int calls = 0;
  hold(stream);
  begin_call(&waiter, synchronise);
  OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, &calls));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, &calls));
  OK_OR_SAY(aclrtStreamAbort(stream));
  expect_blocked(&waiter);
  sem_post(&gate);
  assert_int_equal(finish_call(&waiter), ACL_SUCCESS);
  assert_true(atomic_load(&finished));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, &calls)); /* the stream stays usable */
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(calls, 1);
}

static void an_aborted_event_is_not_complete_before_the_running_step(void **state) {
  (void)state;
  aclrtEvent event;
  aclrtEventRecordedStatus status;
  int calls = 0;
  OK_OR_SAY(aclrtCreateEvent(&event));
  hold(stream);
  OK_OR_SAY(aclrtRecordEvent(event, stream));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, &calls));
  OK_OR_SAY(aclrtStreamAbort(stream));
  OK_OR_SAY(aclrtQueryEventStatus(event, &status));
  assert_int_equal(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  FAILS(aclrtSynchronizeEventWithTimeout(event, 1), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "event");
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeEvent(event));
  assert_true(atomic_load(&finished));
  OK_OR_SAY(aclrtQueryEventStatus(event, &status));
  assert_int_equal(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  assert_int_equal(calls, 0);
  OK_OR_SAY(aclrtDestroyEvent(event));
}

static unsigned char pageable[BYTES];
static unsigned char *copied;
static aclrtStream persistent;

static int copy_out(void) {
  return aclrtMemcpyAsync(pageable, BYTES, copied, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, persistent);
}

static void a_pageable_copy_keeps_its_place_in_a_persistent_stream(void **state) {
  (void)state;
  static struct blocked_call copy;
  OK_OR_SAY(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
  OK_OR_SAY(aclrtMalloc((void **)&copied, BYTES, ACL_MEM_MALLOC_NORMAL_ONLY));
  OK_OR_SAY(aclrtMemset(copied, BYTES, 1, BYTES));
  hold(persistent);
  OK_OR_SAY(aclrtMemsetAsync(copied, BYTES, 2, BYTES, persistent));
  begin_call(&copy, copy_out);
  expect_blocked(&copy);
  sem_post(&gate);
  assert_int_equal(finish_call(&copy), ACL_SUCCESS);
  assert_int_equal(pageable[0], 2);
  assert_int_equal(pageable[BYTES - 1], 2);
  OK_OR_SAY(aclrtDestroyStream(persistent));
  OK_OR_SAY(aclrtFree(copied));
}

/* Queues a wait that runs out of time. */
static void queue_failure(void) {
  aclrtNotify notify;
  OK_OR_SAY(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 1));
  OK_OR_SAY(aclrtDestroyNotify(notify));
}

static void a_pageable_copy_leaves_an_earlier_failure_to_synchronise(void **state) {
  (void)state;
  unsigned char *memory;
  pageable[63] = 0;
  OK_OR_SAY(aclrtMalloc((void **)&memory, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  OK_OR_SAY(aclrtMemset(memory, 64, 5, 64));
  queue_failure();
  OK_OR_SAY(aclrtMemcpyAsync(pageable, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  assert_int_equal(pageable[63], 5);
  FAILS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_WAIT_TIMEOUT, "aclrtSynchronizeStream");
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtFree(memory));
}

static void stop_on_failure_discards_until_synchronise_has_told(void **state) {
  (void)state;
  int calls = 0;
  OK_OR_SAY(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  for (int round = 1; round <= 2; round++) {
    queue_failure();
    OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, &calls));
    FAILS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_WAIT_TIMEOUT, "aclrtSynchronizeStream");
    assert_int_equal(calls, round - 1);
    OK_OR_SAY(aclrtLaunchHostFunc(stream, add_one, &calls));
    OK_OR_SAY(aclrtSynchronizeStream(stream));
    assert_int_equal(calls, round);
  }
}

/* Takes the failure of the stream as soon as it is there, which may be while the stream is at the
 * steps that it discards. */
static atomic_bool taking;
static void *take_failures(void *unused) {
  (void)aclrtSetDevice(0);
  while (atomic_load(&taking)) (void)aclrtSynchronizeStreamWithTimeout(stream, 10000);
  return unused;
}

static void a_copy_behind_a_failure_says_that_it_was_discarded(void **state) {
  (void)state;
  pthread_t thread;
  OK_OR_SAY(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  atomic_store(&taking, true);
  assert_int_equal(pthread_create(&thread, NULL, take_failures, NULL), 0);
  int lies = 0;
  for (int i = 0; i < 300; i++) {
    char from[64] = {1}, to[64] = {0};
    queue_failure();
    (void)nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    const int status =
        aclrtMemcpyAsync(to, sizeof to, from, sizeof from, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    lies += status == ACL_SUCCESS && to[0] != 1;
  }
  atomic_store(&taking, false);
  (void)pthread_join(thread, NULL);
  assert_int_equal(lies, 0);
}

static void a_wait_for_greater_or_equal_takes_values_as_wrapping_counters(void **state) {
  (void)state;
  uint64_t *word = device_memory(sizeof *word);
  aclrtStream writer;
  OK_OR_SAY(aclrtCreateStream(&writer));
  send(word, &(uint64_t){2}, sizeof *word); /* three beyond UINT64_MAX */
  OK_OR_SAY(aclrtValueWait(word, UINT64_MAX, ACL_STREAM_WAIT_VALUE_GEQ, stream));
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(stream, LONG_MS));
  send(word, &(uint64_t){UINT64_MAX}, sizeof *word); /* two before 1 */
  OK_OR_SAY(aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_GEQ, stream));
  FAILS(aclrtSynchronizeStreamWithTimeout(stream, SOON_MS), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
        "aclrtSynchronizeStreamWithTimeout");
  OK_OR_SAY(aclrtValueWrite(word, 1, 0, writer));
  OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(stream, LONG_MS));
  OK_OR_SAY(aclrtFree(word));
}

static uint32_t page_size(int policy) {
  void *memory;
  aclrtPtrAttributes attributes;
  OK_OR_SAY(aclrtMalloc(&memory, 2 * HUGE_PAGE, (aclrtMemMallocPolicy)policy));
  OK_OR_SAY(aclrtPointerGetAttributes(memory, &attributes));
  OK_OR_SAY(aclrtFree(memory));
  return attributes.pageSize;
}

static void hints_in_a_malloc_policy_do_not_change_its_pages(void **state) {
  (void)state;
  SKIP_ON_CUDA("a GPU's pages are the driver's choice");
  static const int hints[] = {ACL_MEM_TYPE_LOW_BAND_WIDTH, ACL_MEM_TYPE_HIGH_BAND_WIDTH};
  const uint32_t normal = (uint32_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(page_size(ACL_MEM_MALLOC_NORMAL_ONLY | hints[i]), normal);
    assert_int_equal(page_size(ACL_MEM_MALLOC_NORMAL_ONLY_P2P | hints[i]), normal);
    assert_int_equal(page_size(ACL_MEM_MALLOC_HUGE_FIRST | hints[i]), HUGE_PAGE);
    assert_int_equal(page_size(ACL_MEM_MALLOC_HUGE_ONLY | hints[i]), HUGE_PAGE);
  }
}

static void a_registered_range_that_was_freed_does_not_block_an_allocation(void **state) {
  (void)state;
  static char range[4096];
  const struct pg_device cpu = {&pg_backend_cpu, 0};
  const struct pg_memory stale[] = {
      {.kind = PG_MEMORY_REGISTERED, .base = range, .bytes = 1024, .device = cpu},
      {.kind = PG_MEMORY_REGISTERED, .base = range + 2048, .bytes = 1024, .device = cpu}};
  const struct pg_memory fresh = {.kind = PG_MEMORY_DEVICE, .base = range + 512, .bytes = 2048};
  const int first = (int)pg_memory_add(&stale[0]), second = (int)pg_memory_add(&stale[1]);
  const int added = (int)pg_memory_add(&fresh);
  const int refused = (int)pg_memory_add(&stale[0]); /* living memory cannot be registered again */
  const int below = (int)pg_memory_take(range, PG_MEMORY_REGISTERED).kind;
  const int above = (int)pg_memory_take(range + 2048, PG_MEMORY_REGISTERED).kind;
  const int kept = (int)pg_memory_take(range + 512, PG_MEMORY_DEVICE).kind;
  assert_int_equal(first, PG_MEMORY_ADDED);
  assert_int_equal(second, PG_MEMORY_ADDED);
  assert_int_equal(added, PG_MEMORY_ADDED);
  assert_int_equal(refused, PG_MEMORY_OVERLAPS);
  assert_int_equal(below, PG_MEMORY_UNKNOWN);
  assert_int_equal(above, PG_MEMORY_UNKNOWN);
  assert_int_equal(kept, PG_MEMORY_DEVICE);
}

static void post_entered(void *unused) {
  (void)unused;
  sem_post(&entered);
}

/* What a second release too many would leave behind is looked for after each round. */
static void one_record_releases_one_of_two_waiting_streams(void **state) {
  (void)state;
  aclrtStream waiters[2];
  aclrtNotify notify;
  OK_OR_SAY(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
  for (int i = 0; i < 2; i++) OK_OR_SAY(aclrtCreateStream(&waiters[i]));
  for (int round = 0; round < 100; round++) {
    for (int i = 0; i < 2; i++) {
      OK_OR_SAY(aclrtWaitAndResetNotify(notify, waiters[i], 0));
      OK_OR_SAY(aclrtLaunchHostFunc(waiters[i], post_entered, NULL));
    }
    for (int i = 0; i < 2; i++) {
      OK_OR_SAY(aclrtRecordNotify(notify, stream));
      assert_true(arrives(&entered, LONG_MS));
      if (round == 0 && i == 0) assert_false(arrives(&entered, SOON_MS));
    }
    for (int i = 0; i < 2; i++) OK_OR_SAY(aclrtSynchronizeStream(waiters[i]));
    OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 1));
    FAILS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_WAIT_TIMEOUT, "wait");
  }
  OK_OR_SAY(aclrtDestroyNotify(notify));
}

static void synchronising_the_device_ends_with_its_time(void **state) {
  (void)state;
  aclrtStream other;
  OK_OR_SAY(aclrtCreateStream(&other));
  hold(stream);
  hold(other);
  for (int timeout = 0; timeout < 10; timeout++)
    FAILS(aclrtSynchronizeDeviceWithTimeout(timeout), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
          "aclrtSynchronizeDeviceWithTimeout");
  sem_post(&gate);
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeDeviceWithTimeout(LONG_MS));
  OK_OR_SAY(aclrtSynchronizeDeviceWithTimeout(-1));
}

static atomic_int handled;

static void count_signal(int signal) {
  (void)signal;
  atomic_fetch_add(&handled, 1);
}

/* The program's only thread blocks the signal: it stays pending unless another thread takes it. */
static void threads_of_the_library_take_no_signals(void **state) {
  (void)state;
  SKIP_ON_CUDA("what signals the driver's threads take is not ours to say");
  const struct sigaction counts = {.sa_handler = count_signal};
  struct sigaction before;
  sigset_t set, mask;
  void *memory;
  atomic_store(&handled, 0);
  assert_int_equal(poolgrad_set_threads(4), ACL_SUCCESS);
  OK_OR_SAY(aclrtMalloc(&memory, 4 * BYTES, ACL_MEM_MALLOC_NORMAL_ONLY));
  OK_OR_SAY(aclrtMemsetAsync(memory, 4 * BYTES, 1, 4 * BYTES, stream)); /* starts the workers */
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaction(SIGUSR1, &counts, &before);
  pthread_sigmask(SIG_BLOCK, &set, &mask);
  bool taken = false;
  for (int i = 0; i < 100 && !taken; i++) {
    kill(getpid(), SIGUSR1);
    taken = sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = 2}) != SIGUSR1;
  }
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  sigaction(SIGUSR1, &before, NULL);
  assert_false(taken);
  assert_int_equal(atomic_load(&handled), 0);
  assert_int_equal(poolgrad_set_threads(0), ACL_SUCCESS);
}

static void a_bad_stream_in_the_second_phase_leaves_one_sentence(void **state) {
  (void)state;
  aclrtStream gone;
  aclTensor *out = tensor_of(cells[0]);
  OK_OR_SAY(aclrtCreateStream(&gone));
  OK_OR_SAY(aclrtDestroyStream(gone));
  const aclrtStream bad[] = {gone, (aclrtStream)out, (aclrtStream)cells};
  const char *const words[] = {"a destroyed stream", "a tensor", "not a handle"};
  (void)aclGetRecentErrMsg();
  for (int i = 0; i < 3; i++) {
    aclOpExecutor *executor = prepare((struct fill){.out = out, .value = 7});
    assert_int_equal(fill_phase_2(NULL, 0, executor, bad[i]), ACLNN_ERR_RUNTIME_ERROR);
    const char *text = aclGetRecentErrMsg();
    assert_non_null(text);
    assert_non_null(strstr(text, words[i]));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line, no trace-back */
    assert_null(aclGetRecentErrMsg());
  }
  expect_cells(cells[0], 0);
  OK_OR_SAY(aclDestroyTensor(out));
}

#define RACE(name) cmocka_unit_test_setup_teardown(name, set_up_race, tear_down_race)

int main(void) {
  const struct CMUnitTest tests[] = {
      RACE(a_thread_that_synchronised_before_an_abort_waits_for_the_running_step),
      RACE(an_aborted_event_is_not_complete_before_the_running_step),
      RACE(a_pageable_copy_keeps_its_place_in_a_persistent_stream),
      RACE(a_pageable_copy_leaves_an_earlier_failure_to_synchronise),
      RACE(stop_on_failure_discards_until_synchronise_has_told),
      RACE(a_copy_behind_a_failure_says_that_it_was_discarded),
      RACE(a_wait_for_greater_or_equal_takes_values_as_wrapping_counters),
      RACE(hints_in_a_malloc_policy_do_not_change_its_pages),
      RACE(a_registered_range_that_was_freed_does_not_block_an_allocation),
      RACE(one_record_releases_one_of_two_waiting_streams),
      RACE(synchronising_the_device_ends_with_its_time),
      RACE(threads_of_the_library_take_no_signals),
      RACE(a_bad_stream_in_the_second_phase_leaves_one_sentence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
