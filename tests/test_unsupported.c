/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that exist to be refused: each has its own code and names itself, and what Ascend's
 * profiler is asked without profiling is answered. */
#include "expect.h"

#include <time.h>
#include <unistd.h>

#include "hccl/hccl.h"

/* No header declares these. */
int rtDevBinaryRegister(const void *bin, void **handle);
int rtFunctionRegister(void *binHandle, const void *stubFunc, const char *stubName,
                       const void *kernelInfoExt, uint32_t funcMode);
int rtKernelLaunch(const void *stubFunc, uint32_t blockDim, void *args, uint32_t argsSize,
                   void *smDesc, void *stream);
int rtGetC2cCtrlAddr(uint64_t *address, uint32_t *length);
int32_t MsprofRegisterCallback(uint32_t moduleId,
                               int32_t (*handle)(uint32_t type, void *data, uint32_t length));
int32_t MsprofReportApi(uint32_t nonPersistantFlag, const void *api);
int32_t MsprofReportCompactInfo(uint32_t nonPersistantFlag, void *data, uint32_t length);
int32_t MsprofReportAdditionalInfo(uint32_t nonPersistantFlag, void *data, uint32_t length);
uint64_t MsprofGetHashId(const char *hashInfo, size_t length);
uint64_t MsprofSysCycleTime(void);

union config_value {
  int32_t value;
};
HcclResult HcclSetConfig(int config, union config_value configValue);

static void dumps_are_refused(void **state) {
  (void)state;
  FAILS(aclmdlInitDump(), ACL_ERROR_API_NOT_SUPPORT, "aclmdlInitDump", "Not_Supported",
        "aclrtMemcpy");
  FAILS(aclmdlSetDump("dump.json"), ACL_ERROR_API_NOT_SUPPORT, "aclmdlSetDump", "aclrtMemcpy");
  FAILS(aclmdlSetDump(NULL), ACL_ERROR_API_NOT_SUPPORT, "aclmdlSetDump");
  FAILS(aclmdlFinalizeDump(), ACL_ERROR_API_NOT_SUPPORT, "aclmdlFinalizeDump");
}

