/* SPDX-License-Identifier: Apache-2.0 */
/* Two backends in one process: copies, fills and waits that one must do for the other, and what
 * neither can do.  The second one is the tests' own (second_backend/), so that no GPU is needed. */
#include "apart.h"

#include <dlfcn.h>
#include <limits.h>

#include "blocked_call.h"
#include "fill_operator.h"
#include "poolgrad.h"
#include "runtime/backend.h"
#include "second_backend/second_backend.h"

enum { FIRST, SECOND, CPU, DEVICES }; /* ids: both of the plug-in's, then the CPU */
enum { BYTES = 4096 };

static struct second_backend *second;
static aclrtStream streams[DEVICES];

/* Loads the plug-in, which lies beside this program, and tells it what it is made of. */
static void load_plugin(const char *absence) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
  assert_true(length > 0);
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, "libsecond_backend.so");
  void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (file == NULL) fail_msg("%s", dlerror());
  second_backend_fn *entry;
  *(void **)&entry = dlsym(file, "second_backend");
  assert_non_null(entry);
  second = entry();
  second->cpu = &pg_backend_cpu;
  second->absence = absence;
  setenv("POOLGRAD_CUDA", path, 1);
}

static int set_up_both(void **state) {
  (void)state;
  if (second == NULL) load_plugin(NULL);
  atomic_store(&second->refusal, ACL_SUCCESS);
  atomic_store(&second->captured, false);
  setenv("POOLGRAD_DEVICES", "cuda,cpu", 1);
  OK_OR_SAY(aclInit(NULL));
  for (int i = 0; i < DEVICES; i++) {
    OK_OR_SAY(aclrtSetDevice(i));
    OK_OR_SAY(aclrtCreateStream(&streams[i]));
  }
  atomic_store(&second->copies, 0);
  sem_init(&gate, 0, 0);
  return 0;
}

static int tear_down_both(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) sem_post(&gate);
  for (int i = 0; i < DEVICES; i++) (void)aclrtResetDeviceForce(i);
  const int status = aclFinalize() != ACL_SUCCESS;
  sem_destroy(&gate);
  return status;
}

/* The device's stream, which only threads with its context may use. */
static aclrtStream on(int device) {
  OK_OR_SAY(aclrtSetDevice(device));
  return streams[device];
}

static void *memory_on(int device, int value) {
  void *memory;
  OK_OR_SAY(aclrtSetDevice(device));
  OK_OR_SAY(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_NORMAL_ONLY));
  memset(memory, value, BYTES);    /* it is the CPU's in truth */
  atomic_store(&second->fills, 0); /* the padding's */
  return memory;
}

static void expect_bytes(const void *memory, int value) {
  for (int i = 0; i < BYTES; i++) assert_int_equal(((const unsigned char *)memory)[i], value);
}

/* --- which devices there are --- */

static void both_backends_have_devices(void **state) {
  (void)state;
  uint32_t count = 0;
  OK_OR_SAY(aclrtGetDeviceCount(&count));
  assert_int_equal(count, DEVICES);
  const char *text = poolgrad_devices();
  assert_int_equal(strncmp(text, "0: second 0\n1: second 1\n2: cpu (", 32), 0);
  assert_null(strstr(text, "not used"));
  assert_non_null(poolgrad_cuda_stream(on(SECOND)));
  assert_null(poolgrad_cuda_stream(on(CPU)));
}

static void the_best_backend_serves_by_default(void **state) {
  (void)state;
  uint32_t count = 0;
  load_plugin(NULL);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtGetDeviceCount(&count));
  assert_int_equal(count, SECOND_DEVICES);
  OK_OR_SAY(aclFinalize());
  setenv("POOLGRAD_DEVICES", "cpu,cuda:1", 1);
  OK_OR_SAY(aclInit(NULL));
  assert_non_null(strstr(poolgrad_devices(), "\n1: second 1\n"));
  OK_OR_SAY(aclFinalize());
  setenv("POOLGRAD_DEVICES", "cuda:2", 1);
  FAILS(aclInit(NULL), 100000, "aclInit", "'cuda:2'", "are 2 such devices");
  setenv("POOLGRAD_DEVICES", "rocm", 1);
  FAILS(aclInit(NULL), 100000, "aclInit", "'rocm'", "cuda cpu");
}

