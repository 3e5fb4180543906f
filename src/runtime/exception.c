/* SPDX-License-Identifier: Apache-2.0 */
/* Who wants to hear of a stream's failure at the moment it happens. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/fork.h"
#include "runtime/stream.h"
#include "runtime/strict.h"

enum { LISTENERS_MAX = 16 };

struct rtExceptionInfo {
  uint32_t task, stream, thread, device, code;
};

/* Guards the list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static aclrtExceptionInfoCallback single; /* aclrtSetExceptionInfoCallback: the latest one only */
static aclrtExceptionInfoCallback listeners[LISTENERS_MAX];
static int listener_count;

PG_HOLD_ACROSS_FORK(lock, PG_FORK_INNER);

void pg_exception_report(const struct pg_queue_options *queue, uint64_t ticket,
                         const struct pg_failure *failure) {
  if (failure->code == ACL_ERROR_RT_WAIT_TIMEOUT) pg_strict_broken(queue->stream_id);
  aclrtExceptionInfoCallback call[LISTENERS_MAX + 1];
  pthread_mutex_lock(&lock);
  int count = listener_count;
  memcpy(call, listeners, sizeof listeners);
  if (single != NULL) call[count++] = single;
  pthread_mutex_unlock(&lock);
  struct rtExceptionInfo info = {.task = (uint32_t)ticket,
                                 .stream = (uint32_t)queue->stream_id,
                                 .thread = (uint32_t)syscall(SYS_gettid),
                                 .device = (uint32_t)queue->device_id,
                                 .code = (uint32_t)failure->code};
  pg_inside_work++;
  for (int i = 0; i < count; i++) call[i](&info);
  pg_inside_work--;
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  pthread_mutex_lock(&lock);
  single = callback;
  pthread_mutex_unlock(&lock);
  return ACL_SUCCESS;
}

static int find(aclrtExceptionInfoCallback callback) {
  int i = 0;
  while (i < listener_count && listeners[i] != callback) i++;
  return i;
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  PG_CHECK(callback != NULL, ACL_ERROR_RT_PARAM_INVALID,
           "callback is NULL, a function is required");
  pthread_mutex_lock(&lock);
  const bool known = find(callback) < listener_count;
  const bool full = !known && listener_count == LISTENERS_MAX;
  if (!known && !full) listeners[listener_count++] = callback;
  pthread_mutex_unlock(&lock);
  PG_CHECK(!full, ACL_ERROR_RT_OVER_LIMIT, "%d callbacks are registered, no more fit",
           LISTENERS_MAX);
  return ACL_SUCCESS;
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  PG_CHECK(callback != NULL, ACL_ERROR_RT_PARAM_INVALID,
           "callback is NULL, a function is required");
  pthread_mutex_lock(&lock);
  const int i = find(callback);
  const bool known = i < listener_count;
  if (known) listeners[i] = listeners[--listener_count];
  pthread_mutex_unlock(&lock);
  PG_CHECK(known, ACL_ERROR_RT_PARAM_INVALID, "callback was not registered");
  return ACL_SUCCESS;
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info) {
  return info == NULL ? UINT32_MAX : info->task;
}
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info) {
  return info == NULL ? UINT32_MAX : info->stream;
}
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info) {
  return info == NULL ? UINT32_MAX : info->thread;
}
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info) {
  return info == NULL ? UINT32_MAX : info->device;
}
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info) {
  return info == NULL ? UINT32_MAX : info->code;
}

/* The devices here have no hardware faults to tell of. */
aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo) {
  struct pg_device device;
  PG_CHECK_PTR(errorInfo, ACL_ERROR_INVALID_PARAM);
  PG_TRY(pg_device_find(__func__, deviceId, &device));
  memset(errorInfo, 0, sizeof *errorInfo);
  errorInfo->errorType = ACL_RT_NO_ERROR;
  return ACL_SUCCESS;
}
