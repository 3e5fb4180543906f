/* SPDX-License-Identifier: Apache-2.0 */
/* Ways through the runtime that programs seldom take. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "aclnn/acl_meta.h"
#include "aclnn/opdev/op_errno.h"
#include "apart.h"

static sem_t gate;

static void wait_at_gate(void *unused) {
  (void)unused;
  while (sem_wait(&gate) != 0) continue;
}

static int set_up(void **state) {
  sem_init(&gate, 0, 0);
  return set_up_device(state);
}

static void count_call(void *count) { atomic_fetch_add((atomic_int *)count, 1); }

/* --- ends --- */

enum { PARTS = 12, PART_MS = 200 }; /* together longer than a reset is patient with mere waiting */

static void take_a_while(void *unused) {
  (void)unused;
  (void)nanosleep(&(struct timespec){.tv_nsec = PART_MS * 1000000L}, NULL);
}

/* The first device's stream only waits, but what it waits for gets on: nothing is discarded. */
static void a_reset_is_patient_while_another_device_gets_on(void **state) {
  (void)state;
  aclrtStream waiting, working;
  aclrtEvent event;
  atomic_int passed = 0;
  setenv("POOLGRAD_DEVICES", "cpu,cpu", 1);
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclrtSetDevice(1));
  OK_OR_SAY(aclrtCreateStream(&working));
  OK_OR_SAY(aclrtCreateEvent(&event));
  for (int i = 0; i < PARTS; i++) OK_OR_SAY(aclrtLaunchHostFunc(working, take_a_while, NULL));
  OK_OR_SAY(aclrtRecordEvent(event, working));
  OK_OR_SAY(aclrtSetDevice(0));
  OK_OR_SAY(aclrtCreateStream(&waiting));
  OK_OR_SAY(aclrtStreamWaitEvent(waiting, event));
  OK_OR_SAY(aclrtLaunchHostFunc(waiting, count_call, &passed));
  OK_OR_SAY(aclrtResetDevice(0));
  assert_int_equal(atomic_load(&passed), 1);
  OK_OR_SAY(aclrtResetDevice(1));
  OK_OR_SAY(aclFinalize());
}

/* --- callbacks --- */

static void ending_one_stream_leaves_the_callbacks_of_others(void **state) {
  (void)state;
  aclrtStream ended, other;
  atomic_int calls_of_ended = 0, calls_of_other = 0;
  const uint64_t self = (uint64_t)pthread_self();
  OK_OR_SAY(aclrtCreateStream(&ended));
  OK_OR_SAY(aclrtCreateStream(&other));
  OK_OR_SAY(aclrtSubscribeReport(self, ended));
  OK_OR_SAY(aclrtSubscribeReport(self, other));
  OK_OR_SAY(aclrtLaunchCallback(count_call, &calls_of_other, ACL_CALLBACK_NO_BLOCK, other));
  OK_OR_SAY(aclrtLaunchCallback(count_call, &calls_of_ended, ACL_CALLBACK_NO_BLOCK, ended));
  OK_OR_SAY(aclrtSynchronizeStream(other));
  OK_OR_SAY(aclrtSynchronizeStream(ended));
  OK_OR_SAY(aclrtDestroyStreamForce(ended));
  OK_OR_SAY(aclrtProcessReport(20000));
  assert_int_equal(atomic_load(&calls_of_other), 1);
  FAILS(aclrtProcessReport(10), 507012, "aclrtProcessReport");
  assert_int_equal(atomic_load(&calls_of_ended), 0);
  OK_OR_SAY(aclrtUnSubscribeReport(self, other));
  OK_OR_SAY(aclrtDestroyStream(other));
}