static void more_devices_than_there_is_room_for_are_left_out(void **state) {
  (void)state;
  char words[40 * 5] = "cuda";
  uint32_t count = 0;
  for (int i = 0; i < 39; i++) strcat(words, ",cuda");
  load_plugin(NULL);
  setenv("POOLGRAD_DEVICES", words, 1);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtGetDeviceCount(&count));
  assert_int_equal(count, 64);
  OK_OR_SAY(aclrtSetDevice(63));
  FAILS(aclrtSetDevice(64), 107001, "aclrtSetDevice", "there are 64 devices");
}

static void a_plugin_that_cannot_serve_says_why(void **state) {
  (void)state;
  load_plugin("its fan is broken");
  OK_OR_SAY(aclInit(NULL));
  assert_non_null(strstr(poolgrad_devices(), "\ncuda: not used, its fan is broken\n"));
  OK_OR_SAY(aclFinalize());
  setenv("POOLGRAD_DEVICES", "cuda", 1);
  FAILS(aclInit(NULL), 100000, "aclInit", "'cuda'", "its fan is broken", "cpu is always there");
}

/* --- copies and fills --- */

/* Whatever device is current, and on whichever side: only the plug-in gets at its memory. */
static void the_backend_whose_memory_it_is_copies(void **state) {
  (void)state;
  unsigned char *there = memory_on(SECOND, 1), *here = memory_on(CPU, 2);
  OK_OR_SAY(aclrtMemcpy(there, BYTES, here, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE));
  expect_bytes(there, 2);
  assert_int_equal(atomic_load(&second->copies), 1);
  memset(there, 3, BYTES);
  OK_OR_SAY(aclrtMemcpy(here, BYTES, there, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE));
  expect_bytes(here, 3);
  assert_int_equal(atomic_load(&second->copies), 2);
  OK_OR_SAY(aclrtMemcpy2d(there + 1, 64, here, 32, 32, 9, ACL_MEMCPY_DEVICE_TO_DEVICE));
  assert_int_equal(atomic_load(&second->copies), 3);
  OK_OR_SAY(aclrtMemset(there, BYTES, 4, BYTES));
  expect_bytes(there, 4);
  assert_int_equal(atomic_load(&second->fills), 1);
  OK_OR_SAY(aclrtMemcpy(here, BYTES, here + 64, 32, ACL_MEMCPY_DEVICE_TO_DEVICE));
  OK_OR_SAY(aclrtMemset(here, BYTES, 5, BYTES));
  expect_bytes(here, 5);
  assert_int_equal(atomic_load(&second->copies), 3);
  assert_int_equal(atomic_load(&second->fills), 1);
}

static void a_stream_has_the_other_backend_copy_and_fill(void **state) {
  (void)state;
  unsigned char *there = memory_on(SECOND, 1), *here = memory_on(CPU, 2);
  const aclrtStream stream_here = on(CPU);
  OK_OR_SAY(aclrtMemcpyAsync(there, BYTES, here, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_here));
  OK_OR_SAY(aclrtSynchronizeStream(stream_here));
  expect_bytes(there, 2);
  assert_int_equal(atomic_load(&second->copies), 1);
  OK_OR_SAY(aclrtMemsetAsync(there, BYTES, 6, BYTES, stream_here));
  OK_OR_SAY(aclrtSynchronizeStream(stream_here));
  expect_bytes(there, 6);
  assert_int_equal(atomic_load(&second->fills), 1);
  unsigned char pageable[BYTES] = {0};
  OK_OR_SAY(
      aclrtMemcpyAsync(pageable, BYTES, there, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream_here));
  expect_bytes(pageable, 6); /* such a copy is done on return */
  assert_int_equal(atomic_load(&second->copies), 2);
  /* in its own stream it is a step like any other */
  OK_OR_SAY(aclrtMemsetAsync(there, BYTES, 7, BYTES, on(SECOND)));
  OK_OR_SAY(aclrtSynchronizeStream(on(SECOND)));
  expect_bytes(there, 7);
  assert_int_equal(atomic_load(&second->fills), 1);
}

