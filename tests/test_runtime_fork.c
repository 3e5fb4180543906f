/* SPDX-License-Identifier: Apache-2.0 */
/* The child of a fork: what needs the library's threads is refused with a sentence, what does not
 * goes on, and nothing hangs, whatever the parent's threads were at. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "expect.h"
#include "poolgrad.h"

enum { THREADS = 8, HANG_SECONDS = 60 };

/* A child finds a sanitizer's own allocator locked when another thread of its parent was in it
 * (clang 14), and anything that allocates hangs there. Under a sanitizer the child ends at once:
 * what is watched then is the parent's side, where fork takes and gives back every lock. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FORKS = 10, CHILD_MAY_ALLOCATE = 0 };
#else
enum { FORKS = 60, CHILD_MAY_ALLOCATE = 1 };
#endif

static aclrtStream stream;
static aclrtEvent event;
static aclrtNotify notify;
static aclrtContext context;
static void *memory;
static atomic_bool over;

/* In the child: a hang ends it by SIGALRM, a failed expectation by its own status. */
#define EXPECT(condition, status)    \
  do {                               \
    if (!(condition)) _exit(status); \
  } while (0)

static void expect_refused(int line, int code) {
  const char *text = aclGetRecentErrMsg();
  EXPECT(code == ACL_ERROR_RT_CONTEXT_NULL, line);
  EXPECT(text != NULL && strstr(text, "fork") != NULL, line);
}

#define REFUSED(call) expect_refused(__LINE__ % 256, (call))

static int plan(aclOpExecutor **executor, void *data) {
  const int64_t out[] = {1, 1, 2, 2}, in[] = {1, 1, 4, 4}, two[] = {2}, zero[] = {0};
  uint64_t bytes = 1;
  aclTensor *grad_out = aclCreateTensor(out, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, out, 4, data);
  aclTensor *grad_in =
      aclCreateTensor(in, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, in, 4, (char *)data + 64);
  aclIntArray *kernel = aclCreateIntArray(two, 1), *pad = aclCreateIntArray(zero, 1);
  const int status = aclnnAvgPool2dBackwardGetWorkspaceSize(
      grad_out, grad_in, kernel, NULL, pad, false, true, 0, 0, grad_in, &bytes, executor);
  aclDestroyTensor(grad_out), aclDestroyTensor(grad_in);
  aclDestroyIntArray(kernel), aclDestroyIntArray(pad);
  return status;
}

static void host_function(void *unused) { (void)unused; }

