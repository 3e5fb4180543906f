/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: their lives, their attributes, and the program's functions in them. */
#include <string.h>

#include "stress.h"

/* --- life --- */

static void create_stream(struct turn *t) {
  static const uint32_t flags[] = {0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC,
                                   ACL_STREAM_HUGE, ACL_STREAM_PERSISTENT};
  aclrtStream stream = NULL;
  const int status = chance(t, 4) ? CALL(t, aclrtCreateStreamWithConfig,
                                         (&stream, 0, flags[pick(t, 4)]), CONTEXT_CODES)
                                  : CALL(t, aclrtCreateStream, (&stream), CONTEXT_CODES);
  if (status == 0) shelf_destroy(t, STREAMS, shelf_put(t, STREAMS, stream));
}

/* The configuration may be gone already. */
static void create_configured_stream(struct turn *t) {
  aclrtStream stream = NULL;
  if (CALL(t, aclrtCreateStreamV2, (&stream, shelf_any(t, CONFIGS)), CONTEXT_CODES,
           ACL_ERROR_RT_INVALID_HANDLE, ACL_ERROR_INVALID_PARAM) == 0)
    shelf_destroy(t, STREAMS, shelf_put(t, STREAMS, stream));
}

static void destroy_stream(struct turn *t) { shelf_destroy(t, STREAMS, shelf_any(t, STREAMS)); }

static void abort_stream(struct turn *t) {
  CALL(t, aclrtStreamAbort, (shelf_any(t, STREAMS)), STREAM_CODES);
}