static void a_copy_or_fill_that_the_device_refuses_fails(void **state) {
  (void)state;
  unsigned char *there = memory_on(SECOND, 1), *here = memory_on(CPU, 2);
  const aclrtStream stream_here = on(CPU);
  size_t at = 9;
  atomic_store(&second->refusal, 507899);
  FAILS(aclrtMemcpy(there, BYTES, here, BYTES, ACL_MEMCPY_DEFAULT), 507899, "aclrtMemcpy",
        "the device could not copy");
  FAILS(aclrtMemset(there, BYTES, 1, BYTES), 507899, "aclrtMemset", "the device could not fill");
  void *dsts[] = {here, there}, *srcs[] = {here + 1024, here};
  size_t sizes[] = {64, 64};
  FAILS(aclrtMemcpyBatch(dsts, sizes, srcs, sizes, 2, NULL, NULL, 0, &at), 507899,
        "aclrtMemcpyBatch", "the device could not copy");
  assert_int_equal(at, 1);
  OK_OR_SAY(aclrtMemcpyAsync(there, BYTES, here, BYTES, ACL_MEMCPY_DEFAULT, stream_here));
  FAILS(aclrtSynchronizeStream(stream_here), 507899, "aclrtSynchronizeStream",
        "the device could not copy");
  OK_OR_SAY(aclrtMemsetAsync(there, BYTES, 1, BYTES, stream_here));
  FAILS(aclrtSynchronizeStream(stream_here), 507899, "aclrtSynchronizeStream",
        "the device could not fill");
  expect_bytes(there, 1);
  OK_OR_SAY(aclrtSynchronizeStream(stream_here));
}

static void aborted_copies_for_the_other_backend_are_not_done(void **state) {
  (void)state;
  unsigned char *there = memory_on(SECOND, 1), *here = memory_on(CPU, 2);
  const aclrtStream stream_here = on(CPU);
  OK_OR_SAY(aclrtLaunchHostFunc(stream_here, wait_at_gate, NULL));
  OK_OR_SAY(aclrtMemcpyAsync(there, BYTES, here, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_here));
  OK_OR_SAY(aclrtStreamAbort(stream_here));
  sem_post(&gate);
  (void)aclrtSynchronizeStream(stream_here);
  expect_bytes(there, 1);
  assert_int_equal(atomic_load(&second->copies), 0);
}

/* --- reach --- */

static aclnnStatus fill_in(void *memory, aclrtStream where) {
  aclTensor *out = tensor_of(memory);
  aclOpExecutor *executor = prepare((struct fill){.out = out, .value = 0x1234});
  const aclnnStatus status = fill_phase_2(NULL, 0, executor, where);
  aclDestroyTensor(out);
  return status;
}

static void kernels_stay_where_their_memory_is(void **state) {
  (void)state;
  uint64_t *there = memory_on(SECOND, 1), *here = memory_on(CPU, 2), own[CELLS] = {0};
  uint64_t *pinned_here, *pinned_there;
  OK_OR_SAY(aclrtMallocHost((void **)&pinned_here, BYTES));
  OK_OR_SAY(aclrtSetDevice(SECOND));
  OK_OR_SAY(aclrtMallocHost((void **)&pinned_there, BYTES));
  FAILS(fill_in(there, on(CPU)), ACLNN_ERR_PARAM_INVALID, "out lies in memory of device 1",
        "(cuda)", "out of reach", "device 2 (cpu)");
  FAILS(fill_in(here, on(SECOND)), ACLNN_ERR_PARAM_INVALID, "out lies in memory of device 2",
        "(cpu)", "out of reach", "device 1 (cuda)");
  FAILS(fill_in(pinned_here, on(SECOND)), ACLNN_ERR_PARAM_INVALID, "out of reach");
  uint64_t *const good[] = {there, here, pinned_there, own};
  const int where[] = {SECOND, CPU, CPU, CPU};
  for (int i = 0; i < 4; i++) {
    OK_OR_SAY(fill_in(good[i], on(where[i])));
    OK_OR_SAY(aclrtSynchronizeStream(on(where[i])));
    assert_int_equal(good[i][CELLS - 1], 0x1234);
  }
}

/* The first phase does not ask the CPU, which has no device in the list; it chooses when somebody
 * asks, or when a later list has it and the executor runs there. */
static void a_backend_without_devices_chooses_late(void **state) {
  (void)state;
  static uint64_t cells[CELLS];
  load_plugin(NULL);
  setenv("POOLGRAD_DEVICES", "cuda", 1);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(0));
  aclTensor *out = tensor_of(cells);
  aclOpExecutor *executor = prepare((struct fill){.out = out, .value = 0x4321});
  assert_non_null(poolgrad_method_used(executor, "cuda"));
  assert_string_equal(poolgrad_method_used(executor, "cpu"), poolgrad_method(executor, "cpu", 0));
  OK_OR_SAY(aclFinalize());
  setenv("POOLGRAD_DEVICES", "cpu", 1);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(fill_phase_2(NULL, 0, executor, NULL));
  OK_OR_SAY(aclrtSynchronizeStream(NULL));
  expect_cells(cells, 0x4321);
  OK_OR_SAY(aclDestroyTensor(out));
  OK_OR_SAY(aclFinalize());
}

