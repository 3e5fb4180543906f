/* SPDX-License-Identifier: Apache-2.0 */
/* What stops work that would not end by itself: abort, force, reset and finalize; and what a call
 * that cannot have its way leaves behind: nothing. */
#include "blocked_call.h"

#include "aclnnop/aclnn_adaptive_max_pool2d_backward.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"

static aclrtStream stream;
static uint64_t *word; /* of device memory, 0: nobody writes it */
static sem_t entered, gate;

static int set_up(void **state) {
  sem_init(&entered, 0, 0);
  sem_init(&gate, 0, 0);
  void *memory = NULL;
  if (set_up_device(state) != 0 || aclrtCreateStream(&stream) != ACL_SUCCESS ||
      aclrtMalloc(&memory, sizeof *word, ACL_MEM_MALLOC_NORMAL_ONLY) != ACL_SUCCESS)
    return 1;
  word = memory;
  return aclrtMemset(word, sizeof *word, 0, sizeof *word) != ACL_SUCCESS;
}

static int tear_down(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) sem_post(&gate); /* a test that failed may have left it shut */
  (void)aclrtResetDeviceForce(0);
  const int status = aclFinalize();
  sem_destroy(&entered);
  sem_destroy(&gate);
  return status != ACL_SUCCESS;
}

static int synchronise(void) { return aclrtSynchronizeStream(stream); }
static int reset(void) { return aclrtResetDevice(0); }
static int reset_by_force(void) { return aclrtResetDeviceForce(0); }
static int finalize(void) { return aclFinalize(); }
static int destroy(void) { return aclrtDestroyStream(stream); }

/* --- waits that nobody ends --- */

static void wait_for_value(void) { OK_OR_SAY(aclrtValueWait(word, 1, 1, stream)); }

static void wait_for_notify(void) {
  aclrtNotify notify;
  OK_OR_SAY(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 0));
}

static void never_called(void *unused) {
  (void)unused;
  abort();
}

/* Subscribed to a thread that never asks for reports. */
static void wait_for_callback(void) {
  OK_OR_SAY(aclrtSubscribeReport(1, stream));
  OK_OR_SAY(aclrtLaunchCallback(never_called, NULL, ACL_CALLBACK_BLOCK, stream));
}

/* Behind an event of a stream that waits for a value itself. */
static void wait_for_event(void) {
  aclrtStream other;
  aclrtEvent event;
  OK_OR_SAY(aclrtCreateStream(&other));
  OK_OR_SAY(aclrtCreateEvent(&event));
  OK_OR_SAY(aclrtValueWait(word, 1, 1, other));
  OK_OR_SAY(aclrtRecordEvent(event, other));
  OK_OR_SAY(aclrtStreamWaitEvent(stream, event));
}

static void (*const waits[])(void) = {wait_for_value, wait_for_notify, wait_for_callback,
                                      wait_for_event};
enum { WAITS = sizeof waits / sizeof waits[0] };

/* Each wait, with work behind it that must not be done, ended by `end` while a thread synchronises;
 * that thread is told. */
static void end_each_wait(int (*end)(void)) {
  for (int i = 0; i < WAITS; i++) {
    static struct blocked_call waiter, ender;
    void *untouched = device_memory(1);
    send(untouched, "a", 1);
    waits[i]();
    OK_OR_SAY(aclrtMemsetAsync(untouched, 1, 'b', 1, stream));
    begin_call(&waiter, synchronise);
    begin_call(&ender, end);
    assert_int_equal(finish_call(&ender), ACL_SUCCESS);
    assert_int_equal(finish_call(&waiter), ACL_ERROR_RT_STREAM_ABORT);
    if (end == finalize) OK_OR_SAY(aclInit(NULL));
    OK_OR_SAY(aclrtSetDevice(0));
    if (end != finalize) assert_int_equal(fetch_byte(untouched), 'a');
    OK_OR_SAY(aclrtCreateStream(&stream));
    void *memory = device_memory(sizeof *word);
    word = memory;
    OK_OR_SAY(aclrtMemset(word, sizeof *word, 0, sizeof *word));
  }
}

static void a_forced_reset_ends_every_wait(void **state) {
  (void)state;
  end_each_wait(reset_by_force);
}

/* When the awaited stream is discarded first, its event lets the other one go on; and neither may
 * have begun yet. */
