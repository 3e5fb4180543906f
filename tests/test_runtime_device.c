/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: their ids, their count of users, what they tell of themselves, and how they end. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "expect.h"
#include "poolgrad.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_two_devices, tear_down_device)

/* The first one as the environment has it, and another. */
static int set_up_two_devices(void **state) {
  const char *devices = getenv("POOLGRAD_DEVICES");
  const bool cuda = devices != NULL && strncmp(devices, "cuda", 4) == 0;
  setenv("POOLGRAD_DEVICES", cuda ? "cuda:0,cpu" : "cpu,cpu", 1);
  return set_up_device(state);
}

static void wait_at(void *gate) {
  while (sem_wait(gate) != 0) continue;
}

static void on_new_thread(void *(*fn)(void *), void *argument) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fn, argument), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

#define NO_DEVICE(call, name) FAILS(call, 107001, name, " deviceId is", "2 devices")
#define NO_PEER(call, name) FAILS(call, 107001, name, " peerDeviceId is", "2 devices")

static void ids_outside_the_count_are_refused(void **state) {
  (void)state;
  const int32_t ids[] = {-1, 2, 64, INT32_MAX, INT32_MIN};
  const aclrtDevResLimitType cube = ACL_RT_DEV_RES_CUBE_CORE;
  aclrtDeviceStatus status;
  aclrtUtilizationInfo use;
  aclrtErrorInfo error;
  aclrtContext context;
  aclrtMemUsageInfo usage;
  size_t entries;
  int32_t number;
  uint32_t limit;
  int64_t value;
  for (size_t i = 0; i < LENGTH(ids); i++) {
    const int32_t id = ids[i];
    const uint32_t wide = (uint32_t)id;
    NO_DEVICE(aclrtSetDevice(id), "aclrtSetDevice");
    NO_DEVICE(aclrtResetDevice(id), "aclrtResetDevice");
    NO_DEVICE(aclrtResetDeviceForce(id), "aclrtResetDeviceForce");
    NO_DEVICE(aclrtCreateContext(&context, id), "aclrtCreateContext");
    NO_DEVICE(aclrtQueryDeviceStatus(id, &status), "aclrtQueryDeviceStatus");
    NO_DEVICE(aclrtGetDeviceUtilizationRate(id, &use), "aclrtGetDeviceUtilizationRate");
    NO_DEVICE(aclrtGetDeviceInfo(wide, ACL_DEV_ATTR_SMP_ID, &value), "aclrtGetDeviceInfo");
    NO_DEVICE(aclGetDeviceCapability(wide, (aclDeviceInfo)0, &value), "aclGetDeviceCapability");
    NO_DEVICE(aclrtGetDeviceCapability(id, (aclrtDevFeatureType)1, &number), "Capability");
    NO_DEVICE(aclrtGetPrimaryCtxState(id, NULL, &number), "aclrtGetPrimaryCtxState");
    NO_DEVICE(aclrtGetErrorVerbose(id, &error), "aclrtGetErrorVerbose");
    NO_DEVICE(aclrtGetDeviceResLimit(id, cube, &limit), "aclrtGetDeviceResLimit");
    NO_DEVICE(aclrtSetDeviceResLimit(id, cube, 1), "aclrtSetDeviceResLimit");
    NO_DEVICE(aclrtResetDeviceResLimit(id), "aclrtResetDeviceResLimit");
    NO_PEER(aclrtDeviceCanAccessPeer(&number, 0, id), "aclrtDeviceCanAccessPeer");
    NO_DEVICE(aclrtDeviceCanAccessPeer(&number, id, 0), "aclrtDeviceCanAccessPeer");
    NO_PEER(aclrtDeviceEnablePeerAccess(id, 0), "aclrtDeviceEnablePeerAccess");
    NO_PEER(aclrtDeviceDisablePeerAccess(id), "aclrtDeviceDisablePeerAccess");
    NO_DEVICE(aclrtGetMemUsageInfo(id, &usage, 1, &entries), "aclrtGetMemUsageInfo");
  }
}

#define NEEDS_PLACE(call, name) FAILS(call, 100000, name, "is NULL")