static void a_stream_of_the_host_does_not_look_at_values_elsewhere(void **state) {
  (void)state;
  uint64_t *there = memory_on(SECOND, 0), *here = memory_on(CPU, 0);
  FAILS(aclrtValueWait(there, 0, ACL_STREAM_WAIT_VALUE_EQ, on(CPU)), 107000, "aclrtValueWait",
        "lies on device 1", "device 2 cannot look");
  FAILS(aclrtValueWrite(there, 1, 0, on(CPU)), 107000, "aclrtValueWrite", "lies on device 1");
  OK_OR_SAY(aclrtValueWrite(there, 1, 0, on(SECOND)));
  OK_OR_SAY(aclrtValueWrite(here, 1, 0, on(CPU)));
  OK_OR_SAY(aclrtSynchronizeStream(on(SECOND)));
  OK_OR_SAY(aclrtSynchronizeStream(on(CPU)));
  assert_int_equal(there[0] + here[0], 2);
}

static void peers_are_of_one_backend(void **state) {
  (void)state;
  int32_t reached = 9;
  OK_OR_SAY(aclrtDeviceCanAccessPeer(&reached, FIRST, SECOND));
  assert_int_equal(reached, 1);
  OK_OR_SAY(aclrtDeviceCanAccessPeer(&reached, FIRST, CPU));
  assert_int_equal(reached, 0);
  OK_OR_SAY(aclrtSetDevice(FIRST));
  OK_OR_SAY(aclrtDeviceEnablePeerAccess(SECOND, 0));
  OK_OR_SAY(aclrtDeviceDisablePeerAccess(SECOND));
  FAILS(aclrtDeviceEnablePeerAccess(CPU, 0), 207000, "aclrtDeviceEnablePeerAccess",
        "cannot reach that peer");
  atomic_store(&second->refusal, 507899);
  FAILS(aclrtDeviceEnablePeerAccess(SECOND, 0), 507899, "aclrtDeviceEnablePeerAccess",
        "the device refused the peer");
}

static void memory_that_the_device_refuses_is_not_registered(void **state) {
  (void)state;
  static _Alignas(4096) char own[BYTES];
  void *mapped;
  OK_OR_SAY(aclrtSetDevice(FIRST));
  atomic_store(&second->refusal, 507899);
  FAILS(aclrtHostRegister(own, BYTES, ACL_HOST_REGISTER_MAPPED, &mapped), 507899,
        "aclrtHostRegister", "device 0 cannot reach the range");
  FAILS(aclrtHostUnregister(own), 507911, "aclrtHostUnregister");
  atomic_store(&second->refusal, ACL_SUCCESS);
  OK_OR_SAY(aclrtHostRegister(own, BYTES, ACL_HOST_REGISTER_MAPPED, &mapped));
  OK_OR_SAY(aclrtHostUnregister(own));
}

static aclrtEvent held_event(int device) {
  aclrtEvent event;
  OK_OR_SAY(aclrtSetDevice(device));
  OK_OR_SAY(aclrtCreateEvent(&event));
  OK_OR_SAY(aclrtLaunchHostFunc(on(device), wait_at_gate, NULL));
  OK_OR_SAY(aclrtRecordEvent(event, on(device)));
  return event;
}

static void a_captured_stream_takes_no_host_work(void **state) {
  (void)state;
  atomic_store(&second->captured, true);
  FAILS(aclrtLaunchHostFunc(on(FIRST), wait_at_gate, NULL), 207000, "aclrtLaunchHostFunc",
        "is being captured");
  aclrtEvent event = held_event(CPU);
  FAILS(aclrtStreamWaitEvent(on(FIRST), event), 207000, "aclrtStreamWaitEvent",
        "is being captured");
  atomic_store(&second->captured, false);
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeStream(on(CPU)));
  OK_OR_SAY(aclrtDestroyEvent(event));
}

/* --- waits for the other backend's events --- */

static void mark_passed(void *flag) { atomic_store((atomic_bool *)flag, true); }

