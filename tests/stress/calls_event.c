/* SPDX-License-Identifier: Apache-2.0 */
/* Events, notifies and values: what streams wait for. */
#include "stress.h"

/* --- events --- */

static void create_event(struct turn *t) {
  aclrtEvent event = NULL;
  const uint64_t kind = pick(t, 3);
  const int status =
      kind == 0   ? CALL(t, aclrtCreateEvent, (&event), CONTEXT_CODES)
      : kind == 1 ? CALL(t, aclrtCreateEventWithFlag, (&event, ACL_EVENT_TIME_LINE), CONTEXT_CODES)
                  : CALL(t, aclrtCreateEventExWithFlag, (&event, ACL_EVENT_SYNC), CONTEXT_CODES);
  if (status == 0) shelf_destroy(t, EVENTS, shelf_put(t, EVENTS, event));
}

#define EVENT_CODES ACL_ERROR_RT_INVALID_HANDLE, ACL_ERROR_INVALID_PARAM

static void destroy_event(struct turn *t) { shelf_destroy(t, EVENTS, shelf_any(t, EVENTS)); }

static void record_event(struct turn *t) {
  aclrtEvent event = shelf_any(t, EVENTS);
  aclrtStream stream = shelf_any(t, STREAMS);
  if (chance(t, 2))
    CALL(t, aclrtRecordEvent, (event, stream), EVENT_CODES, STREAM_CODES);
  else
    CALL(t, aclrtRecordEventWithFlag, (event, stream, ACL_EVENT_RECORD_EXTERNAL), EVENT_CODES,
         STREAM_CODES);
}

