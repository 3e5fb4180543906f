/* SPDX-License-Identifier: Apache-2.0 */
/* Strict mode: memory is not freed before the program has waited for the work that uses it.  The
 * answer does not depend on whether the work is done already. */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "strict_fixture.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* aclrtQueryEvent */

#define REFUSED(memory, ...) \
  FAILS(aclrtFree(memory), 207002, "aclrtFree", "devPtr is used by ", __VA_ARGS__)

static const char advice[] =
    ", which the program has not waited for: the stream, the device or an event recorded behind it "
    "must be synchronised first (POOLGRAD_STRICT=1)";

/* Time enough for the work to be done. */
static void pause_a_little(void) { (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); }

static void fill(void *memory, aclrtStream on) { OK_OR_SAY(aclrtMemsetAsync(memory, 8, 1, 8, on)); }

static aclrtStream new_stream(void) {
  aclrtStream made = NULL;
  OK_OR_SAY(aclrtCreateStream(&made));
  return made;
}

static aclrtEvent record(aclrtStream on) {
  aclrtEvent event = NULL;
  OK_OR_SAY(aclrtCreateEvent(&event));
  OK_OR_SAY(aclrtRecordEvent(event, on));
  return event;
}

static void all_work_uses_its_memory(void **state) {
  (void)state;
  char text[64];
  int32_t id;
  OK_OR_SAY(aclrtStreamGetId(stream, &id));
  (void)snprintf(text, sizeof text, "aclnnAvgPool2dBackward on stream %d", (int)id);
  OK_OR_SAY(average(device, other, CELLS, stream));
  pause_a_little();
  REFUSED(device, text, advice);
  REFUSED(other, text, advice);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtMemcpyAsync(device, 8, other, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  REFUSED(device, "aclrtMemcpyAsync on stream", advice);
  REFUSED(other, "aclrtMemcpyAsync on stream", advice);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtMemcpy2dAsync(pinned, 8, other, 8, 8, 1, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  REFUSED(other, "aclrtMemcpy2dAsync on stream", advice);
  FAILS(aclrtFreeHost(pinned), 207002, "aclrtFreeHost", "hostPtr is used by aclrtMemcpy2dAsync");
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtMemcpyAsync(device, 8, registered, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  FAILS(aclrtHostUnregister(registered), 207002, "ptr is used by aclrtMemcpyAsync");
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtMemsetD32Async(device, 8, 1, 2, stream));
  REFUSED(device, "aclrtMemsetD32Async on stream", advice);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtValueWrite(device, 1, 0, NULL));
  REFUSED(device, "aclrtValueWrite on stream", advice);
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  OK_OR_SAY(aclrtFree(device));
  OK_OR_SAY(aclrtFree(other));
  OK_OR_SAY(aclrtFreeHost(pinned));
}

static void refused_memory_is_not_freed(void **state) {
  (void)state;
  OK_OR_SAY(aclrtMemsetAsync(device, 8, 0x5a, 8, stream));
  REFUSED(device, advice);
  REFUSED(device, advice);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(fetch_byte(device), 0x5a);
  OK_OR_SAY(aclrtFree(device));
  FAILS(aclrtFree(device), 107000, "devPtr is unknown");
}

static void a_block_is_known_by_any_of_its_bytes(void **state) {
  (void)state;
  fill(device + 40, stream);
  REFUSED(device, advice);
  FAILS(aclrtFree(device + 40), 107000, "40 bytes inside");
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtFree(device));
}

/* --- what is a wait --- */

static void wait_for_stream(void) { OK_OR_SAY(aclrtSynchronizeStream(stream)); }
static void wait_with_timeout(void) { OK_OR_SAY(aclrtSynchronizeStreamWithTimeout(stream, 10000)); }
static void wait_for_device(void) { OK_OR_SAY(aclrtSynchronizeDevice()); }
static void wait_for_device_with_timeout(void) {
  OK_OR_SAY(aclrtSynchronizeDeviceWithTimeout(10000));
}
static void wait_for_event(void) { OK_OR_SAY(aclrtSynchronizeEvent(record(stream))); }
static void wait_for_event_with_timeout(void) {
  OK_OR_SAY(aclrtSynchronizeEventWithTimeout(record(stream), 10000));
}

static void ask_stream(void) {
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  while (status != ACL_STREAM_STATUS_COMPLETE) OK_OR_SAY(aclrtStreamQuery(stream, &status));
}

static void ask_event(void) {
  const aclrtEvent event = record(stream);
  aclrtEventStatus status = ACL_EVENT_STATUS_NOT_READY;
  while (status != ACL_EVENT_STATUS_COMPLETE) OK_OR_SAY(aclrtQueryEvent(event, &status));
}