static void an_aborted_callback_is_not_delivered(void **state) {
  (void)state;
  aclrtStream stream;
  atomic_int calls = 0;
  const uint64_t self = (uint64_t)pthread_self();
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtSubscribeReport(self, stream));
  OK_OR_SAY(aclrtLaunchHostFunc(stream, wait_at_gate, NULL));
  OK_OR_SAY(aclrtLaunchCallback(count_call, &calls, ACL_CALLBACK_BLOCK, stream));
  OK_OR_SAY(aclrtStreamAbort(stream));
  sem_post(&gate);
  (void)aclrtSynchronizeStream(stream);
  FAILS(aclrtProcessReport(10), 507012, "aclrtProcessReport");
  assert_int_equal(atomic_load(&calls), 0);
  OK_OR_SAY(aclrtUnSubscribeReport(self, stream));
  OK_OR_SAY(aclrtDestroyStream(stream));
}

#define LISTENER(n) \
  static void listener_##n(aclrtExceptionInfo *info) { (void)info; }
LISTENER(0)
LISTENER(1)
LISTENER(2)
LISTENER(3)
LISTENER(4)
LISTENER(5)
LISTENER(6)
LISTENER(7)
LISTENER(8)
LISTENER(9)
LISTENER(10)
LISTENER(11)
LISTENER(12)
LISTENER(13)
LISTENER(14)
LISTENER(15)
LISTENER(16)

static void listeners_beyond_the_last_place_are_refused(void **state) {
  (void)state;
  static const aclrtExceptionInfoCallback all[] = {
      listener_0,  listener_1,  listener_2,  listener_3,  listener_4,  listener_5,
      listener_6,  listener_7,  listener_8,  listener_9,  listener_10, listener_11,
      listener_12, listener_13, listener_14, listener_15, listener_16};
  enum { PLACES = 16 };
  for (int i = 0; i < PLACES; i++) OK_OR_SAY(aclrtExceptionInfoCallbackRegister(all[i]));
  FAILS(aclrtExceptionInfoCallbackRegister(all[PLACES]), ACL_ERROR_RT_OVER_LIMIT,
        "aclrtExceptionInfoCallbackRegister", "16 callbacks");
  OK_OR_SAY(aclrtExceptionInfoCallbackRegister(all[3])); /* is there already */
  FAILS(aclrtExceptionInfoCallbackUnregister(all[PLACES]), 107000,
        "aclrtExceptionInfoCallbackUnregister", "not registered");
  OK_OR_SAY(aclrtExceptionInfoCallbackUnregister(all[0]));
  OK_OR_SAY(aclrtExceptionInfoCallbackRegister(all[PLACES]));
  for (int i = 1; i <= PLACES; i++) OK_OR_SAY(aclrtExceptionInfoCallbackUnregister(all[i]));
  FAILS(aclrtExceptionInfoCallbackUnregister(all[1]), 107000,
        "aclrtExceptionInfoCallbackUnregister", "not registered");
}

/* --- what is asked for --- */

static void every_attribute_of_a_device_has_its_value(void **state) {
  (void)state;
  int64_t value = -7;
  OK_OR_SAY(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_IS_VIRTUAL, &value));
  assert_int_equal(value, 0);
  OK_OR_SAY(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_PHY_CHIP_ID, &value));
  assert_int_equal(value, 0);
  value = -7;
  OK_OR_SAY(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_L2_CACHE_SIZE, &value));
  assert_true(value >= 0);
  OK_OR_SAY(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value));
  assert_true(value > 1 << 20);
  OK_OR_SAY(aclrtSetOpExecuteTimeOut(0));
  OK_OR_SAY(aclrtSetOpExecuteTimeOut(UINT32_MAX));
}

static void a_configuration_of_more_than_10_mib_is_refused(void **state) {
  (void)state;
  enum { MOST = 10 << 20 };
  char path[] = "/tmp/poolgrad-rare-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  char *text = malloc(MOST + 1);
  assert_non_null(text);
  memset(text, ' ', MOST + 1);
  memcpy(text, "{}", 2);
  assert_int_equal(write(file, text, MOST), MOST);
  OK_OR_SAY(aclInit(path)); /* as large as it may be */
  OK_OR_SAY(aclFinalize());
  assert_int_equal(write(file, text + 2, 1), 1);
  FAILS(aclInit(path), ACL_ERROR_PARSE_FILE, "aclInit", path, "larger than 10485760 bytes");
  free(text);
  close(file);
  unlink(path);
}