static void results_must_have_a_place(void **state) {
  (void)state;
  NEEDS_PLACE(aclrtGetDevice(NULL), "aclrtGetDevice");
  NEEDS_PLACE(aclrtGetDeviceCount(NULL), "aclrtGetDeviceCount");
  NEEDS_PLACE(aclrtGetRunMode(NULL), "aclrtGetRunMode");
  NEEDS_PLACE(aclrtQueryDeviceStatus(0, NULL), "aclrtQueryDeviceStatus");
  NEEDS_PLACE(aclrtGetDeviceUtilizationRate(0, NULL), "aclrtGetDeviceUtilizationRate");
  NEEDS_PLACE(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_SMP_ID, NULL), "aclrtGetDeviceInfo");
  NEEDS_PLACE(aclGetDeviceCapability(0, (aclDeviceInfo)0, NULL), "aclGetDeviceCapability");
  NEEDS_PLACE(aclrtGetDeviceCapability(0, (aclrtDevFeatureType)1, NULL), "Capability");
  NEEDS_PLACE(aclrtGetDeviceSatMode(NULL), "aclrtGetDeviceSatMode");
  NEEDS_PLACE(aclrtDeviceCanAccessPeer(NULL, 0, 1), "aclrtDeviceCanAccessPeer");
  NEEDS_PLACE(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, NULL), "ResLimit");
  NEEDS_PLACE(aclrtGetPrimaryCtxState(0, NULL, NULL), "aclrtGetPrimaryCtxState");
  NEEDS_PLACE(aclrtGetErrorVerbose(0, NULL), "aclrtGetErrorVerbose");
  NEEDS_PLACE(aclrtCheckArchCompatibility("Ascend950", NULL), "aclrtCheckArchCompatibility");
}

static int32_t is_active(int32_t device) {
  int32_t active = -1;
  OK_OR_SAY(aclrtGetPrimaryCtxState(device, NULL, &active));
  return active;
}

static void a_device_ends_with_its_last_user(void **state) {
  (void)state;
  int32_t device = -1;
  uint32_t flags = 0;
  FAILS(aclrtGetPrimaryCtxState(1, &flags, &device), 100000, "aclrtGetPrimaryCtxState", "flags");
  assert_int_equal(is_active(1), 0);
  OK_OR_SAY(aclrtSetDevice(1));
  OK_OR_SAY(aclrtSetDevice(1));
  OK_OR_SAY(aclrtResetDevice(1));
  assert_int_equal(is_active(1), 1);
  OK_OR_SAY(aclrtGetDevice(&device));
  assert_int_equal(device, 1);
  OK_OR_SAY(aclrtResetDevice(1));
  assert_int_equal(is_active(1), 0);
  assert_int_equal(is_active(0), 1);
  FAILS(aclrtGetDevice(&device), 107002, "aclrtGetDevice", "aclrtSetDevice");
  FAILS(aclrtResetDevice(1), 507007, "aclrtResetDevice", "device 1 is not set");
  FAILS(aclrtResetDeviceForce(1), 507007, "aclrtResetDeviceForce", "device 1 is not set");
}

static void force_ends_a_device_whatever_its_count(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) OK_OR_SAY(aclrtSetDevice(1));
  OK_OR_SAY(aclrtResetDeviceForce(1));
  assert_int_equal(is_active(1), 0);
  FAILS(aclrtResetDevice(1), 507007, "aclrtResetDevice", "device 1");
}

static void *call_without_context(void *argument) {
  aclError *codes = argument;
  int32_t device;
  uint32_t limit;
  codes[0] = aclrtGetDevice(&device);
  codes[1] = aclrtSynchronizeDevice();
  codes[2] = aclrtSynchronizeDeviceWithTimeout(1);
  codes[3] = aclrtDeviceEnablePeerAccess(1, 0);
  codes[4] = aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN);
  codes[5] = aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &limit);
  return NULL;
}

static void a_new_thread_has_no_context(void **state) {
  (void)state;
  aclError codes[6] = {0};
  on_new_thread(call_without_context, codes);
  for (size_t i = 0; i < LENGTH(codes); i++) assert_int_equal(codes[i], 107002);
}

struct view {
  aclrtContext context;
  aclrtStream stream;
};

static void *set_device_and_look(void *argument) {
  struct view *view = argument;
  (void)aclrtSetDevice(0);
  (void)aclrtGetCurrentContext(&view->context);
  (void)aclrtCtxGetCurrentDefaultStream(&view->stream);
  (void)aclrtResetDevice(0);
  return NULL;
}

static void threads_that_set_one_device_share_its_context(void **state) {
  (void)state;
  struct view mine, other = {NULL, NULL};
  OK_OR_SAY(aclrtGetCurrentContext(&mine.context));
  OK_OR_SAY(aclrtCtxGetCurrentDefaultStream(&mine.stream));
  on_new_thread(set_device_and_look, &other);
  assert_ptr_equal(other.context, mine.context);
  assert_ptr_equal(other.stream, mine.stream);
}