static void ask_event_status(void) {
  const aclrtEvent event = record(stream);
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
    OK_OR_SAY(aclrtQueryEventStatus(event, &status));
}

static void end_stream(void) { OK_OR_SAY(aclrtDestroyStream(stream)); }
static void end_stream_by_force(void) { OK_OR_SAY(aclrtDestroyStreamForce(stream)); }

static void reset_device(void) {
  OK_OR_SAY(aclrtResetDevice(0));
  OK_OR_SAY(aclrtSetDevice(0));
}

/* Pageable memory: the call waits for the stream. */
static void copy_from_plain_memory(void) {
  OK_OR_SAY(aclrtMemcpyAsync(pinned, 8, plain, 8, ACL_MEMCPY_DEFAULT, stream));
}

static sem_t gate;
static void open_gate(void *unused) {
  (void)unused;
  (void)sem_post(&gate);
}
static void wait_at_gate(void *unused) {
  (void)unused;
  while (sem_wait(&gate) != 0) continue;
}

static void hear_from_host_function(void) {
  OK_OR_SAY(aclrtLaunchHostFunc(stream, open_gate, NULL));
  wait_at_gate(NULL);
}

/* Until there was a callback: at first the thread may not be subscribed yet. */
static void *serve_reports(void *unused) {
  while (aclrtProcessReport(10000) != ACL_SUCCESS) continue;
  return unused;
}

static void hear_from_callback(void) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, serve_reports, NULL), 0);
  OK_OR_SAY(aclrtSubscribeReport((uint64_t)thread, stream));
  OK_OR_SAY(aclrtLaunchCallback(open_gate, NULL, ACL_CALLBACK_NO_BLOCK, stream));
  wait_at_gate(NULL);
  (void)pthread_join(thread, NULL);
}

static void wait_through_event(void) {
  const aclrtStream second = new_stream();
  OK_OR_SAY(aclrtStreamWaitEvent(second, record(stream)));
  OK_OR_SAY(aclrtSynchronizeStream(second));
}

static void wait_through_a_chain(void) {
  aclrtStream last = stream;
  for (int i = 0; i < 20; i++) {
    const aclrtStream next = new_stream();
    OK_OR_SAY(aclrtStreamWaitEvent(next, record(last)));
    last = next;
  }
  OK_OR_SAY(aclrtSynchronizeEvent(record(last)));
}

static void wait_through_ping_pong(void) {
  const aclrtStream second = new_stream();
  aclrtEvent event = NULL;
  OK_OR_SAY(aclrtCreateEvent(&event));
  for (int i = 0; i < 3000; i++) {
    OK_OR_SAY(aclrtRecordEvent(event, i % 2 == 0 ? stream : second));
    OK_OR_SAY(aclrtStreamWaitEvent(i % 2 == 0 ? second : stream, event));
  }
  OK_OR_SAY(aclrtSynchronizeStream(second));
}

static void wait_through_notify(bool wait_first) {
  const aclrtStream second = new_stream();
  aclrtNotify notify = NULL;
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  if (wait_first) OK_OR_SAY(aclrtWaitAndResetNotify(notify, second, 0));
  OK_OR_SAY(aclrtRecordNotify(notify, stream));
  if (!wait_first) OK_OR_SAY(aclrtWaitAndResetNotify(notify, second, 0));
  OK_OR_SAY(aclrtSynchronizeStream(second));
  OK_OR_SAY(aclrtDestroyNotify(notify));
}

static void wait_through_notify_later(void) { wait_through_notify(false); }
static void wait_through_notify_before(void) { wait_through_notify(true); }

static void wait_through_value(void) {
  const aclrtStream second = new_stream();
  uint64_t *word = device_memory(8);
  send(word, &(uint64_t){0}, 8);
  OK_OR_SAY(aclrtValueWait(word, 1, ACL_STREAM_WAIT_VALUE_EQ, second));
  OK_OR_SAY(aclrtValueWrite(word, 1, 0, stream));
  OK_OR_SAY(aclrtSynchronizeStream(second));
  OK_OR_SAY(aclrtFree(word)); /* who saw the value knows that it is written */
}

