/* SPDX-License-Identifier: Apache-2.0 */
/* What concerns the whole process: begin and end, versions, options, the log, errors; forks and
 * cancelled threads. */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "hccl/hccl.h"
#include "stress.h"

/* --- begin and end --- */

static void init(struct turn *t) {
  CALL(t, aclInit, (chance(t, 2) ? NULL : ""), ACL_ERROR_REPEAT_INITIALIZE);
  CALL(t, aclnnInit, (NULL), 0);
  CALL(t, aclnnFinalize, (), 0);
}

static void finalize(struct turn *t) {
  CALL(t, aclFinalize, (), ACL_ERROR_REPEAT_FINALIZE);
  if (chance(t, 2)) CALL(t, aclInit, (NULL), ACL_ERROR_REPEAT_INITIALIZE);
}

static void finalize_reference(struct turn *t) {
  uint64_t left = 0;
  CALL(t, aclFinalizeReference, (&left), ACL_ERROR_REPEAT_FINALIZE);
}

/* --- questions and settings --- */

static void ask_for_versions(struct turn *t) {
  int32_t major = 0, minor = 0, patch = 0, number = 0, value = 0;
  char name[] = "runtime", text[ACL_PKG_VERSION_MAX_SIZE];
  aclCANNPackageVersion version;
  const aclCannAttr *attributes = NULL;
  size_t count = 0;
  CALL(t, aclrtGetVersion, (&major, &minor, &patch), 0);
  CALL(t, aclsysGetCANNVersion, (ACL_PKG_NAME_RUNTIME, &version), ACL_ERROR_INVALID_FILE);
  CALL(t, aclsysGetVersionStr, (name, text), ACL_ERROR_INVALID_FILE);
  CALL(t, aclsysGetVersionNum, (name, &number), ACL_ERROR_INVALID_FILE);
  CALL(t, aclGetCannAttributeList, (&attributes, &count), 0);
  CALL(t, aclGetCannAttribute, (ACL_CANN_ATTR_BF16, &value), 0);
  if (strlen(TELL(t, aclrtGetSocName, ())) == 0 || strlen(TELL(t, poolgrad_version, ())) == 0 ||
      strlen(TELL(t, poolgrad_isa, ())) == 0 || TELL(t, poolgrad_devices, ())[0] != '0')
    complain(t, "a name is empty");
}

static void set_options(struct turn *t) {
  int64_t value = -1;
  const aclSysParamOpt option = ACL_OPT_ENABLE_DEBUG_KERNEL;
  CALL(t, aclrtSetSysParamOpt, (option, (int64_t)pick(t, 2)), 0);
  if (CALL(t, aclrtGetSysParamOpt, (option, &value), 0) == 0 && (value < 0 || value > 1))
    complain(t, "an option has the value %d", (int)value);
}

/* Values of several lengths, so that a value that is read is one that was set. */
static void set_compile_options(struct turn *t) {
  static const char *const words[] = {"", "enable", "a value that is longer than the others"};
  char value[64] = "?";
  CALL(t, aclSetCompileopt, (ACL_AUTO_TUNE_MODE, words[pick(t, 3)]), 0);
  if (TELL(t, aclGetCompileoptSize, (ACL_AUTO_TUNE_MODE)) > sizeof value)
    complain(t, "the value of an option grew");
  CALL(t, aclGetCompileopt, (ACL_AUTO_TUNE_MODE, value, sizeof value), 0);
  if (strcmp(value, words[0]) != 0 && strcmp(value, words[1]) != 0 && strcmp(value, words[2]) != 0)
    complain(t, "an option has the value '%s'", value);
}