static void synchronising_a_device_may_take_limited_time(void **state) {
  (void)state;
  aclrtStream stream;
  sem_t gate;
  (void)sem_init(&gate, 0, 0);
  OK_OR_SAY(aclrtCreateStream(&stream));
  FAILS(aclrtSynchronizeDeviceWithTimeout(-2), 107000, "aclrtSynchronizeDeviceWithTimeout", "-2");
  OK_OR_SAY(aclrtLaunchHostFunc(stream, wait_at, &gate));
  FAILS(aclrtSynchronizeDeviceWithTimeout(20), 507046, "aclrtSynchronizeDeviceWithTimeout", "20");
  FAILS(aclrtSynchronizeDeviceWithTimeout(0), 507046, "aclrtSynchronizeDeviceWithTimeout");
  OK_OR_SAY(aclrtSetDevice(1)); /* the other device is idle */
  OK_OR_SAY(aclrtSynchronizeDevice());
  OK_OR_SAY(aclrtResetDevice(1));
  OK_OR_SAY(aclrtSetDevice(0));
  (void)sem_post(&gate);
  OK_OR_SAY(aclrtSynchronizeDeviceWithTimeout(-1));
  OK_OR_SAY(aclrtSynchronizeDeviceWithTimeout(0));
  OK_OR_SAY(aclrtResetDevice(0));
}

static void synchronising_a_device_tells_a_streams_error_once(void **state) {
  (void)state;
  aclrtStream stream;
  aclrtNotify notify;
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  OK_OR_SAY(aclrtWaitAndResetNotify(notify, stream, 1));
  FAILS(aclrtSynchronizeDevice(), 107019, "aclrtSynchronizeDevice", "1 ms");
  OK_OR_SAY(aclrtSynchronizeDevice());
  OK_OR_SAY(aclrtSynchronizeStream(stream));
}

static void devices_describe_themselves(void **state) {
  (void)state;
  aclrtRunMode mode = ACL_DEVICE;
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  aclrtUtilizationInfo use = {0};
  aclrtErrorInfo error;
  int32_t least = -1, greatest = -1;
  OK_OR_SAY(aclrtGetRunMode(&mode));
  assert_int_equal(mode, ACL_HOST);
  OK_OR_SAY(aclrtQueryDeviceStatus(1, &status));
  assert_int_equal(status, ACL_RT_DEVICE_STATUS_NORMAL);
  OK_OR_SAY(aclrtGetDeviceUtilizationRate(0, &use));
  assert_true(use.cubeUtilization == -1 && use.vectorUtilization == -1);
  assert_int_equal(use.aicpuUtilization, -1);
  BETWEEN(use.memoryUtilization, 0, 100);
  memset(&error, 0xff, sizeof error);
  OK_OR_SAY(aclrtGetErrorVerbose(0, &error));
  assert_int_equal(error.errorType, ACL_RT_NO_ERROR);
  OK_OR_SAY(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
  assert_true(least >= greatest && greatest >= 0);
  OK_OR_SAY(aclrtDeviceGetStreamPriorityRange(NULL, NULL));
  OK_OR_SAY(aclrtSetTsDevice(ACL_TS_ID_AICORE));
  OK_OR_SAY(aclrtSetTsDevice(ACL_TS_ID_AIVECTOR));
  FAILS(aclrtSetTsDevice(ACL_TS_ID_RESERVED), 100000, "aclrtSetTsDevice", "tsId is 2");
}

static void device_numbers_are_real_or_refused(void **state) {
  (void)state;
  const aclrtDevAttr cores[] = {ACL_DEV_ATTR_AICPU_CORE_NUM, ACL_DEV_ATTR_AICORE_CORE_NUM,
                                ACL_DEV_ATTR_CUBE_CORE_NUM, ACL_DEV_ATTR_VECTOR_CORE_NUM};
  int64_t value = 0;
  for (size_t i = 0; i < LENGTH(cores); i++) {
    OK_OR_SAY(aclrtGetDeviceInfo(1, cores[i], &value));
    assert_int_equal(value, poolgrad_threads());
  }
  OK_OR_SAY(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value));
  assert_true(value > 1 << 20);
  OK_OR_SAY(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_PHY_CHIP_ID, &value));
  assert_int_equal(value, 1);
  FAILS(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_WARP_SIZE, &value), 207000, "aclrtGetDeviceInfo", "202");
}

