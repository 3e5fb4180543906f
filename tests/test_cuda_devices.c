/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU among other devices: which of them there are, a GPU given twice, a GPU and the CPU at work
 * at once, and what stays current for CUDA code of the program's own.  Each check has a process of
 * its own; CUDA's start is the child's. */
#include <pthread.h>

#include "apart.h"
#include "cuda_driver.h"
#include "ops_fixture.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const char line[] = "max_pool2d f32 i64 in=2x3x24x23 kernel=3 stride=2 pad=1 data=random";

static void start(const char *words) {
  setenv("POOLGRAD_DEVICES", words, 1);
  if (set_up(NULL) != 0) fail_msg("%s: no such devices", words);
}

/* On each device in turn, with the same bits. */
static void expect_right(const char *problem) {
  char why[PROBLEM_TEXT];
  const struct problem p = read_problem(problem);
  if (!trial_run(&p, &devices, why)) fail_msg("%s", why);
}

/* --- which there are --- */

struct listed {
  const char *words, *visible;
  const char *kinds; /* of the devices: G for a GPU, C for the CPU; "": none */
};

static void these_devices_are_there(void **state) {
  const struct listed *row = *state;
  const int count = (int)strlen(row->kinds);
  uint32_t found = 77;
  if (row->visible != NULL) setenv("ASCEND_RT_VISIBLE_DEVICES", row->visible, 1);
  if (count == 0) {
    setenv("POOLGRAD_DEVICES", row->words, 1);
    OK_OR_SAY(aclInit(NULL));
    FAILS(aclrtGetDeviceCount(&found), 207004, "aclrtGetDeviceCount", "ASCEND_RT_VISIBLE_DEVICES");
  } else {
    start(row->words);
    OK_OR_SAY(aclrtGetDeviceCount(&found));
    assert_int_equal(found, count);
    for (int i = 0; i < count; i++) {
      assert_int_equal(device_is_cuda(i), row->kinds[i] == 'G');
      assert_int_equal(poolgrad_cuda_stream(devices.at[i].stream) != NULL, row->kinds[i] == 'G');
    }
    expect_right(line);
  }
  FAILS(aclrtSetDevice(count), 107001, "aclrtSetDevice", "deviceId");
}

/* Visible ids are ascending ones of the list; what they leave is counted anew. */
static void devices_are_those_listed_and_visible(void **state) {
  (void)state;
  static const struct listed rows[] = {
      {"cuda:0", NULL, "G"},           {"cuda:0,cpu", NULL, "GC"},
      {"cpu,cuda:0", NULL, "CG"},      {"cuda:0,cpu", "0", "G"},
      {"cuda:0,cpu", "1", "C"},        {"cuda:0,cpu", "0,1", "GC"},
      {"cuda:0,cpu", "1,0", "C"},      {"cpu,cuda:0", "1", "G"},
      {"cuda:0,cpu", "2", ""},         {"cuda:0,cpu,cuda:0", "0,2", "GG"},
      {"cpu,cuda:0,cpu", "1,2", "GC"},
  };
  for (size_t i = 0; i < LENGTH(rows); i++) apart(rows[i].words, these_devices_are_there, &rows[i]);
}

static void a_gpu_that_is_not_there_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"cuda:64", "cuda:", "cuda:x", "cuda:-1", "cuda:0,cuda:64"};
  for (size_t i = 0; i < LENGTH(texts); i++) {
    setenv("POOLGRAD_DEVICES", texts[i], 1);
    FAILS(aclInit(NULL), 100000, "aclInit", "POOLGRAD_DEVICES", strrchr(texts[i], 'c'),
          "such device", "counted from 0");
  }
  start("cuda:0"); /* and nothing is spoilt */
  expect_right(line);
}

/* --- a GPU given twice, and the CPU --- */

enum { FIRST, SECOND, LAST, BYTES = 1 << 16 };

static void enter(int device) { OK_OR_SAY(aclrtSetCurrentContext(devices.at[device].context)); }

static void a_gpu_given_twice_is_its_own_peer(void **state) {
  (void)state;
  int32_t can = -1;
  start("cuda:0,cuda:0,cpu");
  OK_OR_SAY(aclrtDeviceCanAccessPeer(&can, FIRST, SECOND));
  assert_int_equal(can, 1);
  OK_OR_SAY(aclrtDeviceCanAccessPeer(&can, SECOND, LAST));
  assert_int_equal(can, 0);
  OK_OR_SAY(aclrtDeviceCanAccessPeer(&can, LAST, FIRST));
  assert_int_equal(can, 0);
  enter(FIRST);
  FAILS(aclrtDeviceEnablePeerAccess(LAST, 0), 207000, "aclrtDeviceEnablePeerAccess", "reach");
  FAILS(aclrtDeviceDisablePeerAccess(SECOND), 107000, "aclrtDeviceDisablePeerAccess", "enabled");
  OK_OR_SAY(aclrtDeviceEnablePeerAccess(SECOND, 0));
  OK_OR_SAY(aclrtDeviceDisablePeerAccess(SECOND));
  expect_right(line);
}