static void reset_event(struct turn *t) {
  CALL(t, aclrtResetEvent, (shelf_any(t, EVENTS), shelf_any(t, STREAMS)), EVENT_CODES, STREAM_CODES,
       ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

static void wait_for_event(struct turn *t) {
  aclrtEvent event = shelf_any(t, EVENTS);
  aclrtStream stream = shelf_any(t, STREAMS);
  switch (pick(t, 3)) {
    case 0:
      CALL(t, aclrtStreamWaitEvent, (stream, event), EVENT_CODES, STREAM_CODES);
      break;
    case 1:
      CALL(t, aclrtStreamWaitEventWithTimeout, (stream, event, (int32_t)pick(t, 2)), EVENT_CODES,
           STREAM_CODES);
      break;
    default:
      CALL(t, aclrtStreamWaitEventWithFlag, (stream, event, 1, ACL_EVENT_WAIT_EXTERNAL),
           EVENT_CODES, STREAM_CODES);
  }
}

static void synchronize_event(struct turn *t) {
  aclrtEvent event = shelf_any(t, EVENTS);
  if (chance(t, 2))
    CALL(t, aclrtSynchronizeEvent, (event), EVENT_CODES);
  else
    CALL(t, aclrtSynchronizeEventWithTimeout, (event, (int32_t)pick(t, 10) + 1), EVENT_CODES,
         ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
}

static void ask_about_event(struct turn *t) {
  aclrtEvent event = shelf_any(t, EVENTS);
  aclrtEventStatus old;
  aclrtEventRecordedStatus recorded;
  aclrtEventWaitStatus waits;
  uint64_t stamp = 0;
  uint32_t number = 0;
  float ms = 0;
  CALL(t, aclrtQueryEvent, (event, &old), EVENT_CODES, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CALL(t, aclrtQueryEventStatus, (event, &recorded), EVENT_CODES);
  CALL(t, aclrtQueryEventWaitStatus, (event, &waits), EVENT_CODES);
  CALL(t, aclrtEventElapsedTime, (&ms, event, shelf_any(t, EVENTS)), EVENT_CODES,
       ACL_ERROR_RT_INTERNAL_ERROR, ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  CALL(t, aclrtEventGetTimestamp, (event, &stamp), EVENT_CODES, ACL_ERROR_RT_INTERNAL_ERROR,
       ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  CALL(t, aclrtGetEventId, (event, &number), EVENT_CODES);
  CALL(t, aclrtGetEventAvailNum, (&number), CONTEXT_CODES);
}

static void set_time_limits(struct turn *t) {
  CALL(t, aclrtSetOpWaitTimeout, ((uint32_t)pick(t, 3)), 0);
  CALL(t, aclrtSetOpExecuteTimeOut, ((uint32_t)pick(t, 3)), 0);
}

/* --- notifies: a lost one is never recorded, so all waits have a limit --- */

static void create_notify(struct turn *t) {
  aclrtNotify notify = NULL;
  if (CALL(t, aclrtCreateNotify, (&notify, ACL_NOTIFY_DEFAULT), CONTEXT_CODES) == 0)
    shelf_destroy(t, NOTIFIES, shelf_put(t, NOTIFIES, notify));
}

static void destroy_notify(struct turn *t) { shelf_destroy(t, NOTIFIES, shelf_any(t, NOTIFIES)); }

static void use_notify(struct turn *t) {
  aclrtNotify notify = shelf_any(t, NOTIFIES);
  aclrtStream stream = shelf_any(t, STREAMS);
  uint32_t id = 0;
  CALL(t, aclrtGetNotifyId, (notify, &id), EVENT_CODES);
  if (chance(t, 2))
    CALL(t, aclrtRecordNotify, (notify, stream), EVENT_CODES, STREAM_CODES);
  else
    CALL(t, aclrtWaitAndResetNotify, (notify, stream, (uint32_t)pick(t, 10) + 1), EVENT_CODES,
         STREAM_CODES);
}

/* --- values: the keeper sets the words to 1, 2, 3 and more in turn --- */

static void use_value(struct turn *t) {
  static const uint32_t comparisons[] = {ACL_STREAM_WAIT_VALUE_GEQ, ACL_STREAM_WAIT_VALUE_EQ,
                                         ACL_STREAM_WAIT_VALUE_AND, ACL_STREAM_WAIT_VALUE_NOR};
  uint64_t *word = &stress_words[pick(t, WORDS)];
  const uint64_t value = pick(t, 3) + 1;
  aclrtStream stream = shelf_any(t, STREAMS);
  if (chance(t, 3))
    CALL(t, aclrtValueWait, (word, value, comparisons[pick(t, 4)], stream), STREAM_CODES);
  else
    CALL(t, aclrtValueWrite, (word, value, 0, stream), STREAM_CODES);
}

/* A wait that nothing satisfies, in a context that only aclFinalize could end, and its end.  When
 * aclFinalize is faster the stream is out of reach, and it gives up the wait after a second; seldom
 * that, since all other threads wait meanwhile. */
static void end_an_endless_wait(struct turn *t) {
  uint64_t *word = fresh(t, sizeof *word);
  aclrtContext context = NULL;
  aclrtStream stream = NULL;
  aclrtNotify notify = NULL;
  if (word == NULL || CALL(t, aclrtCreateContext, (&context, 0), 0) != 0) return;
  __atomic_store_n(word, 0, __ATOMIC_RELAXED);
  if (CALL(t, aclrtCreateStream, (&stream), CONTEXT_CODES) == 0) {
    if (!chance(t, 8))
      CALL(t, aclrtValueWait, (word, 1, ACL_STREAM_WAIT_VALUE_EQ, stream), STREAM_CODES);
    else if (CALL(t, aclrtCreateNotify, (&notify, ACL_NOTIFY_DEFAULT), CONTEXT_CODES) == 0)
      CALL(t, aclrtWaitAndResetNotify, (notify, stream, 0), STREAM_CODES);
    CALL(t, aclrtSynchronizeStreamWithTimeout, (stream, 1), STREAM_CODES, OUTCOMES,
         ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if (chance(t, 2))
      CALL(t, aclrtDestroyStreamForce, (stream), STREAM_CODES);
    else
      CALL(t, aclrtStreamAbort, (stream), STREAM_CODES);
    CALL(t, aclrtSynchronizeStream, (stream), STREAM_CODES, OUTCOMES);
    if (notify != NULL) CALL(t, aclrtDestroyNotify, (notify), ACL_ERROR_RT_INVALID_HANDLE);
  }
  CALL(t, aclrtDestroyContext, (context), CONTEXT_CODES);
  __atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

const struct row event_rows[] = {
    ROW(create_event, 40, ANY_WEATHER),       ROW(destroy_event, 15, ENDS),
    ROW(record_event, 60, ANY_WEATHER),       ROW(reset_event, 10, ANY_WEATHER),
    ROW(wait_for_event, 50, ANY_WEATHER),     ROW(synchronize_event, 40, ANY_WEATHER),
    ROW(ask_about_event, 20, ANY_WEATHER),    ROW(set_time_limits, 4, ANY_WEATHER),
    ROW(create_notify, 15, ANY_WEATHER),      ROW(destroy_notify, 8, ANY_WEATHER),
    ROW(use_notify, 30, ANY_WEATHER),         ROW(use_value, 25, ANY_WEATHER),
    ROW(end_an_endless_wait, 4, ANY_WEATHER), {NULL, 0, 0, NULL},
};