static void a_forced_reset_lets_nothing_run_behind_an_event(void **state) {
  (void)state;
  for (int i = 0; i < 300; i++) {
    void *untouched = device_memory(1);
    send(untouched, "a", 1);
    wait_for_event();
    OK_OR_SAY(aclrtMemsetAsync(untouched, 1, 'b', 1, stream));
    if (i % 3 == 1) sched_yield();
    if (i % 3 == 2) usleep(100);
    OK_OR_SAY(aclrtResetDeviceForce(0));
    OK_OR_SAY(aclrtSetDevice(0));
    assert_int_equal(fetch_byte(untouched), 'a');
    OK_OR_SAY(aclrtFree(untouched));
    OK_OR_SAY(aclrtCreateStream(&stream));
  }
}

/* The fill gives up in the middle, and then nobody touches the memory. */
static void memory_may_be_freed_after_a_forced_end(void **state) {
  (void)state;
  enum { MANY = 256 << 20 };
  for (int i = 0; i < 6; i++) {
    void *memory = device_memory(MANY);
    OK_OR_SAY(aclrtMemsetAsync(memory, MANY, 1, MANY, stream));
    usleep(5000);
    if (i % 2 == 0)
      OK_OR_SAY(aclrtDestroyStreamForce(stream));
    else
      OK_OR_SAY(aclrtResetDeviceForce(0));
    OK_OR_SAY(aclrtFree(memory));
    OK_OR_SAY(aclrtSetDevice(0));
    OK_OR_SAY(aclrtCreateStream(&stream));
  }
}

static void a_reset_ends_waits_that_nobody_will_end(void **state) {
  (void)state;
  end_each_wait(reset);
}

static void finalize_ends_waits_that_nobody_will_end(void **state) {
  (void)state;
  end_each_wait(finalize);
}

static void abort_ends_every_wait_and_keeps_the_stream(void **state) {
  (void)state;
  for (int i = 0; i < WAITS; i++) {
    static struct blocked_call waiter;
    void *memory = device_memory(1);
    waits[i]();
    begin_call(&waiter, synchronise);
    OK_OR_SAY(aclrtStreamAbort(stream));
    assert_int_equal(finish_call(&waiter), ACL_ERROR_RT_STREAM_ABORT);
    OK_OR_SAY(aclrtMemsetAsync(memory, 1, 'c', 1, stream));
    OK_OR_SAY(aclrtSynchronizeStream(stream));
    assert_int_equal(fetch_byte(memory), 'c');
    OK_OR_SAY(aclrtFree(memory));
    if (waits[i] == wait_for_callback) OK_OR_SAY(aclrtUnSubscribeReport(1, stream));
  }
}

/* Another thread already waits in aclrtDestroyStream: it must not keep the end from coming. */
static void finalize_also_ends_a_destroy_that_waits(void **state) {
  (void)state;
  static struct blocked_call destroyer, ender;
  wait_for_value();
  begin_call(&destroyer, destroy);
  begin_call(&ender, finalize);
  assert_int_equal(finish_call(&ender), ACL_SUCCESS);
  assert_int_equal(finish_call(&destroyer), ACL_SUCCESS);
  OK_OR_SAY(aclInit(NULL));
}

/* The host function that runs ends by itself; what is lost is the one step behind it. */
static void stand(void *unused);

static void a_thread_that_waits_for_a_discarded_step_is_told(void **state) {
  (void)state;
  static struct blocked_call waiter;
  OK_OR_SAY(aclrtLaunchHostFunc(stream, stand, NULL));
  OK_OR_SAY(aclrtMemsetAsync(word, sizeof *word, 1, sizeof *word, stream));
  assert_true(arrives(&entered, LONG_MS));
  begin_call(&waiter, synchronise);
  OK_OR_SAY(aclrtStreamAbort(stream));
  sem_post(&gate);
  assert_int_equal(finish_call(&waiter), ACL_ERROR_RT_STREAM_ABORT);
  assert_int_equal(fetch_byte(word), 0);
}

/* Work that ends by itself is waited for, however long it takes; so are waits for it. */
static void stand(void *unused) {
  (void)unused;
  sem_post(&entered);
  sem_wait(&gate);
}