static void its_two_devices_have_contexts_of_their_own(void **state) {
  (void)state;
  aclrtContext more;
  aclrtStream stream;
  int32_t device = -1;
  start("cuda:0,cuda:0,cpu");
  assert_ptr_not_equal(devices.at[FIRST].context, devices.at[SECOND].context);
  assert_ptr_not_equal(poolgrad_cuda_stream(devices.at[FIRST].stream),
                       poolgrad_cuda_stream(devices.at[SECOND].stream));
  enter(SECOND);
  FAILS(aclrtSynchronizeStream(devices.at[FIRST].stream), 107003, "aclrtSynchronizeStream",
        "another context");
  OK_OR_SAY(aclrtSynchronizeStream(devices.at[SECOND].stream));
  OK_OR_SAY(aclrtCreateContext(&more, SECOND));
  OK_OR_SAY(aclrtGetDevice(&device));
  assert_int_equal(device, SECOND);
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtDestroyContext(more)); /* and its stream */
  FAILS(poolgrad_cuda_stream(stream) != NULL, 0, "poolgrad_cuda_stream", "a destroyed stream");
  enter(FIRST);
  expect_right(line);
}

/* All bytes at the address are this one. */
static void expect_bytes(const void *memory, int value) {
  static unsigned char found[BYTES];
  fetch(found, memory, BYTES);
  for (int i = 0; i < BYTES; i++) assert_int_equal(found[i], value);
}

/* Memory of either GPU device and of the CPU, with either current; at once, and in streams that
 * wait for each other. */
static void memory_is_copied_between_devices(void **state) {
  (void)state;
  void *at[3];
  aclrtEvent event;
  start("cuda:0,cuda:0,cpu");
  for (int i = FIRST; i <= LAST; i++) {
    enter(i);
    at[i] = device_memory(BYTES);
    OK_OR_SAY(aclrtMemset(at[i], BYTES, i + 1, BYTES));
  }
  for (int i = 0; i < 9; i++) {
    const int from = i / 3, to = i % 3;
    enter((from + to) % 3);
    OK_OR_SAY(aclrtMemset(at[from], BYTES, i + 10, BYTES));
    OK_OR_SAY(aclrtMemcpy(at[to], BYTES, at[from], BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE));
    expect_bytes(at[to], i + 10);
  }
  OK_OR_SAY(aclrtCreateEvent(&event));
  for (int i = FIRST; i <= LAST; i++) {
    const int next = (i + 1) % 3;
    enter(i);
    OK_OR_SAY(aclrtMemsetAsync(at[i], BYTES, i + 40, BYTES, devices.at[i].stream));
    OK_OR_SAY(aclrtRecordEvent(event, devices.at[i].stream));
    enter(next);
    OK_OR_SAY(aclrtStreamWaitEvent(devices.at[next].stream, event));
    OK_OR_SAY(aclrtMemcpyAsync(at[next], BYTES, at[i], BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE,
                               devices.at[next].stream));
    OK_OR_SAY(aclrtSynchronizeStream(devices.at[next].stream));
    expect_bytes(at[next], i + 40);
  }
  for (int i = FIRST; i <= LAST; i++) OK_OR_SAY(aclrtFree(at[i]));
}

/* --- several devices and threads --- */

enum { PROBLEMS_OF_THREAD = 60, CELLS_MOST = 20000 };

struct worker {
  pthread_t thread;
  uint64_t seed;
  const struct trial_devices *shared; /* NULL: streams of its own */
  bool good;
  char problem[PROBLEM_TEXT], why[PROBLEM_TEXT];
};

/* Each problem runs on every device in turn. */
static void *work(void *argument) {
  struct worker *w = argument;
  struct trial_devices own = {.count = 0};
  w->good = aclrtSetDevice(0) == ACL_SUCCESS && (w->shared != NULL || trial_devices_open(&own));
  for (int i = 0; w->good && i < PROBLEMS_OF_THREAD; i++) {
    const struct problem p = problem_random(w->seed + (uint64_t)i, CELLS_MOST);
    w->good = trial_run(&p, w->shared != NULL ? w->shared : &own, w->why);
    if (!w->good) problem_print(&p, w->problem);
  }
  const bool closed = w->shared != NULL || trial_devices_close(&own);
  w->good = closed && aclrtResetDevice(0) == ACL_SUCCESS && w->good;
  return NULL;
}