static const struct {
  const char *name;
  void (*run)(void);
} waits[] = {
    {"aclrtSynchronizeStream", wait_for_stream},
    {"aclrtSynchronizeStreamWithTimeout", wait_with_timeout},
    {"aclrtSynchronizeDevice", wait_for_device},
    {"aclrtSynchronizeDeviceWithTimeout", wait_for_device_with_timeout},
    {"aclrtSynchronizeEvent", wait_for_event},
    {"aclrtSynchronizeEventWithTimeout", wait_for_event_with_timeout},
    {"aclrtStreamQuery", ask_stream},
    {"aclrtQueryEvent", ask_event},
    {"aclrtQueryEventStatus", ask_event_status},
    {"aclrtDestroyStream", end_stream},
    {"aclrtDestroyStreamForce", end_stream_by_force},
    {"aclrtResetDevice", reset_device},
    {"a copy of pageable memory", copy_from_plain_memory},
    {"a host function", hear_from_host_function},
    {"a callback", hear_from_callback},
    {"another stream's wait for an event", wait_through_event},
    {"a chain of streams", wait_through_a_chain},
    {"two streams in turn", wait_through_ping_pong},
    {"a notify", wait_through_notify_later},
    {"a notify awaited before", wait_through_notify_before},
    {"a value", wait_through_value},
};

static void every_wait_counts(void **state) {
  (void)state;
  (void)sem_init(&gate, 0, 0);
  for (size_t i = 0; i < LENGTH(waits); i++) {
    void *memory = device_memory(BYTES);
    OK_OR_SAY(aclrtCreateStream(&stream));
    fill(memory, stream);
    REFUSED(memory, advice);
    waits[i].run();
    const aclError status = aclrtFree(memory);
    if (status != 0) fail_msg("%s: %s", waits[i].name, aclGetRecentErrMsg());
  }
}