static void finalize_waits_for_work_that_ends(void **state) {
  (void)state;
  static struct blocked_call ender;
  aclrtStream other;
  aclrtEvent event;
  void *host = NULL;
  static char byte; /* registered: finalize frees what it allocated */
  byte = 'a';
  OK_OR_SAY(aclrtHostRegister(&byte, 1, ACL_HOST_REGISTER_MAPPED, &host));
  OK_OR_SAY(aclrtCreateStream(&other));
  OK_OR_SAY(aclrtCreateEvent(&event));
  OK_OR_SAY(aclrtLaunchHostFunc(other, stand, NULL));
  OK_OR_SAY(aclrtRecordEvent(event, other));
  OK_OR_SAY(aclrtStreamWaitEvent(stream, event));
  OK_OR_SAY(aclrtMemsetAsync(&byte, 1, 'b', 1, stream));
  assert_true(arrives(&entered, LONG_MS));
  begin_call(&ender, finalize);
  assert_false(arrives(&ender.left, 1500)); /* longer than it would put up with a wait alone */
  sem_post(&gate);
  assert_int_equal(finish_call(&ender), ACL_SUCCESS);
  assert_int_equal(byte, 'b');
  OK_OR_SAY(aclInit(NULL));
}

/* --- kernels --- */

/* An adaptive max pool of one cell with very many outputs, all of them one element of memory. */
static aclnnStatus plan_outputs(int64_t height, int64_t width, void *memory, uint64_t *bytes,
                                aclOpExecutor **executor) {
  const int64_t out[] = {1, 1, height, width}, in[] = {1, 1, 1, 1}, same[] = {0, 0, 0, 0};
  char *base = memory;
  aclTensor *grad_out = aclCreateTensor(out, 4, ACL_FLOAT, same, 0, ACL_FORMAT_NCHW, in, 4, base);
  aclTensor *index = aclCreateTensor(out, 4, ACL_INT64, same, 0, ACL_FORMAT_NCHW, in, 4, base + 64);
  aclTensor *self = aclCreateTensor(in, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, in, 4, base + 128);
  aclTensor *grad_in =
      aclCreateTensor(in, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, in, 4, base + 192);
  const aclnnStatus status = aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(
      grad_out, self, index, grad_in, bytes, executor);
  aclDestroyTensor(grad_out), aclDestroyTensor(index);
  aclDestroyTensor(self), aclDestroyTensor(grad_in);
  return status;
}

/* Windows of a plane's own size one cell apart: a cell lies in as many as there are cells. */
static void launch_long_average(void *memory) {
  enum { SIDE = 4096 };
  const int64_t in[] = {1, 1, SIDE, SIDE}, out[] = {1, 1, SIDE + 1, SIDE + 1};
  const int64_t kernel[] = {SIDE}, stride[] = {1}, pad[] = {SIDE / 2};
  const int64_t same[] = {0, 0, 0, 0}, cells[] = {1, 1, SIDE, SIDE};
  char *base = memory;
  uint64_t bytes = 0;
  aclOpExecutor *executor = NULL;
  aclTensor *grad_out = aclCreateTensor(out, 4, ACL_FLOAT, same, 0, ACL_FORMAT_NCHW, out, 4, base);
  aclTensor *self =
      aclCreateTensor(in, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, cells, 4, base + 64);
  aclIntArray *k = aclCreateIntArray(kernel, 1), *s = aclCreateIntArray(stride, 1),
              *p = aclCreateIntArray(pad, 1);
  OK_OR_SAY(aclnnAvgPool2dBackwardGetWorkspaceSize(grad_out, self, k, s, p, false, true, 0, 0, self,
                                                   &bytes, &executor));
  assert_int_equal(bytes, 0);
  OK_OR_SAY(aclnnAvgPool2dBackward(NULL, 0, executor, stream));
  aclDestroyTensor(grad_out), aclDestroyTensor(self);
  aclDestroyIntArray(k), aclDestroyIntArray(s), aclDestroyIntArray(p);
}

enum { AVERAGE_BYTES = 64 + 4096 * 4096 * 4 };

static void a_call_whose_work_is_absurd_for_its_memory_is_refused(void **state) {
  (void)state;
  aclOpExecutor *executor = NULL;
  uint64_t bytes = 0;
  void *memory = device_memory(256);
  FAILS(plan_outputs(1 << 20, 1 << 20, memory, &bytes, &executor), 161002, "gradOutput",
        "[1,1,1048576,1048576]", "memory");
  FAILS(plan_outputs(1, (int64_t)1 << 40, memory, &bytes, &executor), 161002, "gradOutput");
  assert_null(executor);
  OK_OR_SAY(aclrtFree(memory));
}