static void capabilities_are_told_or_refused(void **state) {
  (void)state;
  int64_t value = 0;
  int32_t feature = 9, can = 9;
  OK_OR_SAY(aclGetDeviceCapability(1, ACL_DEVICE_INFO_AI_CORE_NUM, &value));
  assert_int_equal(value, poolgrad_threads());
  OK_OR_SAY(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &value));
  assert_true(on_cuda() ? value > 0 : value == poolgrad_threads());
  OK_OR_SAY(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, &value));
  FAILS(aclGetDeviceCapability(0, (aclDeviceInfo)3, &value), 100000, "aclGetDeviceCapability", "3");
  OK_OR_SAY(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &feature));
  assert_int_equal(feature, ACL_DEV_FEATURE_NOT_SUPPORT);
  FAILS(aclrtGetDeviceCapability(0, (aclrtDevFeatureType)2, &feature), 100000, "is 2");
  OK_OR_SAY(aclrtCheckArchCompatibility("Ascend950", &can));
  assert_int_equal(can, 1);
  OK_OR_SAY(aclrtCheckArchCompatibility("Ascend910B3", &can));
  assert_int_equal(can, 0);
  OK_OR_SAY(aclrtCheckArchCompatibility("abacus", &can));
  assert_int_equal(can, 0);
}

static void peers_are_other_devices(void **state) {
  (void)state;
  SKIP_ON_CUDA("a GPU and the CPU are no peers");
  int32_t can = -1;
  OK_OR_SAY(aclrtDeviceCanAccessPeer(&can, 0, 1));
  assert_int_equal(can, 1);
  FAILS(aclrtDeviceCanAccessPeer(&can, 1, 1), 100000, "aclrtDeviceCanAccessPeer",
        "peerDeviceId is 1, the device itself");
  FAILS(aclrtDeviceEnablePeerAccess(0, 0), 100000, "aclrtDeviceEnablePeerAccess",
        "peerDeviceId is 0, the device itself");
  FAILS(aclrtDeviceEnablePeerAccess(1, 1), 107000, "aclrtDeviceEnablePeerAccess", "flags is 1");
  FAILS(aclrtDeviceDisablePeerAccess(1), 107000, "aclrtDeviceDisablePeerAccess", "not enabled");
  OK_OR_SAY(aclrtDeviceEnablePeerAccess(1, 0));
  OK_OR_SAY(aclrtDeviceDisablePeerAccess(1));
  FAILS(aclrtDeviceDisablePeerAccess(1), 107000, "aclrtDeviceDisablePeerAccess", "not enabled");
}

static void the_saturation_mode_is_kept(void **state) {
  (void)state;
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  OK_OR_SAY(aclrtGetDeviceSatMode(&mode));
  assert_int_equal(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
  OK_OR_SAY(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
  FAILS(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), 107000, "aclrtSetDeviceSatMode", "2");
  OK_OR_SAY(aclrtGetDeviceSatMode(&mode));
  assert_int_equal(mode, ACL_RT_OVERFLOW_MODE_SATURATION);
  OK_OR_SAY(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN));
}

static uint32_t thread_limit(void) {
  uint32_t value = 0;
  OK_OR_SAY(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_VECTOR_CORE, &value));
  return value;
}

static void core_limits_are_kept(void **state) {
  (void)state;
  SKIP_ON_CUDA("only the CPU device's cores can be chosen: its threads");
  const aclrtDevResLimitType type = ACL_RT_DEV_RES_VECTOR_CORE, bad = (aclrtDevResLimitType)2;
  aclrtStream stream;
  uint32_t value = 0;
  OK_OR_SAY(poolgrad_set_threads(4));
  OK_OR_SAY(aclrtCreateStream(&stream));
  OK_OR_SAY(aclrtGetDeviceResLimit(0, type, &value));
  assert_int_equal(value, 4);
  FAILS(aclrtSetDeviceResLimit(0, bad, 1), 100000, "aclrtSetDeviceResLimit", "type is 2");
  FAILS(aclrtGetResInCurrentThread(bad, &value), 100000, "aclrtGetResInCurrentThread", "type");
  FAILS(aclrtSetDeviceResLimit(0, type, 0), 107000, "aclrtSetDeviceResLimit", "1 to 4");
  FAILS(aclrtSetDeviceResLimit(0, type, 5), 107000, "aclrtSetDeviceResLimit", "1 to 4");
  FAILS(aclrtSetStreamResLimit(stream, type, 5), 107000, "aclrtSetStreamResLimit", "1 to 4");
  OK_OR_SAY(aclrtSetDeviceResLimit(0, type, 3));
  OK_OR_SAY(aclrtGetStreamResLimit(stream, type, &value));
  assert_int_equal(value, 3);
  OK_OR_SAY(aclrtSetStreamResLimit(stream, type, 2));
  assert_int_equal(thread_limit(), 3);
  OK_OR_SAY(aclrtUseStreamResInCurrentThread(stream));
  assert_int_equal(thread_limit(), 2);
  OK_OR_SAY(aclrtUnuseStreamResInCurrentThread(stream));
  assert_int_equal(thread_limit(), 3);
  OK_OR_SAY(aclrtResetStreamResLimit(stream));
  OK_OR_SAY(aclrtResetDeviceResLimit(0));
  OK_OR_SAY(aclrtGetStreamResLimit(stream, type, &value));
  assert_int_equal(value, 4);
  OK_OR_SAY(poolgrad_set_threads(0));
}