static void *ask_names(void *stop) {
  const char *name = "";
  while (!atomic_load((atomic_bool *)stop)) name = aclrtGetSocName();
  return (void *)(uintptr_t)name;
}

/* For ThreadSanitizer: the first aclInit chooses the product while others ask for it. */
static void the_products_name_may_be_asked_while_the_library_starts(void **state) {
  (void)state;
  pthread_t asking;
  atomic_bool stop = false;
  void *name;
  setenv("POOLGRAD_SOC", "Ascend910B3", 1);
  assert_int_equal(pthread_create(&asking, NULL, ask_names, &stop), 0);
  for (int i = 0; i < 20; i++) {
    OK_OR_SAY(aclInit(NULL));
    OK_OR_SAY(aclFinalize());
  }
  atomic_store(&stop, true);
  pthread_join(asking, &name);
  assert_string_equal(aclrtGetSocName(), "Ascend910B3");
}

/* --- objects --- */

/* With a C++ runtime in the process callers write delete[]. */
static void shapes_come_from_cpps_new_where_there_is_one(void **state) {
  (void)state;
  void *cpp = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
  if (cpp == NULL) SKIP("there is no libstdc++.so.6 here (Debian: libstdc++6)");
  void (*delete_array)(void *);
  *(void **)&delete_array = dlsym(RTLD_DEFAULT, "_ZdaPv");
  assert_non_null(delete_array);
  const int64_t dims[] = {3, 4, 5};
  aclTensor *tensor =
      aclCreateTensor(dims, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 3, (void *)(uintptr_t)64);
  int64_t *shape = NULL;
  uint64_t count = 0;
  OK_OR_SAY(aclGetViewShape(tensor, &shape, &count));
  assert_int_equal(count, 3);
  assert_memory_equal(shape, dims, sizeof dims);
  delete_array(shape);
  aclDestroyTensor(tensor);
}

static void more_tensors_than_can_be_counted_are_not_dumped(void **state) {
  (void)state;
  const int64_t dims[] = {4};
  aclTensor *tensors[] = {
      aclCreateTensor(dims, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 1, NULL), NULL};
  aclrtStream stream;
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclDumpOpTensors("type", "name", tensors, 1, 0, stream));
  OK_OR_SAY(aclDumpOpTensors("type", "name", NULL, 0, 0, stream));
  FAILS(aclDumpOpTensors("type", "name", NULL, 0, 1, stream), ACLNN_ERR_PARAM_NULLPTR,
        "tensors is NULL");
  FAILS(aclDumpOpTensors("type", "name", tensors, SIZE_MAX, 2, stream), ACLNN_ERR_PARAM_INVALID,
        "too many");
  FAILS(aclDumpOpTensors("type", "name", tensors, 1, 1, stream), ACLNN_ERR_PARAM_NULLPTR,
        "an element of tensors");
  OK_OR_SAY(aclrtDestroyStream(stream));
  aclDestroyTensor(tensors[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_device)

int main(void) {
  const struct CMUnitTest tests[] = {
      APART(a_reset_is_patient_while_another_device_gets_on),
      APART(a_configuration_of_more_than_10_mib_is_refused),
      APART(the_products_name_may_be_asked_while_the_library_starts),
      APART(shapes_come_from_cpps_new_where_there_is_one),
      TEST(ending_one_stream_leaves_the_callbacks_of_others),
      TEST(an_aborted_callback_is_not_delivered),
      TEST(listeners_beyond_the_last_place_are_refused),
      TEST(every_attribute_of_a_device_has_its_value),
      TEST(more_tensors_than_can_be_counted_are_not_dumped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