/* Everything that would need a thread, or wait for one. */
static void expect_refusals(void) {
  char byte = 0;
  void *pointer = NULL;
  aclrtStream new_stream;
  aclrtEvent new_event;
  aclrtContext new_context;
  aclrtStreamStatus status;
  aclrtEventRecordedStatus event_status;
  int32_t device;
  REFUSED(aclrtSynchronizeStream(stream));
  REFUSED(aclrtSynchronizeStreamWithTimeout(stream, 10));
  REFUSED(aclrtSynchronizeDevice());
  REFUSED(aclrtSynchronizeEvent(event));
  REFUSED(aclrtStreamQuery(stream, &status));
  REFUSED(aclrtQueryEventStatus(event, &event_status));
  REFUSED(aclrtCreateStream(&new_stream));
  REFUSED(aclrtCreateEvent(&new_event));
  REFUSED(aclrtCreateContext(&new_context, 0));
  REFUSED(aclrtSetCurrentContext(context));
  REFUSED(aclrtRecordEvent(event, stream));
  REFUSED(aclrtStreamWaitEvent(stream, event));
  REFUSED(aclrtRecordNotify(notify, stream));
  REFUSED(aclrtValueWrite(memory, 1, 0, stream));
  REFUSED(aclrtLaunchHostFunc(stream, host_function, NULL));
  REFUSED(aclrtProcessReport(10));
  REFUSED(aclrtMalloc(&pointer, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  REFUSED(aclrtMemcpy(memory, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
  REFUSED(aclrtMemcpyAsync(memory, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  REFUSED(aclrtMemset(memory, 1, 0, 1));
  REFUSED(aclrtMemsetAsync(memory, 1, 0, 1, stream));
  REFUSED(aclrtStreamAbort(stream));
  REFUSED(aclrtDestroyStream(stream));
  REFUSED(aclrtDestroyStreamForce(stream));
  REFUSED(aclrtDestroyEvent(event));
  REFUSED(aclrtDestroyContext(context));
  REFUSED(aclrtGetDevice(&device));
  REFUSED(aclrtSetDevice(0));
  REFUSED(aclrtResetDevice(0));
  REFUSED(aclrtResetDeviceForce(0));
  REFUSED(poolgrad_set_threads(2));
  REFUSED(aclInit(NULL));
  REFUSED(aclFinalize());
}

/* Descriptions, the first phase, questions and the log need no thread. */
static void expect_the_rest_works(void) {
  static char data[256];
  aclOpExecutor *executor = NULL;
  uint32_t count = 0;
  for (int i = 0; i < 20; i++) {
    EXPECT(plan(&executor, data) == ACL_SUCCESS, 101);
    EXPECT(aclnnAvgPool2dBackward(NULL, 0, executor, stream) == 361001, 102);
    EXPECT(aclGetRecentErrMsg() != NULL, 103);
    EXPECT(aclnnAvgPool2dBackward(NULL, 0, executor, stream) == 561000, 104); /* spent */
  }
  EXPECT(aclrtGetDeviceCount(&count) == ACL_SUCCESS && count > 0, 105);
  EXPECT(poolgrad_devices()[0] == '0', 106);
  EXPECT(strlen(aclrtGetSocName()) > 0, 107);
}

static void be_the_child(void) {
  if (!CHILD_MAY_ALLOCATE) _exit(0);
  (void)signal(SIGALRM, SIG_DFL);
  (void)alarm(HANG_SECONDS);
  expect_refusals();
  expect_the_rest_works();
  EXPECT(on_cuda() || aclrtFree(memory) == ACL_SUCCESS, 108);
  _exit(0);
}

/* How the child ended: 0 is well. */
static int fork_once(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) be_the_child();
  return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* Calls that hold every kind of lock, all the time. */
static void *work(void *number) {
  unsigned turn = (unsigned)(uintptr_t)number;
  void *data = NULL;
  (void)aclrtSetCurrentContext(context);
  (void)aclrtMalloc(&data, 512, ACL_MEM_MALLOC_NORMAL_ONLY);
  while (!atomic_load(&over)) {
    aclOpExecutor *executor = NULL;
    void *block = NULL;
    aclrtStream own = NULL;
    aclrtEvent moment = NULL;
    (void)plan(&executor, data);
    if (turn % 2 == 0) (void)aclnnAvgPool2dBackward(NULL, 0, executor, stream);
    if (turn % 2 != 0) (void)aclDestroyAclOpExecutor(executor);
    (void)aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_NORMAL_ONLY);
    (void)aclrtCreateEvent(&moment);
    (void)aclrtRecordEvent(moment, stream);
    if (turn % 5 == 0 && aclrtCreateStream(&own) == ACL_SUCCESS) (void)aclrtDestroyStream(own);
    (void)aclrtSynchronizeStream((aclrtStream)8); /* a sentence and a log line */
    (void)aclrtSynchronizeStream(stream);
    (void)aclrtDestroyEvent(moment);
    (void)aclrtFree(block);
    turn++;
  }
  (void)aclrtFree(data);
  return NULL;
}

static void a_child_of_a_busy_process_is_refused_and_never_hangs(void **state) {
  (void)state;
  pthread_t thread[THREADS];
  int ended = 0;
  if (!CHILD_MAY_ALLOCATE) print_message("under a sanitizer the parent alone is watched\n");
  atomic_store(&over, false);
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)i), 0);
  for (int i = 0; i < FORKS && ended == 0; i++) ended = fork_once();
  atomic_store(&over, true);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  if (ended != 0) fail_msg("a child ended with 0x%x (signal 14: it hung)", (unsigned)ended);
  OK_OR_SAY(aclrtSynchronizeStream(stream)); /* the parent goes on */
}

static void a_child_may_execute_another_program(void **state) {
  (void)state;
  int status;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
    _exit(1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static int set_up(void **state) {
  return set_up_device(state) != 0 || aclrtGetCurrentContext(&context) != ACL_SUCCESS ||
         aclrtCreateStream(&stream) != ACL_SUCCESS || aclrtCreateEvent(&event) != ACL_SUCCESS ||
         aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT) != ACL_SUCCESS ||
         aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_NORMAL_ONLY) != ACL_SUCCESS;
}

/* Nothing that lives by threads is there yet, or any more: the child may begin anew. */
static void use_in_child(void) {
  (void)alarm(HANG_SECONDS);
  EXPECT(aclInit(NULL) == ACL_SUCCESS, 110);
  EXPECT(aclrtSetDevice(0) == ACL_SUCCESS, 111);
  EXPECT(aclrtCreateStream(&stream) == ACL_SUCCESS, 112);
  EXPECT(aclrtSynchronizeStream(stream) == ACL_SUCCESS, 113);
  EXPECT(aclFinalize() == ACL_SUCCESS, 114);
  _exit(0);
}

static void a_child_of_a_process_without_contexts_may_use_the_library(void **state) {
  (void)state;
  static char data[256];
  aclOpExecutor *executor;
  int status;
#if defined(__SANITIZE_THREAD__)
  SKIP("ThreadSanitizer starts no threads after a fork");
#endif
  if (device_is_cuda(0))
    SKIP("CUDA does not work in the child of a process that has asked it for devices");
  assert_int_equal(plan(&executor, data), ACL_SUCCESS);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) use_in_child();
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  aclDestroyAclOpExecutor(executor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_child_of_a_process_without_contexts_may_use_the_library),
      cmocka_unit_test_setup_teardown(a_child_of_a_busy_process_is_refused_and_never_hangs, set_up,
                                      tear_down_device),
      cmocka_unit_test_setup_teardown(a_child_may_execute_another_program, set_up,
                                      tear_down_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