struct late {
  aclrtStream stream;
  atomic_bool done;
};

/* Ends only after somebody has begun to destroy its own stream. */
static void work_until_stale(void *argument) {
  struct late *late = argument;
  int32_t id;
  while (aclrtStreamGetId(late->stream, &id) != 107017) sched_yield();
  atomic_store(&late->done, true);
}

static void reset_waits_for_streams_and_ends_them(void **state) {
  (void)state;
  struct late late = {.done = false};
  int32_t id;
  OK_OR_SAY(aclrtCreateStream(&late.stream));
  OK_OR_SAY(aclrtLaunchHostFunc(late.stream, work_until_stale, &late));
  OK_OR_SAY(aclrtResetDevice(0));
  assert_true(atomic_load(&late.done));
  FAILS(aclrtStreamGetId(late.stream, &id), 107017, "aclrtStreamGetId", "a destroyed stream");
  FAILS(aclrtDestroyStream(late.stream), 107017, "aclrtDestroyStream", "a destroyed stream");
  FAILS(aclrtStreamGetId(NULL, &id), 107002, "aclrtStreamGetId");
}

static void finalize_ends_whatever_is_left(void **state) {
  (void)state;
  struct late late = {.done = false};
  aclrtEvent event;
  aclrtNotify notify;
  aclrtContext context;
  aclrtEventWaitStatus waiting;
  uint32_t id;
  void *memory, *host;
  OK_OR_SAY(aclrtCreateContext(&context, 1));
  OK_OR_SAY(aclrtCreateStream(&late.stream));
  OK_OR_SAY(aclrtCreateEvent(&event));
  OK_OR_SAY(aclrtCreateNotify(&notify, 0));
  OK_OR_SAY(aclrtMalloc(&memory, 1000, ACL_MEM_MALLOC_NORMAL_ONLY));
  OK_OR_SAY(aclrtMallocHost(&host, 1000));
  OK_OR_SAY(aclrtLaunchHostFunc(late.stream, work_until_stale, &late));
  OK_OR_SAY(aclrtRecordEvent(event, late.stream));
  OK_OR_SAY(aclrtStreamWaitEvent(late.stream, event));
  OK_OR_SAY(aclrtRecordNotify(notify, NULL));
  OK_OR_SAY(aclFinalize());
  assert_true(atomic_load(&late.done));
  FAILS(aclrtSynchronizeStream(late.stream), 107017, "aclrtSynchronizeStream", "destroyed stream");
  FAILS(aclrtQueryEventWaitStatus(event, &waiting), 107017, "aclrtQueryEventWaitStatus", "event");
  FAILS(aclrtGetNotifyId(notify, &id), 107017, "aclrtGetNotifyId", "destroyed notify");
  FAILS(aclrtSetCurrentContext(context), 107000, "aclrtSetCurrentContext", "destroyed context");
  FAILS(aclrtResetDevice(0), 507007, "aclrtResetDevice", "not set");
  OK_OR_SAY(aclInit(NULL));
  FAILS(aclrtFree(memory), 107000, "aclrtFree", "unknown");
  FAILS(aclrtFreeHost(host), 107000, "aclrtFreeHost", "unknown");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(ids_outside_the_count_are_refused),
      TEST(results_must_have_a_place),
      TEST(a_device_ends_with_its_last_user),
      TEST(force_ends_a_device_whatever_its_count),
      TEST(a_new_thread_has_no_context),
      TEST(threads_that_set_one_device_share_its_context),
      TEST(synchronising_a_device_may_take_limited_time),
      TEST(synchronising_a_device_tells_a_streams_error_once),
      TEST(devices_describe_themselves),
      TEST(device_numbers_are_real_or_refused),
      TEST(capabilities_are_told_or_refused),
      TEST(peers_are_other_devices),
      TEST(the_saturation_mode_is_kept),
      TEST(core_limits_are_kept),
      TEST(reset_waits_for_streams_and_ends_them),
      TEST(finalize_ends_whatever_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