static void synchronize_stream(struct turn *t) {
  aclrtStream stream = shelf_any(t, STREAMS);
  if (chance(t, 2))
    CALL(t, aclrtSynchronizeStream, (stream), STREAM_CODES, OUTCOMES);
  else
    CALL(t, aclrtSynchronizeStreamWithTimeout, (stream, (int32_t)pick(t, 10) + 1), STREAM_CODES,
         OUTCOMES, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

/* --- attributes --- */

static void configure_streams(struct turn *t) {
  void *work = &stress_words;
  size_t bytes = sizeof stress_words, flag = ACL_STREAM_FAST_LAUNCH;
  uint32_t priority = (uint32_t)pick(t, 8);
  aclrtStreamConfigHandle *handle = MAKE(t, aclrtCreateStreamConfigHandle, ());
  CALL(t, aclrtSetStreamConfigOpt, (handle, ACL_RT_STREAM_WORK_ADDR_PTR, &work, sizeof work), 0);
  CALL(t, aclrtSetStreamConfigOpt, (handle, ACL_RT_STREAM_WORK_SIZE, &bytes, sizeof bytes), 0);
  CALL(t, aclrtSetStreamConfigOpt, (handle, ACL_RT_STREAM_FLAG, &flag, sizeof flag), 0);
  CALL(t, aclrtSetStreamConfigOpt, (handle, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority), 0);
  shelf_destroy(t, CONFIGS, shelf_put(t, CONFIGS, handle));
}

static void destroy_configuration(struct turn *t) {
  shelf_destroy(t, CONFIGS, shelf_take(t, CONFIGS)); /* an address: only its taker may end it */
}

static void set_attributes(struct turn *t) {
  aclrtStream stream = shelf_any(t, STREAMS);
  aclrtStreamAttrValue value;
  memset(&value, 0, sizeof value);
  const aclrtStreamAttr attribute = (aclrtStreamAttr)(pick(t, 5) + 1);
  value.priority = (uint32_t)pick(t, 2);
  CALL(t, aclrtSetStreamAttribute, (stream, attribute, &value), STREAM_CODES);
  CALL(t, aclrtGetStreamAttribute, (stream, attribute, &value), STREAM_CODES);
  CALL(t, aclrtSetStreamFailureMode, (stream, pick(t, 4) == 0), STREAM_CODES);
  CALL(t, aclrtSetStreamOverflowSwitch, (stream, 1), STREAM_CODES);
}

static void ask_about_stream(struct turn *t) {
  aclrtStream stream = shelf_any(t, STREAMS);
  aclrtStreamStatus status;
  int32_t id = 0, least = 0, greatest = 0;
  uint32_t number = 0;
  CALL(t, aclrtStreamQuery, (stream, &status), STREAM_CODES);
  CALL(t, aclrtStreamGetId, (stream, &id), STREAM_CODES);
  CALL(t, aclrtStreamGetPriority, (stream, &number), STREAM_CODES);
  CALL(t, aclrtStreamGetFlags, (stream, &number), STREAM_CODES);
  CALL(t, aclrtGetStreamOverflowSwitch, (stream, &number), STREAM_CODES);
  CALL(t, aclrtGetStreamAvailableNum, (&number), CONTEXT_CODES);
  CALL(t, aclrtDeviceGetStreamPriorityRange, (&least, &greatest), 0);
  if (TELL(t, poolgrad_cuda_stream, (stream)) == NULL && TELL(t, aclGetRecentErrMsg, ()) == NULL)
    complain(t, "poolgrad_cuda_stream gave NULL without a sentence");
}

static void limit_streams(struct turn *t) {
  aclrtStream stream = shelf_any(t, STREAMS);
  uint32_t value = 0;
  CALL(t, aclrtSetStreamResLimit, (stream, ACL_RT_DEV_RES_CUBE_CORE, 1), STREAM_CODES);
  CALL(t, aclrtGetStreamResLimit, (stream, ACL_RT_DEV_RES_CUBE_CORE, &value), STREAM_CODES);
  CALL(t, aclrtUseStreamResInCurrentThread, (stream), STREAM_CODES);
  CALL(t, aclrtUnuseStreamResInCurrentThread, (stream), STREAM_CODES);
  CALL(t, aclrtResetStreamResLimit, (stream), STREAM_CODES);
}

/* --- the program's functions --- */

static atomic_ulong functions_run;

static void count_function(void *unused) {
  (void)unused;
  atomic_fetch_add(&functions_run, 1);
}

/* What would wait for the function's own stream is refused, whatever else goes on. */
static void misbehave(void *unused) {
  static struct worker inside = {.number = -1};
  struct turn t = {.worker = &inside, .state = atomic_fetch_add(&functions_run, 1)};
  (void)unused;
  if (CALL(&t, aclFinalize, (), ACL_ERROR_RT_FEATURE_NOT_SUPPORT) == 0 ||
      CALL(&t, aclInit, (NULL), ACL_ERROR_RT_FEATURE_NOT_SUPPORT) == 0 ||
      CALL(&t, aclrtResetDevice, (0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT) == 0 ||
      CALL(&t, aclrtResetDeviceForce, (1), ACL_ERROR_RT_FEATURE_NOT_SUPPORT) == 0)
    complain(&t, "a call that ends streams was obeyed inside a stream's work");
}

static void launch_host_function(struct turn *t) {
  aclrtStream stream = shelf_any(t, STREAMS);
  CALL(t, aclrtLaunchHostFunc, (stream, chance(t, 8) ? misbehave : count_function, NULL),
       STREAM_CODES);
}

static void subscribe(struct turn *t) {
  aclrtStream stream = shelf_any(t, STREAMS);
  const uint64_t thread = atomic_load(&stress_report_thread);
  if (chance(t, 2))
    CALL(t, aclrtSubscribeReport, (thread, stream), STREAM_CODES, ACL_ERROR_RT_STREAM_SUBSCRIBE);
  else
    CALL(t, aclrtUnSubscribeReport, (thread, stream), STREAM_CODES, ACL_ERROR_RT_STREAM_NO_CB_REG,
         ACL_ERROR_RT_THREAD_SUBSCRIBE);
}

/* Blocking ones are served by the report thread, or end with the subscription. */
static void launch_callback(struct turn *t) {
  aclrtStream stream = shelf_any(t, STREAMS);
  CALL(t, aclrtLaunchCallback,
       (count_function, NULL, chance(t, 2) ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream),
       STREAM_CODES, ACL_ERROR_RT_STREAM_NO_CB_REG);
}

/* Some other thread may end the context at any moment; nothing of that may keep this from
 * returning. */
static void serve_oneself(struct turn *t) {
  aclrtStream stream = NULL;
  const uint64_t self = (uint64_t)pthread_self();
  if (CALL(t, aclrtCreateStream, (&stream), CONTEXT_CODES) != 0) return;
  CALL(t, aclrtSubscribeReport, (self, stream), STREAM_CODES, ACL_ERROR_RT_STREAM_SUBSCRIBE);
  CALL(t, aclrtLaunchCallback,
       (count_function, NULL, chance(t, 2) ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream),
       STREAM_CODES, ACL_ERROR_RT_STREAM_NO_CB_REG);
  CALL(t, aclrtProcessReport, ((int32_t)pick(t, 50) + 1), ACL_ERROR_RT_THREAD_SUBSCRIBE,
       ACL_ERROR_RT_REPORT_TIMEOUT);
  CALL(t, aclrtUnSubscribeReport, (self, stream), STREAM_CODES, ACL_ERROR_RT_STREAM_NO_CB_REG);
  CALL(t, aclrtDestroyStream, (stream), STREAM_CODES);
}

/* --- being told of failures --- */

static void hear(aclrtExceptionInfo *info) {
  static struct worker inside = {.number = -2};
  struct turn t = {.worker = &inside, .state = 0};
  (void)aclrtGetTaskIdFromExceptionInfo(info);
  (void)aclrtGetThreadIdFromExceptionInfo(info);
  if (aclrtGetStreamIdFromExceptionInfo(info) == UINT32_MAX ||
      aclrtGetDeviceIdFromExceptionInfo(info) >= ALL_DEVICES)
    complain(&t, "an exception names no stream or device");
  const uint32_t code = aclrtGetErrorCodeFromExceptionInfo(info);
  if (code != ACL_ERROR_RT_WAIT_TIMEOUT && code != ACL_ERROR_RT_AICORE_EXCEPTION)
    complain(&t, "an exception has the code %u", code);
}

static void hear_too(aclrtExceptionInfo *info) { hear(info); }

static void listen(struct turn *t) {
  CALL(t, aclrtSetExceptionInfoCallback, (chance(t, 2) ? hear : NULL), 0);
  if (chance(t, 2))
    CALL(t, aclrtExceptionInfoCallbackRegister, (hear_too), 0);
  else
    CALL(t, aclrtExceptionInfoCallbackUnregister, (hear_too), ACL_ERROR_RT_PARAM_INVALID);
}

const struct row stream_rows[] = {
    ROW(create_stream, 60, ANY_WEATHER),
    ROW(create_configured_stream, 15, ANY_WEATHER),
    ROW(destroy_stream, 25, ENDS),
    ROW(abort_stream, 15, ENDS),
    ROW(synchronize_stream, 60, ANY_WEATHER),
    ROW(configure_streams, 15, ANY_WEATHER),
    ROW(destroy_configuration, 8, ANY_WEATHER),
    ROW(set_attributes, 20, ANY_WEATHER),
    ROW(ask_about_stream, 20, ANY_WEATHER),
    ROW(limit_streams, 8, ANY_WEATHER),
    ROW(launch_host_function, 40, ANY_WEATHER),
    ROW(subscribe, 20, ANY_WEATHER),
    ROW(launch_callback, 40, ANY_WEATHER),
    ROW(serve_oneself, 6, ANY_WEATHER),
    ROW(listen, 6, ANY_WEATHER),
    {NULL, 0, 0, NULL},
};