/* Many outputs for little memory, but not absurdly many: right, if slow. */
static void a_call_with_a_million_outputs_in_one_element_is_done(void **state) {
  (void)state;
  aclOpExecutor *executor = NULL;
  uint64_t bytes = 0;
  void *memory = device_memory(256), *workspace = NULL;
  const float one = 1;
  float sum = 0;
  OK_OR_SAY(aclrtMemset(memory, 256, 0, 256));
  send(memory, &one, sizeof one);
  OK_OR_SAY(plan_outputs(1 << 10, 1 << 10, memory, &bytes, &executor));
  if (bytes > 0) workspace = device_memory(bytes);
  OK_OR_SAY(aclnnAdaptiveMaxPool2dBackward(workspace, bytes, executor, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  fetch(&sum, (char *)memory + 192, sizeof sum);
  assert_true(sum == 1 << 20);
  OK_OR_SAY(aclrtFree(memory));
}

/* The event says that the stream has got to the kernel; `end` then comes back at once, and what
 * waits for the stream's thread does. */
static void stop_a_kernel(int (*end)(void)) {
  static struct blocked_call ender;
  aclrtEvent begun;
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  SKIP_ON_CUDA("a kernel that runs on a GPU ends by itself");
  void *memory = device_memory(AVERAGE_BYTES);
  OK_OR_SAY(aclrtCreateEvent(&begun));
  OK_OR_SAY(aclrtRecordEvent(begun, stream));
  launch_long_average(memory);
  while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
    OK_OR_SAY(aclrtQueryEventStatus(begun, &status));
  const time_t begin = time(NULL);
  begin_call(&ender, end);
  assert_int_equal(finish_call(&ender), ACL_SUCCESS);
  OK_OR_SAY(aclFinalize());
  assert_true(time(NULL) - begin <= 15); /* the kernel itself takes longer than that by far */
  OK_OR_SAY(aclInit(NULL));
}

static int abort_stream(void) { return aclrtStreamAbort(stream); }
static int destroy_by_force(void) { return aclrtDestroyStreamForce(stream); }

static void abort_stops_a_kernel(void **state) {
  (void)state;
  stop_a_kernel(abort_stream);
}

static void forced_destruction_stops_a_kernel(void **state) {
  (void)state;
  stop_a_kernel(destroy_by_force);
}

static void a_forced_reset_stops_a_kernel(void **state) {
  (void)state;
  stop_a_kernel(reset_by_force);
}

/* --- blocking callbacks that would wait for themselves --- */

static int inside[8];

static void wait_for_oneself(void *event) {
  inside[0] = aclrtSynchronizeStream(stream);
  inside[1] = aclrtSynchronizeStreamWithTimeout(stream, 1);
  inside[2] = aclrtDestroyStream(stream);
  inside[3] = aclrtSynchronizeEvent(event);
  inside[4] = aclrtResetDevice(0);
  inside[5] = aclFinalize();
  inside[6] = aclrtSynchronizeDevice();
  char byte = 0;
  inside[7] = aclrtMemcpyAsync(word, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream);
}

static sem_t subscribed;

static int serve(void) {
  sem_post(&entered); /* alive */
  if (!arrives(&subscribed, LONG_MS)) return -1;
  return aclrtProcessReport(LONG_MS);
}

static void a_blocking_callback_cannot_wait_for_its_own_stream(void **state) {
  (void)state;
  static struct blocked_call server;
  aclrtEvent event;
  sem_init(&subscribed, 0, 0);
  OK_OR_SAY(aclrtCreateEvent(&event));
  begin_call(&server, serve);
  OK_OR_SAY(aclrtSubscribeReport((uint64_t)server.thread, stream));
  OK_OR_SAY(aclrtLaunchCallback(wait_for_oneself, event, ACL_CALLBACK_BLOCK, stream));
  OK_OR_SAY(aclrtRecordEvent(event, stream));
  sem_post(&subscribed);
  assert_int_equal(finish_call(&server), ACL_SUCCESS);
  for (int i = 0; i < 8; i++) assert_int_equal(inside[i], ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  sem_destroy(&subscribed);
}

/* --- a copy that fails copies nothing --- */

static int copied;
static char *source;
static aclrtContext own;

static void copy_pageable(void *to) {
  (void)aclrtSetCurrentContext(own);
  copied = aclrtMemcpyAsync(to, 1, source, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream);
  free(source); /* it failed, so nobody needs it */
}

static void a_refused_copy_of_pageable_memory_has_no_effect(void **state) {
  (void)state;
  void *memory = device_memory(1);
  send(memory, "a", 1);
  source = malloc(1);
  OK_OR_SAY(aclrtGetCurrentContext(&own));
  *source = 'b';
  OK_OR_SAY(aclrtLaunchHostFunc(stream, copy_pageable, memory));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(copied, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(fetch_byte(memory), 'a');
}

static void *copy_target;

static int copy_from_stack(void) {
  char byte = 'b';
  return aclrtMemcpyAsync(copy_target, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream);
}

static void an_aborted_copy_of_pageable_memory_says_so(void **state) {
  (void)state;
  static struct blocked_call copier;
  copy_target = device_memory(1);
  send(copy_target, "a", 1);
  wait_for_value();
  begin_call(&copier, copy_from_stack);
  OK_OR_SAY(aclrtStreamAbort(stream));
  assert_int_equal(finish_call(&copier), ACL_ERROR_RT_STREAM_ABORT);
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  assert_int_equal(fetch_byte(copy_target), 'a');
}

/* --- cancelled threads --- */

static void a_thread_cancelled_inside_a_synchronise_leaves_nothing_locked(void **state) {
  (void)state;
  static struct blocked_call waiter;
  wait_for_value();
  begin_call(&waiter, synchronise);
  assert_int_equal(pthread_cancel(waiter.thread), 0);
  assert_false(arrives(&waiter.left, 50)); /* cancellation waits for the call to end */
  OK_OR_SAY(aclrtStreamAbort(stream));
  void *result = NULL;
  pthread_join(waiter.thread, &result); /* cancelled, or just too fast for that: both are fine */
  OK_OR_SAY(aclrtMemsetAsync(word, sizeof *word, 0, sizeof *word, stream));
  OK_OR_SAY(aclrtSynchronizeStream(stream));
  sem_destroy(&waiter.left);
}

static atomic_bool cancelled_enough;

static void *call_for_ever(void *context) {
  static char byte; /* on the stack ASan would leave its marks when the thread is cancelled */
  (void)aclrtSetCurrentContext(context);
  while (!atomic_load(&cancelled_enough)) {
    (void)aclrtMemcpyAsync(word, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    (void)aclrtSynchronizeStream((aclrtStream)8); /* fails, and writes that to the log */
    (void)aclrtSynchronizeDevice();
    pthread_testcancel();
  }
  return NULL;
}

static void threads_cancelled_anywhere_leave_nothing_locked(void **state) {
  (void)state;
  aclrtContext context;
  OK_OR_SAY(aclrtGetCurrentContext(&context));
  for (int i = 0; i < 200; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, call_for_ever, context), 0);
    for (int j = 0; j < i; j++) sched_yield();
    pthread_cancel(thread);
    pthread_join(thread, NULL);
  }
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_forced_reset_ends_every_wait),
      TEST(a_forced_reset_lets_nothing_run_behind_an_event),
      TEST(memory_may_be_freed_after_a_forced_end),
      TEST(a_reset_ends_waits_that_nobody_will_end),
      TEST(finalize_ends_waits_that_nobody_will_end),
      TEST(abort_ends_every_wait_and_keeps_the_stream),
      TEST(finalize_also_ends_a_destroy_that_waits),
      TEST(a_thread_that_waits_for_a_discarded_step_is_told),
      TEST(finalize_waits_for_work_that_ends),
      TEST(a_call_whose_work_is_absurd_for_its_memory_is_refused),
      TEST(a_call_with_a_million_outputs_in_one_element_is_done),
      TEST(abort_stops_a_kernel),
      TEST(forced_destruction_stops_a_kernel),
      TEST(a_forced_reset_stops_a_kernel),
      TEST(a_blocking_callback_cannot_wait_for_its_own_stream),
      TEST(a_refused_copy_of_pageable_memory_has_no_effect),
      TEST(an_aborted_copy_of_pageable_memory_says_so),
      TEST(a_thread_cancelled_inside_a_synchronise_leaves_nothing_locked),
      TEST(threads_cancelled_anywhere_leave_nothing_locked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