/* What there is no way to do here says so at once. */
static void call_the_unsupported(struct turn *t) {
  HcclComm comm = NULL;
  HcclRootInfo root;
  int32_t pid = 0;
  void *handle = NULL;
  CALL(t, aclrtDeviceGetBareTgid, (&pid), 0);
  if (pid != getpid()) complain(t, "the process has the number %d", (int)pid);
  CALL(t, aclmdlInitDump, (), ACL_ERROR_API_NOT_SUPPORT);
  CALL(t, aclmdlSetDump, ("dump.json"), ACL_ERROR_API_NOT_SUPPORT);
  CALL(t, aclmdlFinalizeDump, (), ACL_ERROR_API_NOT_SUPPORT);
  CALL(t, aclrtBinaryLoadFromData, ("", 1, NULL, &handle), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CALL(t, aclrtBinaryGetFunction, (NULL, "", &handle), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CALL(t, aclrtGetFunctionAddr, (NULL, &handle, &handle), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CALL(t, HcclGetRootInfo, (&root), HCCL_E_NOT_SUPPORT);
  CALL(t, HcclCommInitRootInfo, (1, &root, 0, &comm), HCCL_E_NOT_SUPPORT);
  CALL(t, HcclCommInitAll, (1, &pid, &comm), HCCL_E_NOT_SUPPORT);
  CALL(t, HcclAllReduce, (NULL, NULL, 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, NULL),
       HCCL_E_NOT_SUPPORT);
  CALL(t, HcclBroadcast, (NULL, 1, HCCL_DATA_TYPE_FP32, 0, comm, NULL), HCCL_E_NOT_SUPPORT);
  CALL(t, HcclReduceScatter, (NULL, NULL, 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, NULL),
       HCCL_E_NOT_SUPPORT);
  CALL(t, HcclAllGather, (NULL, NULL, 1, HCCL_DATA_TYPE_FP32, comm, NULL), HCCL_E_NOT_SUPPORT);
  CALL(t, HcclSend, (NULL, 1, HCCL_DATA_TYPE_FP32, 0, comm, NULL), HCCL_E_NOT_SUPPORT);
  CALL(t, HcclRecv, (NULL, 1, HCCL_DATA_TYPE_FP32, 0, comm, NULL), HCCL_E_NOT_SUPPORT);
  CALL(t, HcclCommDestroy, (comm), HCCL_E_NOT_SUPPORT);
  if (comm != NULL || handle != NULL) complain(t, "a call that failed left a result");
}

static void set_threads(struct turn *t) {
  CALL(t, poolgrad_set_threads, ((int)pick(t, 4)), 0);
  if (TELL(t, poolgrad_threads, ()) < 1) complain(t, "kernels have no thread");
}

static void log_something(struct turn *t) {
  enter(t, "aclAppLog");
  ACL_APP_LOG(ACL_INFO, "step %d of worker %d", (int)t->worker->step, t->worker->number);
}

/* The last error is the thread's own, and reading clears. */
static void ask_for_errors(struct turn *t) {
  (void)TELL(t, aclrtGetLastError, (ACL_RT_THREAD_LEVEL));
  (void)TELL(t, aclGetRecentErrMsg, ());
  if (TELL(t, aclGetRecentErrMsg, ()) != NULL) complain(t, "a sentence was not cleared");
  CALL(t, aclrtSetDevice, (ALL_DEVICES), ACL_ERROR_RT_INVALID_DEVICEID);
  if (TELL(t, aclrtPeekAtLastError, (ACL_RT_THREAD_LEVEL)) != ACL_ERROR_RT_INVALID_DEVICEID ||
      TELL(t, aclrtGetLastError, (ACL_RT_THREAD_LEVEL)) != ACL_ERROR_RT_INVALID_DEVICEID ||
      TELL(t, aclrtPeekAtLastError, (ACL_RT_THREAD_LEVEL)) != ACL_SUCCESS)
    complain(t, "the last error is not this thread's");
}

/* --- forks --- */

enum { CHILD_SECONDS = 50 };

/* In the child: ends it with a number that tells which expectation failed. */
static void expect(bool condition, int number) {
  if (!condition) _exit(number);
}

/* Descriptions and questions work; what needs a thread or a context fails with a sentence. */
static void be_the_child(struct turn *t) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  _exit(0); /* a child may find the sanitizer's own allocator locked */
#endif
  const int64_t dims[] = {1, 1, 2, 2}, two[] = {2}, none[] = {0};
  uint64_t bytes = 0;
  uint32_t count = 0;
  void *memory = NULL;
  aclOpExecutor *executor = NULL;
  (void)signal(SIGALRM, SIG_DFL);
  (void)alarm(CHILD_SECONDS); /* the end of a child that hangs */
  (void)aclGetRecentErrMsg();
  expect(aclrtSynchronizeStream((aclrtStream)8) != ACL_SUCCESS, 1);
  expect(aclGetRecentErrMsg() != NULL, 2);
  aclrtStream stream = shelf_any(t, STREAMS);
  if (stream != NULL) expect(aclrtSynchronizeStream(stream) != ACL_SUCCESS, 3);
  (void)aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_NORMAL_ONLY);
  expect(memory == NULL, 4);
  aclTensor *tensor = aclCreateTensor(dims, 4, ACL_FLOAT, NULL, 0, ACL_FORMAT_NCHW, dims, 4, NULL);
  aclIntArray *kernel = aclCreateIntArray(two, 1), *pad = aclCreateIntArray(none, 1);
  expect(tensor != NULL && kernel != NULL && pad != NULL, 5);
  expect(aclnnAvgPool2dBackwardGetWorkspaceSize(tensor, tensor, kernel, NULL, pad, false, true, 0,
                                                0, tensor, &bytes, &executor) == 161002,
         6);
  expect(aclDestroyTensor(tensor) == 0 && aclDestroyIntArray(kernel) == 0, 7);
  expect(aclrtGetDeviceCount(&count) == ACL_SUCCESS && count == ALL_DEVICES, 8);
  (void)aclDestroyTensor(shelf_any(t, TENSORS));
  ACL_APP_LOG(ACL_INFO, "a child");
  _exit(0);
}

static void fork_a_child(struct turn *t) {
  int status = -1;
  enter(t, "fork");
  const pid_t child = fork();
  if (child == 0) be_the_child(t);
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    complain(t, "a child ended with status 0x%x (14: it hung)", (unsigned)status);
}

/* --- cancelled threads --- */

struct victim {
  struct worker *worker;
  uint64_t state;
};

static void *make_calls_until_cancelled(void *argument) {
  const struct victim *victim = argument;
  make_some_steps(victim->worker, victim->state, 1000);
  return NULL;
}

/* The caller waits, so the thread may use the caller's memory. */
static void cancel_a_thread(struct turn *t) {
  struct victim victim = {t->worker, pick(t, UINT64_MAX)};
  const uint64_t patience = pick(t, 200);
  const uint64_t step = t->worker->step;
  pthread_t thread;
  enter(t, "pthread_create");
  if (pthread_create(&thread, NULL, make_calls_until_cancelled, &victim) != 0) return;
  for (uint64_t i = 0; i < patience; i++) sched_yield();
  (void)pthread_cancel(thread);
  (void)pthread_join(thread, NULL);
  t->worker->step = step;
}

const struct row process_rows[] = {
    ROW(init, 10, ANY_WEATHER),
    ROW(finalize, 3, STORMY | ENDS),
    ROW(finalize_reference, 3, STORMY | ENDS),
    ROW(ask_for_versions, 4, ANY_WEATHER),
    ROW(set_options, 6, ANY_WEATHER),
    ROW(set_compile_options, 4, ANY_WEATHER),
    ROW(call_the_unsupported, 2, ANY_WEATHER),
    ROW(set_threads, 4, ANY_WEATHER),
    ROW(log_something, 6, ANY_WEATHER),
    ROW(ask_for_errors, 6, ANY_WEATHER),
    ROW(fork_a_child, 1, UNCANCELLED),
    ROW(cancel_a_thread, 3, UNCANCELLED),
    {NULL, 0, 0, NULL},
};