static void kernel_binaries_are_refused(void **state) {
  (void)state;
  void *result = state;
  uint64_t address = 7;
  uint32_t length = 7;
  FAILS(aclrtBinaryLoadFromData("ELF", 3, NULL, &result), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "aclrtBinaryLoadFromData", "Not_Supported", "aclnnop/");
  FAILS(aclrtBinaryGetFunction(NULL, "f", &result), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "aclrtBinaryGetFunction");
  FAILS(aclrtGetFunctionAddr(NULL, &result, &result), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "aclrtGetFunctionAddr");
  FAILS(rtDevBinaryRegister(NULL, &result), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "rtDevBinaryRegister");
  FAILS(rtFunctionRegister(NULL, NULL, "f", NULL, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "rtFunctionRegister");
  FAILS(rtKernelLaunch(NULL, 1, NULL, 0, NULL, NULL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "rtKernelLaunch");
  FAILS(rtGetC2cCtrlAddr(&address, &length), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "rtGetC2cCtrlAddr");
  assert_ptr_equal(result, state);
  assert_true(address == 7 && length == 7);
}

static void collectives_are_refused(void **state) {
  (void)state;
  const HcclDataType type = HCCL_DATA_TYPE_FP32;
  HcclRootInfo root;
  HcclComm comm = state;
  int32_t device = 0;
  float in = 1, out = 2;
  memset(&root, 1, sizeof root);
  FAILS((int)HcclGetRootInfo(&root), HCCL_E_NOT_SUPPORT, "HcclGetRootInfo", "Not_Supported",
        "gloo");
  FAILS((int)HcclCommInitRootInfo(1, &root, 0, &comm), HCCL_E_NOT_SUPPORT, "HcclCommInitRootInfo");
  FAILS((int)HcclCommInitAll(1, &device, &comm), HCCL_E_NOT_SUPPORT, "HcclCommInitAll");
  FAILS((int)HcclCommDestroy(NULL), HCCL_E_NOT_SUPPORT, "HcclCommDestroy");
  FAILS((int)HcclAllReduce(&in, &out, 1, type, HCCL_REDUCE_SUM, NULL, NULL), HCCL_E_NOT_SUPPORT,
        "HcclAllReduce");
  FAILS((int)HcclBroadcast(&out, 1, type, 0, NULL, NULL), HCCL_E_NOT_SUPPORT, "HcclBroadcast");
  FAILS((int)HcclReduceScatter(&in, &out, 1, type, HCCL_REDUCE_MAX, NULL, NULL), HCCL_E_NOT_SUPPORT,
        "HcclReduceScatter");
  FAILS((int)HcclAllGather(&in, &out, 1, type, NULL, NULL), HCCL_E_NOT_SUPPORT, "HcclAllGather");
  FAILS((int)HcclSend(&in, 1, type, 0, NULL, NULL), HCCL_E_NOT_SUPPORT, "HcclSend");
  FAILS((int)HcclRecv(&out, 1, type, 0, NULL, NULL), HCCL_E_NOT_SUPPORT, "HcclRecv");
  assert_true(comm == (HcclComm)state && out == 2 && root.internal[HCCL_ROOT_INFO_BYTES - 1] == 1);
}

static void collectives_may_be_deterministic(void **state) {
  (void)state;
  const union config_value off = {0}, on = {1}, wrong = {-1};
  assert_int_equal(HcclSetConfig(0, off), HCCL_SUCCESS);
  assert_int_equal(HcclSetConfig(0, on), HCCL_SUCCESS);
  FAILS((int)HcclSetConfig(0, wrong), HCCL_E_NOT_SUPPORT, "HcclSetConfig", "-1");
  FAILS((int)HcclSetConfig(1, on), HCCL_E_NOT_SUPPORT, "Not_Supported", "HCCL_DETERMINISTIC");
}

static void a_refused_collective_is_no_last_error(void **state) {
  (void)state;
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  assert_int_equal(HcclCommDestroy(NULL), HCCL_E_NOT_SUPPORT);
  assert_int_equal(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
}

static void reports_to_the_profiler_are_refused(void **state) {
  (void)state;
  char data[64] = {0};
  FAILS(MsprofReportApi(0, data), -1, "MsprofReportApi", "Not_Supported", "profiler");
  FAILS(MsprofReportCompactInfo(0, data, sizeof data), -1, "MsprofReportCompactInfo");
  FAILS(MsprofReportAdditionalInfo(0, data, sizeof data), -1, "MsprofReportAdditionalInfo");
}

static int32_t never(uint32_t type, void *data, uint32_t length) {
  (void)type, (void)data, (void)length;
  abort();
}

static void a_callback_of_the_profiler_is_never_called(void **state) {
  (void)state;
  (void)aclGetRecentErrMsg();
  assert_int_equal(MsprofRegisterCallback(1, never), 0);
  assert_null(aclGetRecentErrMsg());
  FAILS(MsprofRegisterCallback(1, NULL), ACL_ERROR_INVALID_PARAM, "MsprofRegisterCallback",
        "handle");
  OK_OR_SAY(aclInit(NULL));
  OK_OR_SAY(aclFinalize());
}

static void texts_have_numbers(void **state) {
  (void)state;
  assert_true(MsprofGetHashId("", 0) == UINT64_C(0xcbf29ce484222325));
  assert_true(MsprofGetHashId("a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
  assert_true(MsprofGetHashId("foobar", 6) == UINT64_C(0x85944171f73967e8));
  assert_true(MsprofGetHashId("foobarx", 6) == MsprofGetHashId("foobar", 6));
  assert_true(MsprofGetHashId(NULL, 5) == 0);
}

static void the_clock_runs_forward(void **state) {
  (void)state;
  const struct timespec pause = {.tv_nsec = 2000000};
  const uint64_t before = MsprofSysCycleTime();
  (void)nanosleep(&pause, NULL);
  BETWEEN(MsprofSysCycleTime() - before, 2000000, INT64_C(60000000000));
}

static void the_process_has_its_number(void **state) {
  (void)state;
  int32_t pid = 0;
  OK_OR_SAY(aclrtDeviceGetBareTgid(&pid));
  assert_int_equal(pid, getpid());
  FAILS(aclrtDeviceGetBareTgid(NULL), ACL_ERROR_INVALID_PARAM, "aclrtDeviceGetBareTgid", "pid");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dumps_are_refused),
      cmocka_unit_test(kernel_binaries_are_refused),
      cmocka_unit_test(collectives_are_refused),
      cmocka_unit_test(collectives_may_be_deterministic),
      cmocka_unit_test(a_refused_collective_is_no_last_error),
      cmocka_unit_test(reports_to_the_profiler_are_refused),
      cmocka_unit_test(a_callback_of_the_profiler_is_never_called),
      cmocka_unit_test(texts_have_numbers),
      cmocka_unit_test(the_clock_runs_forward),
      cmocka_unit_test(the_process_has_its_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