static void run_two(const struct trial_devices *shared) {
  struct worker w[2];
  for (int i = 0; i < 2; i++) {
    w[i] = (struct worker){.seed = 1000 * (uint64_t)(i + 1), .shared = shared, .why = "no device"};
    assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
  }
  for (int i = 0; i < 2; i++) pthread_join(w[i].thread, NULL);
  for (int i = 0; i < 2; i++)
    if (!w[i].good) fail_msg("thread %d: %s in: %s", i, w[i].why, w[i].problem);
}

static void two_threads_use_a_gpu_and_the_cpu_in_turns(void **state) {
  (void)state;
  start("cuda:0,cpu");
  run_two(NULL);
  run_two(&devices);
}

static void two_threads_use_a_gpu_given_twice(void **state) {
  (void)state;
  start("cuda:0,cuda:0,cpu");
  run_two(NULL);
  run_two(&devices);
}

/* --- what is current for CUDA --- */

static void *current(void) {
  void *context = NULL;
  CUDA_OK(cuda.cuCtxGetCurrent(&context));
  return context;
}

/* `otherwise` may be current afterwards instead of what is. */
#define KEEPS_CURRENT(call)                                                               \
  do {                                                                                    \
    void *const before_ = current();                                                      \
    OK_OR_SAY(call);                                                                      \
    if (current() != before_ && current() != otherwise) fail_msg("%s changed it", #call); \
  } while (0)

static void use_everything(void *otherwise) {
  aclrtStream stream;
  aclrtEvent event;
  aclrtStreamStatus status;
  void *memory = NULL;
  char byte = 1;
  KEEPS_CURRENT(aclrtCreateStream(&stream));
  KEEPS_CURRENT(aclrtCreateEvent(&event));
  KEEPS_CURRENT(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_NORMAL_ONLY));
  KEEPS_CURRENT(aclrtMemcpy(memory, BYTES, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
  KEEPS_CURRENT(aclrtMemsetAsync(memory, BYTES, 7, BYTES, stream));
  KEEPS_CURRENT(aclrtRecordEvent(event, stream));
  KEEPS_CURRENT(aclrtStreamWaitEvent(stream, event));
  KEEPS_CURRENT(aclrtSynchronizeEvent(event));
  KEEPS_CURRENT(aclrtStreamQuery(stream, &status));
  KEEPS_CURRENT(aclrtSynchronizeStream(stream));
  KEEPS_CURRENT(aclrtSynchronizeDevice());
  expect_bytes(memory, 7);
  KEEPS_CURRENT((expect_right(line), 0));
  KEEPS_CURRENT(aclrtFree(memory));
  KEEPS_CURRENT(aclrtDestroyEvent(event));
  KEEPS_CURRENT(aclrtDestroyStream(stream));
}

/* Where nothing is, CUDA's device 0 counts as current, so its context may be. */
static void what_is_current_for_cuda_stays_so(void **state) {
  (void)state;
  void *primary = NULL, *own = NULL;
  start("cuda:0");
  cuda_open();
  CUDA_OK(cuda.cuDevicePrimaryCtxRetain(&primary, 0));
  CUDA_OK(cuda.cuCtxSetCurrent(NULL));
  use_everything(primary);
  CUDA_OK(cuda.cuCtxSetCurrent(primary));
  use_everything(primary);
  CUDA_OK(cuda.cuCtxCreate_v2(&own, 0, 0));
  assert_ptr_equal(current(), own);
  use_everything(own);
  assert_ptr_equal(current(), own);
  CUDA_OK(cuda.cuCtxDestroy_v2(own));
}

/* The library would start CUDA, which does not outlive a fork: a child asks. */
static int look_for_gpu(void) {
  const char *words = getenv("POOLGRAD_DEVICES");
  if (words != NULL && strncmp(words, "cuda", 4) != 0)
    return skip_without_gpu("POOLGRAD_DEVICES does not name one");
  setenv("POOLGRAD_DEVICES", "cuda", 1);
  if (aclInit(NULL) == ACL_SUCCESS) return 0;
  return skip_without_gpu(aclGetRecentErrMsg());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(devices_are_those_listed_and_visible),
      APART(a_gpu_that_is_not_there_is_refused),
      APART(a_gpu_given_twice_is_its_own_peer),
      APART(its_two_devices_have_contexts_of_their_own),
      APART(memory_is_copied_between_devices),
      APART(two_threads_use_a_gpu_and_the_cpu_in_turns),
      APART(two_threads_use_a_gpu_given_twice),
      APART(what_is_current_for_cuda_stays_so),
  };
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    const int answer = look_for_gpu();
    (void)fflush(NULL);
    _exit(answer);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
  if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