static void freeing_with_synchronise_waits(void **state) {
  (void)state;
  fill(device, stream);
  OK_OR_SAY(aclrtMemcpyAsync(other, 8, pinned, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  OK_OR_SAY(aclrtFreeWithDevSync(device));
  fill(pinned, stream);
  OK_OR_SAY(aclrtFreeHostWithDevSync(pinned));
  OK_OR_SAY(aclrtFree(other));
}

/* --- what is none --- */

static void waits_for_something_else_do_not_count(void **state) {
  (void)state;
  const aclrtStream second = new_stream();
  const aclrtEvent before = record(stream);
  fill(device, stream);
  OK_OR_SAY(aclrtSynchronizeEvent(before)); /* recorded before the work */
  REFUSED(device, advice);
  OK_OR_SAY(aclrtSynchronizeStream(second)); /* another stream */
  REFUSED(device, advice);
  const aclrtEvent behind = record(stream);
  REFUSED(device, advice); /* recorded, not waited for */
  OK_OR_SAY(aclrtStreamWaitEvent(second, behind));
  REFUSED(device, advice); /* the stream waits, not the program */
  fill(device, stream);
  OK_OR_SAY(aclrtSynchronizeStream(second)); /* the event lies before the second fill */
  REFUSED(device, advice);
  /* A copy at once waits for no stream; these bytes are others than the fill's, or it would race.
   */
  OK_OR_SAY(aclrtMemcpy(plain, 8, device + 40, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  REFUSED(device, advice);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtFree(device));
}

static void every_stream_must_be_waited_for(void **state) {
  (void)state;
  const aclrtStream second = new_stream();
  fill(device, stream);
  fill(device + 40, second); /* other bytes of the same block: the fills do not race */
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  REFUSED(device, advice);
  OK_OR_SAY(aclrtSynchronizeStream(second));
  OK_OR_SAY(aclrtFree(device));
}

static void a_wait_that_timed_out_does_not_count(void **state) {
  (void)state;
  (void)sem_init(&gate, 0, 0);
  OK_OR_SAY(aclrtLaunchHostFunc(stream, wait_at_gate, NULL));
  fill(device, stream);
  const aclrtEvent event = record(stream);
  aclrtEventStatus asked;
  aclrtStreamStatus state_of;
  assert_int_not_equal(aclrtSynchronizeStreamWithTimeout(stream, 1), 0);
  assert_int_not_equal(aclrtSynchronizeDeviceWithTimeout(1), 0);
  assert_int_not_equal(aclrtSynchronizeEventWithTimeout(event, 1), 0);
  OK_OR_SAY(aclrtQueryEvent(event, &asked));
  OK_OR_SAY(aclrtStreamQuery(stream, &state_of));
  REFUSED(device, advice);
  open_gate(NULL);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtFree(device));
}

static void free_in_host_function(void *memory) {
  if (aclrtFree(memory) != ACL_SUCCESS) print_error("%s\n", aclGetRecentErrMsg());
}

static void a_host_function_may_free_what_came_before_it(void **state) {
  (void)state;
  fill(device, stream);
  OK_OR_SAY(aclrtLaunchHostFunc(stream, free_in_host_function, device));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  FAILS(aclrtFree(device), 107000, "devPtr is unknown");
}

/* --- the same answer in every run --- */

static void the_answer_is_always_the_same(void **state) {
  (void)state;
  const aclrtStream second = new_stream();
  for (int i = 0; i < 300; i++) {
    void *memory = device_memory(BYTES);
    fill(memory, stream);
    OK_OR_SAY(aclrtStreamWaitEvent(second, record(stream)));
    if (i % 20 == 0) pause_a_little();
    REFUSED(memory, advice);
    OK_OR_SAY(aclrtSynchronizeStream(second));
    OK_OR_SAY(aclrtFree(memory));
  }
}

static void aclFinalize_frees_all_and_forgets_all(void **state) {
  fill(device, stream);
  assert_int_equal(tear_down(state), 0);
  assert_int_equal(set_up_strict(state), 0);
  OK_OR_SAY(aclrtFree(device));
  OK_OR_SAY(aclrtFree(other));
}

static void without_the_mode_nothing_is_refused(void **state) {
  (void)state;
  (void)sem_init(&gate, 0, 0);
  fill(device, stream);
  OK_OR_SAY(aclrtLaunchHostFunc(stream, open_gate, NULL));
  wait_at_gate(NULL); /* done for certain: the memory may go */
  OK_OR_SAY(aclrtFree(device));
}

/* A wait that was given up is no wait: the stream does not run behind the event any more. */
static void a_wait_that_was_given_up_does_not_count(void **state) {
  (void)state;
  aclrtStream behind = new_stream();
  void *word = device_memory(8);
  OK_OR_SAY(aclrtMemset(word, 8, 0, 8));
  OK_OR_SAY(aclrtValueWait(word, 1, 0, stream));
  fill(device, stream);
  OK_OR_SAY(aclrtStreamWaitEvent(behind, record(stream)));
  OK_OR_SAY(aclrtStreamAbort(behind));
  OK_OR_SAY(aclrtSynchronizeStream(behind));
  REFUSED(device, "aclrtMemsetAsync", advice);
  OK_OR_SAY(aclrtStreamWaitEvent(behind, record(stream)));
  OK_OR_SAY(aclrtDestroyStreamForce(behind));
  REFUSED(device, "aclrtMemsetAsync", advice);
  OK_OR_SAY(aclrtValueWrite(word, 1, 0, new_stream()));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  OK_OR_SAY(aclrtFree(device));
}

/* Two streams wait for two values of one word; the first wait must not use up the second. */
static void a_word_may_be_written_again(void **state) {
  (void)state;
  aclrtStream first = new_stream(), second = new_stream();
  void *word = device_memory(8);
  OK_OR_SAY(aclrtMemset(word, 8, 0, 8));
  OK_OR_SAY(aclrtValueWait(word, 1, 0, first)); /* at least 1 */
  OK_OR_SAY(aclrtValueWait(word, 2, 0, second));
  OK_OR_SAY(aclrtValueWrite(word, 1, 0, stream));
  OK_OR_SAY(aclrtSynchronizeStream(first));
  fill(device, stream);
  OK_OR_SAY(aclrtValueWrite(word, 2, 0, stream));
  OK_OR_SAY(aclrtSynchronizeStream(second));
  OK_OR_SAY(aclrtFree(device));
}

static void asking_for_the_waits_of_an_event_counts(void **state) {
  (void)state;
  aclrtStream behind = new_stream();
  aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_NOT_READY;
  fill(device, stream);
  aclrtEvent event = record(stream);
  OK_OR_SAY(aclrtStreamWaitEvent(behind, event));
  while (status != ACL_EVENT_WAIT_STATUS_COMPLETE)
    OK_OR_SAY(aclrtQueryEventWaitStatus(event, &status));
  OK_OR_SAY(aclrtFree(device));
}

static void a_word_does_not_lie_in_the_padding(void **state) {
  (void)state;
  FAILS(aclrtValueWrite(device + 96, 1, 0, stream), 107000, "8 bytes at devAddr", "has 4 left");
  FAILS(aclrtValueWait(device + 104, 1, 0, stream), 107000, "devAddr");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      STRICT(a_wait_that_was_given_up_does_not_count),
      STRICT(a_word_may_be_written_again),
      STRICT(asking_for_the_waits_of_an_event_counts),
      STRICT(a_word_does_not_lie_in_the_padding),
      STRICT(all_work_uses_its_memory),
      STRICT(refused_memory_is_not_freed),
      STRICT(a_block_is_known_by_any_of_its_bytes),
      STRICT(every_wait_counts),
      STRICT(freeing_with_synchronise_waits),
      STRICT(waits_for_something_else_do_not_count),
      STRICT(every_stream_must_be_waited_for),
      STRICT(a_wait_that_timed_out_does_not_count),
      STRICT(a_host_function_may_free_what_came_before_it),
      STRICT(the_answer_is_always_the_same),
      STRICT(aclFinalize_frees_all_and_forgets_all),
      RELAXED(without_the_mode_nothing_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