static void a_stream_waits_for_the_other_backends_event(void **state) {
  (void)state;
  for (int held = SECOND; held <= CPU; held++) {
    atomic_bool passed = false;
    aclrtEvent event = held_event(held);
    const aclrtStream waiting = on(held == CPU ? SECOND : CPU);
    aclrtEventWaitStatus waits;
    OK_OR_SAY(aclrtStreamWaitEvent(waiting, event));
    OK_OR_SAY(aclrtLaunchHostFunc(waiting, mark_passed, &passed));
    OK_OR_SAY(aclrtQueryEventWaitStatus(event, &waits));
    assert_int_equal(waits, ACL_EVENT_WAIT_STATUS_NOT_READY);
    FAILS(aclrtSynchronizeStreamWithTimeout(waiting, 20), 507046,
          "aclrtSynchronizeStreamWithTimeout");
    assert_false(atomic_load(&passed));
    OK_OR_SAY(aclrtDestroyEvent(event)); /* the wait keeps its point */
    assert_false(atomic_load(&passed));
    sem_post(&gate);
    OK_OR_SAY(aclrtSynchronizeStream(waiting));
    assert_true(atomic_load(&passed));
  }
}

static void a_wait_for_the_other_backend_may_run_out_of_time(void **state) {
  (void)state;
  aclrtEvent event = held_event(SECOND);
  OK_OR_SAY(aclrtStreamWaitEventWithTimeout(on(CPU), event, 1));
  FAILS(aclrtSynchronizeStream(on(CPU)), 107019, "aclrtSynchronizeStream",
        "not satisfied within 1000 ms");
  OK_OR_SAY(aclrtStreamWaitEventWithTimeout(on(CPU), event, 600));
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeStream(on(CPU)));
  OK_OR_SAY(aclrtDestroyEvent(event));
}

static void a_wait_that_the_other_backend_refuses_fails(void **state) {
  (void)state;
  aclrtEvent event = held_event(SECOND);
  atomic_store(&second->refusal, ACL_ERROR_RT_INTERNAL_ERROR);
  OK_OR_SAY(aclrtStreamWaitEvent(on(CPU), event));
  FAILS(aclrtSynchronizeStream(on(CPU)), 507000, "aclrtSynchronizeStream",
        "an event of another device could not be waited for");
  FAILS(aclrtSynchronizeEvent(event), 507000, "aclrtSynchronizeEvent", "could not be waited for");
  atomic_store(&second->refusal, ACL_SUCCESS);
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeEvent(event));
  OK_OR_SAY(aclrtDestroyEvent(event));
}

/* An abort or a forced end gives the wait up although its event never comes. */
static void a_wait_for_the_other_backend_is_given_up(void **state) {
  (void)state;
  atomic_bool passed = false;
  aclrtEvent event = held_event(SECOND);
  const aclrtStream stream_here = on(CPU);
  OK_OR_SAY(aclrtStreamWaitEvent(stream_here, event));
  OK_OR_SAY(aclrtStreamAbort(stream_here));
  OK_OR_SAY(aclrtLaunchHostFunc(stream_here, mark_passed, &passed));
  (void)aclrtSynchronizeStream(stream_here);
  assert_true(atomic_load(&passed));
  OK_OR_SAY(aclrtStreamWaitEvent(stream_here, event));
  OK_OR_SAY(aclrtDestroyStreamForce(stream_here));
  sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeStream(on(SECOND)));
  OK_OR_SAY(aclrtDestroyEvent(event));
}

#define BOTH(test) cmocka_unit_test_setup_teardown(test, set_up_both, tear_down_both)

int main(void) {
  const struct CMUnitTest tests[] = {
      APART(the_best_backend_serves_by_default),
      APART(more_devices_than_there_is_room_for_are_left_out),
      APART(a_plugin_that_cannot_serve_says_why),
      APART(a_backend_without_devices_chooses_late),
      BOTH(both_backends_have_devices),
      BOTH(the_backend_whose_memory_it_is_copies),
      BOTH(a_stream_has_the_other_backend_copy_and_fill),
      BOTH(a_copy_or_fill_that_the_device_refuses_fails),
      BOTH(aborted_copies_for_the_other_backend_are_not_done),
      BOTH(kernels_stay_where_their_memory_is),
      BOTH(a_stream_of_the_host_does_not_look_at_values_elsewhere),
      BOTH(peers_are_of_one_backend),
      BOTH(memory_that_the_device_refuses_is_not_registered),
      BOTH(a_captured_stream_takes_no_host_work),
      BOTH(a_stream_waits_for_the_other_backends_event),
      BOTH(a_wait_for_the_other_backend_may_run_out_of_time),
      BOTH(a_wait_that_the_other_backend_refuses_fails),
      BOTH(a_wait_for_the_other_backend_is_given_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
